"""lifetimes and live_bytes: how long tensors live, and the bytes live at each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograder.content.lab02.answers import exact_bytes
from autograder.model.compare import by_reference, show
from autograder.model.task import Case, Task

__all__ = ["lifetimes", "live_bytes"]

_Graph = Sequence[dict[str, Any]]
_Lives = list[tuple[str, int, int]]

# lifetimes


def _lives(
    graph: _Graph,
    training: bool,
    backward: Callable[[int, int], int] = lambda i, n: 2 * n - 1 - i,
    keys: tuple[str, str] = ("inputs", "saves"),
) -> _Lives:
    """The reference; mutants move the backward steps or read another list of names."""
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        steps = [(name, i) for name in op[keys[0]]]
        if training:
            steps += [(name, backward(i, n)) for name in op[keys[1]]]
        for name, step in steps:
            if name in last:
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


def _all_kept(graph: _Graph, training: bool) -> _Lives:
    """Every output waits for its own backward, saved or not."""
    n = len(graph)
    lives = _lives(graph, training)
    if not training:
        return lives
    return [(name, i, max(last, 2 * n - 1 - i)) for i, (name, _, last) in enumerate(lives)]


def _own_saves_only(graph: _Graph, training: bool) -> _Lives:
    own = [{**op, "saves": [name for name in op["saves"] if name == op["name"]]} for op in graph]
    return _lives(own, training)


def _last_overwritten(graph: _Graph, training: bool) -> _Lives:
    """Each reader's step replaces the previous one, even if it is earlier."""
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        steps = dict.fromkeys(op["inputs"], i)
        if training:
            steps |= dict.fromkeys(op["saves"], 2 * n - 1 - i)
        last |= {name: step for name, step in steps.items() if name in last}
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


def _next_step_only(graph: _Graph, training: bool) -> _Lives:
    """Every output is used only by the next operation, as in a chain."""
    chain = [{**op, "inputs": [graph[i - 1]["name"]] if i else []} for i, op in enumerate(graph)]
    return _lives(chain, training)


def _first_input_only(graph: _Graph, training: bool) -> _Lives:
    return _lives([{**op, "inputs": op["inputs"][:1]} for op in graph], training)


def _sources_listed(graph: _Graph, training: bool) -> _Lives:
    made = {op["name"] for op in graph}
    sources = dict.fromkeys(name for op in graph for name in op["inputs"] if name not in made)
    uses = [[i for i, op in enumerate(graph) if name in op["inputs"]] for name in sources]
    return [(name, 0, max(use)) for name, use in zip(sources, uses, strict=True)] + _lives(
        graph, training
    )


def _random_graph(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Operations that each read one or two values, some made long before, and save any or none.

    No operation makes two of the values, and their names are unpredictable.
    """
    sources = rng.choice(["x", "tokens", "mask", "image", "x0", "input"], 2, replace=False)
    names = [str(name) for name in sources]
    graph = []
    for i in range(int(rng.integers(4, 12))):
        inputs = [names[-1]]
        if i and rng.random() < 0.4:
            # At a random place, so that the latest is neither always the first nor always the last.
            inputs.insert(int(rng.integers(2)), names[int(rng.integers(len(names)))])
        name = f"t{i}"
        old = names[int(rng.integers(len(names)))]  # backward may need what forward doesn't
        chances = {old: 0.2} | dict.fromkeys([*inputs, name], 0.4)
        saves = [value for value, chance in chances.items() if rng.random() < chance]
        size = int(rng.integers(1, 1000))
        graph.append({"name": name, "inputs": inputs, "output_bytes": size, "saves": saves})
        names.append(name)
    return graph


def _op(name: str, inputs: str, saves: str, size: int = 4) -> dict[str, Any]:
    return {
        "name": name,
        "inputs": inputs.split(),
        "output_bytes": size,
        "saves": saves.split(),
    }


_CHAIN = [_op("a", "x", "x"), _op("b", "a", "a"), _op("c", "b", "c"), _op("d", "c", "")]
_RESIDUAL = [_op("h", "x", "x"), _op("a", "h", "h"), _op("r", "h a", ""), _op("y", "r", "r")]
_UNSAVED = [_op("h", "x", ""), _op("a", "h", ""), _op("b", "a", ""), _op("y", "b h", "")]
_UNREAD = [_op("a", "x", ""), _op("b", "a", "x"), _op("c", "b", "a"), _op("d", "c", "")]
_TWICE = [_op("a", "x", "x"), _op("b", "a a", "a"), _op("c", "b", "b"), _op("d", "a c", "a c")]
_MASKED = [_op("a", "tokens", "tokens"), _op("b", "a mask", "mask"), _op("c", "b x", "a b x")]
# An operation without inputs, one with three, and names that are contained in others.
_THREE = [_op("h", "x", ""), _op("h2", "h", "h"), _op("bias", "", ""), _op("r", "h2 bias x", "")]
_THREE += [_op("h22", "x h2 r", "x bias h22"), _op("y", "h22", "")]


def _lifetime_cases(rng: np.random.Generator) -> list[Case]:
    drawn = [_random_graph(rng) for _ in range(12)]
    fixed = [_CHAIN, _RESIDUAL, _UNSAVED, _TWICE, _UNREAD, _MASKED]
    fixed += [_THREE, [_op("y", "x", "x")], [_op("y", "x", "y")], []]

    def case(graphs: Sequence[_Graph], training: bool, fixed: bool = False) -> Case:
        part = "training" if training else "inference"
        return Case((part,), {"calls": [[graph, training] for graph in graphs]}, fixed=fixed)

    return [
        *(case(drawn, training) for training in (False, True)),
        *(case(fixed, training, fixed=True) for training in (False, True)),
    ]


lifetimes = Task(
    id="lab02-lifetimes",
    parts={"inference": 1, "training": 2},
    defines=("lifetimes",),
    probe="lifetimes",
    cases=_lifetime_cases,
    judge=by_reference(
        _lives,
        {
            "saves_ignored": lambda graph, training: _lives(graph, False),
            "saves_in_inference": lambda graph, training: _lives(graph, True),
            "backward_one_late": lambda graph, training: _lives(
                graph, training, lambda i, n: 2 * n - i
            ),
            "backward_in_order": lambda graph, training: _lives(
                graph, training, lambda i, n: n + i
            ),
            "all_kept": _all_kept,
            "own_saves_only": _own_saves_only,
            "saves_are_inputs": lambda graph, training: _lives(
                graph, training, keys=("inputs", "inputs")
            ),
            "last_overwritten": _last_overwritten,
            "next_step_only": _next_step_only,
            "first_input_only": _first_input_only,
            "last_excluded": lambda graph, training: [
                (name, first, last + 1) for name, first, last in _lives(graph, training)
            ],
            "sources_listed": _sources_listed,
        },
        write=lambda graph, training: f"lifetimes({show(graph, 900)}, {training})",
        item="operation",
    ),
    mistakes={
        "saves_ignored": "In training, a value that an operation saves lives until that "
        "operation's backward step; yours is freed after its last reader, as in inference.",
        "saves_in_inference": "In inference there is no backward pass, so nothing waits for it.",
        "backward_one_late": "Steps count from 0: the last operation, n-1, has its backward at "
        "step n, so operation i has its backward at step 2n-1-i. Yours is one step later.",
        "backward_in_order": "The backward pass runs in reverse: the last operation comes first. "
        "Operation i's backward is at step 2n-1-i, not n+i.",
        "saves_are_inputs": "Not every operation saves its inputs: `saves` lists the values that "
        "its backward needs.",
        "all_kept": "An output that no operation saves doesn't stay until the backward pass; you "
        "keep them all.",
        "own_saves_only": "An operation may save its inputs, which other operations made: look "
        "for the name in every operation's `saves`.",
        "last_overwritten": "You overwrite the step each time, so an earlier step can replace a "
        "later one. Only raise the last step, with `max`.",
        "next_step_only": "Any later operation may read a value, as in a residual connection, not "
        "only the next one.",
        "first_input_only": "An operation may read several values: look at all its `inputs`, not "
        "only the first.",
        "last_excluded": "last_step is the last step at which the value lives, not the one after.",
        "sources_listed": "Don't list names that no operation makes, such as the network's input.",
    },
)


# live_bytes


def _live(tensors: Sequence[Sequence[int]], n_steps: int) -> list[int]:
    return [
        sum(size for size, first, last in tensors if first <= step <= last)
        for step in range(n_steps)
    ]


def _wrapped(tensors: Sequence[Sequence[int]], n_steps: int) -> list[int]:
    """Adds at every step of each tensor; a negative step counts from the end."""
    live = [0] * n_steps
    for size, first, last in tensors:
        for step in range(first, min(last, n_steps - 1) + 1):
            live[step] += size
    return live


def _not_cut(tensors: Sequence[Sequence[int]], n_steps: int) -> list[int]:
    live = [0] * n_steps
    for size, first, last in tensors:
        for step in range(first, last + 1):
            live[step] += size
    return live


def _live_cases(rng: np.random.Generator) -> list[Case]:
    def draw(beyond: int) -> list[object]:
        n_steps = int(rng.integers(6, 20))
        tensors = []
        for _ in range(int(rng.integers(4, 9))):
            first = int(rng.integers(-beyond, n_steps))
            last = int(rng.integers(max(first, 0), n_steps + beyond))
            tensors.append((int(rng.integers(1, 100)), first, last))
        # Two tensors may have all three numbers in common, or only their steps.
        tensors.insert(2, tensors[0])
        tensors.append((int(rng.integers(1, 100)), *tensors[1][1:]))
        return [tensors, n_steps]

    # None of these sums fits into 32 bits.
    two_buffers = [[(10**10, i, i + 1) for i in range(6)], 7]
    grows = [[(10, i, 11 - i) for i in range(6)], 12]
    outside = [[(5, -4, -2), (7, 9, 12), (3, -2, 20), (2, 4, 4)], 5]
    return [
        Case(("bytes",), {"calls": [draw(0) for _ in range(8)]}),
        Case(("bytes",), {"calls": [draw(4) for _ in range(8)]}),
        Case(("bytes",), {"calls": [two_buffers, grows, outside, [[], 3], [[], 0]]}, fixed=True),
    ]


live_bytes = Task(
    id="lab02-live_bytes",
    parts={"bytes": 2},
    defines=("live_bytes",),
    probe="live_bytes",
    cases=_live_cases,
    judge=by_reference(
        _live,
        {
            "negative_steps_wrap": _wrapped,
            "not_cut_off": _not_cut,
            "last_excluded": lambda tensors, n: _live([(b, f, t - 1) for b, f, t in tensors], n),
            "first_excluded": lambda tensors, n: _live([(b, f + 1, t) for b, f, t in tensors], n),
            "never_freed": lambda tensors, n: _live([(b, f, n) for b, f, _ in tensors], n),
            "born_only": lambda tensors, n: _live([(b, f, f) for b, f, _ in tensors], n),
            "equal_rows_merged": lambda tensors, n: _live(list(set(map(tuple, tensors))), n),
            "same_span_merged": lambda tensors, n: _live(
                [(b, f, t) for (f, t), b in {(f, t): b for b, f, t in tensors}.items()], n
            ),
            "tensors_counted": lambda tensors, n: _live([(1, f, t) for _, f, t in tensors], n),
            "floats": lambda tensors, n: list(map(float, _live(tensors, n))),
            "peak_only": lambda tensors, n: max(_live(tensors, n), default=0),
        },
        equal=exact_bytes,
        write=lambda tensors, n: f"live_bytes({show(tensors, 400)}, {n})",
        item="step",
    ),
    mistakes={
        "negative_steps_wrap": "Cut off a tensor's steps before step 0. In Python, index -1 is a "
        "list's last item, so your code adds them to the end.",
        "not_cut_off": "Cut off steps outside 0 ... n_steps - 1: they must not raise an error or "
        "count elsewhere.",
        "last_excluded": "last_step is inclusive: the tensor still lives then.",
        "first_excluded": "The tensor lives from first_step on, including that step.",
        "never_freed": "A tensor is freed after last_step; yours lives to the end.",
        "born_only": "A tensor counts at every step from first_step to last_step, not only at "
        "first_step.",
        "equal_rows_merged": "Two tensors may have the same bytes and steps, and both count. A set "
        "or a dict keeps one of them.",
        "same_span_merged": "Two tensors may live over the same steps, and both count. A dict "
        "keyed by the steps keeps one of them.",
        "tensors_counted": "You count live tensors. Add up their bytes.",
        "floats": "Bytes are whole numbers; you return floats.",
        "peak_only": "Return a list with the bytes at every step; you return only the peak.",
    },
)
