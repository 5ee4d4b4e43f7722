"""One exercise among others: the names at its cell, and its separate run, in the sandbox."""

import json
from dataclasses import replace

import pytest

from autograder.base.limits import Allowance, Limits
from autograder.content import find_lab, find_task
from autograder.grading import again, plans
from autograder.grading import grade as grading
from autograder.grading.grade import grade
from autograder.grading.plans import Plan, plan_alone, plan_together
from autograder.grading.run import collect_alone
from autograder.model import judge
from autograder.model.judge import draw, judge_safely
from autograder.model.task import Answer, Case, Finding
from autograder.notebooks.intake import take_in
from autograder.notebooks.questions import source_notebook
from autograder.notebooks.released import solution_sources
from autograder.sandbox.host.sandbox import Sandbox
from tests.grading import LAB01, cell_of, code_cell, released, solved

pytestmark = pytest.mark.sandbox

INTEGER, FIXED, DECODE = "lab01-integer_value", "lab01-fixed_point_value", "lab01-decode_fp32"
ENCODE, LIMITS_OF, STALL = "lab01-encode_fp32", "lab01-format_limits", "lab01-stall_value"
LAB = find_lab(LAB01)
CANARY = "canary-in-a-solution"
SOLUTIONS = {
    task: source.replace('"""', f'"""{CANARY} ', 1)
    for task, source in solution_sources(source_notebook(LAB01)).items()
}


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(LAB.hides, limits=Limits(cell_seconds=20), measured=False) as box:
        yield box


@pytest.fixture
def notebook():
    return solved(LAB01)


@pytest.fixture
def graded(sandbox):
    """Grades some of the lab's tasks; returns their verdicts."""

    def run(notebook, *tasks, solutions=SOLUTIONS):
        lab = replace(LAB, tasks=tuple(task for task in LAB.tasks if task.id in tasks))
        run.whole = grade(lab, submitted(notebook), sandbox, b"secret", solutions)
        return [
            verdict
            for task in tasks
            for verdict in run.whole.result.verdicts
            if verdict.task == task
        ]

    return run


def submitted(notebook):
    return take_in("ada", LAB01, json.dumps(notebook).encode(), released(LAB01))


def solution(notebook, task):
    return cell_of(notebook, f"{task}-solution")


def statuses(verdicts):
    return [verdict.status for verdict in verdicts]


def insert(notebook, place, source):
    cell = code_cell(source) | {"id": f"own-{len(notebook['cells'])}"}
    notebook["cells"].insert(place, cell)


def without_alone(monkeypatch):
    for module in (grading, again):
        monkeypatch.setattr(module, "plan_alone", lambda *_: None)


def without_states(monkeypatch):
    monkeypatch.setattr(
        "autograder.grading.run.plan_together", lambda _tasks, cells: Plan(cells, {})
    )


# The names as they stood at the exercise's cell.


def with_a_helper(notebook, task, name, helper):
    cell = solution(notebook, task)
    cell["source"] = cell["source"].replace(f"def {name}", f"def {helper}")
    arguments = "*given, **named"
    cell["source"] += f"\n\n\ndef {name}({arguments}):\n    return {helper}({arguments})"


@pytest.mark.parametrize("guarded", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_helper_of_the_same_name_below_is_another_exercises(
    graded, notebook, monkeypatch, guarded
):
    with_a_helper(notebook, DECODE, "decode_fp32", "helper")
    with_a_helper(notebook, ENCODE, "encode_fp32", "helper")
    without_alone(monkeypatch)
    if not guarded:
        without_states(monkeypatch)
    found = statuses(graded(notebook, DECODE, ENCODE))
    assert found == (["right", "right"] if guarded else ["wrong", "right"])


def test_a_helper_in_a_cell_below_is_found(graded, notebook, monkeypatch):
    cell = solution(notebook, DECODE)
    place = notebook["cells"].index(cell)
    insert(notebook, place + 5, cell["source"].replace("def decode_fp32", "def helper"))
    insert(notebook, place + 8, "helper = None")
    cell["source"] = "def decode_fp32(bits):\n    return helper(bits)"
    without_alone(monkeypatch)
    assert statuses(graded(notebook, DECODE)) == ["right"]


def test_an_exercise_that_is_solved_in_an_added_cell_keeps_its_points(
    graded, notebook, monkeypatch
):
    cell = solution(notebook, DECODE)
    insert(notebook, len(notebook["cells"]), cell["source"])
    cell["source"] = cell_of(released(LAB01), cell["id"])["source"]
    without_alone(monkeypatch)
    assert statuses(graded(notebook, DECODE)) == ["right"]


def test_what_a_call_binds_is_there_at_the_next_and_for_this_exercise_only(
    graded, notebook, monkeypatch
):
    cell = solution(notebook, DECODE)
    cell["source"] = cell["source"].replace("def decode_fp32", "def helper") + (
        "\ncalls = 0\ndef decode_fp32(bits):\n    global calls\n    calls += 1\n"
        "    return helper(bits) if calls > 0 else calls"
    )
    cell = solution(notebook, ENCODE)
    cell["source"] = cell["source"].replace(
        "### BEGIN SOLUTION", "if calls != 0: raise ValueError(calls)"
    )
    without_alone(monkeypatch)
    verdicts = graded(notebook, DECODE, ENCODE)
    assert statuses(verdicts) == ["right", "right"], verdicts


# Run once more, alone.

HARM = [
    "import math\nmath.frexp = math.ldexp = math.copysign = None",
    "import builtins\nbuiltins.round = builtins.max = None",
    "math = None",
    "import sys\nsys.setrecursionlimit(40)",
    "hold = bytearray(1900 * 2**20)",
    "import warnings\nwarnings.simplefilter('error')\n"
    "math.frexp = lambda x: warnings.warn('as an error')",
]


@pytest.mark.parametrize("guarded", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("harm", HARM)
def test_what_an_exercises_cell_does_to_the_process_costs_no_other(
    graded, notebook, monkeypatch, harm, guarded
):
    solution(notebook, DECODE)["source"] = f"def decode_fp32(bits): return 7\n{harm}"
    cell = solution(notebook, ENCODE)
    cell["source"] = cell["source"].replace(
        "### BEGIN SOLUTION", "f = lambda n: n and f(n - 1)\n    f(50); bytes(200 * 2**20)"
    )
    if not guarded:
        without_alone(monkeypatch)
        without_states(monkeypatch)
    wrong, beside = statuses(graded(notebook, DECODE, ENCODE))
    assert wrong == "wrong"
    assert (beside == "right") == guarded


@pytest.mark.parametrize("guarded", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_an_exercise_that_builds_on_a_wrong_one_is_judged_on_its_own_work(
    graded, notebook, monkeypatch, guarded
):
    solution(notebook, INTEGER)["source"] = "def integer_value(bits, width, encoding): return bits"
    if not guarded:
        without_alone(monkeypatch)
    wrong, built = graded(notebook, INTEGER, FIXED)
    assert wrong.status == "wrong"
    assert built.status == ("right" if guarded else "wrong"), built
    if guarded:
        assert built.message.startswith(
            "Right. For this score the exercise ran with the instructor's solutions"
        )


def test_a_mistake_is_named_although_what_the_exercise_builds_on_is_not_written(graded, notebook):
    solution(notebook, INTEGER)["source"] = solution(released(LAB01), INTEGER)["source"]
    source = solution(notebook, FIXED)["source"]
    wrong = source.replace(" / 2**fraction_bits", " / 10**fraction_bits")
    assert wrong != source
    solution(notebook, FIXED)["source"] = wrong
    unwritten, built = graded(notebook, INTEGER, FIXED)
    assert unwritten.message.startswith("Not written yet")
    assert (built.status, built.mistake) == ("wrong", "decimal_point"), built.message
    assert "the instructor's solutions to the exercises that it builds on" in built.message


def test_without_solutions_the_others_are_left_out(graded, notebook):
    solution(notebook, DECODE)["source"] = f"def decode_fp32(bits): return 7\n{HARM[0]}"
    assert statuses(graded(notebook, DECODE, ENCODE, solutions={})) == ["wrong", "right"]


def test_an_exercise_that_builds_on_a_deleted_one_is_judged_on_its_own_work(graded, notebook):
    notebook["cells"].remove(solution(notebook, INTEGER))
    assert statuses(graded(notebook, INTEGER, FIXED)) == ["wrong", "right"]


def test_a_helper_in_another_exercises_cell_is_there_without_the_rest_of_that_cell(
    graded, notebook
):
    cell = solution(notebook, DECODE)
    cell["source"] = (
        solution(notebook, ENCODE)["source"].replace("def encode_fp32", "def helper")
        + f"\ndef decode_fp32(bits): return 7\n{HARM[0]}"
    )
    solution(notebook, ENCODE)["source"] = "def encode_fp32(x): return helper(x)"
    assert statuses(graded(notebook, DECODE, ENCODE)) == ["wrong", "right"]


def test_a_helper_that_is_mended_in_an_added_cell_below_counts(graded, notebook):
    with_a_helper(notebook, ENCODE, "encode_fp32", "helper")
    cell = solution(notebook, ENCODE)
    insert(notebook, notebook["cells"].index(cell) + 2, f"mended = helper\n{cell['source']}")
    notebook["cells"][-1]["source"] = ""
    cell["source"] = cell["source"].replace("return sign |", "return 1 + sign |")
    assert statuses(graded(notebook, ENCODE)) == ["right"]


def test_right_answers_are_run_once(graded, notebook, sandbox, monkeypatch):
    opened, opens = [], sandbox.open
    monkeypatch.setattr(sandbox, "open", lambda: opened.append(None) or opens())
    assert statuses(graded(notebook, DECODE, ENCODE)) == ["right", "right"]
    assert len(opened) == 1


def test_an_exercise_that_is_not_written_or_is_all_there_is_is_run_once(
    graded, sandbox, monkeypatch
):
    opened, opens = [], sandbox.open
    monkeypatch.setattr(sandbox, "open", lambda: opened.append(None) or opens())
    notebook = released(LAB01)
    solution(notebook, DECODE)["source"] = "def decode_fp32(bits): return 7"
    assert statuses(graded(notebook, DECODE, ENCODE)) == ["wrong", "wrong"]
    assert len(opened) == 1


@pytest.mark.parametrize(("helped", "runs"), [(False, 1), (True, 2)])
def test_what_no_other_exercise_spoils_is_given_up_after_the_cases_that_tell(
    graded, notebook, monkeypatch, helped, runs
):
    asked = []

    def counted(task, cases, answers, *, numbers=None, **rest):
        asked.append(len(cases if numbers is None else numbers))
        return collect_alone(task, cases, answers, numbers=numbers, **rest)

    monkeypatch.setattr(again, "collect_alone", counted)
    if helped:  # by the solution of what it goes by, which is wrong here
        wrong = "def integer_value(bits, width, encoding): return bits"
        solution(notebook, INTEGER)["source"] = wrong
    else:
        solution(notebook, FIXED)["source"] = "def fixed_point_value(*given): return -1"
    graded(notebook, FIXED)
    cases = len(draw(find_task(FIXED), b"", "", b""))
    assert len(asked) == runs
    assert asked[0] <= len(find_task(FIXED).parts) < cases


@pytest.mark.parametrize("held_back", [0.25, pytest.param(0.0, marks=pytest.mark.slow)])
def test_a_loop_in_one_cell_leaves_time_for_the_others(
    graded, notebook, sandbox, monkeypatch, held_back
):
    monkeypatch.setattr(grading, "_HELD_BACK", held_back)
    monkeypatch.setattr("autograder.base.limits._PATIENCE", 10**6)  # with a busy machine
    monkeypatch.setattr("autograder.sandbox.host.clock._PATIENCE", 10**6)
    monkeypatch.setattr(sandbox, "limits", Limits(cell_seconds=20, submission_seconds=8))
    sandbox.open().close()  # a process that was made ready has the old limits
    solution(notebook, DECODE)["source"] = "while True: pass"
    verdicts = graded(notebook, DECODE, ENCODE)
    assert statuses(verdicts) == ["wrong", "right" if held_back else "wrong"]
    sandbox.open().close()


def test_memory_that_another_exercises_cell_holds_is_left_out_where_memory_is_measured():
    name = "lab03_adam"
    work, task = solved(name), "lab03-step_in_backward"
    # With the budget on top this is more than the process may have at all.
    cell_of(work, "lab03-adam_step-solution")["source"] = "hold = bytearray(2034 * 2**20)"
    lab = find_lab(name)
    lab = replace(lab, tasks=tuple(one for one in lab.tasks if one.id == task))
    submission = take_in("ada", name, json.dumps(work).encode(), released(name))
    with Sandbox(lab.hides) as sandbox:
        graded = grade(lab, submission, sandbox, b"secret")
    assert [verdict.status for verdict in graded.result.verdicts] == ["right"]


PATCH = "import struct\nsetattr(math, 'ldexp', lambda *_: struct.unpack('<f', bytes(4))[0])"
BY_PATCH = "def decode_fp32(bits):\n    return math.ldexp(bits, 0)"


@pytest.mark.parametrize(("lends", "status"), [(False, "right"), (True, "wrong")])
def test_a_cell_that_changes_a_library_counts_where_it_has_to_run(graded, notebook, lends, status):
    """Beside a right answer it's left out; a cell that the answer needs is the answer's own."""
    insert(notebook, 2, PATCH + "\nhelper = 1" * lends)
    if lends:
        solution(notebook, DECODE)["source"] = f"{BY_PATCH} * helper"
    (verdict,) = graded(notebook, DECODE)
    assert verdict.status == status
    assert ("uses" in verdict.message) == lends


@pytest.mark.parametrize("guarded", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_call_of_another_exercise_that_is_not_solved_earns_nothing(monkeypatch, guarded):
    name, task = "lab03_adam", "lab03-adam_step"
    work = released(name)  # in which no exercise is solved, and one's answer is this one's too
    cell_of(work, f"{task}-solution")["source"] = (
        "def adam_step(*given, **named):\n    return lean_adam_step(*given, **named)"
    )
    cell_of(work, "lab03-state_bytes-solution")["source"] = "def state_bytes(*given): return 7"
    if not guarded:
        monkeypatch.setattr(
            plans,
            "_built_on",
            lambda task, submission, _given, solutions: (
                replace(cell, kind="given")
                for cell in plans._solution_cells(submission, solutions)
                if cell.task != task.id
            ),
        )
    lab = find_lab(name)
    lab = replace(lab, tasks=tuple(one for one in lab.tasks if one.id == task))
    submission = take_in("ada", name, json.dumps(work).encode(), released(name))
    with Sandbox(lab.hides) as sandbox:
        solutions = solution_sources(source_notebook(name))
        (verdict,) = grade(lab, submission, sandbox, b"secret", solutions).result.verdicts
    assert verdict.points == (0 if guarded else verdict.max_points), verdict


# What must not leave.


@pytest.mark.parametrize("guarded", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_solution_that_is_beside_an_exercise_is_never_shown(
    graded, notebook, monkeypatch, guarded
):
    solution(notebook, INTEGER)["source"] = (
        "def integer_value(bits, width, encoding): return '' if encoding[0] == 't' else bits"
    )
    # Right for non-negative numbers, with a solution beside it; otherwise it reveals all it can.
    solution(notebook, FIXED)["source"] = (
        "def fixed_point_value(bits, width, fraction_bits):\n"
        "    print(In)\n"
        "    raise ValueError(''.join(cell[:200] for cell in In if cell.startswith('def int')))"
    )
    task = next(task for task in LAB.tasks if task.id == FIXED)
    monkeypatch.setattr(grading, "banned_uses", lambda *_: [])  # as of names built at run time
    monkeypatch.setattr(again, "_may_gain", lambda *_: True)
    judged = _second_earns_more(task)
    for module in (grading, again):
        monkeypatch.setattr(module, "judge_run", judged)
    if not guarded:
        monkeypatch.setattr(judge, "_without_values", lambda finding, _answer: finding)
    _, verdict = graded(notebook, INTEGER, FIXED)
    assert graded.whole.answers[FIXED][0].beside_solutions
    assert (CANARY in verdict.message) != guarded
    assert CANARY not in json.dumps(graded.whole.result.notebook)
    if guarded:
        rejudged = judge_safely(task, draw(task, b"", "", b""), graded.whole.answers[FIXED])
        assert CANARY not in rejudged.message, "judged again it says no more"


def _second_earns_more(task):
    """Judges as ever, but the second run of this task earns a point more."""
    real, calls = grading.judge_run, []

    def judged(which, cases, answers, busy):
        answers, verdict = real(which, cases, answers, busy)
        if which.id == task.id:
            calls.append(None)
            verdict = replace(verdict, earned={"all": float(len(calls))})
        return answers, verdict

    return judged


def test_a_judges_doubt_shows_no_values_either():
    case = Case(("part",), {})
    task = replace(LAB.tasks[0], judge=lambda *_: {"part": Finding(False, doubt=CANARY)})
    answer = Answer(1, beside_solutions=True)
    assert CANARY not in judge.judge_answer(task, case, answer)["part"].doubt
    assert (
        CANARY
        in judge.judge_answer(task, case, replace(answer, beside_solutions=False))["part"].doubt
    )


def test_what_is_held_back_is_there_afterwards():
    left = Allowance(Limits(submission_seconds=10))
    sent = left.sent_bytes
    with left.holding_back(0.5):
        left.use(5)
        left.sent_bytes -= sent // 2 + 1
        assert left.spent() is not None
    assert left.spent() is None
    assert left.sent_bytes == sent - sent // 2 - 1
    left.use(5)
    assert left.spent() is not None


# Plans, without running anything.


def task_named(task):
    return next(one for one in LAB.tasks if one.id == task)


def test_added_cells_that_an_exercise_does_not_go_by_are_left_out(notebook):
    insert(notebook, 2, "import math\nmath.frexp = None")
    insert(notebook, 2, "unit = 3")
    solution(notebook, DECODE)["source"] += "\n    unit"
    plan = plan_alone(task_named(DECODE), submitted(notebook), SOLUTIONS)
    sources = [cell.source for cell in plan.cells]
    assert "unit = 3" in sources
    assert not any("frexp = None" in source for source in sources)


def put_in(plan):
    return [cell.task for cell in plan.cells if CANARY in cell.source]


@pytest.mark.parametrize(
    ("task", "built_on"),
    [(DECODE, []), (FIXED, [INTEGER]), (STALL, [LIMITS_OF])],
)
def test_the_solutions_that_an_exercises_own_solution_goes_by_stand_at_their_places(
    notebook, task, built_on
):
    plan = plan_alone(task_named(task), submitted(notebook), SOLUTIONS)
    assert put_in(plan) == built_on
    assert plan.has_solutions == bool(built_on)
    assert [cell.index for cell in plan.cells] == sorted(cell.index for cell in plan.cells)


def test_what_a_solution_that_is_put_in_goes_by_itself_is_put_in_too(notebook):
    solutions = SOLUTIONS | {
        LIMITS_OF: f"{SOLUTIONS[LIMITS_OF]}\ndecode = decode_fp32\nunused = encode_fp32"
    }
    solutions[STALL] = solutions[STALL].replace("format_limits(", "decode or format_limits(")
    plan = plan_alone(task_named(STALL), submitted(notebook), solutions)
    assert put_in(plan) == [DECODE, LIMITS_OF]
    assert not any("unused" in cell.source for cell in plan.cells)


def test_a_state_has_the_names_that_its_exercise_goes_by_and_no_others(notebook):
    insert(notebook, len(notebook["cells"]), "big = 1")
    cells = submitted(notebook).cells
    keep = plan_together([task_named(STALL)], cells).keep
    (names,) = [names for by_task in keep.values() for names in by_task.values() if names]
    assert {"stall_value", "format_limits", "math"} <= set(names)
    assert "big" not in names
