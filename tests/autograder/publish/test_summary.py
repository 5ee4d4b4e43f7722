"""A class in figures, against figures worked out on paper."""

from __future__ import annotations

from dataclasses import replace

from autograder.model.submission import SubmissionKey
from autograder.publish.summary import summaries, told
from tests.autograder.small_class import HALVE, end_of, graded, verdict
from tests.autograder.small_release import LAB

RESULTS = [
    graded("zoe", verdicts=(verdict(status="partly"), verdict(HALVE, "needs_gpu")), release="1+a"),
    graded("ada", release="1+b"),
    graded("kim", verdicts=(verdict(), verdict(HALVE))),
    end_of("bob", "failed", "x" * 200),
    graded("a" * 60, isolated=False, verdicts=(verdict(status="could_not_judge"),)),
]


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


ABSENT = [
    SubmissionKey("gus", LAB),
    SubmissionKey("ivy", LAB),
    SubmissionKey("ivy", "lab01_formats"),
]


def test_the_figures_are_those_of_the_class() -> None:
    (lab,) = summaries(RESULTS, ABSENT)
    assert (lab.lab, lab.submissions, lab.not_submitted) == (LAB, 5, 2)
    assert lab.ends == {"graded": 4, "quarantined": 0, "failed": 1}
    assert lab.exercises == {
        "correct": 3,
        "partially correct": 1,
        "incorrect": 1,
        "not judged": 1,
        "needs a GPU": 1,
        "needs isolation": 0,
    }
    # Of what was judged: 1.5 of 2, 2 of 3, 3 of 3, and 0 of 0.
    assert (lab.mean_points, lab.median_points, lab.max_points) == (1.625, 1.75, 3)
    assert (lab.releases, lab.not_isolated) == ({"": 2, "1+a": 1, "1+b": 1}, 1)


def test_nobody_graded_has_no_mean() -> None:
    (lab,) = summaries([end_of("bob", "quarantined", "isn't a notebook")])
    assert (lab.mean_points, lab.median_points, lab.max_points) == (None, None, 0)
    assert "Points" not in told([lab], [])
    assert summaries([]) == []


def test_the_text_says_what_there_is_to_say() -> None:
    text = told(summaries(RESULTS, [SubmissionKey("gus", LAB)]), RESULTS)
    assert max(map(len, text.splitlines())) <= 80
    assert lines(text)[-6:] == [
        f"{LAB}: 5 submissions (4 graded, 1 grading failed, 1 not submitted)",
        "Points: mean 1.62, median 1.75, of 3",
        "Exercises: 3 correct, 1 partially correct, 1 incorrect",
        "1 not judged, 1 needs a GPU",
        "Releases: 2 not said, 1 1+a, 1 1+b",
        "NOT ISOLATED: 1 submission ran outside the sandbox",
    ]
    assert f"zoe {LAB} 1.5 / 2 1 needs a GPU" in lines(text)
    assert any(line.startswith(f"bob {LAB} - grading failed: xxx") for line in lines(text))
    assert any("0 / 0 NOT ISOLATED 1 not judged" in line for line in lines(text))


def test_one_release_is_no_news() -> None:
    results = [graded("ada", release="1+a"), graded("kim", release="1+a")]
    assert "Releases" not in told(summaries(results), results)


def test_a_large_class_is_not_listed() -> None:
    results = [graded(f"s{number:03}") for number in range(9)]
    assert "s000" in told(summaries(results[:8]), results[:8])
    assert told(summaries(results), results).startswith(f"{LAB}: 9 submissions (9 graded)")


def test_several_labs_have_a_line_each() -> None:
    results = [*RESULTS, *(replace(result, lab="lab01_formats") for result in RESULTS[1:3])]
    text = told(summaries(results, ABSENT)[::-1], results * 2)
    assert lines(text) == [
        "lab submissions mean median of",
        f"{LAB} 5 1.62 1.75 3 1 NOT ISOLATED, 1 grading ...",
        "lab01_formats 2 2.5 2.5 3 1 not submitted",
    ]
