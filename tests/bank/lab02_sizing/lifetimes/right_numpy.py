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
