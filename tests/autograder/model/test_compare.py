import math

import numpy as np
import pytest

from autograder.model.compare import by_reference, same, show, whole
from autograder.model.task import NOT_WRITTEN, Answer, Case
from peakmem.probes import call_each


@pytest.mark.parametrize(
    ("expected", "got", "verdict"),
    [
        (1, 1, True),
        (1, True, True),
        (True, 1, True),
        (False, 0.0, True),
        (True, 2, False),
        (True, None, False),
        (True, "True", False),
        (0, False, True),
        (1, 1.0, True),
        (1, 1.5, False),
        (2**53 + 1, float(2**53), False),
        (1, math.nan, False),
        (0, -0.0, True),
        (1.0, 1, True),
        (0.0, -0.0, False),
        (0.0, 0, True),
        (-0.0, 0, False),
        (math.nan, math.nan, True),
        (1.0, math.nan, False),
        (math.nan, 10**400, False),
        (math.inf, 10**400, False),
        (math.inf, math.inf, True),
        ([1, 2], (1, 2), True),
        ((1, 2), np.array([1, 2]), True),
        (np.array([1, 2]), [1, 2], True),
        (np.array([1.0, -0.0]), np.array([1.0, 0.0]), False),
        (np.array([[1, 2]]), np.array([1, 2]), False),
        (np.zeros((2, 0)), np.zeros((0, 2)), False),
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, [1], False),
        ({1, 2}, frozenset({1, 2}), True),
        (None, None, True),
        (None, 0, False),
        ("1", 1, False),
        (1, "1", False),
    ],
)
def test_same(expected, got, verdict):
    assert same(expected, got) is verdict


def test_where_whole_numbers_are_asked_for_no_float_counts_as_one():
    assert whole()(3, 3)
    assert whole()(3, True) is False
    assert whole()(1, True)
    assert not whole()(3, 3.0)
    assert whole()(3.5, 3.5), "what a mutant makes may be a float"
    assert not whole()({"a": [(3,), 4]}, {"a": [(3,), 4.0]})
    assert not whole()([3], np.array([3.0]))
    assert whole()([3], np.array([3]))
    assert whole(lambda expected, got: True)(3, 4), "the comparison is the one that is given"


def halve(x):
    if x < 0:
        raise ValueError("negative")
    return x / 2


JUDGE = by_reference(halve, {"doubles": lambda x: 2 * x, "keeps": lambda x: x})


def judged(calls, outcomes):
    return JUDGE(Case(("all",), {"calls": calls}), Answer(outcomes))["all"]


def test_of_two_dicts_the_first_entry_that_differs_is_shown():
    judge = by_reference(lambda bits: {"codes": [1], "scale": 0.5, "shape": []})
    case = Case(("all",), {"calls": [[8]]})

    def said(value):
        return judge(case, Answer([("value", value)]))["all"].said

    assert said({"codes": [1], "scale": 0.25, "shape": [2]}) == (
        "For 8: `scale` differs. Expected 0.5, but got 0.25."
    )
    assert said({"codes": [1], "scale": 0.5}) == "For 8: your dict has no key 'shape'."
    more = {"codes": [1], "scale": 0.5, "shape": [], "zero": 0}
    assert said(more) == "For 8: your dict has the key 'zero', which isn't asked for."
    outcome = ("raised", "TypeError", "no")
    raised = judge(case, Answer([outcome]))["all"].said
    assert raised == "For 8: your function raised TypeError: no."


def test_a_result_that_is_no_plain_data_was_returned_not_raised():
    outcomes = call_each(iter, [([4],)])
    said = by_reference(list)(Case(("all",), {"calls": [[[4]]]}), Answer(outcomes))["all"].said
    assert said.startswith(
        "For [4]: expected [4], but your result can't be graded: a value of type list_iterator"
    )


@pytest.mark.parametrize(
    ("got", "said"),
    [
        ([[1, 2], [9, 5]], " most at [1, 0]. Expected 3, but got 9."),
        ([[1.5, 2], [3, np.nan]], " most at [1, 1]. Expected 4, but got nan."),
        ([1, 2, 3, 4], " in shape. Expected (2, 2), but got (4,)."),
        (np.array([[1, 2], [3, 4]], float), " in type. Expected 'int64', but got 'float64'."),
        (np.array([["a", "b"]] * 2), ". Expected array([[1, 2], [3, 4]]), but got "),
    ],
)
def test_of_two_arrays_the_place_where_they_differ_most_is_shown(got, said):
    right = np.array([[1, 2], [3, 4]])
    case, answer = Case(("all",), {"calls": [[0]]}), Answer([("value", np.asarray(got))])
    found = by_reference(lambda _: right, equal=lambda *_: False)(case, answer)["all"].said
    assert found.startswith(f"For 0: your result differs{said}")
    answer = Answer([("value", {"q": np.asarray(got)})])
    judge = by_reference(lambda _: {"q": right}, equal=lambda *_: False)
    assert judge(case, answer)["all"].said.startswith(f"For 0: `q` differs{said}")


def test_right_answers_and_the_right_exception_pass():
    finding = judged([[4.0], [-1]], [("value", 2.0), ("raised", "ValueError", "anything")])
    assert finding.ok


def test_a_mutant_explains_only_what_it_explains_whole():
    assert judged([[4.0], [6.0]], [("value", 8.0), ("value", 12.0)]).mistakes == ("doubles",)
    assert judged([[4.0], [6.0]], [("value", 8.0), ("value", 6.0)]).mistakes == ()
    assert judged([[0.0], [6.0]], [("value", 0.0), ("value", 6.0)]).mistakes == ("keeps",)


def test_a_right_answer_shows_which_mutants_it_is_not():
    assert judged([[0.0], [4.0]], [("value", 0.0), ("value", 2.0)]).not_made == ("doubles", "keeps")
    assert judged([[0.0]], [("value", 0.0)]).not_made == ()


def test_the_message_names_input_expected_and_got():
    said = judged([[4.0]], [("value", 3.0)]).said
    assert said == "For 4.0: expected 2.0, but got 3.0."
    assert "raised TypeError: no" in judged([[4.0]], [("raised", "TypeError", "no")]).said
    assert "in place" in judged([[4.0]], [("changed", 0)]).said
    assert "expected a ValueError" in judged([[-4.0]], [("value", -2.0)]).said


def test_results_are_shown_in_the_tasks_own_form():
    judge = by_reference(halve, form=lambda value: f"<{value}>", write=lambda x: f"halve({x})")
    finding = judge(Case(("all",), {"calls": [[4.0]]}), Answer([("value", 3.0)]))["all"]
    assert finding.said == "For halve(4.0): expected <2.0>, but got <3.0>."


def test_a_stub_is_not_a_mistake():
    assert judged([[4.0]], [("raised", "NotImplementedError", "")]) is NOT_WRITTEN


@pytest.mark.parametrize("outcomes", [None, 3, [], [3], [("value",)], {"value": 1}, np.zeros(3)])
def test_what_is_no_outcome_is_not_right(outcomes):
    assert not judged([[4.0]], outcomes).ok


def test_show_cuts_what_is_too_long():
    assert len(show(list(range(1000)))) == 120


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([0, 1, 7], "For 3: your list first differs at step 2. Expected 2, but got 7."),
        (np.array([0, 5, 2]), "For 3: your list first differs at step 1. Expected 1, but got 5."),
        ([0, 1], "For 3: expected [0, 1, 2], but got [0, 1]."),
        (3, "For 3: expected [0, 1, 2], but got 3."),
        ([[0], 1, 2], "For 3: your list first differs at step 0. Expected 0, but got [0]."),
    ],
)
def test_the_first_item_that_differs_is_named(answer, said):
    judge = by_reference(lambda n: list(range(n)), item="step")
    case = Case(("value",), {"calls": [[3]]})
    assert judge(case, Answer([("value", answer)]))["value"].said == said
