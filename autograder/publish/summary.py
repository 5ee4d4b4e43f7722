"""Summarises a class in figures, and in the few lines that an instructor reads after grading."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

from autograder.base.csv_table import cell_text
from autograder.base.plain_text import shortened
from autograder.base.plural import plural
from autograder.model.result import Result
from autograder.model.status import JUDGED, NEEDS, NOT_SUBMITTED, shown
from autograder.model.submission import SubmissionKey
from autograder.publish.grades_csv import points

__all__ = ["cut", "summaries", "told"]

_ENDS = ("graded", "quarantined", "failed")
_STATUSES = ("right", "partly", "wrong", "could_not_judge", *NEEDS)
_JUDGED_WORDS = frozenset(map(shown, JUDGED))
_WIDTH = 80
_MOST_ROWS = 8  # submissions listed one by one, to fit a terminal; a larger class gets only figures


@dataclass(frozen=True)
class LabSummary:
    """One lab of a class in figures.

    Only the grader's points on graded submissions count. Exercises that wait for manual grading or
    need a GPU count neither in the points nor in `max_points`.
    """

    #: The lab.
    lab: str
    #: The number of submissions taken in.
    submissions: int
    #: Students on the roster who submitted nothing.
    not_submitted: int
    #: Submissions by their end.
    ends: Mapping[str, int]
    #: Verdicts by their status, in words.
    exercises: Mapping[str, int]
    #: The mean of the points; None if no submission was graded.
    mean_points: float | None
    #: The median of the points; None if no submission was graded.
    median_points: float | None
    #: The most points that a submission was judged on.
    max_points: float
    #: Submissions by the release that they name; "" if they name none.
    releases: Mapping[str, int]
    #: Submissions that ran outside the sandbox.
    not_isolated: int


def summaries(results: Iterable[Result], missing: Iterable[SubmissionKey] = ()) -> list[LabSummary]:
    """Return each lab's figures; `missing` are the students on the roster without a submission."""
    labs: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        labs[result.lab].append(result)
    absent = Counter(key.lab for key in missing)
    return [_summary(lab, labs[lab], absent[lab]) for lab in sorted(labs)]


def told(labs: Sequence[LabSummary], results: Sequence[Result]) -> str:
    """Return the figures, and the submissions of a small class, as lines of at most 80 columns."""
    lines = _table(results) if len(results) <= _MOST_ROWS else []
    lines += (
        _labs_table(labs) if len(labs) > 1 else [line for lab in labs for line in _lab_lines(lab)]
    )
    return "\n".join(cut(line, _WIDTH) for line in lines)


def cut(text: str, width: int) -> str:
    """Return the text on one line, shortened to `width` columns, safe to print."""
    line = "".join(c if c.isprintable() else "?" for c in text)
    return shortened(line, width)


def _summary(lab: str, results: Sequence[Result], not_submitted: int) -> LabSummary:
    ends = Counter[str](result.end for result in results)
    statuses = Counter[str](v.status for result in results for v in result.verdicts)
    earned = [_judged(result) for result in results if result.end == "graded"]
    scores = [points for points, _ in earned]
    return LabSummary(
        lab=lab,
        submissions=len(results),
        not_submitted=not_submitted,
        ends={end: ends[end] for end in _ENDS},
        exercises={shown(status): statuses[status] for status in _STATUSES},
        mean_points=round(mean(scores), 3) if scores else None,
        median_points=round(median(scores), 3) if scores else None,
        max_points=max((of for _, of in earned), default=0.0),
        releases=dict(sorted(Counter(r.release for r in results if r.end == "graded").items())),
        not_isolated=sum(not result.isolated for result in results),
    )


def _judged(result: Result) -> tuple[float, float]:
    """The points that the grader gave, and their maximum."""
    judged = [v for v in result.verdicts if v.status in JUDGED]
    return sum(v.points for v in judged), sum(v.max_points for v in judged)


def _labs_table(labs: Sequence[LabSummary]) -> list[str]:
    """One line for each of several labs, ending with anything unusual."""
    rows = [("lab", "submissions", "mean", "median", "of", ""), *map(_lab_row, labs)]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:5], widths[1:]), row[5]]).rstrip()
        for row in rows
    ]


def _lab_row(lab: LabSummary) -> tuple[str, ...]:
    figures = (lab.mean_points, lab.median_points)
    mean_, median_ = ("-" if p is None else points(round(p, 2)) for p in figures)
    ends = {shown(end): count for end, count in lab.ends.items() if end != "graded"}
    unjudged = {words: n for words, n in lab.exercises.items() if words not in _JUDGED_WORDS}
    worst_first = {"NOT ISOLATED": lab.not_isolated, **ends, **unjudged}
    notes = worst_first | {shown(NOT_SUBMITTED): lab.not_submitted}
    of = points(lab.max_points)
    return lab.lab, str(lab.submissions), mean_, median_, of, _counted(notes)


def _lab_lines(lab: LabSummary) -> list[str]:
    left = {shown(NOT_SUBMITTED): lab.not_submitted}
    ends = _counted({shown(end): count for end, count in lab.ends.items()} | left)
    lines = [f"{lab.lab}: {plural(lab.submissions, 'submission')} ({ends})"]
    if lab.mean_points is not None and lab.median_points is not None:
        mean_, median_ = (points(round(p, 2)) for p in (lab.mean_points, lab.median_points))
        lines.append(f"  Points:    mean {mean_}, median {median_}, of {points(lab.max_points)}")
    for number, part in enumerate(_parts(lab.exercises)):
        lines.append(f"  {'' if number else 'Exercises:':10} {part}")
    if len(lab.releases) > 1:
        named = {release or "not said": count for release, count in lab.releases.items()}
        lines.append(f"  Releases:  {_counted(named)}")
    if lab.not_isolated:
        lines.append(
            f"  NOT ISOLATED: {plural(lab.not_isolated, 'submission')} ran outside the sandbox"
        )
    return lines


def _parts(exercises: Mapping[str, int]) -> list[str]:
    """The counts of judged exercises and of all others, each short enough for one line."""
    rest = {words: count for words, count in exercises.items() if words not in _JUDGED_WORDS}
    judged = {words: count for words, count in exercises.items() if words in _JUDGED_WORDS}
    return [part for part in map(_counted, (judged, rest)) if part] or ["none"]


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def _table(results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    ordered = sorted(results, key=lambda r: (r.student, r.lab))
    rows = [("student", "lab", "points", ""), *map(_row, ordered)]
    widths = [min(max(len(row[i]) for row in rows), limit) for i, limit in enumerate((24, 24, 11))]
    lines = [_aligned(row, widths) for row in rows]
    rule = "-" * min(_WIDTH, max(map(len, lines)))
    return [lines[0], rule, *lines[1:], ""]


def _row(result: Result) -> tuple[str, str, str, str]:
    if result.end != "graded":
        return result.student, result.lab, "-", f"{shown(result.end)}: {cell_text(result.reason)}"
    earned, of = _judged(result)
    statuses = Counter[str](v.status for v in result.verdicts)
    left = {shown(status): statuses[status] for status in ("could_not_judge", *NEEDS)}
    mark = "" if result.isolated else "NOT ISOLATED "
    return result.student, result.lab, f"{points(earned)} / {points(of)}", mark + _counted(left)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [cut(text, width).ljust(width) for text, width in zip(row, widths, strict=False)]
    cells[2] = cells[2].strip().rjust(widths[2])
    return cut("  ".join([*cells, row[-1]]), _WIDTH).rstrip()
