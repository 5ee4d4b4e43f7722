"""Reading a notebook's definitions takes time in proportion to it, however it is written."""

import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from autograder.model.definitions import clear_cache, redefined
from autograder.model.restrictions import Ban
from tests.autograder.uses import names_used

EVERYTHING = Ban(
    names=frozenset({"float32"}), modules=frozenset({"torch.optim"}), methods=frozenset({"hex"})
)


def lines_run(work: Callable[[], Any]) -> int:
    """Count the lines of Python that `work` runs: a measure of time that no load changes."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    clear_cache()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


SHAPES: dict[str, Callable[[int], list[str]]] = {
    "a long function bound again and again": lambda n: (
        ["def f():\n" + " a = 1\n" * n, "f = 1\n" * n]
    ),
    "a long function defined again in each cell": lambda n: (
        ["def f():\n" + " a = 1\n" * n] + [f"def f(): return {i}\n" for i in range(n)]
    ),
    "one item of a name after another": lambda n: [
        "def f(): return a\na = [0]\n" + "a[0] = a\n" * n
    ],
    "chains of attributes": lambda n: ["def f(x):\n return x" + ".a" * n],
    "a name of its own in each cell": lambda n: [f"def f{i}(): return {i}" for i in range(n)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_time_grows_with_the_notebook_and_not_with_its_square(shape: str) -> None:
    def read(n: int) -> int:
        cells = SHAPES[shape](n)
        return lines_run(lambda: (redefined(cells), used(cells)))

    def used(cells: list[str]) -> None:
        with suppress(RecursionError):  # given up, since the names lead to each other
            names_used(EVERYTHING, ["f"], cells)

    assert read(960) < 2.6 * read(480)


def test_the_count_of_lines_tells_a_square_when_there_is_one() -> None:
    def square(n: int) -> None:
        for _ in range(n):
            for _ in range(n):
                pass

    assert lines_run(lambda: square(240)) > 3.5 * lines_run(lambda: square(120))


def test_a_module_is_found_at_the_head_of_a_chain_that_is_long() -> None:
    cells = ["def f(x):\n return torch.optim" + ".a" * 100]
    assert names_used(EVERYTHING, ["f"], cells) == ["torch.optim"]


def test_a_walk_over_what_was_followed_before_misses_nothing() -> None:
    cells = ["a = [0]\nb = hex\na[0] = b\nc = a\na[0] = c\ndef f(): return c, a"]
    assert names_used(Ban(names=frozenset({"hex"})), ["f"], cells) == ["hex"]
