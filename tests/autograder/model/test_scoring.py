"""Scores of ordinary grade cells: nbgrader's own under stock's rules, otherwise saner ones."""

import io
import unittest

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbgrader.utils import determine_grade

from autograder.model.scoring import SANE, STOCK, Rules, score


def printed(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def shown(text):
    data = {"text/plain": text}
    return {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": None}


def drawn():
    return {"output_type": "display_data", "data": {"text/plain": "<Figure>"}, "metadata": {}}


def failed(name="AssertionError", value="it is 4"):
    return {"output_type": "error", "ename": name, "evalue": value, "traceback": []}


def by_nbgrader(outputs, points):
    """Stock's score; None if it gives up on the whole submission."""
    cell = nbformat.v4.new_code_cell("test", outputs=[nbformat.from_dict(o) for o in outputs])
    cell.metadata.nbgrader = nbformat.from_dict(
        {"grade": True, "solution": False, "grade_id": "q", "points": points}
    )
    try:
        return determine_grade(cell)[0]
    except ValueError:
        return None


NUMBERS = st.one_of(
    st.floats(-5, 5).map(str),
    st.floats(allow_nan=True).map(str),
    st.integers(-3, 6).map(str),
    st.sampled_from(["True", "False", "np.float64(1.5)", "tensor(2.)", "'fine'", "[1, 2]", " 1 "]),
)
SAID = st.lists(
    st.one_of(
        st.builds(printed, st.text(max_size=5), st.sampled_from(["stdout", "stderr"])),
        st.builds(drawn),
    ),
    max_size=3,
)
LAST = st.one_of(st.just([]), st.builds(lambda text: [shown(text)], NUMBERS), st.just([failed()]))


@given(SAID, LAST, st.sampled_from([0.5, 1, 2.0, 5]))
def test_by_stocks_rules_it_is_nbgraders_score(said, last, points):
    assert score(said + last, points, STOCK).points == by_nbgrader(said + last, points)


def test_what_is_shown_in_the_middle_decides_nothing():
    """`sys.displayhook(2)` in a student's function, say; stock takes it for the points."""
    forged = [shown("2"), failed()]
    assert by_nbgrader(forged, 2) == 2
    assert score(forged, 2, STOCK).points == score(forged, 2, SANE).points == 0
    assert score([shown("2"), shown("0.5")], 2, SANE).points == 0.5


@pytest.mark.parametrize(
    ("outputs", "earned"),
    [
        ([], 2),
        ([printed("all is well")], 2),
        ([printed("1.5")], 2),  # printed is not returned
        ([drawn()], 2),
        ([shown("1.5")], 1.5),
        ([shown("0")], 0),
        ([shown("'fine'")], 2),
        ([shown("[<matplotlib.lines.Line2D at 0x7f>]")], 2),
        ([failed()], 0),
        ([printed("so far"), failed()], 0),
    ],
)
def test_where_stock_is_right_both_rules_agree(outputs, earned):
    assert score(outputs, 2, SANE).points == score(outputs, 2, STOCK).points == earned


@pytest.mark.parametrize(
    ("outputs", "by_stock", "sane"),
    [
        ([printed("a warning", "stderr")], 0, 2),
        ([printed("a warning", "stderr"), shown("1.5")], 0, 1.5),
        ([printed("a warning", "stderr"), failed()], 0, 0),
        ([shown("True")], 2, 2),
        ([shown("False")], 2, 0),
        ([shown("np.True_")], 2, 2),
        ([shown("np.float64(1.5)")], 2, 1.5),
        ([shown("np.int64(1)")], 2, 1),
        ([shown("tensor(0.5000)")], 2, 0.5),
        ([shown("tensor(0.5000, dtype=torch.float64)")], 2, 0.5),
        ([shown("-1.0")], 2, 0),
        ([shown("nan")], 2, None),
        ([shown("2.0000000000000004")], None, 2),
        ([shown("3")], None, None),
        ([shown("inf")], None, None),
    ],
)
def test_where_stock_surprises(outputs, by_stock, sane):
    assert score(outputs, 2, STOCK).points == by_nbgrader(outputs, 2) == by_stock
    assert score(outputs, 2, SANE).points == sane


def test_each_switch_can_be_set_alone():
    warned, wrong = [printed("a warning", "stderr")], [shown("False")]
    assert score(warned, 2, Rules(stderr_costs_all=True)).points == 0
    assert score(wrong, 2, Rules(stderr_costs_all=True)).points == 0
    assert score(warned, 2, Rules(odd_values_are_full_marks=True)).points == 2
    assert score(wrong, 2, Rules(odd_values_are_full_marks=True)).points == 2
    assert score([], 2, Rules(no_output_is_full_marks=False)).points is None
    assert score([shown("1.5")], 2, Rules(no_output_is_full_marks=False)).points == 1.5


def test_what_is_not_earned_is_said_with_the_tests_own_message():
    assert score([failed()], 2, SANE).said == "The test failed with AssertionError: it is 4"
    assert score([failed(value="")], 2, SANE).said == "The test failed with AssertionError."
    assert score([shown("1.5")], 2, SANE).said == "The test gave 1.5 of 2 points."
    assert len(score([failed(value="x" * 10_000)], 2, SANE).said) < 600
    assert "An instructor" in score([shown("3")], 2, SANE).said
    assert score([], 2, SANE).said == ""


def ran(*results):
    """The output of a cell whose last line is `unittest.main(argv=["x"], exit=False)`."""

    def test(ok):
        def run():
            assert ok

        return unittest.FunctionTestCase(run)

    suite = unittest.TestSuite(map(test, results))
    said = io.StringIO()
    unittest.TextTestRunner(said).run(suite)
    return [printed(said.getvalue(), "stderr"), shown("<unittest.main.TestProgram at 0x7f>")]


def test_a_unittest_that_failed_earns_nothing_though_it_raises_nothing():
    found = score(ran(True, False), 2, SANE)
    assert (found.points, found.said) == (0, "The test's unittest FAILED (failures=1).")
    assert score(ran(True, True), 2, SANE).points == 2
    assert score(ran(True, True), 2, STOCK).points == 0, "it writes to stderr"


def test_a_word_of_failure_that_is_none_of_unittests_costs_nothing():
    assert score([printed("FAILED (to load x=1) once\n", "stderr")], 2, SANE).points == 2
    assert score([printed("FAILED (failures=1)\n")], 2, SANE).points == 2


def test_a_thread_that_prints_meanwhile_hides_no_failed_unittest():
    parts = [printed("FAILED", "stderr"), printed("..."), printed(" (failures=1)\n", "stderr")]
    assert score(parts, 2, SANE).points == 0
