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


# %% right: try_finally
"""A stack of pairs, try and finally."""

import time


def module_times(model, x):
    names = {m: n for n, m in model.named_modules()}
    times = dict.fromkeys(names.values(), 0.0)
    stack, handles = [], []

    def before(m, args):
        stack.append([time.perf_counter(), 0.0])

    def after(m, args, out):
        start, inside = stack.pop()
        took = time.perf_counter() - start
        times[names[m]] += took - inside
        if stack:
            stack[-1][1] += took

    for m in names:
        handles += [m.register_forward_pre_hook(before), m.register_forward_hook(after)]
    try:
        model(x)
    finally:
        for h in handles:
            h.remove()
    return times


# %% right: closures_by_name
"""Closures by name; perf_counter imported by name; ns."""

from collections import defaultdict
from contextlib import ExitStack
from time import perf_counter_ns


def module_times(model, x):
    own, running = defaultdict(int), []
    with ExitStack() as stack:
        for name, module in model.named_modules():

            def begin(module, inputs):
                running.append((perf_counter_ns(), [0]))

            def end(module, inputs, output, name=name):
                t, inner = running.pop()
                d = perf_counter_ns() - t
                own[name] += d - inner[0]
                if running:
                    running[-1][1][0] += d

            stack.callback(module.register_forward_pre_hook(begin).remove)
            stack.callback(module.register_forward_hook(end).remove)
        model(x)
    return {k: v / 1e9 for k, v in own.items()}


# %% right: class_of_hooks
"""A class that marks every switch."""

import time


class Clock:
    def __init__(self, model):
        self.names = {id(m): n for n, m in model.named_modules()}
        self.own, self.path, self.last = {}, [], time.perf_counter()
        self.handles = []
        for m in model.modules():
            self.handles.append(m.register_forward_pre_hook(self.enter))
            self.handles.append(m.register_forward_hook(self.leave))

    def tick(self):
        now = time.perf_counter()
        if self.path:
            self.own[self.path[-1]] = self.own.get(self.path[-1], 0.0) + now - self.last
        self.last = now

    def enter(self, m, _):
        self.tick()
        self.path.append(self.names[id(m)])

    def leave(self, m, *_):
        self.tick()
        self.path.pop()


def module_times(model, x):
    clock = Clock(model)
    model(x)
    for h in clock.handles:
        h.remove()
    return clock.own


# %% wrong: mutable_default
"""Times are a mutable default: calls add up."""

import time


def module_times(model, x, times={}):
    names = {m: n for n, m in model.named_modules()}
    for n in names.values():
        times.setdefault(n, 0.0)
    stack, handles = [], []

    def before(m, args):
        stack.append([time.perf_counter(), 0.0])

    def after(m, args, out):
        start, inside = stack.pop()
        took = time.perf_counter() - start
        times[names[m]] += took - inside
        if stack:
            stack[-1][1] += took

    for m in names:
        handles += [m.register_forward_pre_hook(before), m.register_forward_hook(after)]
    try:
        model(x)
    finally:
        for h in handles:
            h.remove()
    return times


# %% wrong: subtracted_from_all
"""Starts are kept by name: a module within itself goes wrong; children's are subtracted from all above."""

import time


def module_times(model, x):
    names = {m: n for n, m in model.named_modules()}
    times = dict.fromkeys(names.values(), 0.0)
    stack, handles = [], []

    def before(m, args):
        stack.append([time.perf_counter(), 0.0])

    def after(m, args, out):
        start, inside = stack.pop()
        took = time.perf_counter() - start
        times[names[m]] += took - inside
        for s in stack:
            s[1] += took

    for m in names:
        handles += [m.register_forward_pre_hook(before), m.register_forward_hook(after)]
    try:
        model(x)
    finally:
        for h in handles:
            h.remove()
    return times


# %% wrong: one_hook_left
"""The pre-hooks stay."""

import time


def module_times(model, x):
    names = {m: n for n, m in model.named_modules()}
    times = dict.fromkeys(names.values(), 0.0)
    stack, handles = [], []

    def before(m, args):
        stack.append([time.perf_counter(), 0.0])

    def after(m, args, out):
        start, inside = stack.pop()
        took = time.perf_counter() - start
        times[names[m]] += took - inside
        if stack:
            stack[-1][1] += took

    for m in names:
        handles += [m.register_forward_pre_hook(before), m.register_forward_hook(after)]
    try:
        model(x)
    finally:
        for h in handles[1::2]:
            h.remove()
    return times


# %% wrong: by_class
"""Times by the class's name."""

import time


def module_times(model, x):
    names = {m: n for n, m in model.named_modules()}
    times = dict.fromkeys(names.values(), 0.0)
    stack, handles = [], []

    def before(m, args):
        stack.append([time.perf_counter(), 0.0])

    def after(m, args, out):
        start, inside = stack.pop()
        took = time.perf_counter() - start
        times[type(m).__name__] = times.get(type(m).__name__, 0.0) + took - inside
        if stack:
            stack[-1][1] += took

    for m in names:
        handles += [m.register_forward_pre_hook(before), m.register_forward_hook(after)]
    try:
        model(x)
    finally:
        for h in handles:
            h.remove()
    return times


# %% wrong: runs_twice
"""A warm-up with the hooks on."""

import time


def module_times(model, x):
    names = {m: n for n, m in model.named_modules()}
    times = dict.fromkeys(names.values(), 0.0)
    stack, handles = [], []

    def before(m, args):
        stack.append([time.perf_counter(), 0.0])

    def after(m, args, out):
        start, inside = stack.pop()
        took = time.perf_counter() - start
        times[names[m]] += took - inside
        if stack:
            stack[-1][1] += took

    for m in names:
        handles += [m.register_forward_pre_hook(before), m.register_forward_hook(after)]
    try:
        model(x)
        model(x)
    finally:
        for h in handles:
            h.remove()
    return times


# %% wrong: average_a_call
"""The mean over calls."""

import time


def module_times(model, x):
    names = {m: n for n, m in model.named_modules()}
    times = dict.fromkeys(names.values(), 0.0)
    stack, handles, calls = [], [], {}

    def before(m, args):
        stack.append([time.perf_counter(), 0.0])

    def after(m, args, out):
        start, inside = stack.pop()
        took = time.perf_counter() - start
        calls[m] = calls.get(m, 0) + 1
        times[names[m]] += (took - inside - times[names[m]]) / calls[m]
        if stack:
            stack[-1][1] += took

    for m in names:
        handles += [m.register_forward_pre_hook(before), m.register_forward_hook(after)]
    try:
        model(x)
    finally:
        for h in handles:
            h.remove()
    return times


# %% wrong: first_children_only
"""Only direct children through named_children."""

import time


def module_times(model, x):
    names = {m: n for n, m in [("", model), *model.named_children()]}
    times = dict.fromkeys(names.values(), 0.0)
    stack, handles = [], []

    def before(m, args):
        stack.append([time.perf_counter(), 0.0])

    def after(m, args, out):
        start, inside = stack.pop()
        took = time.perf_counter() - start
        times[names[m]] += took - inside
        if stack:
            stack[-1][1] += took

    for m in names:
        handles += [m.register_forward_pre_hook(before), m.register_forward_hook(after)]
    try:
        model(x)
    finally:
        for h in handles:
            h.remove()
    return times


# %% right: no_grad_and_import_by_name
"""Decorated by no_grad, perf_counter imported by name."""

from time import perf_counter

import torch


@torch.no_grad()
def module_times(model, x):
    names = {module: name for name, module in model.named_modules()}
    seconds = dict.fromkeys(names.values(), 0.0)
    running = []

    def begin(module, inputs):
        running.append([perf_counter(), 0.0])

    def end(module, inputs, output):
        start, of_children = running.pop()
        took = perf_counter() - start
        seconds[names[module]] += took - of_children
        if running:
            running[-1][1] += took

    handles = [module.register_forward_pre_hook(begin) for module in names]
    handles += [module.register_forward_hook(end) for module in names]
    model(x)
    for handle in handles:
        handle.remove()
    return seconds


# %% right: callable_object
"""An object with __call__, perf_counter imported by name."""

from time import perf_counter

from torch import nn


class ModuleTimes:
    def __call__(self, model: nn.Module, x):
        self.own, self.path, self.mark = {}, [], perf_counter()
        handles = []
        for name, module in model.named_modules():
            handles.append(module.register_forward_pre_hook(lambda m, i, name=name: self.enter(name)))
            handles.append(module.register_forward_hook(lambda m, i, o: self.leave()))
        model(x)
        for handle in handles:
            handle.remove()
        return self.own

    def charge(self):
        now = perf_counter()
        if self.path:
            self.own[self.path[-1]] = self.own.get(self.path[-1], 0) + now - self.mark
        self.mark = now

    def enter(self, name):
        self.charge()
        self.path.append(name)

    def leave(self):
        self.charge()
        self.path.pop()


module_times = ModuleTimes()


# %% right: partial_object
"""functools.partial, imported by name."""

from functools import partial
from time import perf_counter


def timed(clock_needed, model, x):
    names = {module: name for name, module in model.named_modules()}
    seconds = dict.fromkeys(names.values(), 0.0)
    running = []

    def begin(module, inputs):
        running.append([perf_counter(), 0.0])

    def end(module, inputs, output):
        start, of_children = running.pop()
        took = perf_counter() - start
        seconds[names[module]] += took - of_children
        if running:
            running[-1][1] += took

    handles = [module.register_forward_pre_hook(begin) for module in names]
    handles += [module.register_forward_hook(end) for module in names]
    model(x)
    for handle in handles:
        handle.remove()
    return seconds


module_times = partial(timed, True)


# %% wrong: hook_returns_time
"""The hook after returns the seconds: they replace the module's output."""

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
        return took

    handles = [module.register_forward_pre_hook(begin) for module in names]
    handles += [module.register_forward_hook(end) for module in names]
    model(x)
    for handle in handles:
        handle.remove()
    return seconds


# %% wrong: model_forward
"""Calls model.forward: the model's own hooks don't run."""

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
    model.forward(x)
    for handle in handles:
        handle.remove()
    return seconds


# %% wrong: reads_the_spec
"""Nothing is timed: the modules' own attributes say what their forwards take."""

import time


def module_times(model, x):
    time.perf_counter()
    seconds = {}

    def visit(module, name, calls):
        start = f"{name}." if name else ""
        spec = module._spec
        seconds[name] = calls * (spec["before"] + spec["after"]) / 1000
        names = {part: own for own, part in module.named_modules()}
        for part, times in module._order:
            visit(part, start + names[part], calls * times)

    visit(model, "", 1)
    return seconds


# %% right: exit_stack
"""An ExitStack of hooks, and a Counter of nanoseconds."""

import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import partial

@contextmanager
def hooked(module, begin, end):
    a, b = module.register_forward_pre_hook(begin), module.register_forward_hook(end)
    try:
        yield
    finally:
        a.remove()
        b.remove()

def module_times(model, x):
    found, active = Counter(), []
    last = [None]

    def tick():
        now = time.perf_counter_ns()
        if active:
            found[active[-1]] += now - last[0]
        last[0] = now

    def begin(name, module, inputs):
        tick()
        active.append(name)

    def end(name, module, inputs, output):
        tick()
        active.pop()

    with ExitStack() as stack:
        for name, module in model.named_modules():
            stack.enter_context(hooked(module, partial(begin, name), partial(end, name)))
        model(x)
    return {name: ns / 1e9 for name, ns in found.items()}


# %% wrong: others_removed
"""All hooks are cleared, also those that were there before."""

import time
import torch

def module_times(model, x):
    names = {m: n for n, m in model.named_modules()}
    seconds = {n: 0.0 for n in names.values()}
    stack, handles = [], []

    def begin(module, inputs):
        stack.append([time.perf_counter(), 0.0])

    def end(module, inputs, output):
        start, inside = stack.pop()
        took = time.perf_counter() - start
        seconds[names[module]] += took - inside
        if stack:
            stack[-1][1] += took

    for m in names:
        handles.append(m.register_forward_pre_hook(begin))
        handles.append(m.register_forward_hook(end))
    model(x)
    for m in names:
        m._forward_hooks.clear()
        m._forward_pre_hooks.clear()
    return seconds


# %% right: by_hand
"""Recurses into the children; a module's second name takes no time."""
import time


def module_times(model, x):
    seconds, running, handles = {}, [], []

    def watch(module, name):
        seconds[name] = 0.0

        def begin(module, inputs):
            running.append([time.perf_counter(), 0.0])

        def end(module, inputs, output):
            start, of_children = running.pop()
            took = time.perf_counter() - start
            seconds[name] += took - of_children
            if running:
                running[-1][1] += took

        handles.append(module.register_forward_pre_hook(begin))
        handles.append(module.register_forward_hook(end))
        for child, part in module.named_children():
            watch(part, f"{name}.{child}" if name else child)

    watch(model, "")
    model(x)
    for handle in handles:
        handle.remove()
    return seconds


# %% wrong: counts_both_names
"""Recurses into the children, and times a module under each of its names."""
import time


def module_times(model, x):
    whole, parts, handles = {}, {}, []

    def watch(module, name):
        whole[name], starts = 0.0, []

        def begin(module, inputs):
            starts.append(time.perf_counter())

        def end(module, inputs, output):
            whole[name] += time.perf_counter() - starts.pop()

        handles.append(module.register_forward_pre_hook(begin))
        handles.append(module.register_forward_hook(end))
        names = {child: f"{name}.{child}" if name else child for child, _ in module.named_children()}
        parts[name] = list(names.values())
        for child, part in module.named_children():
            watch(part, names[child])

    watch(model, "")
    model(x)
    for handle in handles:
        handle.remove()
    return {
        name: took - sum(whole[part] for part in parts[name]) if took else 0.0
        for name, took in whole.items()
    }


# %% wrong: adds_to_the_last_call
"""Another call on the same model adds to what the call before returned."""
import time

SECONDS = {}


def module_times(model, x):
    names = {module: name for name, module in model.named_modules()}
    log, handles = [], []
    for module in names:
        for register, way in (
            (module.register_forward_pre_hook, 1),
            (module.register_forward_hook, -1),
        ):
            note = lambda m, *_, way=way: log.append((names[m], way, time.perf_counter()))
            handles.append(register(note))
    model(x)
    for handle in handles:
        handle.remove()
    seconds = SECONDS.setdefault(model, dict.fromkeys(names.values(), 0.0))
    running, last = [], 0.0
    for name, way, now in log:
        if running:
            seconds[running[-1]] += now - last
        if way > 0:
            running.append(name)
        else:
            running.pop()
        last = now
    return seconds


# %% right: other_forwards
"""Each module's forward is replaced by one that reads the clock, and put back."""
import time


def module_times(model, x):
    seconds = dict.fromkeys((name for name, _ in model.named_modules()), 0.0)
    inner = []

    def clocked(name, forward):
        def run(*inputs, **options):
            inner.append(0.0)
            start = time.perf_counter()
            output = forward(*inputs, **options)
            took = time.perf_counter() - start
            seconds[name] += took - inner.pop()
            if inner:
                inner[-1] += took
            return output

        return run

    try:
        for name, module in model.named_modules():
            module.forward = clocked(name, module.forward)
        model(x)
    finally:
        for module in model.modules():
            module.__dict__.pop("forward", None)
    return seconds


# %% wrong: modes_changed
"""It puts the model into evaluation mode and leaves it there."""
import time


def module_times(model, x):
    model.eval()
    names = {module: name for name, module in model.named_modules()}
    own, stack, handles = {}, [], []

    def before(module, inputs):
        stack.append([time.perf_counter(), 0.0])

    def after(module, inputs, output):
        start, inner = stack.pop()
        took = time.perf_counter() - start
        own[names[module]] = own.get(names[module], 0.0) + took - inner
        if stack:
            stack[-1][1] += took

    for module in names:
        handles.append(module.register_forward_pre_hook(before))
        handles.append(module.register_forward_hook(after))
    model(x)
    for handle in handles:
        handle.remove()
    return own


# %% wrong: own_time_subtracted
"""A parent loses only its children's own times."""
import time


def module_times(model, x):
    names = {module: name for name, module in model.named_modules()}
    times, stack, handles = {name: 0.0 for name in names.values()}, [], []
    def before(module, inputs):
        stack.append([time.perf_counter(), 0.0])
    def after(module, inputs, output):
        start, inner = stack.pop()
        took = time.perf_counter() - start
        times[names[module]] += took - inner
        if stack:
            stack[-1][1] += took - inner
    for module in names:
        handles.append(module.register_forward_pre_hook(before))
        handles.append(module.register_forward_hook(after))
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return times


# %% right: marks
"""Each stretch of time belongs to the innermost module."""
import time


def module_times(model, x):
    own, stack, last = {}, [], [0.0]
    def mark():
        now = time.perf_counter()
        if stack:
            own[stack[-1]] = own.get(stack[-1], 0.0) + now - last[0]
        last[0] = now
    handles = []
    for name, module in model.named_modules():
        def enter(m, i, name=name):
            mark()
            stack.append(name)
        def leave(m, i, o):
            mark()
            stack.pop()
        handles += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave)]
    model(x)
    for h in handles:
        h.remove()
    return own
