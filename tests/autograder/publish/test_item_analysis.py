"""Item analysis of a class, compared with numpy, and its page."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.model.result import Result
from autograder.model.task import Verdict
from autograder.publish.item_analysis import LabAnalysis, analyse, page_html

LAB = "lab01_formats"


def verdict(task: str, earned: float, most: float = 2, mistake: str | None = None) -> Verdict:
    status = "right" if earned == most else "partly" if earned else "wrong"
    message = "Your range ends one too early." if mistake else ""
    return Verdict(task, status, {"all": earned}, most, message, mistake)


def of_scores(scores: list[list[float]], mistake: str | None = None) -> list[Result]:
    """A class: one row per student, one column per task of 2 points."""
    return [
        Result(
            f"s{i:03}",
            LAB,
            "graded",
            verdicts=tuple(
                verdict(f"t{j}", points, mistake=mistake if points < 2 else None)
                for j, points in enumerate(row)
            ),
        )
        for i, row in enumerate(scores)
    ]


def no_code(_result: Result, _task: str) -> str:
    return ""


def analysed(scores: list[list[float]]) -> LabAnalysis:
    return analyse(LAB, of_scores(scores), no_code)


@given(
    st.integers(2, 4).flatmap(
        lambda tasks: st.lists(
            st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=tasks, max_size=tasks),
            min_size=10,
            max_size=25,
        )
    )
)
def test_the_figures_are_numpys(scores: list[list[float]]) -> None:
    found = analysed(scores)
    table = np.array(scores)
    assert found.mean_points == pytest.approx(table.sum(axis=1).mean())
    for column, item in enumerate(found.items):
        own, rest = table[:, column], np.delete(table, column, axis=1).sum(axis=1)
        assert item.pass_rate == pytest.approx(np.mean(own == 2))
        assert item.mean_share == pytest.approx(own.mean() / 2)
        if np.ptp(own) and np.ptp(rest):
            assert item.discrimination == pytest.approx(np.corrcoef(own, rest)[0, 1])
        else:
            assert item.discrimination is None
    covariance = np.cov(table.T)
    if covariance.sum() > 1e-9:
        k = table.shape[1]
        alpha = k / (k - 1) * (1 - np.trace(covariance) / covariance.sum())
        assert found.reliability == pytest.approx(alpha)


def test_an_exercise_that_was_not_judged_counts_for_nothing() -> None:
    rows = of_scores([[2, 0]] * 12)
    lost = Verdict("t0", "could_not_judge", {"all": 0}, 2, "")
    odd = Result("odd", LAB, "graded", verdicts=(lost, verdict("t1", 2)))
    broken = Result("broken", LAB, "failed", reason="lost")
    first, second = analyse(LAB, [*rows, odd, broken], no_code).items
    assert (first.judged, first.pass_rate) == (12, 1.0)
    assert (second.judged, second.pass_rate) == (13, pytest.approx(1 / 13))


def test_ten_are_needed_before_a_correlation_is_told() -> None:
    few = analysed([[2.0, 2.0], [0.0, 0.0]] * 4)
    assert few.items[0].discrimination is None
    assert few.reliability is None
    assert page_html(few, "Lab").count("with caution") == 1
    unjudged = Verdict("t0", "could_not_judge", {"all": 0}, 2, "")
    lost = [Result(f"lost{n}", LAB, "graded", verdicts=(unjudged,)) for n in range(4)]
    some = analyse(LAB, [*of_scores([[2.0, 2.0], [0.0, 0.0]] * 4), *lost], no_code)
    assert "Fewer than 10 students were judged" in some.items[0].advice[0]
    assert analysed([[2.0, 2.0], [0.0, 0.0]] * 5).items[0].discrimination == pytest.approx(1)


def test_an_example_begins_with_the_function() -> None:
    scores = of_scores([[0.0, 2.0]], "off_by_one")
    code = "import math\n\n\ndef f(x):\n    return x\n"
    (mistake,) = analyse(LAB, scores, lambda *_: code).items[0].mistakes
    assert mistake.code == "def f(x):\n    return x"


def test_a_mistake_is_told_as_the_student_reads_it() -> None:
    page = page_html(analyse(LAB, of_scores([[0.0, 2.0]], "off_by_one"), no_code), "Lab")
    assert "<b>off_by_one</b>: “Your range ends one too early.” (<bdi>s000</bdi>)" in page


@pytest.mark.parametrize(
    ("scores", "word"),
    [
        ([[2.0, 2.0]] * 20, "shorten it"),
        ([[0.0, 2.0]] * 20, "worked example"),
        ([[2.0, 0.0], [0.0, 2.0]] * 10, "ambiguous text"),
    ],
)
def test_each_kind_of_exercise_gets_its_advice(scores: list[list[float]], word: str) -> None:
    assert any(word in sentence for sentence in analysed(scores).items[0].advice)


def test_the_advice_names_a_common_mistake_and_many_unnamed_ones() -> None:
    named = analyse(LAB, of_scores([[0.0]] * 10 + [[2.0]] * 10, "off_by_one"), no_code)
    assert any("(off_by_one): show it in class" in one for one in named.items[0].advice)
    unnamed = analysed([[0.0]] * 10 + [[2.0]] * 10)
    assert any("add what they have in common" in one for one in unnamed.items[0].advice)


def test_the_page_shows_a_students_lines_and_runs_none_of_them() -> None:
    code = "<script>alert(1)</script>\n" + "x = 1\n" * 40
    results = of_scores([[0.0]] * 12, "<b>bold</b>")
    page = page_html(analyse(LAB, results, lambda *_: code), "Lab 1 & more")
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "&lt;b&gt;bold" in page
    assert "Lab 1 &amp; more" in page
    assert page.count("x = 1") < 12
    assert "12 \N{MULTIPLICATION SIGN} " in page


def test_exercises_have_their_headings_and_mistakes_come_after_all_figures() -> None:
    results = of_scores([[0.0, 2.0], [2.0, 0.0]] * 6, "off_by_one")
    page = page_html(
        analyse(LAB, results, lambda *_: "x = 1"), "Lab", {"t0": "1.1 Integers & more"}
    )
    assert page.count("1.1 Integers &amp; more") == 2
    figures, _, mistakes = page.partition("The commonest mistakes")
    assert ">t1<" in figures  # it has no heading
    assert "off_by_one</b>" not in figures
    assert "x = 1" not in figures
    assert "off_by_one</b>" in mistakes


def test_a_lab_that_nobody_handed_in_has_an_empty_page() -> None:
    assert "0 graded submissions" in page_html(analyse(LAB, [], no_code), "Lab 1")
