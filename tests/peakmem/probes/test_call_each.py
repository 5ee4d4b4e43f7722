"""A function that writes into an argument is told from one that doesn't, whatever is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from peakmem.plan.chain import Stage
from peakmem.probes import call_each


@dataclass(slots=True)
class Slotted:
    number: int = 1


ARGUMENTS: dict[str, Callable[[], Any]] = {
    "list": lambda: [1, 2.0, None],
    "nested list": lambda: [[1], [2, [3]]],
    "dict": lambda: {"a": [1]},
    "array": lambda: np.arange(3.0),
    "object": lambda: SimpleNamespace(width=4, sizes=[1, 2]),
    "list of stages": lambda: [Stage(1.0, 2.0, 8), Stage(3.0, 4.0, 16)],
}

WRITES: dict[str, tuple[str, Callable[[Any], object]]] = {
    "another number": ("list", lambda x: x.__setitem__(0, 5)),
    "an equal number of another type": ("list", lambda x: x.__setitem__(1, 2)),
    "one more": ("list", lambda x: x.append(0)),
    "a function": ("list", lambda x: x.append(len)),
    "a class": ("list", lambda x: x.append(Slotted)),
    "an object without a dict": ("list", lambda x: x.append(Slotted())),
    "itself": ("list", lambda x: x.append(x)),
    "a number far inside": ("nested list", lambda x: x[1][1].append(4)),
    "another key": ("dict", lambda x: x.update(b=1)),
    "an element": ("array", lambda x: x.fill(0)),
    "an attribute": ("object", lambda x: setattr(x, "width", 5)),
    "a new attribute": ("object", lambda x: setattr(x, "seen", True)),
    "in an attribute": ("object", lambda x: x.sizes.pop()),
    "another order": ("list of stages", lambda x: x.reverse()),
    "another stage": ("list of stages", lambda x: x.__setitem__(0, Stage(9.0, 2.0, 8))),
    "a stage's field": ("list of stages", lambda x: object.__setattr__(x[0], "saved_bytes", 9)),
    "no stage": ("list of stages", lambda x: x.__setitem__(0, None)),
}


@pytest.mark.parametrize(("kind", "write"), WRITES.values(), ids=WRITES)
def test_what_is_written_is_noticed(kind: str, write: Callable[[Any], object]) -> None:
    def function(_: int, argument: Any) -> int:
        write(argument)
        return 7

    assert call_each(function, [(0, ARGUMENTS[kind]())]) == [("changed", 1)]


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_what_is_only_read_is_not(kind: str) -> None:
    assert call_each(lambda x: len(repr(x)) and 7, [(ARGUMENTS[kind](),)]) == [("value", 7)]
