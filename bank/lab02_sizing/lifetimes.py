# %% right: backwards
"""Goes backwards through all steps: the first reader met is the last one."""
def lifetimes(graph, training):
    n, last = len(graph), {}
    steps = list(enumerate(op["inputs"] + [op["name"]] for op in graph))
    if training:
        steps += [(n + i, op["saves"]) for i, op in enumerate(reversed(graph))]
    for step, names in reversed(steps):
        for name in names:
            last.setdefault(name, step)
    return [[op["name"], i, last[op["name"]]] for i, op in enumerate(graph)]


# %% right: numpy
"""A matrix of who reads what at which step; numpy's integers."""
import numpy as np


def lifetimes(graph, training):
    n = len(graph)
    index = {op["name"]: i for i, op in enumerate(graph)}
    reads = np.zeros((n, 2 * n), bool)
    for i, op in enumerate(graph):
        reads[i, i] = True
        for name in op["inputs"]:
            if name in index:
                reads[index[name], i] = True
        for name in op["saves"]:
            if training and name in index:
                reads[index[name], 2 * n - 1 - i] = True
    return [(op["name"], i, np.flatnonzero(reads[i])[-1]) for i, op in enumerate(graph)]


# %% right: search_per_output
"""For each output, looks for all of its readers."""
def lifetimes(graph, training):
    n = len(graph)
    answer = []
    for i, op in enumerate(graph):
        steps = [i]
        for j, reader in enumerate(graph):
            if op["name"] in reader["inputs"]:
                steps.append(j)
            if training and op["name"] in reader["saves"]:
                steps.append(2 * n - 1 - j)
        answer.append((op["name"], i, max(steps)))
    return answer


# %% wrong: all_kept
"""Keeps every output for its own backward. [earns 1]"""
def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        reads = [(name, i) for name in op["inputs"]]
        if training:
            reads += [(name, 2 * n - 1 - i) for name in op["saves"] + [op["name"]]]
        for name, step in reads:
            if name in last:
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: backward_in_order
"""Runs the backward pass from first to last. [earns 1]"""
def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        reads = [(name, i) for name in op["inputs"]]
        if training:
            reads += [(name, n + i) for name in op["saves"]]
        for name, step in reads:
            if name in last:
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: backward_one_late
"""Counts backward from 2n. [earns 1]"""
def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        reads = [(name, i) for name in op["inputs"]]
        if training:
            reads += [(name, 2 * n - i) for name in op["saves"]]
        for name, step in reads:
            if name in last:
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: last_excluded
"""Returns the step after the last."""
def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        reads = [(name, i) for name in op["inputs"]]
        if training:
            reads += [(name, 2 * n - 1 - i) for name in op["saves"]]
        for name, step in reads:
            if name in last:
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]] + 1) for i, op in enumerate(graph)]


# %% wrong: next_step_only
"""Takes every graph for a chain."""
def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        reads = [(name, i) for name in ([graph[i - 1]["name"]] if i else [])]
        if training:
            reads += [(name, 2 * n - 1 - i) for name in op["saves"]]
        for name, step in reads:
            if name in last:
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: own_saves_only
"""Looks for an output in its own operation's saves only. [earns 1]"""
def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        reads = [(name, i) for name in op["inputs"]]
        if training:
            reads += [(name, 2 * n - 1 - i) for name in [s for s in op["saves"] if s == op["name"]]]
        for name, step in reads:
            if name in last:
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: saves_are_inputs
"""Every operation saves its inputs. [earns 1]"""
def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        reads = [(name, i) for name in op["inputs"]]
        if training:
            reads += [(name, 2 * n - 1 - i) for name in op["inputs"]]
        for name, step in reads:
            if name in last:
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: saves_ignored
"""Treats training as inference. [earns 1]"""
def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        reads = [(name, i) for name in op["inputs"]]
        if False:
            reads += [(name, 2 * n - 1 - i) for name in op["saves"]]
        for name, step in reads:
            if name in last:
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: saves_in_inference
"""Waits for a backward pass in inference too. [earns 2]"""
def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        reads = [(name, i) for name in op["inputs"]]
        if True:
            reads += [(name, 2 * n - 1 - i) for name in op["saves"]]
        for name, step in reads:
            if name in last:
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: sources_listed
"""Lists the network's input as well."""
def lifetimes(graph, training):
    n = len(graph)
    first, last = {}, {}
    for i, op in enumerate(graph):
        for name in op["inputs"]:
            first.setdefault(name, 0)
            last[name] = max(last.get(name, 0), i)
        first[op["name"]] = i
        last[op["name"]] = max(last.get(op["name"], 0), i)
    made = {op["name"] for op in graph}
    if training:
        for i, op in enumerate(graph):
            for name in op["saves"]:
                if name in made:
                    last[name] = max(last[name], 2 * n - 1 - i)
    sources = [name for name in first if name not in made]
    return [(name, first[name], last[name]) for name in sources + [op["name"] for op in graph]]


# %% wrong: last_overwritten
"""Writes each reader's step over the last one, so an early backward step replaces a later one. [earns 1]"""


def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        for name in op["inputs"]:
            if name in last:
                last[name] = i
        for name in op["saves"] if training else []:
            if name in last:
                last[name] = 2 * n - 1 - i
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: first_input_only
"""Looks at each operation's first input only."""


def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        reads = [(name, i) for name in op["inputs"][:1]]
        if training:
            reads += [(name, 2 * n - 1 - i) for name in op["saves"]]
        for name, step in reads:
            if name in last:
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: saved_where_read
"""Looks for saved names among an operation's inputs and its own name. [earns 1]"""
def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        for name in [*op["inputs"], op["name"]]:
            saved = training and name in op["saves"]
            if name in last:
                last[name] = max(last[name], 2 * n - 1 - i if saved else i)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: last_input_only
"""Looks at each operation's last input only."""
def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        reads = [(op["inputs"][-1], i)]
        if training:
            reads += [(name, 2 * n - 1 - i) for name in op["saves"]]
        for name, step in reads:
            if name in last:
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: skips_x
"""Leaves out the name x, and no other name that nobody makes."""


def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        for name in op["inputs"]:
            if name != "x":
                last[name] = max(last[name], i)
        for name in op["saves"] if training else ():
            if name != "x":
                last[name] = max(last[name], 2 * n - 1 - i)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: first_op_input
"""Takes the first operation's input for the only source."""


def lifetimes(graph, training):
    n = len(graph)
    source = graph[0]["inputs"][0] if graph else ""
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        for name in op["inputs"]:
            if name != source:
                last[name] = max(last[name], i)
        for name in op["saves"] if training else ():
            if name != source:
                last[name] = max(last[name], 2 * n - 1 - i)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: ends_of_inputs
"""Looks at an operation's first and last input. [earns 0]"""


def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        reads = [(name, i) for name in op["inputs"][:1] + op["inputs"][-1:]]
        if training:
            reads += [(name, 2 * n - 1 - i) for name in op["saves"]]
        for name, step in reads:
            if name in last:
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% wrong: parts_of_names
"""Looks for a name in the text of all names. [earns 0]"""


def lifetimes(graph, training):
    n = len(graph)
    lives = []
    for i, op in enumerate(graph):
        last = i
        for j, other in enumerate(graph):
            if j > i and op["name"] in ",".join(other["inputs"]):
                last = max(last, j)
            if training and op["name"] in ",".join(other["saves"]):
                last = max(last, 2 * n - 1 - j)
        lives.append((op["name"], i, last))
    return lives


# %% wrong: at_least_one_input
"""Asks for the first input, which an operation needn't have. [earns 0]"""


def lifetimes(graph, training):
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        first, *others = op["inputs"]
        reads = [(first, i)] + [(name, i) for name in others]
        if training:
            reads += [(name, 2 * n - 1 - i) for name in op["saves"]]
        for name, step in reads:
            if name in last:
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% right: generators_of_steps
"""The largest of all steps that need an output, from a nested generator."""


def steps_of(name, graph, training):
    n = len(graph)
    for i, op in enumerate(graph):
        if op["name"] == name or name in op["inputs"]:
            yield i
        if training and name in op["saves"]:
            yield 2 * n - 1 - i


def lifetimes(graph, training):
    names = [op["name"] for op in graph]
    return [(name, i, max(steps_of(name, graph, training))) for i, name in enumerate(names)]
