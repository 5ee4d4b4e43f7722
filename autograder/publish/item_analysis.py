"""Analyses how a class did on a lab's exercises, as one printable page for the instructor.

For each exercise it shows how many students got full points, whether they also did well elsewhere,
the most common mistakes with lines of a student's code, and what to do about it. Terms and bounds
come from classical test theory (Ebel and Frisbie, *Essentials of Educational Measurement*, chapter
13).
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from jinja2 import Template

from autograder.base.files import write_whole
from autograder.base.template import html_template
from autograder.model.result import Result
from autograder.model.status import JUDGED, UNANSWERED
from autograder.publish.grades_csv import points

__all__ = ["Item", "LabAnalysis", "analyse", "page_html", "write_page"]

_FEWEST = 10  # submissions that a correlation needs to be meaningful
_EASY, _HARD = 0.95, 0.30  # mean shares of the points beyond which an exercise tells little
_POOR = 0.20  # discrimination below which an exercise needs revision
_COMMON = 0.15  # share of the class whose mistake deserves a mention in the next lecture
_UNNAMED = 0.50  # share of the incorrect answers without a recognised mistake
_MISTAKES = 3
_LINES = 10
_NONE = "\N{EN DASH}"

Code = Callable[[Result, str], str]  # (submission, task) -> the student's solution


@dataclass(frozen=True)
class Mistake:
    """A recognised mistake, and one student's lines that show it."""

    #: Its id, as the task names it.
    id: str
    #: Students who made it.
    count: int
    #: One of these students.
    student: str
    #: What that student reads about it.
    message: str
    #: What that student wrote.
    code: str


@dataclass(frozen=True)
class Item:
    """A class's results on one exercise."""

    #: The task's id.
    task: str
    #: The most points it gives.
    max_points: float
    #: Submissions that were judged on it.
    judged: int
    #: The share of these with full points; None if none was judged.
    pass_rate: float | None
    #: The mean share of the points, from 0 to 1; None if none was judged.
    mean_share: float | None
    #: Correlation with the share of the points in the lab's other exercises; None if it can't be
    #: computed, because too few were judged or all shares are equal.
    discrimination: float | None
    #: The commonest mistakes, most frequent first.
    mistakes: tuple[Mistake, ...]
    #: What to do about it, one sentence each.
    advice: tuple[str, ...]


@dataclass(frozen=True)
class LabAnalysis:
    """A class's results on one lab."""

    #: The lab.
    lab: str
    #: Submissions that were graded.
    submissions: int
    #: The mean of their points.
    mean_points: float
    #: The median of their points.
    median_points: float
    #: The most points there are.
    max_points: float
    #: Cronbach's alpha over the submissions judged on all exercises; None if it can't be computed.
    reliability: float | None
    #: The exercises, in the lab's order.
    items: tuple[Item, ...]

    @property
    def is_small(self) -> bool:
        """Whether the class is too small for meaningful figures."""
        return self.submissions < _FEWEST


@dataclass
class _Answers:
    """The class's results on one exercise, by student."""

    #: The most points that the exercise is worth.
    max_points: float = 0.0
    #: Each student's share of the points, from 0 to 1.
    shares: dict[str, float] = field(default_factory=dict)
    #: The number of students with all points.
    correct: int = 0
    #: How many students made each recognised mistake.
    mistakes: Counter[str] = field(default_factory=Counter)
    #: For each mistake, a result to show.
    examples: dict[str, Result] = field(default_factory=dict)
    #: The number of students who lost points without a recognised mistake.
    unnamed: int = 0
    #: Whether the instructor left the exercise out of the total.
    is_left_out: bool = False


def analyse(lab: str, results: Iterable[Result], code: Code) -> LabAnalysis:
    """Return the analysis of one lab; `code` returns a student's solution of a task.

    Only graded submissions count, and only their judged exercises.
    """
    graded = [result for result in results if result.lab == lab and result.end == "graded"]
    by_task = _answers(graded)
    totals = [sum(v.points for v in r.verdicts if v.status in JUDGED) for r in graded]
    return LabAnalysis(
        lab=lab,
        submissions=len(graded),
        mean_points=statistics.mean(totals) if totals else 0.0,
        median_points=statistics.median(totals) if totals else 0.0,
        max_points=sum(answers.max_points for answers in by_task.values()),
        reliability=_reliability(by_task, graded),
        items=tuple(_item(task, by_task, code, is_small=len(graded) < _FEWEST) for task in by_task),
    )


def _answers(graded: Sequence[Result]) -> dict[str, _Answers]:
    by_task: dict[str, _Answers] = defaultdict(_Answers)
    for result in graded:
        for verdict in result.verdicts:
            if verdict.status == UNANSWERED:
                continue  # manually graded answers have no verdict
            answers = by_task[verdict.task]
            answers.max_points = verdict.max_points
            answers.is_left_out = verdict.status == "left_out"
            if verdict.status not in JUDGED or not verdict.max_points:
                continue
            answers.shares[result.student] = verdict.points / verdict.max_points
            answers.correct += verdict.points >= verdict.max_points
            if verdict.mistake:
                answers.mistakes[verdict.mistake] += 1
                answers.examples.setdefault(verdict.mistake, result)
            elif verdict.points < verdict.max_points:
                answers.unnamed += 1
    return dict(by_task)


def _item(task: str, by_task: Mapping[str, _Answers], code: Code, *, is_small: bool) -> Item:
    answers = by_task[task]
    judged = len(answers.shares)
    mean_share = statistics.mean(answers.shares.values()) if judged else None
    discrimination = _discrimination(task, by_task)
    common = answers.mistakes.most_common(_MISTAKES)
    return Item(
        task=task,
        max_points=answers.max_points,
        judged=judged,
        pass_rate=answers.correct / judged if judged else None,
        mean_share=mean_share,
        discrimination=discrimination,
        mistakes=tuple(
            _mistake(name, count, answers.examples[name], task, code) for name, count in common
        ),
        advice=tuple(_advice(answers, mean_share, discrimination, is_small=is_small)),
    )


def _mistake(name: str, count: int, example: Result, task: str, code: Code) -> Mistake:
    message = next(verdict.message for verdict in example.verdicts if verdict.task == task)
    return Mistake(
        id=name,
        count=count,
        student=example.student,
        message=message,
        code=_cut(code(example, task)),
    )


def _discrimination(task: str, by_task: Mapping[str, _Answers]) -> float | None:
    """The item-rest correlation; the rest excludes the exercise itself."""
    shares, rest = [], []
    for student, share in by_task[task].shares.items():
        others = [
            (answers.shares[student] * answers.max_points, answers.max_points)
            for name, answers in by_task.items()
            if name != task and student in answers.shares
        ]
        if others:
            shares.append(share)
            rest.append(sum(got for got, _ in others) / sum(most for _, most in others))
    if len(shares) < _FEWEST or len(set(shares)) == 1 or len(set(rest)) == 1:
        return None
    return float(statistics.correlation(shares, rest))


def _reliability(by_task: Mapping[str, _Answers], graded: Sequence[Result]) -> float | None:
    """Cronbach's alpha: 1 - (sum of the exercises' variances / variance of the sum), scaled."""
    everywhere = [r.student for r in graded if all(r.student in a.shares for a in by_task.values())]
    if len(by_task) < 2 or len(everywhere) < _FEWEST:
        return None
    scores = [[a.shares[s] * a.max_points for s in everywhere] for a in by_task.values()]
    of_sum = statistics.pvariance([sum(one) for one in zip(*scores, strict=True)])
    if not of_sum:
        return None
    own = sum(statistics.pvariance(one) for one in scores)
    return float(len(scores) / (len(scores) - 1) * (1 - own / of_sum))


def _advice(
    answers: _Answers, mean_share: float | None, discrimination: float | None, *, is_small: bool
) -> Iterable[str]:
    if mean_share is None:
        yield "Left out." if answers.is_left_out else "No student has been judged on it yet."
        return
    judged = len(answers.shares)
    if judged < _FEWEST:
        if not is_small:  # the page says so once for a small class
            yield f"Fewer than {_FEWEST} students were judged, so read the figures with care."
    elif mean_share > _EASY:
        yield "Nearly every student solves it: shorten it, or leave it as a warm-up."
    elif mean_share < _HARD:
        yield "Few students solve it: add a worked example or a self-check, or go through it in "
        "class."
    if discrimination is not None and discrimination < _POOR and mean_share <= _EASY:
        yield (
            "Students who do well elsewhere do no better here: look for ambiguous text, or for a "
            "correct answer that is judged incorrect."
        )
    for name, count in answers.mistakes.most_common(1):
        if count >= _COMMON * judged and judged >= _FEWEST:
            yield f"{count} of {judged} students made the same mistake ({name}): show it in class."
    wrong = answers.unnamed + answers.mistakes.total()
    if answers.unnamed > _UNNAMED * wrong and answers.unnamed >= 3:
        yield (
            f"{answers.unnamed} of {wrong} incorrect answers match no known mistake: read some, "
            "and add what they have in common to the task's mistakes."
        )


def _cut(code: str) -> str:
    """The first lines of a student's function or class, as many as fit on the page."""
    lines = code.strip("\n").splitlines()
    first = next((at for at, line in enumerate(lines) if line.startswith(("def ", "class "))), 0)
    lines = lines[first:]
    more = ["..."] if len(lines) > _LINES else []
    return "\n".join(line[:100] for line in [*lines[:_LINES], *more])


def write_page(
    analysis: LabAnalysis, title: str, path: Path, titles: Mapping[str, str] | None = None
) -> None:
    """Write the page of one lab; `titles` has the exercises' headings."""
    write_whole(path, page_html(analysis, title, titles).encode(errors="replace"))


def page_html(analysis: LabAnalysis, title: str, titles: Mapping[str, str] | None = None) -> str:
    """Return the page as self-contained HTML: no scripts, no requests, everything escaped.

    Figures and advice are on its first printed page, mistakes and code on the next ones. An
    exercise without a heading in `titles` is named by its id.
    """
    return _template().render(a=analysis, title=title, titles=titles or {})


@cache
def _template() -> Template:
    filters = {
        "points": points,
        "percent": lambda part: _NONE if part is None else f"{part:.0%}",
        "correlation": lambda r: _NONE if r is None else f"{r:.2f}",
    }
    return html_template("item_analysis", filters)
