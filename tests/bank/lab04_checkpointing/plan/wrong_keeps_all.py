"""Keeps every output."""


def plan(stages, budget_bytes):
    return list(range(len(stages) - 1))
