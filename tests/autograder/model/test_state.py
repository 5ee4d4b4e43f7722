"""The cell after which an exercise starts, and the cells below it that lend it names."""

from dataclasses import replace

import pytest

from autograder.model.state import later_cells, state_of
from autograder.model.submission import RunCell
from autograder.model.task import Task

STUB = 'def f(x):\n    """Double x."""\n    raise NotImplementedError("your code comes here")'
WRITTEN = "def f(x): return 2 * x"


def task(*defines: str) -> Task:
    return Task("lab01-f", {"part": 1}, defines, "f", lambda _: [], lambda *_: {})


TASK = task("f")


def cells(*rows: tuple[str, str]) -> list[RunCell]:
    """Cells of these kinds and sources; `f` and `g` are solutions of two exercises."""
    made = []
    for place, (kind, source) in enumerate(rows):
        solves = f"lab01-{kind}" if kind in "fg" else None
        made.append(RunCell(10 * place, source, "solution" if solves else kind, solves))  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        pytest.param([("f", WRITTEN), ("g", "def g(): pass")], 0, id="its own cell"),
        pytest.param([("f", WRITTEN), ("g", WRITTEN)], 0, id="not another exercise's later cell"),
        pytest.param([("g", WRITTEN), ("f", WRITTEN)], 1, id="nor another's earlier one"),
        pytest.param([("f", WRITTEN), ("f", WRITTEN), ("g", "")], 1, id="the last of two"),
        pytest.param([("f", WRITTEN), ("g", ""), ("own", "f = f")], 2, id="an added cell"),
        pytest.param([("f", WRITTEN), ("own", "f.table = [1]")], 1, id="a change counts"),
        pytest.param([("f", WRITTEN), ("own", "y = f(1)")], 0, id="a use does not"),
        pytest.param([("f", WRITTEN), ("own", "from m import f")], 0, id="nor does an import"),
        pytest.param([("f", WRITTEN), ("own", "import m.f as f")], 0, id="nor one as its name"),
        pytest.param([("f", STUB), ("own", "from m import f")], 1, id="but for an import alone"),
        pytest.param([("f", WRITTEN), ("own", "from m import f\nf = f")], 1, id="or one changed"),
        pytest.param([("own", WRITTEN), ("f", "y = 1"), ("g", "")], 0, id="an added cell alone"),
        pytest.param([("f", WRITTEN), ("given", "f = 1")], 0, id="not a given cell"),
        pytest.param([("f", WRITTEN), ("check", "f = 1")], 0, id="nor a check"),
        pytest.param([("f", ""), ("g", WRITTEN), ("own", "")], 1, id="another's, if no other does"),
        pytest.param([("g", WRITTEN), ("f", STUB), ("own", "")], 0, id="or if its own is a stub"),
        pytest.param([("f", STUB), ("own", ""), ("given", "")], 0, id="a stub alone"),
        pytest.param([("f", "exec(text)"), ("own", "y = 1")], 1, id="the end, if nobody can tell"),
        pytest.param([("f", WRITTEN), ("f", "def f(x:")], 0, id="not what does not parse"),
    ],
)
def test_it_stands_after(rows: list[tuple[str, str]], place: int) -> None:
    assert state_of(TASK, cells(*rows)) == 10 * place


def test_without_cells_there_is_no_state() -> None:
    assert state_of(TASK, []) == -1


def test_each_of_its_names_counts() -> None:
    rows = [("f", WRITTEN), ("own", "class F: pass"), ("own", "def h(): pass")]
    assert state_of(task("f", "F"), cells(*rows)) == 10


@pytest.mark.parametrize(
    "source",
    [
        "def f(x): raise NotImplementedError",
        STUB,
        "class f:\n    def a(self): raise NotImplementedError()\n    async def b(self):\n"
        "        'b'\n        raise NotImplementedError",
        "def f(x):\n    y = [x]\n    if not x: raise ValueError\n    raise NotImplementedError\n"
        "    return y",
    ],
)
def test_a_stub_gives_way_to_what_is_written(source: str) -> None:
    assert state_of(TASK, cells(("g", WRITTEN), ("f", source))) == 0


def test_an_untouched_cell_gives_way_whatever_it_does() -> None:
    given = "def f(x):\n    if x < 0: return 0\n    raise NotImplementedError"
    answers = cells(("g", WRITTEN), ("f", given))
    assert state_of(TASK, answers) == 10
    assert state_of(TASK, [answers[0], replace(answers[1], is_untouched=True)]) == 0


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    if x < 0: raise NotImplementedError\n    return x",
        "def f(x): raise ValueError",
        "def f(x):\n    for y in x: return y\n    raise NotImplementedError",
        "class f: pass",
        "class f:\n    n = 1\n    def a(self): raise NotImplementedError",
        "f = 3",
    ],
)
def test_what_is_no_stub_stays(source: str) -> None:
    assert state_of(TASK, cells(("g", WRITTEN), ("f", source))) == 10


def test_cells_below_lend_names_the_nearest_added_one_first() -> None:
    rows = [("own", "a = 1"), ("f", WRITTEN), ("g", ""), ("check", ""), ("own", ""), ("given", "")]
    rows += [("own", ""), ("g", "")]
    assert [cell.index for cell in later_cells(TASK, cells(*rows))] == [40, 60, 30, 50, 20, 70]
