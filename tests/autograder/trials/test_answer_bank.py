"""The bank says what each answer earns; its check has to notice any other score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.model.result import Result
from autograder.model.task import Lab
from autograder.trials.answer_bank import check_bank, read_bank, submission_with
from autograder.trials.entry import Entry
from autograder.trials.packing import pack, together
from tests.autograder.small_lab import (
    DOUBLE,
    SMALL_LAB,
    returning,
    task,
    verdict_on,
    write,
    write_bank,
)
from tests.autograder.small_release import LAB, STUBS, release

Grade = Callable[[Sequence[dict[str, Any]]], list[Result]]


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    write_bank(tmp_path)
    return tmp_path


def in_process(lab: Lab, seen: list[int] | None = None) -> Grade:
    """Grade notebooks by running them here."""

    def grade(notebooks: Sequence[dict[str, Any]]) -> list[Result]:
        if seen is not None:
            seen.append(len(notebooks))
        results = []
        for notebook in notebooks:
            names: dict[str, Any] = {}
            for cell in notebook["cells"]:
                if cell["id"].endswith("-solution"):
                    exec(cell["source"], names)
            verdicts = tuple(verdict_on(task, names) for task in lab.tasks)
            results.append(Result("bank", lab.name, "graded", verdicts=verdicts))
        return results

    return grade


def problems(bank: Path, lab: Lab = SMALL_LAB) -> tuple[str, ...]:
    return check_bank(release(), read_bank(bank, lab), in_process(lab)).problems


# Reading.


def test_reading_gives_what_the_files_say(bank: Path) -> None:
    entries = read_bank(bank, SMALL_LAB)
    assert [entry.task for entry in entries] == ["lab05-double"] * 8 + ["lab05-halve"] * 8
    assert entries[7] == Entry(
        task="lab05-double",
        kind="wrong",
        name="adds_one",
        mistake="adds_one",
        source=returning("double", 9),
        earns=1.0,
        about="One more. [earns 1]",
    )
    assert (entries[0].kind, entries[0].mistake, entries[0].earns) == ("right", None, 2)
    assert (entries[3].kind, entries[3].mistake, entries[3].earns) == ("wrong", None, 0)


def test_one_file_a_task_says_the_same_as_a_folder(bank: Path, tmp_path: Path) -> None:
    home = tmp_path / "percent" / LAB
    home.mkdir(parents=True)
    for folder in (bank / LAB).iterdir():
        cells = [
            f"# %% {file.stem.replace('_', ': ', 1)}\n{file.read_text()}\n"
            for file in sorted(folder.iterdir())
        ]
        (home / f"{folder.name}.py").write_text("\n".join(cells))
    assert read_bank(tmp_path / "percent", SMALL_LAB) == read_bank(bank, SMALL_LAB)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('# %%\n"""A."""\n', "`# %%`: expected an answer under"),
        ('# %% correct: a\n"""A."""\n', "`# %% correct: a`: expected an answer under"),
        ('# %% right: a b\n"""A."""\n', "`# %% right: a b`: expected an answer under"),
        ("# %% right: a\nx = 1\n", "`# %% right: a`: expected a docstring of one line"),
        ("import math\n", "before its first cell: expected an answer under"),
        ('# %% right: a\n"""A."""\n' * 2, "2 answers are lab05-double/right_a"),
    ],
)
def test_a_cell_that_is_not_of_the_form_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / LAB / "double.py"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(ValueError, match="double") as caught:
        read_bank(tmp_path, SMALL_LAB)
    assert said in str(caught.value)


def test_a_docstring_may_have_quotes(tmp_path: Path) -> None:
    write(tmp_path, "right_a", 'Reads "x" as it is.', returning("double", 8))
    (entry,) = read_bank(tmp_path, SMALL_LAB)
    assert entry.about == 'Reads "x" as it is.'
    assert entry.source == returning("double", 8)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("double/correct_a.py", '"""A."""', "right_<name>.py or wrong_<mistake>.py"),
        ("double/right_a.txt", '"""A."""', "right_<name>.py or wrong_<mistake>.py"),
        ("double/right_a.py", "x = 1", "docstring of one line"),
        ("double/right_a.py", '"""A\nB"""', "docstring of one line"),
        ("double/right_a.py", '"""A. [earns 1]"""', "wrong answer's docstring only"),
        ("double/wrong_a.py", '"""A [earns 1] b."""', "at the end"),
        ("double/wrong_a.py", '"""A. [earns one]"""', "a number N"),
        ("double/wrong_a.py", '"""A. [earns 2]"""', "can't earn 2 of 2"),
        (
            "triple/right_a.py",
            '"""A."""',
            "answers no task of lab05_accumulation; its tasks are double",
        ),
    ],
)
def test_what_is_not_of_the_form_is_named(bank: Path, name: str, text: str, said: str) -> None:
    file = bank / LAB / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    with pytest.raises(ValueError, match=said) as caught:
        read_bank(bank, SMALL_LAB)
    assert str(file if file.parent.name == "double" else file.parent) in str(caught.value)


def test_no_bank_is_an_error_that_names_the_layout(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="right: <name>"):
        read_bank(tmp_path, SMALL_LAB)


# Notebooks.


def test_a_submission_is_the_release_with_answers_in_it() -> None:
    notebook = submission_with(release(), {"lab05-halve": "halve = 1"})
    changed = [
        (before["id"], after["source"])
        for before, after in zip(release()["cells"], notebook["cells"], strict=True)
        if before != after
    ]
    assert changed == [("lab05-halve-solution", "halve = 1")]
    nbformat.validate(nbformat.from_dict(notebook))
    with pytest.raises(ValueError, match="lab05-triple"):
        submission_with(release(), {"lab05-triple": ""})


# Packing.


def entry(task: str, source: str, kind: str = "right") -> Entry:
    return Entry(task, kind, str(len(source)), None, source, 0, "")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        ("import math\ndef f(): return math.pi", "import math\ndef g(): return math.e", True),
        ("import numpy as np", "import torch as np", False),
        ("def f(): return 1", "def g(): return 2", True),
        ("def help(): return 1", "def help(): return 2", False),
        ("def help(): return 1", "def help(): return 1", True),
        ("def f(): return g()", "def g(): return 2", False),
        ("def f():\n    g = 1\n    return g", "def g(): return 2", True),
        ("def f(): return round(1.5)", "def round(x): return x", False),
        ("def f(): return peakmem.lab", "import peakmem", True),
        ("def f(): return peakmem.lab", "peakmem = None", False),
        ("def f(:", "def g(): return 1", True),
    ],
)
def test_answers_stand_together_if_neither_sees_the_others_names(
    one: str, other: str, may: bool
) -> None:
    given = ["import peakmem", "%matplotlib inline"]
    assert together([entry("a", one), entry("b", other)], given) is may
    assert together([entry("b", other), entry("a", one)], given) is may
    assert not together([entry("a", one), entry("a", other)], given)


def test_ten_tasks_of_ten_answers_need_ten_notebooks() -> None:
    entries = [
        entry(f"t{t}", f"def t{t}():\n    return {n}", "right" if n < 3 else "wrong")
        for t in range(10)
        for n in range(10)
    ]
    packs = pack(entries)
    assert len(packs) == 10
    assert sorted(map(id, entries)) == sorted(id(e) for together in packs for e in together)


# Checking.


def test_a_good_bank_passes_in_few_notebooks(bank: Path) -> None:
    seen: list[int] = []
    report = check_bank(release(), read_bank(bank, SMALL_LAB), in_process(SMALL_LAB, seen))
    assert report.problems == ()
    assert report.graded == 16
    assert seen == [8]


@pytest.mark.parametrize(
    ("name", "about", "value", "said"),
    [
        ("right_0", "Right.", 9, "right_0 is right, but earned 1 of 2"),
        ("wrong_0", "Wrong.", 9, "wrong_0 is wrong and may earn 0, but earned 1"),
        ("wrong_0", "Wrong. [earns 1]", 8, "may earn 1, but earned 2"),
        ("wrong_forgets", "Wrong. [earns 1]", 9, "not recognised as forgets, but as adds_one"),
        ("wrong_forgets", "Wrong.", None, "not recognised as forgets, but as None"),
    ],
)
def test_an_answer_graded_otherwise_is_a_problem(
    bank: Path, name: str, about: str, value: object, said: str
) -> None:
    write(bank, name, about, returning("double", value))
    (problem,) = problems(bank)
    assert said in problem


def test_an_answer_that_only_its_company_spoils_is_no_problem(bank: Path) -> None:
    spoiler = "globals()['double'] = None\n" + returning("halve", 2)
    write(bank, "right_0", "Writes into another's name.", spoiler, "halve")
    assert problems(bank) == ()


def test_a_notebook_that_was_not_graded_is_a_problem(bank: Path) -> None:
    def failing(notebooks: Sequence[dict[str, Any]]) -> list[Result]:
        return [Result("bank", LAB, "failed", "the sandbox is gone")] * len(notebooks)

    found = check_bank(release(), read_bank(bank, SMALL_LAB), failing).problems
    assert len(found) == 16
    assert "right_0 was not judged: it was failed: the sandbox is gone" in found[0]


def test_what_needs_a_gpu_is_not_run_and_not_passed(bank: Path) -> None:
    lab = Lab(LAB, (DOUBLE, task("halve", 2, needs_gpu=True)))
    report = check_bank(release(), read_bank(bank, lab), in_process(lab))
    assert report.problems == ()
    assert report.not_run == ("lab05-halve: needs a GPU; 8 answers not run.",)
    assert report.graded == 8


def test_a_wrong_answer_may_earn_less_and_that_is_told(bank: Path) -> None:
    write(bank, "wrong_0", "Wrong. [earns 1]", returning("double", None))
    report = check_bank(release(), read_bank(bank, SMALL_LAB), in_process(SMALL_LAB))
    assert report.problems == ()
    assert report.inexact == ("lab05-double/wrong_0 earned 0, less than the 1 it says.",)


def test_the_release_itself_solves_nothing() -> None:
    (result,) = in_process(SMALL_LAB)([submission_with(release(), {})])
    assert [verdict.points for verdict in result.verdicts] == [0, 0]
    assert STUBS["double"] in [cell["source"] for cell in release()["cells"]]
