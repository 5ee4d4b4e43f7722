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
