"""Grading one submission, in the sandbox: honest messes, and secrets that must not leave."""

import copy
import json
from dataclasses import replace

import numpy as np
import psutil
import pytest

from autograder.base.limits import Limits, MachineBusy
from autograder.content import find_lab, find_task
from autograder.grading.grade import grade
from autograder.grading.run import collect
from autograder.model import definitions
from autograder.model.judge import draw, judge
from autograder.model.task import Answer
from autograder.notebooks.intake import take_in
from autograder.sandbox.host.isolation import IsolationError
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.student import SandboxStudent
from tests.answers import answer
from tests.grading import LAB01, LAB05, SEARCH, cell_of, code_cell, released, solved

pytestmark = pytest.mark.sandbox

DECODE, ENCODE, TO_BF16 = "lab01-decode_fp32", "lab01-encode_fp32", "lab01-to_bf16"
SECRET = b"a course's secret"
LIMITS = Limits(cell_seconds=60, submission_seconds=600, memory_bytes=2**30)


@pytest.fixture(scope="module")
def sandboxes():
    with (
        Sandbox(find_lab(LAB01).hides, limits=LIMITS) as first,
        Sandbox(find_lab(LAB05).hides, limits=LIMITS) as fifth,
    ):
        yield {LAB01: first, LAB05: fifth}


@pytest.fixture
def graded(sandboxes):
    """Grades a whole notebook: returns the result, and its verdicts by task."""

    def run(notebook, lab=LAB01):
        run.raw = raw = json.dumps(notebook).encode()
        submission = take_in("ada", lab, raw, released(lab))
        run.whole = grade(find_lab(lab), submission, sandboxes[lab], SECRET)
        result = run.whole.result
        asked = {cell["id"] for cell in released(lab)["cells"]}
        return result, {v.task: v for v in result.verdicts if v.task in asked}

    run.sandboxes = sandboxes
    return run


@pytest.fixture
def notebook():
    return solved(LAB01)


def statuses(verdicts):
    return {task: verdict.status for task, verdict in verdicts.items()}


def only(verdicts, task, status="wrong"):
    """Whether this exercise alone lost its points, and the others are right."""
    found = statuses(verdicts)
    return found.pop(task) == status and set(found.values()) == {"right"}


def solution(notebook, task):
    return cell_of(notebook, f"{task}-solution")


def insert(notebook, before, source):
    at = notebook["cells"].index(before)
    notebook["cells"].insert(at, code_cell(source) | {"id": f"own-{len(notebook['cells'])}"})


# Honest submissions.


@pytest.mark.parametrize("lab", [LAB01, LAB05])
def test_the_solution_gets_full_marks(graded, lab):
    _, verdicts = graded(solved(lab), lab)
    assert set(statuses(verdicts).values()) == {"right"}
    assert all(v.points == v.max_points > 0 for v in verdicts.values())


@pytest.mark.parametrize("lab", [LAB01, LAB05])
def test_the_untouched_release_gets_nothing_and_is_told_why(graded, lab):
    _, verdicts = graded(released(lab), lab)
    assert set(statuses(verdicts).values()) == {"wrong"}
    assert all(v.points == 0 for v in verdicts.values())
    assert all("Not written yet" in v.message for v in verdicts.values())


def only_the_stall(source):
    """A release in which only 1.11 is written; it builds on 1.4, `format_limits`."""
    notebook = released(LAB01)
    cell_of(notebook, "lab01-stall_value-solution")["source"] = source
    return notebook


def test_an_answer_that_builds_on_an_unwritten_exercise_gets_feedback_of_its_own(graded):
    source = answer(LAB01, "lab01-stall_value/wrong_ties_move_on").source
    _, verdicts = graded(only_the_stall(source))
    verdict = verdicts["lab01-stall_value"]
    assert (verdict.status, verdict.mistake) == ("wrong", "ties_move_on")
    assert "Not written yet" not in verdict.message
    assert "Not written yet" in verdicts["lab01-format_limits"].message


def test_a_written_answer_that_calls_an_unwritten_one_is_not_called_unwritten(graded):
    _, verdicts = graded(
        only_the_stall("def stall_value(*sizes):\n    return float(decode_fp32(sizes[1]))")
    )
    verdict = verdicts["lab01-stall_value"]
    assert "calls another exercise's function that isn't written yet" in verdict.message
    # `rejudge` has nothing but the answers.
    task, answers = find_task(verdict.task), graded.whole.answers[verdict.task]
    assert judge(task, draw(task, SECRET, "ada", graded.raw), answers) == verdict


def test_an_empty_notebook_gets_nothing(graded):
    _, verdicts = graded({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    assert all(v.points == 0 for v in verdicts.values())
    assert "not defined" in verdicts[DECODE].message


def test_a_syntax_error_costs_its_exercise_only_and_is_named(graded, notebook):
    solution(notebook, ENCODE)["source"] += "\n    return (1"
    _, verdicts = graded(notebook)
    assert only(verdicts, ENCODE)
    assert "SyntaxError" in verdicts[ENCODE].message


def test_a_helper_in_an_added_cell_works(graded, notebook):
    cell = solution(notebook, DECODE)
    insert(notebook, cell, cell["source"].replace("def decode_fp32", "def helper"))
    cell["source"] = "def decode_fp32(bits):\n    return helper(bits)"
    _, verdicts = graded(notebook)
    assert set(statuses(verdicts).values()) == {"right"}


def test_a_copied_and_a_deleted_cell_cost_nobody_else_anything(graded, notebook):
    copied = solution(notebook, DECODE)
    notebook["cells"].insert(3, copy.deepcopy(copied))
    notebook["cells"].remove(solution(notebook, TO_BF16))
    result, verdicts = graded(notebook)
    assert only(verdicts, TO_BF16)
    assert any("2 cells" in note.text for note in result.notes)


def test_of_a_split_cell_the_last_definition_counts(graded, notebook):
    first = copy.deepcopy(solution(notebook, DECODE))
    first["source"] = "def decode_fp32(bits):\n    return 7.0"
    notebook["cells"].insert(3, first)
    _, verdicts = graded(notebook)
    assert set(statuses(verdicts).values()) == {"right"}


def test_warnings_and_stderr_cost_nothing(graded, notebook):
    noise = "import sys, warnings\nwarnings.warn('careful')\nprint('on stderr', file=sys.stderr)\n"
    cell = solution(notebook, DECODE)
    cell["source"] = noise + cell["source"].replace(
        "):\n",
        "):\n    import warnings, sys; warnings.warn('deep'); print(1, file=sys.stderr)\n",
        1,
    )
    result, verdicts = graded(notebook)
    assert set(statuses(verdicts).values()) == {"right"}
    assert "on stderr" in json.dumps(result.notebook)


def test_a_notebook_without_any_metadata_is_graded(graded, notebook):
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        del cell["id"]
    _, verdicts = graded(notebook)
    assert set(statuses(verdicts).values()) == {"right"}


def test_a_cell_that_fails_before_the_definition_costs_its_exercise_only(graded, notebook):
    cell = solution(notebook, DECODE)
    cell["source"] = "1 / 0\n" + cell["source"]
    _, verdicts = graded(notebook)
    assert only(verdicts, DECODE)
    assert "ZeroDivisionError" in verdicts[DECODE].message


# No solution may import os, so a crash has to find it elsewhere.
OS = "import logging\ndef os(): return getattr(logging, chr(111 + (id(logging) < 0)) + 's')"


@pytest.mark.parametrize("end", ["import os; os._exit(3)", "import ctypes; ctypes.string_at(0)"])
def test_a_cell_that_takes_the_process_with_it_costs_its_exercise_only(graded, notebook, end):
    cell = solution(notebook, ENCODE)
    cell["source"] = f"{end}\n{cell['source']}"
    _, verdicts = graded(notebook)
    assert only(verdicts, ENCODE)
    assert "ended its own process" in verdicts[ENCODE].message


def test_a_function_that_takes_the_process_with_it_costs_its_exercise_only(graded, notebook):
    solution(notebook, DECODE)["source"] = f"{OS}\ndef decode_fp32(bits): os()._exit(0)"
    solution(notebook, TO_BF16)["source"] = f"{OS}\ndef to_bf16(x): os().abort()"
    _, verdicts = graded(notebook)
    lost = {DECODE: "wrong", TO_BF16: "wrong"}
    assert statuses(verdicts) == dict.fromkeys(verdicts, "right") | lost
    assert "ended its own process" in verdicts[DECODE].message


CRASH = f"{OS}\ndef {{name}}(*a, **k): os().abort()"


@pytest.mark.slow
def test_any_number_of_functions_that_crash_cost_their_exercises_only(graded, notebook):
    integers, floats = ["integer_value", "fixed_point_value"], ["decode_fp32", "encode_fp32"]
    names = [*integers, *floats, "to_bf16", "careful_sum"]
    for name in names:
        solution(notebook, f"lab01-{name}")["source"] = CRASH.format(name=name)
    _, verdicts = graded(notebook)
    lost = {f"lab01-{name}": "wrong" for name in names}
    assert statuses(verdicts) == dict.fromkeys(verdicts, "right") | lost
    assert len(lost) < len(verdicts)
    assert all("ended its own process" in verdicts[task].message for task in lost)


@pytest.fixture
def starts(sandboxes, monkeypatch):
    """Notes each start of a process for a submission to lab 1."""
    noted, box = [], sandboxes[LAB01]
    opened = box.open
    monkeypatch.setattr(box, "open", lambda: noted.append(None) or opened())
    return noted


def test_cells_that_all_end_the_process_are_each_started_once(graded, notebook, starts):
    cells = [c for c in notebook["cells"] if c["id"].endswith("-solution")]
    for cell in cells:
        cell["source"] = f"import os; os._exit(0)\n{cell['source']}"
    result, verdicts = graded(notebook)
    assert set(statuses(verdicts).values()) == {"wrong"}
    assert all("defined nothing. Your code ended" in v.message for v in verdicts.values())
    # Then each exercise is run alone, with its own cell and again without.
    assert len(starts) == len(cells) + 1 + 2 * len(cells)
    shown = [json.dumps(c["outputs"]) for c in result.notebook["cells"] if c.get("outputs")]
    assert sum("ended its own process" in text for text in shown) == len(cells)


def test_all_starts_share_the_time_of_one_submission(graded, notebook, starts, monkeypatch):
    box = graded.sandboxes[LAB01]
    monkeypatch.setattr(box, "limits", replace(LIMITS, submission_seconds=2))
    monkeypatch.setattr("autograder.grading.grade._HELD_BACK", 0.0)
    monkeypatch.setattr("autograder.base.limits._PATIENCE", 10**6)  # with a busy machine
    monkeypatch.setattr("autograder.sandbox.host.clock._PATIENCE", 10**6)
    first = notebook["cells"][0]
    for _ in range(1000):
        insert(notebook, first, "import os; os._exit(0)")
    _, verdicts = graded(notebook)
    assert set(statuses(verdicts).values()) == {"wrong"}
    assert all("used up its time" in v.message for v in verdicts.values())
    assert len(starts) <= 21


def test_what_reading_a_submission_took_is_given_back(graded, notebook):
    graded(notebook)
    assert definitions.statements.cache_info().currsize == 0


def test_html_without_end_is_cut_and_costs_no_exercise(graded, notebook):
    flood = "from IPython.display import HTML, display\nfor _ in range(30): display(HTML({html}))"
    deep = flood.format(html="'<div>' * 9_000")
    wide = flood.format(html="'<div>' * 39_000")
    first = notebook["cells"][0]
    for source in (*[deep] * 3, wide):
        insert(notebook, first, source)
    result, verdicts = graded(notebook)
    assert set(statuses(verdicts).values()) == {"right"}
    shown = json.dumps(result.notebook)
    assert "TooMuchOutput" in shown
    assert shown.count("<div>") <= 200_000


def test_a_cell_that_runs_too_long_costs_its_exercise_only(graded, notebook, monkeypatch):
    box = graded.sandboxes[LAB01]
    monkeypatch.setattr(box, "limits", replace(LIMITS, cell_seconds=2))
    box.open().close()  # a process that was made ready has the old limits
    solution(notebook, DECODE)["source"] += "\nwhile True: pass"
    solution(notebook, ENCODE)["source"] = "import time; time.sleep(10**6)"
    _, verdicts = graded(notebook)
    assert only(verdicts, ENCODE), "what a cell defined before it was stopped stays defined"
    assert "took too long" in verdicts[ENCODE].message


@pytest.fixture
def busy_at(monkeypatch):
    """Makes the machine too busy for the first cell, or the first call, that contains this text."""

    def interrupt(method, word):
        real = getattr(SandboxStudent, method)

        def called(student, what, *more, **options):
            if word in what:
                busy = MachineBusy("The machine was too busy for that.")
                lost = student._conversation.give_up(busy)
                if method == "run_cell":
                    raise lost
                return Answer(lost=str(lost), busy=True)
            return real(student, what, *more, **options)

        monkeypatch.setattr(SandboxStudent, method, called)

    return interrupt


def test_a_cell_that_the_machine_was_too_busy_for_is_nobodys_mistake(graded, notebook, busy_at):
    busy_at("run_cell", "def encode_fp32")
    result, verdicts = graded(notebook)
    assert only(verdicts, ENCODE, "could_not_judge")
    assert verdicts[ENCODE].points == 0
    assert verdicts[ENCODE].message == "The machine was too busy for that."
    assert "too busy" in json.dumps(result.notebook)


def test_what_rests_on_a_cell_that_did_not_run_is_nobodys_mistake(graded, notebook, busy_at):
    cell = solution(notebook, DECODE)
    insert(notebook, cell, cell["source"].replace("def decode_fp32", "def helper"))
    cell["source"] = "def decode_fp32(bits):\n    return helper(bits)"
    busy_at("run_cell", "def helper")
    _, verdicts = graded(notebook)
    assert verdicts[DECODE].status == "could_not_judge"
    assert set(statuses(verdicts).values()) == {"right", "could_not_judge"}
    busy = [answer.busy for answer in graded.whole.answers[DECODE]]
    assert busy == [True] * len(busy), "judged again they say the same"


def test_an_answer_that_the_machine_was_too_busy_for_is_nobodys_mistake(graded, notebook, busy_at):
    busy_at("run", "encode_fp32")
    _, verdicts = graded(notebook)
    assert only(verdicts, ENCODE, "could_not_judge")


def test_what_was_not_run_for_want_of_time_on_a_busy_machine_is_nobodys_mistake(
    graded, notebook, monkeypatch
):
    monkeypatch.setattr("autograder.base.limits._PATIENCE", 0)
    _, verdicts = graded(notebook)
    assert set(statuses(verdicts).values()) == {"could_not_judge"}
    assert all("too busy to run the whole notebook" in v.message for v in verdicts.values())


# Secrets must not leave, and nothing may take forever.


def test_an_input_that_is_the_same_for_everybody_is_never_shown(graded, notebook):
    """A function that remembers all its arguments and reveals them if it can."""
    teller = (
        "seen = set()\n"
        "def decode_fp32(bits):\n"
        "    seen.add(bits)\n"
        "    raise ValueError([b for b in seen if b in (0x3E880000, 0x3E200000, 0x00400000)])\n"
    )
    solution(notebook, DECODE)["source"] = teller
    solution(notebook, ENCODE)["source"] = "def encode_fp32(x):\n    raise ValueError(list(seen))"
    fixed = {str(0x3E88_0000), str(0x3E20_0000), str(0x0040_0000)}
    result, verdicts = graded(notebook)
    assert not [word for word in fixed if word in verdicts[DECODE].message]
    assert not [word for word in fixed if word in verdicts[ENCODE].message]
    assert not [word for word in fixed if word in json.dumps(result.notebook["cells"][-1])]


def test_a_float_of_the_librarys_is_seen_where_no_text_shows_it(graded, notebook):
    insert(notebook, solution(notebook, DECODE), "KIND = np.sqrt(np.int16(1)).dtype")
    solution(notebook, DECODE)["source"] = (
        "def decode_fp32(bits):\n    return float(np.uint32(bits).view(KIND))"
    )
    result, verdicts = graded(notebook)
    assert only(verdicts, DECODE)
    assert "NotAllowed: float32 does this exercise's work" in verdicts[DECODE].message
    assert "conversions.py" not in json.dumps(result.notebook), "no trace of the watch"


def test_text_that_a_cell_runs_may_not_do_the_work(graded, notebook):
    """Text can't be read, so the exercise runs without that cell, as honest solutions can."""
    text = "def decode_fp32(bits): return struct.unpack('<f', struct.pack('<I', bits))[0]"
    spelled = text.encode().hex()
    hook = "get_ipython().events.register('post_run_cell', lambda _: exec(text, globals()))"
    insert(notebook, solution(notebook, DECODE), f"text = bytes.fromhex('{spelled}')\n{hook}")
    assert only(graded(notebook)[1], DECODE, "right")
    solution(notebook, DECODE)["source"] = "def decode_fp32(bits): return 1.5"
    _, verdicts = graded(notebook)
    assert only(verdicts, DECODE)
    assert "got 1.5" in verdicts[DECODE].message


def test_nor_by_a_function_that_earns_more_alone(graded, notebook):
    """Its second run counts, and must not have it meet a drawn case after a fixed one."""
    cell = solution(notebook, DECODE)
    cell["source"] = cell["source"].replace("def decode_fp32", "def right") + (
        "\nseen, together = set(), []\n"
        "def decode_fp32(bits):\n"
        "    seen.add(bits)\n"
        "    if together or 0 < bits < 0x00800000:\n"
        "        raise ValueError([b for b in seen if b in (0x3E880000, 0x3E200000)])\n"
        "    return right(bits)\n"
    )
    solution(notebook, ENCODE)["source"] = "def encode_fp32(x):\n    together.append(x)"
    _, verdicts = graded(notebook)
    assert verdicts[DECODE].points == 3, "normal numbers are right alone only"
    assert "raised ValueError" in verdicts[DECODE].message
    fixed = {str(0x3E88_0000), str(0x3E20_0000)}
    assert not [word for word in fixed if word in verdicts[DECODE].message]


def test_a_function_that_loops_is_stopped_after_two_cases_and_one_alone_with_a_kind_message(
    sandboxes, monkeypatch
):
    notebook = solved(LAB05)
    cell_of(notebook, f"{SEARCH}-solution")["source"] = (
        "def largest_micro_batch(run, upper):\n    while True: pass"
    )
    submission = take_in("ada", LAB05, json.dumps(notebook).encode(), released(LAB05))
    lab = find_lab(LAB05)
    search = find_task(SEARCH)
    impatient = replace(lab, tasks=(replace(search, seconds=0.5),))
    ran, run = [], SandboxStudent.run
    monkeypatch.setattr(SandboxStudent, "run", lambda *a, **k: ran.append(a) or run(*a, **k))
    (verdict,) = grade(impatient, submission, sandboxes[LAB05], SECRET).result.verdicts
    assert verdict.points == 0
    assert "ran for over 0.5 s" in verdict.message
    assert len(ran) == 2 + 1 < len(search.cases(np.random.default_rng(0)))


def test_the_cases_follow_from_the_submission_so_grading_again_says_the_same(graded):
    notebook = solved(LAB05)
    task = cell_of(notebook, f"{SEARCH}-solution")
    task["source"] = "def largest_micro_batch(run, upper): return -upper"
    (first, verdicts), (again, _) = (graded(notebook, LAB05) for _ in range(2))
    assert first == again
    task["source"] += "\n"
    _, others = graded(notebook, LAB05)
    assert others[SEARCH].message != verdicts[SEARCH].message


@pytest.mark.parametrize(
    "expression",
    [
        "struct.unpack('" + "e" * 20_000 + "!', b'')",
        "struct.unpack(" + "+".join("f" * 60) + ", b'')",
        "-" * 20_000 + "bits",
        "bits" + ".real" * 20_000,
        "bits" + "(0)" * 20_000,
        "(" + "bits + " * 5_000 + "bits)",
    ],
    ids=lambda text: text[:16],
)
def test_code_that_is_hard_to_read_keeps_nobody_waiting(graded, notebook, expression):
    parts = "import struct\nf = 'x'\nf = 'y'\n"
    solution(notebook, DECODE)["source"] = f"{parts}def decode_fp32(bits):\n    {expression}"
    _, verdicts = graded(notebook)
    assert verdicts[DECODE].points == 0
    assert verdicts[TO_BF16].status == "right"


@pytest.mark.slow
def test_a_sandbox_that_ends_in_the_very_last_call_is_no_fault_of_the_students():
    task = next(task for task in find_lab(LAB05).tasks if task.ask)
    case = replace(draw(task, b"secret", "ada", b"")[0], fixed=True)  # these are run last
    raw = json.dumps(solved(LAB05)).encode()
    submission = take_in("ada", LAB05, raw, released(LAB05))
    with Sandbox() as sandbox:

        def end_sandbox(_question):
            below = psutil.Process(sandbox._process.pid).children(recursive=True)
            for process in below:
                process.kill()
            assert psutil.wait_procs(below)[1] == []

        ending = replace(task, ask=lambda _case: end_sandbox)
        with pytest.raises(IsolationError, match="gone"):
            collect(submission, sandbox, [ending], {task.id: [case]})


def test_what_one_exercise_leaves_behind_is_not_held_against_another(monkeypatch) -> None:
    # Its copies of the parameters, 40 MiB, stay in a global while the next exercise is measured.
    work = released("lab03_adam")
    for label in (
        "lab03-lean_adam_step/wrong_hidden_in_globals",
        "lab03-step_in_backward/right_closure",
    ):
        entry = answer("lab03_adam", label)
        cell_of(work, f"{entry.task}-solution")["source"] = entry.source
    release = released("lab03_adam")
    submission = take_in("s1", "lab03_adam", json.dumps(work).encode(), release)
    lab = find_lab("lab03_adam")
    kept = tuple(t for t in lab.tasks if t.name in ("lean_adam_step", "step_in_backward"))
    statuses = []
    with Sandbox(lab.hides) as sandbox:
        for alone in (True, False):
            if not alone:
                monkeypatch.setattr(
                    "autograder.grading.grade._run_alone", lambda *given, **_: given[2]
                )
            result = grade(replace(lab, tasks=kept), submission, sandbox, b"secret").result
            statuses.append(result.verdicts[1].status)
    assert statuses == ["right", "could_not_judge"]
