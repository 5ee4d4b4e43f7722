# %% right: stack
"""A stack of starts and of the children's times."""

import time


def module_times(model, x):
    names = {module: name for name, module in model.named_modules()}
    seconds = dict.fromkeys(names.values(), 0.0)
    running = []

    def begin(module, inputs):
        running.append([time.perf_counter(), 0.0])

    def end(module, inputs, output):
        start, of_children = running.pop()
        took = time.perf_counter() - start
        seconds[names[module]] += took - of_children
        if running:
            running[-1][1] += took

    handles = [module.register_forward_pre_hook(begin) for module in names]
    handles += [module.register_forward_hook(end) for module in names]
    model(x)
    for handle in handles:
        handle.remove()
    return seconds


# %% right: whole_less_children
"""Whole times first; then each child's is taken off its parent's."""

from time import perf_counter


def module_times(model, x):
    whole, starts, handles = {}, [], []
    for name, module in model.named_modules():

        def begin(module, inputs):
            starts.append(perf_counter())

        def end(module, inputs, output, name=name):
            whole[name] = whole.get(name, 0.0) + perf_counter() - starts.pop()

        handles += [module.register_forward_pre_hook(begin), module.register_forward_hook(end)]
    model(x)
    for handle in handles:
        handle.remove()
    own = dict(whole)
    for name, took in whole.items():
        parent = name
        while parent:  # the nearest one that ran: a ModuleList has no forward
            parent = parent.rpartition(".")[0]
            if parent in own:
                own[parent] -= took
                break
    return own


# %% right: one_mark
"""All time since the last event belongs to the innermost module that runs."""

import time


def module_times(model, x):
    seconds, running, mark = {}, [], [0]
    names = {id(module): name for name, module in model.named_modules()}

    def charge():
        now = time.perf_counter_ns()
        if running:
            seconds[running[-1]] = seconds.get(running[-1], 0) + (now - mark[0]) / 1e9
        mark[0] = now

    def begin(module, inputs):
        charge()
        running.append(names[id(module)])

    def end(module, inputs, output):
        charge()
        running.pop()

    handles = []
    for module in model.modules():
        handles.append(module.register_forward_pre_hook(begin))
        handles.append(module.register_forward_hook(end))
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return seconds


# %% wrong: children_included
"""Whole times."""

import time


def module_times(model, x):
    names = {module: name for name, module in model.named_modules()}
    seconds = dict.fromkeys(names.values(), 0.0)
    running = []

    def begin(module, inputs):
        running.append([time.perf_counter(), 0.0])

    def end(module, inputs, output):
        start, of_children = running.pop()
        took = time.perf_counter() - start
        seconds[names[module]] += took
        if running:
            running[-1][1] += took

    handles = [module.register_forward_pre_hook(begin) for module in names]
    handles += [module.register_forward_hook(end) for module in names]
    model(x)
    for handle in handles:
        handle.remove()
    return seconds


# %% wrong: last_call_only
"""The last call's time replaces the others."""

import time


def module_times(model, x):
    names = {module: name for name, module in model.named_modules()}
    seconds = dict.fromkeys(names.values(), 0.0)
    running = []

    def begin(module, inputs):
        running.append([time.perf_counter(), 0.0])

    def end(module, inputs, output):
        start, of_children = running.pop()
        took = time.perf_counter() - start
        seconds[names[module]] = took - of_children
        if running:
            running[-1][1] += took

    handles = [module.register_forward_pre_hook(begin) for module in names]
    handles += [module.register_forward_hook(end) for module in names]
    model(x)
    for handle in handles:
        handle.remove()
    return seconds


# %% wrong: last_call_with_children
"""A dict of starts and of whole times."""

import time


def module_times(model, x):
    starts, seconds, handles = {}, {}, []
    for name, module in model.named_modules():

        def begin(module, inputs, name=name):
            starts[name] = time.perf_counter()

        def end(module, inputs, output, name=name):
            seconds[name] = time.perf_counter() - starts[name]

        handles += [module.register_forward_pre_hook(begin), module.register_forward_hook(end)]
    model(x)
    for handle in handles:
        handle.remove()
    return seconds


# %% wrong: leaves_only
"""Only modules without children are timed."""

import time


def module_times(model, x):
    names = {module: name for name, module in model.named_modules()}
    seconds = dict.fromkeys(names.values(), 0.0)
    running = []

    def begin(module, inputs):
        running.append([time.perf_counter(), 0.0])

    def end(module, inputs, output):
        start, of_children = running.pop()
        took = time.perf_counter() - start
        seconds[names[module]] += took - of_children
        if running:
            running[-1][1] += took

    leaves = [module for module in names if not list(module.children())]
    handles = [module.register_forward_pre_hook(begin) for module in leaves]
    handles += [module.register_forward_hook(end) for module in leaves]
    model(x)
    for handle in handles:
        handle.remove()
    return seconds


# %% wrong: root_left_out
"""The model's own time is dropped."""

import time


def module_times(model, x):
    names = {module: name for name, module in model.named_modules()}
    seconds = dict.fromkeys(names.values(), 0.0)
    running = []

    def begin(module, inputs):
        running.append([time.perf_counter(), 0.0])

    def end(module, inputs, output):
        start, of_children = running.pop()
        took = time.perf_counter() - start
        seconds[names[module]] += took - of_children
        if running:
            running[-1][1] += took

    handles = [module.register_forward_pre_hook(begin) for module in names]
    handles += [module.register_forward_hook(end) for module in names]
    model(x)
    for handle in handles:
        handle.remove()
    if len(seconds) > 1:
        del seconds[""]
    return seconds


# %% wrong: milliseconds
"""Times a thousand."""

import time


def module_times(model, x):
    names = {module: name for name, module in model.named_modules()}
    seconds = dict.fromkeys(names.values(), 0.0)
    running = []

    def begin(module, inputs):
        running.append([time.perf_counter(), 0.0])

    def end(module, inputs, output):
        start, of_children = running.pop()
        took = time.perf_counter() - start
        seconds[names[module]] += 1000 * (took - of_children)
        if running:
            running[-1][1] += took

    handles = [module.register_forward_pre_hook(begin) for module in names]
    handles += [module.register_forward_hook(end) for module in names]
    model(x)
    for handle in handles:
        handle.remove()
    return seconds


# %% wrong: another_clock
"""The clock is bound when the function is defined."""

import time


def module_times(model, x, clock=time.perf_counter):
    names = {module: name for name, module in model.named_modules()}
    seconds = dict.fromkeys(names.values(), 0.0)
    running = []

    def begin(module, inputs):
        running.append([clock(), 0.0])

    def end(module, inputs, output):
        start, of_children = running.pop()
        took = clock() - start
        seconds[names[module]] += took - of_children
        if running:
            running[-1][1] += took

    handles = [module.register_forward_pre_hook(begin) for module in names]
    handles += [module.register_forward_hook(end) for module in names]
    model(x)
    for handle in handles:
        handle.remove()
    return seconds


# %% wrong: hooks_left
"""Hooks stay."""

import time


def module_times(model, x):
    names = {module: name for name, module in model.named_modules()}
    seconds = dict.fromkeys(names.values(), 0.0)
    running = []

    def begin(module, inputs):
        running.append([time.perf_counter(), 0.0])

    def end(module, inputs, output):
        start, of_children = running.pop()
        took = time.perf_counter() - start
        seconds[names[module]] += took - of_children
        if running:
            running[-1][1] += took

    handles = [module.register_forward_pre_hook(begin) for module in names]
    handles += [module.register_forward_hook(end) for module in names]
    model(x)
    return seconds
