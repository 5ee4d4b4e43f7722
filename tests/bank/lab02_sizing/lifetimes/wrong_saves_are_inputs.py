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
