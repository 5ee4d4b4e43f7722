"""What a command's report prints."""

from __future__ import annotations

import json

from autograder.cli.report import PROBLEM, found, show

MANY = found([f"problem {n}" for n in range(30)])


def test_of_many_problems_the_first_are_printed_and_the_rest_counted(capsys):
    assert show(MANY, "grade", as_json=False) == PROBLEM
    lines = capsys.readouterr().err.splitlines()
    assert lines[:-1] == [f"problem {n}" for n in range(12)]
    assert lines[-1] == "... and 18 more; --verbose shows all"


def test_all_problems_are_printed_if_asked_for_and_programs_always_get_them(capsys):
    show(MANY, "grade", as_json=False, verbose=True)
    assert capsys.readouterr().err.splitlines() == MANY.problems
    show(MANY, "grade", as_json=True)
    assert json.loads(capsys.readouterr().out)["problems"] == MANY.problems


def test_a_few_problems_are_all_printed(capsys):
    few = found(MANY.problems[:12])
    show(few, "grade", as_json=False)
    assert capsys.readouterr().err.splitlines() == few.problems
