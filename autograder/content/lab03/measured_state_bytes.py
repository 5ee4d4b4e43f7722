"""measured_state_bytes: the storages that an optimizer's state holds, each counted once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.model.compare import by_reference
from autograder.model.task import Case, Task
from peakmem.probes.lab03 import is_view

__all__ = ["measured_state_bytes"]


_VALUE_BYTES = {"float32": 4, "float64": 8, "uint8": 1}

State = Mapping[str, Any]  # a state in plain data, as the probe of the same name describes it
View = Mapping[str, Any]


def _views(tree: Any, into: tuple[type[Any], ...] = (dict, list, tuple)) -> Iterator[View]:
    """The views below `tree`, found within containers of these types."""
    if is_view(tree):
        yield tree
    elif isinstance(tree, into):
        parts: Iterable[Any] = tree.values() if isinstance(tree, dict) else tree
        for part in parts:
            yield from _views(part, into)


def _reached(state: State) -> list[View]:
    return list(_views(state["trees"]))


def _bytes(state: State, views: list[View]) -> int:
    return sum(_storage_bytes(state, number) for number in {view["storage"] for view in views})


def _storage_bytes(state: State, number: int) -> int:
    size: int = state["sizes"][number]
    return _VALUE_BYTES[state["dtypes"][number]] * size


def _view_bytes(state: State, view: View) -> int:
    return _VALUE_BYTES[state["dtypes"][view["storage"]]] * _values(view)


def _elements(state: State, value_bytes: int = 1) -> int:
    """Counts each storage's values, or assumes a fixed number of bytes for each."""
    return sum(value_bytes * state["sizes"][n] for n in {v["storage"] for v in _reached(state)})


def _measured(state: State) -> int:
    return _bytes(state, _reached(state))


def _values(view: View) -> int:
    stop: int = view["stop"]
    return stop - int(view["start"])


def _own_values_only(state: State) -> int:
    """Counts the tensors directly in each parameter's state."""
    return _bytes(state, [v for tree in state["trees"] for v in tree.values() if is_view(v)])


def _own_tensors_as_views(state: State) -> int:
    """Adds up the nbytes of the tensors directly in each parameter's state."""
    own = [v for tree in state["trees"] for v in tree.values() if is_view(v)]
    return sum(_view_bytes(state, view) for view in own)


def _without(container: type) -> Callable[[State], int]:
    """Doesn't look into containers of this type within a parameter's state."""
    into = tuple({dict, list, tuple} - {container})

    def mutant(state: State) -> int:
        parts = [part for tree in state["trees"] for part in tree.values()]
        return _bytes(state, [view for part in parts for view in _views(part, into)])

    return mutant


def _reads_each_parameters_state(state: State) -> int | str:
    """Looks up every parameter in the defaultdict, which creates missing entries."""
    return _measured(state) if len(state["trees"]) == len(state["parameters"]) else "changed"


def _changes_what_it_walks(state: State) -> int | str:
    """Removes items from the state's containers, or adds some."""
    return "changed" if any(state["trees"]) else _measured(state)


def _remembers(state: State) -> int | str:
    """Leaves out storages that an earlier call counted."""
    found = _measured(state)
    return "another result when called again" if found else found


def _remembers_the_result(state: State) -> int | str:
    """Returns the same result for an optimizer as last time."""
    found = _measured(state)
    return "the same result for an emptied state" if found else found


def _by_address(state: State) -> int:
    """Mistakes the addresses of views for those of their storages."""
    starts = {(view["storage"], view["start"]) for view in _reached(state)}
    return sum(_storage_bytes(state, storage) for storage, _ in starts)


def _once_a_parameter(state: State) -> int:
    return sum(_bytes(state, list(_views(tree))) for tree in state["trees"])


def _view(storage: int, start: int, stop: int) -> dict[str, int]:
    return {"storage": storage, "start": start, "stop": stop}


def _state(
    parameters: list[int], sizes: list[int], trees: list[Any], dtypes: Sequence[str] = ()
) -> dict[str, Any]:
    dtypes = list(dtypes) or ["float32"] * len(sizes)
    return {"parameters": parameters, "sizes": sizes, "dtypes": dtypes, "trees": trees}


def _adam(rng: np.random.Generator, count: int) -> dict[str, Any]:
    """The state of torch's Adam after its first step: a counter and two moments per parameter."""
    parameters = [int(n) for n in rng.integers(2, 3000, count)]
    sizes: list[int] = []
    trees = []
    for n in parameters:
        trees.append(
            {
                "step": _view(len(sizes), 0, 1),
                "exp_avg": _view(len(sizes) + 1, 0, n),
                "exp_avg_sq": _view(len(sizes) + 2, 0, n),
            }
        )
        sizes += [1, n, n]
    return _state(parameters, sizes, trees)


def _momentum(rng: np.random.Generator) -> dict[str, Any]:
    n, m = (int(size) for size in rng.integers(2, 3000, 2))
    trees = [{"momentum_buffer": _view(0, 0, n)}, {"momentum_buffer": None}]
    return _state([n, m], [n], trees)


def _before(rng: np.random.Generator) -> dict[str, Any]:
    return _state([int(n) for n in rng.integers(2, 3000, 3)], [], [])


def _nested(rng: np.random.Generator) -> dict[str, Any]:
    """L-BFGS's history, and codes with scales, in every kind of container and dtype."""
    n, a, b, c, d, e = (int(size) for size in rng.integers(3, 500, 6))
    deep = [({"rho": [(_view(5, 0, e),)]},)]
    tree = {
        "calls": 7,
        "m": _view(0, 0, n),
        "history": [_view(1, 0, a), (None, _view(2, 0, b)), {"deep": deep}],
        "quantized": {"codes": _view(3, 0, c), "scales": (0.5, {"of": _view(4, 0, d)})},
    }
    dtypes = ["float32", "float64", "float32", "uint8", "float32", "float64"]
    return _state([n], [n, a, b, c, d, e], [tree], dtypes)


def _shared(rng: np.random.Generator) -> dict[str, Any]:
    """Two parameters' moments in one flat buffer, part of which no view covers.

    Another storage has only one view, which doesn't begin at its start.
    """
    n, m, spare = (int(size) for size in rng.integers(3, 500, 3))
    trees = [
        {"m": _view(0, 0, n), "v": _view(1, 0, n), "again": [_view(1, 0, n), _view(0, 1, n)]},
        {
            "m": _view(0, n, n + m),
            "v": _view(1, n, n + m),
            "pair": (_view(0, 0, 1), _view(2, 1, 3)),
        },
    ]
    return _state([n, m], [n + m + spare, n + m, n + spare], trees)


def _cases(rng: np.random.Generator) -> list[Case]:
    plain = [_before(rng), _momentum(rng), _adam(rng, 1), _adam(rng, 3)]
    return [
        Case(("value",), {"calls": [[state] for state in plain]}),
        Case(("value",), {"calls": [[_nested(rng)]]}),
        Case(("value",), {"calls": [[_shared(rng)]]}),
    ]


def _write(state: State) -> str:
    trees = ", ".join(_text(tree) for tree in state["trees"]) or "nothing"
    kinds = zip(state["sizes"], state["dtypes"], strict=True)
    sizes = ", ".join(f"s{i} of {n} {dtype}" for i, (n, dtype) in enumerate(kinds)) or "none"
    return f"a state of {trees} (storages: {sizes})"


def _text(tree: Any) -> str:
    if is_view(tree):
        return f"s{tree['storage']}[{tree['start']}:{tree['stop']}]"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key}: {_text(part)}" for key, part in tree.items()) + "}"
    if isinstance(tree, (list, tuple)):
        first, last = "[]" if isinstance(tree, list) else "()"
        return first + ", ".join(map(_text, tree)) + last
    return repr(tree)


measured_state_bytes = Task(
    id="lab03-measured_state_bytes",
    parts={"value": 2},
    defines=("measured_state_bytes",),
    probe="measured_state_bytes",
    cases=_cases,
    judge=by_reference(
        _measured,
        {
            "changes_the_state": _reads_each_parameters_state,
            "changes_what_it_walks": _changes_what_it_walks,
            "remembers": _remembers,
            "remembers_the_result": _remembers_the_result,
            "by_the_views_address": _by_address,
            "once_a_parameter": _once_a_parameter,
            "views_counted": lambda state: sum(
                _view_bytes(state, view) for view in _reached(state)
            ),
            "shared_counted_twice": lambda state: sum(
                _storage_bytes(state, view["storage"]) for view in _reached(state)
            ),
            "counters_left_out": lambda state: _bytes(
                state, [view for view in _reached(state) if _values(view) > 1]
            ),
            "not_nested": _own_values_only,
            "own_nbytes": _own_tensors_as_views,
            "dicts_left_out": _without(dict),
            "lists_left_out": _without(list),
            "tuples_left_out": _without(tuple),
            "elements": _elements,
            "four_bytes_each": lambda state: _elements(state, 4),
            "parameters_too": lambda state: _measured(state) + 4 * sum(state["parameters"]),
            "formula": lambda state: 8 * sum(state["parameters"]),
        },
        write=_write,
    ),
    mistakes={
        "changes_the_state": "Your function changed the optimizer's state. Reading "
        "optimizer.state[param] adds an empty entry if there is none: go through "
        "optimizer.state.values().",
        "changes_what_it_walks": "Your function changed the optimizer's state while searching it. "
        "Leave its dicts and lists as they are: pop() and popitem() empty them.",
        "remembers": "Your function finds fewer bytes when it is called again with the same "
        "optimizer, because it remembers storages from earlier calls. Start each call with an "
        "empty dict or set; a default argument or a global outlives the call.",
        "remembers_the_result": "Your function finds bytes in a state that is now empty, because "
        "it remembers its result for an optimizer. Search the state in each call.",
        "by_the_views_address": "Your function identifies a storage by a view's address, "
        "tensor.data_ptr(), so it counts a storage again for each view with another start. Use "
        "tensor.untyped_storage().data_ptr().",
        "once_a_parameter": "Your function counts a storage again for each parameter whose state "
        "uses it. Two parameters may share a storage: count it once for the whole optimizer.",
        "views_counted": "Your function counts the bytes of views. Two views of a storage share "
        "its memory, and a view of a part keeps the whole storage alive: count each storage once, "
        "as a whole.",
        "shared_counted_twice": "Your function counts a storage again for each tensor that uses "
        "it. Remember which storages you have counted, by their data_ptr().",
        "counters_left_out": "Your function leaves out the step counters. By this exercise's "
        "convention, include a counter if it is a tensor.",
        "not_nested": "Your function looks only at the top level of a parameter's state. Look "
        "into its dicts, lists and tuples, too.",
        "own_nbytes": "Your function adds up the nbytes of tensors at the top level of each "
        "parameter's state. Look into dicts, lists and tuples, too, and count each whole storage "
        "once.",
        "dicts_left_out": "Your function does not look into dicts within a parameter's state.",
        "lists_left_out": "Your function does not look into lists within a parameter's state.",
        "tuples_left_out": "Your function does not look into tuples within a parameter's state.",
        "elements": "Your function counts values. Count bytes: storage.nbytes().",
        "four_bytes_each": "Your function counts 4 bytes for every value. States also have values "
        "of 1, 2 or 8 bytes: ask the storage for its nbytes().",
        "parameters_too": "Your function counts the parameters too, 4 bytes per value. Count only "
        "the state's values: the parameters are its keys.",
        "formula": "Your function assumes 8 bytes per parameter. Count the bytes that exist: "
        "there are none before the first step, and not every optimizer is Adam.",
    },
)
