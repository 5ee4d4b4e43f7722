"""Mutants of the solutions: how they are made, which survive, and the reasons given for those."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autograder.base.course import COURSE
from autograder.base.limits import Limits
from autograder.content import find_task, lab_names
from autograder.model.task import Answer, Case, Finding, Verdict
from autograder.trials import mutate
from autograder.trials.mutants import Mutant, mutants_of
from autograder.trials.mutate import Solved, check_mutants, read_explained, solve, tasks_named
from tests.grading import REPOSITORY, command_environment

TASK = "lab09-f"


def changes(source: str) -> set[str]:
    return {mutant.change for mutant in mutants_of(TASK, source)}


def bodies(*lines: str) -> set[str]:
    """The mutants of a function of these lines, each as its lines without the first."""
    source = "def f(a, b):\n" + "\n".join(f"    {line}" for line in lines)
    return {ast.unparse(ast.parse(m.source).body[0].body) for m in mutants_of(TASK, source)}  # type: ignore[attr-defined]


# The mutator


def difference(old: ast.AST, new: ast.AST) -> ast.AST:
    """The smallest node of `old`, on a line of its own, that is replaced on the way to `new`."""
    inner = _inner(old, new)
    return old if inner is None or first_line(inner) is None else inner


def _inner(old: ast.AST, new: ast.AST) -> ast.AST | None:
    if type(old) is not type(new):
        return None
    fields = zip(ast.iter_fields(old), ast.iter_fields(new), strict=True)
    unequal = [(one, other) for (_, one), (_, other) in fields if dumped(one) != dumped(other)]
    if len(unequal) != 1:
        return None
    ((one, other),) = unequal
    if isinstance(one, ast.AST) and isinstance(other, ast.AST):
        return difference(one, other)
    if not isinstance(one, list) or not isinstance(other, list):
        return None
    texts, others = list(map(dumped, one)), list(map(dumped, other))
    place = next(i for i in range(len(one)) if texts[i : i + 1] != others[i : i + 1])
    rest = len(one) - place - 1  # what follows, and has to follow there as well
    if texts[place + 1 :] != others[len(others) - rest :]:
        return None
    return difference(one[place], other[place]) if len(one) == len(other) else one[place]


def dumped(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(dumped, value))}]"
    return ast.dump(value) if isinstance(value, ast.AST) else repr(value)


def first_line(node: ast.AST) -> int | None:
    return next((n.lineno for n in ast.walk(node) if hasattr(n, "lineno")), None)


def lines_of(node: ast.AST) -> tuple[int, int]:
    """The first and the last line of a node; a comprehension's `for` has them from its parts."""
    if hasattr(node, "lineno"):
        return node.lineno, node.end_lineno  # a decorator stands above its function
    parts = [n for n in ast.walk(node) if hasattr(n, "lineno")]
    return min((n.lineno for n in parts), default=1), max((n.end_lineno for n in parts), default=0)


@pytest.mark.parametrize("lab", lab_names())
def test_a_mutant_differs_in_one_place_of_one_statement(lab: str) -> None:
    solved = solve(lab, COURSE, Limits())
    for task, submission in solved.submissions.items():
        (source,) = (c.source for c in submission.cells if (c.kind, c.task) == ("solution", task))
        original, seen = ast.parse(source), {ast.unparse(ast.parse(source))}
        lines = source.splitlines()
        found = mutants_of(task, source)
        assert len(found) > (5 if task.endswith("find_the_leak") else 7)  # a leak's is short
        for mutant in found:
            assert mutant.source not in seen, mutant.id
            seen.add(mutant.source)
            node = difference(original, ast.parse(mutant.source))
            line = first_line(node)
            assert any(
                first <= line <= last and lines[first - 1].strip().startswith(mutant.line)
                for first, last in map(lines_of, ast.walk(original))
            ), mutant.id
            whole = isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))
            assert not whole or mutant.change == "delete it", mutant.id


def test_the_ids_of_a_cell_are_its_own() -> None:
    names = [m.id for m in mutants_of(TASK, "def f(a):\n    return a * a * a + a * a * a")]
    assert len(set(names)) == len(names)
    assert "lab09-f: return a * a * a + a * a * a: a * a -> a + a (2)" in names


def test_an_id_stays_while_other_lines_change() -> None:
    before = "def f(a):\n    a += 1  # more\n    return a < 3"
    after = "import math\n\n\ndef f(a):\n    a = abs(a)\n    a -= 2\n    return a < 3"
    last = {m.id for m in mutants_of(TASK, before) if m.line == "return a < 3"}
    assert last == {m.id for m in mutants_of(TASK, after) if m.line == "return a < 3"}
    assert "lab09-f: a += 1: 1 -> 2" in {m.id for m in mutants_of(TASK, before)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("return a < b", {"return a <= b", "return a > b", "return None", "pass"}),
        ("return a == b", {"return a != b", "return None", "pass"}),
        ("return a in b", {"return a not in b", "return None", "pass"}),
        ("return a // b", {"return a / b", "return a * b", "return a", "return b"}),
        ("return -a", {"return a"}),
        ("return a and b", {"return a or b", "return a", "return b"}),
        ("return not a", {"return a"}),
        ("return a if b else 0.5", {"return a", "return 0.5"}),
        ("return a, b", {"return a"}),
        ("return a(2**4)", {"return a(2 ** 5)", "return a(2 ** 3)", "return a(2 ** 8)"}),
        ("return a**-3", {"return a ** 3", "return a ** (-4)"}),
        ("return 3**a", {"return (-3) ** a", "return 3 * a"}),
        ("return a(True)", {"return a(False)"}),
        ("return a['key']", {"return a['key_']"}),
        ("return a(b, 0)", {"return a(0, b)"}),
        ("return a(b, key=0)", {"return a(b)", "return a(b, key=1)"}),
        ("return abs(a)", {"return a"}),
        ("return a.detach()", {"return a"}),
        ("return a.mul_(b)", {"return a.mul(b)", "return a"}),
        ("return max(a)", {"return min(a)"}),
        ("return a[1:b]", {"return a[1 + 1:b]", "return a[1:b - 1]", "return a[:b]"}),
        ("return a[::2]", {"return a[1::2]", "return a[:-1:2]", "return a[:]"}),
        ("return list(range(b))", {"return list(range(b + 1))", "return list(range(b - 1))"}),
        ("return [x for x in a if x]", {"return [x for x in a]"}),
        ("a += b", {"a -= b", "a = b", "pass"}),
        ("raise ValueError(a)", {"raise RuntimeError(a)", "pass"}),
        ("if a: return b", {"if True:\n    return b", "if False:\n    return b"}),
        ("for x in a: break", {"for x in a:\n    continue", "for x in a:\n    pass"}),
        ("with a: b()", {"b()", "with a:\n    pass"}),
    ],
)  # fmt: skip
def test_each_slip_is_made(line: str, expected: set[str]) -> None:
    assert expected <= bodies(line)


def test_what_nothing_depends_on_is_left_alone() -> None:
    source = (
        '"""About this cell."""\n'
        "def f(a: int, b: int) -> int:\n"
        '    """Return the larger one, or raise."""\n'
        "    total: int = max(a, b)\n"
        "    raise ValueError(f'no {a} of {total}', 3)"
    )
    assert changes(source) == {"delete it", "max -> min", "raise RuntimeError"}
    strict = changes("def f(a):\n    return zip(a, strict=True)")
    assert strict == {"delete it", "return None", "zip(a, strict=True) -> a"}


def test_defaults_and_decorators_are_mutated() -> None:
    source = "@cache\ndef f(a, b=1e-3):\n    with no_grad():\n        return b"
    assert {"without @cache", "0.001 -> 0.002", "without with no_grad()"} <= changes(source)


def test_no_mutant_is_a_syntax_error() -> None:
    source = "def f(a):\n    for x in a:\n        if x:\n            break\n    return [*a]"
    for mutant in mutants_of(TASK, source):
        compile(mutant.source, "<mutant>", "exec")


# In the sandbox

LAB, ROWS = "lab02_sizing", "lab02-inconsistent_rows"


@pytest.fixture(scope="module")
def solved() -> Solved:
    return solve(LAB, COURSE, Limits())


@pytest.mark.sandbox
def test_a_judge_made_blind_lets_mutants_survive(
    solved: Solved, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blind(case: Case, answer: Answer) -> Mapping[str, Finding]:
        """Sees that something came back."""
        return dict.fromkeys(case.parts, Finding(ok=isinstance(answer.value, list)))

    task, mutants = find_task(ROWS), solved.mutants([ROWS])[:8]
    with mutate._grading(solved, 0) as verdict_on:
        seen = check_mutants([(m, verdict_on(m)) for m in mutants], {}, [ROWS])
        monkeypatch.setattr(mutate, "find_task", lambda name: replace(task, judge=blind))
        unseen = check_mutants([(m, verdict_on(m)) for m in mutants], {}, [ROWS])
    assert (seen.killed, seen.survivors, seen.problems) == (7, (), ())
    assert (unseen.killed, len(unseen.survivors), len(unseen.problems)) == (0, 7, 7)


@pytest.mark.sandbox
def test_cases_taken_away_are_a_hole_that_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 3.9's cases, only those of a fused step find a mutant."""
    solved, name = solve("lab03_adam", COURSE, Limits()), "lab03-peak_of_step"
    (mutant,) = (m for m in solved.mutants([name]) if m.id.endswith('"foreach":: condition True'))
    task = find_task(name)

    def others(rng: np.random.Generator) -> list[Case]:
        return [case for case in task.cases(rng) if case.inputs["calls"][0][-1] != "fused"]

    with mutate._grading(solved, 0) as verdict_on:
        assert verdict_on(mutant).status == "wrong"
        monkeypatch.setattr(mutate, "find_task", lambda _: replace(task, cases=others))
        assert verdict_on(mutant).status == "right"


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "autograder", "mutate", *arguments],
        cwd=REPOSITORY,
        env=command_environment(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.sandbox
def test_the_command_grades_the_mutants_of_an_exercise(tmp_path: Path) -> None:
    """largest_model has one that is equivalent, which here no file explains."""
    none = ("--explained", str(tmp_path / "none.toml"))
    done = command("lab03_adam", "--task", "largest_model", "--workers", "1", "--json", *none)
    data = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert data["graded"] == data["killed"] + 1 > 10
    (survivor,) = data["survivors"]
    assert data["problems"] == [f"{survivor}: survived"]
    assert survivor in read_explained(REPOSITORY / "bank" / "mutants" / "lab03_adam.toml")


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.parametrize("lab", lab_names())
def test_every_survivor_is_explained(lab: str) -> None:
    done = command(lab)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_unknown_exercise_is_named(solved: Solved) -> None:
    assert tasks_named(solved, ["inconsistent_rows", "lab02-lifetimes"]) == [
        ROWS,
        "lab02-lifetimes",
    ]
    assert len(tasks_named(solved, None)) == 11
    with pytest.raises(ValueError, match="has no task 'rows'; its tasks are lab02-weight_bytes"):
        tasks_named(solved, ["rows"])


def test_the_cases_of_a_mutant_follow_from_its_id_and_the_seed(solved: Solved) -> None:
    mutants = solved.mutants([ROWS])
    raws = {solved.with_mutant(mutant).raw for mutant in mutants}
    assert len(raws) == len(mutants)
    other = replace(solved, seed=1)
    assert raws.isdisjoint(other.with_mutant(mutant).raw for mutant in mutants)
    changed = [replace(mutant, source="pass") for mutant in mutants]
    assert {solved.with_mutant(mutant).raw for mutant in changed} == raws


def test_a_notebook_is_cut_to_what_the_exercise_needs(solved: Solved) -> None:
    tasks = [cell.task for cell in solved.submissions["lab02-largest_batch"].cells if cell.task]
    assert tasks == ["lab02-gpt_parameters", "lab02-layer_activation_bytes", "lab02-largest_batch"]


# What is said


def verdict(status: str, points: float = 0) -> Verdict:
    return Verdict(TASK, status, {"value": points}, 1, "Said.")  # type: ignore[arg-type]


def mutant(name: str, task: str = TASK) -> Mutant:
    return Mutant(f"{task}: {name}", task, name, name, "")


GRADED = [
    (mutant(mutate._UNCHANGED), verdict("right", 1)),
    (mutant("a"), verdict("right", 1)),
    (mutant("b"), verdict("wrong")),
    (mutant("c"), verdict("partly", 0.5)),
    (mutant("d"), verdict("could_not_judge")),
]


def test_survivors_are_those_with_full_points() -> None:
    report = check_mutants(GRADED, {"lab09-f: a": "It is the same."}, [TASK])
    assert report.problems == ()
    assert (report.graded, report.killed) == (4, 2)
    assert (report.survivors, report.unexplained) == (("lab09-f: a",), ())
    assert report.doubted == ("lab09-f: d",)


@pytest.mark.parametrize(
    ("explained", "said"),
    [
        ((), "lab09-f: a: survived"),
        (("a", "b"), "lab09-f: b: listed as a survivor, but no such mutant survived"),
        (("a", "gone"), "lab09-f: gone: listed as a survivor, but no such mutant survived"),
        (("a", "d"), "lab09-f: d: listed as a survivor, but no such mutant survived"),
    ],
)
def test_what_the_file_says_is_held_against_the_run(explained: Sequence[str], said: str) -> None:
    listed = {f"lab09-f: {name}": "Why." for name in explained}
    assert check_mutants(GRADED, listed, [TASK]).problems == (said,)


def test_entries_of_other_exercises_are_not_held_against_this_one() -> None:
    listed = {"lab09-f: a": "Why.", "lab09-g: a": "Why."}
    assert check_mutants(GRADED, listed, [TASK]).problems == ()
    assert check_mutants(GRADED, listed, [TASK, "lab09-g"]).problems != ()


def test_a_solution_that_is_not_right_is_a_problem() -> None:
    graded = [(mutant(mutate._UNCHANGED), verdict("wrong")), *GRADED[2:]]
    assert check_mutants(graded, {}, [TASK]).problems == (
        "lab09-f: the solution itself is not right: Said.",
    )


def test_what_needs_a_gpu_is_not_run_and_may_be_listed() -> None:
    graded = [(m, verdict("needs_gpu")) for m, _ in GRADED]
    report = check_mutants(graded, {"lab09-f: a": "Why."}, [TASK])
    assert (report.problems, report.not_run, report.graded) == ((), (TASK,), 0)


def test_a_mutant_that_was_not_graded_is_a_problem() -> None:
    report = check_mutants([*GRADED, (mutant("e"), "It died.")], {"lab09-f: a": "Why."}, [TASK])
    assert report.problems == ("lab09-f: e was not judged: It died.",)


def test_reasons_are_read(tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    assert read_explained(path) == {}
    path.write_text('[[survivor]]\nreason = "Same."\nmutants = ["a", "b"]\n')
    assert read_explained(path) == {"a": "Same.", "b": "Same."}


@pytest.mark.parametrize(
    "text",
    [
        '[[survivor]]\nreason = "Same."\nmutants = ["a", "a"]\n',
        '[[survivor]]\nreason = " "\nmutants = ["a"]\n',
        '[[survivor]]\nmutants = ["a"]\n',
        '[[survivor]]\nreason = "Same."\n',
        '[survivor]\nreason = "Same."\nmutants = ["a"]\n',
        '[[other]]\nreason = "Same."\nmutants = ["a"]\n',
        "no toml",
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lab.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"lab\.toml: .*expected tables \[\[survivor\]\]"):
        read_explained(path)


def test_every_entry_is_a_mutant_of_its_lab() -> None:
    """That it survives, the slow test sees; this one sees what a changed solution left behind."""
    folder = REPOSITORY / "bank" / "mutants"
    assert {path.stem for path in folder.iterdir()} <= set(lab_names())
    for path in folder.iterdir():
        solved = solve(path.stem, COURSE, Limits())
        names = {mutant.id for mutant in solved.mutants(solved.submissions)}
        assert read_explained(path).keys() <= names
