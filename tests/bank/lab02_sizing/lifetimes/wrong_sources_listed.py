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
