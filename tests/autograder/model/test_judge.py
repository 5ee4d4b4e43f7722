from dataclasses import replace

import numpy as np
import pytest

from autograder.content import find_lab, lab_names
from autograder.model.banned_uses import Use
from autograder.model.judge import could_not_judge, draw, judge, judge_safely, refuse
from autograder.model.restrictions import Ban
from autograder.model.task import NOT_WRITTEN, Answer, Case, Finding, Task


def make_task():
    """A task of two parts whose judge gives the findings that the answers' values name."""
    return Task(
        id="lab99-example",
        parts={"easy": 1.0, "hard": 2.5},
        defines=("example",),
        probe="example",
        cases=lambda rng: [Case(("easy",), {"x": int(rng.integers(1 << 40))})],
        judge=lambda case, answer: dict.fromkeys(case.parts, answer.value),
        mistakes={"first": "You made the first mistake.", "second": "You made the second."},
    )


TASK = make_task()
EASY, HARD = Case(("easy",), {}), Case(("hard",), {})
FIXED = Case(("hard",), {}, fixed=True)


def verdict_on(*pairs):
    cases, findings = zip(*pairs, strict=True)
    return judge(TASK, cases, [Answer(finding) for finding in findings])


def test_all_right():
    verdict = verdict_on((EASY, Finding(True)), (HARD, Finding(True)))
    assert (verdict.status, verdict.points, verdict.max_points) == ("right", 3.5, 3.5)


def test_a_part_is_earned_only_if_all_its_cases_pass():
    verdict = verdict_on((EASY, Finding(True)), (HARD, Finding(True)), (HARD, Finding(False, "no")))
    assert (verdict.status, dict(verdict.earned)) == ("partly", {"easy": 1.0, "hard": 0.0})
    assert verdict.message == "no Not earned: hard."


@pytest.mark.parametrize("ok", [True, False])
def test_a_part_worth_nothing_is_not_listed(ok):
    task = replace(TASK, parts={"easy": 0.0, "hard": 2.5})
    verdict = judge(task, [EASY, HARD], [Answer(Finding(ok)), Answer(Finding(True))])
    assert dict(verdict.earned) == {"hard": 2.5}


def test_a_mistake_has_to_explain_every_failure():
    both = Finding(False, "said", ("second", "first"))
    assert verdict_on((EASY, both), (HARD, both)).mistake == "first"
    only = Finding(False, "said", ("second",))
    assert verdict_on((EASY, both), (HARD, only)).mistake == "second"
    assert verdict_on((EASY, both), (HARD, Finding(False, "said"))).mistake is None


def test_of_two_mistakes_the_one_that_lets_pass_what_passed_is_named():
    both = Finding(False, "said", ("first", "second"))
    passed = Finding(True, not_made=("first",))
    assert verdict_on((EASY, passed), (HARD, both)).mistake == "second"
    only = Finding(False, "said", ("first",))
    assert verdict_on((EASY, passed), (HARD, only)).mistake == "first"
    refuting = Finding(True, refuted=("first",))
    assert verdict_on((EASY, refuting), (HARD, both)).mistake == "second"
    assert verdict_on((EASY, refuting), (HARD, only)).mistake is None


def test_an_answer_that_fits_many_mistakes_names_none_by_itself():
    fits_all = Finding(False, "said", ("first", "second"), follows=True)
    assert verdict_on((HARD, fits_all)).mistake is None
    assert verdict_on((EASY, Finding(False, "said", ("second",))), (HARD, fits_all)).mistake == (
        "second"
    )
    assert verdict_on((EASY, Finding(False, "said")), (HARD, fits_all)).mistake is None


@pytest.mark.parametrize(("busy", "status"), [(False, "wrong"), (True, "could_not_judge")])
def test_a_lost_answer_is_wrong_unless_the_machine_was_too_busy(busy, status):
    verdict = judge(TASK, [EASY, HARD], [Answer(lost="why", busy=busy)] * 2)
    assert (verdict.status, verdict.points, verdict.message) == (status, 0, "why")


def test_a_fixed_case_is_never_shown():
    verdict = verdict_on((FIXED, Finding(False, "the hidden input")))
    assert "hidden input" not in verdict.message
    drawn_too = verdict_on((FIXED, Finding(False, "the hidden input")), (EASY, Finding(False, "x")))
    assert drawn_too.message.startswith("x")
    assert "hidden input" not in drawn_too.message


def test_a_doubt_is_neither_right_nor_wrong():
    doubt = Finding(False, doubt="the figures disagree")
    verdict = verdict_on((EASY, Finding(True)), (HARD, doubt))
    assert (verdict.status, verdict.message) == ("could_not_judge", "the figures disagree")
    assert verdict_on((EASY, Finding(False, "no")), (HARD, doubt)).status == "wrong"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(lost="It ran too long."), "It ran too long."),
        (Answer(raised=("KeyError", "'x'", "  line 3, in f")), "raised KeyError: 'x'\n  line 3"),
        (Answer(raised=("TypeError", "f() takes 1", "")), "couldn't use your code: TypeError: f()"),
        (Answer(raised=("TypeError", "'NoneType' object", "")), "without `return` returns None"),
        (Answer(raised=("SystemExit", "0", "")), "Your code raised SystemExit: 0"),
        (Answer(raised=("PlainError", "too deep", "")), "Your result can't be graded: too deep"),
        (Answer(raised=("NotImplementedError", "", "")), "Not written yet"),
        (Answer(raised=("NotDefined", "f is not defined.", "")), "f is not defined."),
    ],
)
def test_answers_without_a_value(answer, words):
    verdict = judge(TASK, [EASY], [answer])
    assert words in verdict.message
    assert verdict.earned["easy"] == 0


@pytest.mark.parametrize("beside_solutions", [False, True])
@pytest.mark.parametrize(
    ("is_written", "said"),
    [(False, "Not written yet"), (True, "calls another exercise's function")],
)
@pytest.mark.parametrize(
    "answer", [Answer(NOT_WRITTEN), Answer(raised=("NotImplementedError", "", ""))]
)
def test_a_written_exercise_is_not_called_unwritten(answer, is_written, said, beside_solutions):
    told = replace(answer, is_written=is_written, beside_solutions=beside_solutions)
    assert said in judge(TASK, [EASY], [told]).message


def test_a_judge_that_fails_is_not_the_students_mistake():
    verdict = judge_safely(TASK, [EASY], [Answer("no finding")])
    assert (verdict.status, verdict.points) == ("could_not_judge", 0)
    assert judge_safely(TASK, [EASY], [Answer(Finding(True))]).status == "right"


@pytest.mark.parametrize("said", [{}, {"easy": Finding(True)}, {"hrad": Finding(True)}])
def test_a_part_that_the_judge_says_nothing_of_is_not_earned(said):
    silent = replace(TASK, judge=lambda case, answer: said)
    both = Case(("easy", "hard"), {})
    verdict = judge_safely(silent, [both], [Answer(1)])
    assert (verdict.status, verdict.points) == ("could_not_judge", 0)
    with pytest.raises(ValueError, match="lab99-example has no finding for"):
        judge(silent, [both], [Answer(1)])


@pytest.mark.parametrize(
    "task", [t for n in lab_names() for t in find_lab(n).tasks], ids=lambda t: t.id
)
def test_every_part_of_a_task_is_decided_by_some_case(task):
    for seed in range(3):
        cases = task.cases(np.random.default_rng(seed))
        assert {part for case in cases for part in case.parts} == set(task.parts)


def test_every_case_wants_its_answer():
    with pytest.raises(ValueError, match="zip"):
        judge(TASK, [EASY, HARD], [Answer(Finding(True))])


def test_refused_and_unjudged_work_earns_nothing():
    refused = refuse(TASK, [Use("float32", by_task=True), Use("fromhex", by_task=True)])
    assert (refused.status, refused.points) == ("wrong", 0)
    assert "float32, fromhex" in refused.message
    unjudged = could_not_judge(TASK, "no GPU", "needs_gpu")
    assert (unjudged.status, unjudged.points, unjudged.max_points) == ("needs_gpu", 0, 3.5)


def test_a_refusal_says_what_is_allowed_if_no_exercise_allows_the_name():
    own = replace(TASK, ban=Ban(allows=frozenset({"threading"}), reason="Halve it yourself."))
    by_task, by_list = Use("bisect", by_task=True), Use("ctypes", by_task=False)
    assert refuse(own, [by_task]).message.endswith("no points. Halve it yourself.")
    message = refuse(own, [by_list], ["peakmem.tiers"]).message
    assert "Your solution uses ctypes" in message
    assert "peakmem.units, peakmem.tiers, threading. Use only these." in message
    assert "Halve it yourself" not in message
    assert "Halve it yourself. A solution may use" in refuse(own, [by_task, by_list]).message


def test_cases_follow_from_secret_task_student_and_submission():
    def drawn(secret=b"s", student="anna", submission=b"notebook"):
        return draw(TASK, secret, student, submission)[0].inputs["x"]

    assert drawn() == drawn()
    others = {drawn(secret=b"t"), drawn(student="ben"), drawn(submission=b"other")}
    assert len(others | {drawn()}) == 4
    # A name and a secret cannot be shifted into each other.
    assert drawn(student="ab") != drawn(student="a")


def test_what_a_message_quotes_is_short_and_can_be_written_anywhere():
    said = "said \x1b[2J" + chr(0xD800) + "x" * 10**6
    for message in (
        verdict_on((EASY, Finding(False, said))).message,
        refuse(TASK, [Use(said, by_task=True)] * 2).message,
    ):
        assert len(message.encode()) < 1700
        assert "said x" in message
        assert "\x1b" not in message
