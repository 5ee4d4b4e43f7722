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
