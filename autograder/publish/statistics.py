"""Computes how a class did at each task, as a table and a picture."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from autograder.base.csv_table import csv_bytes
from autograder.base.files import write_whole
from autograder.base.plural import plural
from autograder.model.result import Result
from autograder.model.status import JUDGED, UNANSWERED, shown
from autograder.publish.grades_csv import points
from autograder.publish.summary import cut

__all__ = ["TaskStatistics", "statistics_of", "write_picture", "write_table"]

_COUNTS = ("judged", "correct", "partially_correct", "incorrect", "not_judged")
_RATES = ("pass_rate", "mean_points", "max_points")
_SECONDS = ("median_seconds", "p95_seconds")
_MISTAKES = 3  # most common mistakes that are named
_WIDEST = 26  # letters of a name in the picture
# Okabe and Ito's colours, distinct to colour-blind people, in order of decreasing lightness.
_LOOKS = {
    "right": ("#56B4E9", ""),
    "partly": ("#F0E442", "//"),
    "wrong": ("#D55E00", ".."),
    "could_not_judge": ("#DDDDDD", ""),  # for whatever reason
}


@dataclass
class TaskStatistics:
    """How the class did at one task."""

    #: The task.
    task: str
    #: Submissions by the status of their verdict.
    statuses: Counter[str] = field(default_factory=Counter)
    #: Recognised mistakes, and how often each was made.
    mistakes: Counter[str] = field(default_factory=Counter)
    #: The sum of the points of all judged submissions.
    earned: float = 0.0
    #: The most points that the task gives.
    max_points: float = 0.0
    #: Wall time of the grader's calls of each student's code in the sandbox, for submissions whose
    #: code was called.
    seconds: list[float] = field(default_factory=list)

    @property
    def judged(self) -> int:
        return sum(self.statuses[status] for status in JUDGED)

    @property
    def pass_rate(self) -> float | None:
        """The share of judged submissions that are correct; None if none was judged."""
        return self.statuses["right"] / self.judged if self.judged else None

    @property
    def mean_points(self) -> float | None:
        return self.earned / self.judged if self.judged else None

    @property
    def median_seconds(self) -> float | None:
        return median(self.seconds) if self.seconds else None

    @property
    def p95_seconds(self) -> float | None:
        """The 95th percentile of the seconds, by the nearest rank."""
        place = math.ceil(0.95 * len(self.seconds)) - 1
        return sorted(self.seconds)[place] if self.seconds else None


def statistics_of(results: Iterable[Result]) -> dict[str, list[TaskStatistics]]:
    """Return the statistics of each lab's tasks, in the lab's order."""
    labs: dict[str, dict[str, TaskStatistics]] = defaultdict(dict)
    for result in results:
        for verdict in result.verdicts:
            if verdict.status == UNANSWERED:
                continue  # manually graded answers have no verdict
            one = labs[result.lab].setdefault(verdict.task, TaskStatistics(verdict.task))
            one.statuses[verdict.status] += 1
            one.max_points = verdict.max_points
            if verdict.status in JUDGED:
                one.earned += verdict.points
            if verdict.mistake:
                one.mistakes[verdict.mistake] += 1
            if verdict.task in result.seconds:
                one.seconds.append(result.seconds[verdict.task])
    return {lab: list(tasks.values()) for lab, tasks in sorted(labs.items())}


def write_table(labs: Mapping[str, Sequence[TaskStatistics]], path: Path) -> None:
    """Write one row per task to a CSV file: counts, rates, seconds, and the commonest mistakes."""
    rows: list[tuple[object, ...]] = [("lab", "task", *_COUNTS, *_RATES, *_SECONDS, "mistakes")]
    for lab, tasks in labs.items():
        for one in tasks:
            s = one.statuses
            counts = (one.judged, s["right"], s["partly"], s["wrong"], s.total() - one.judged)
            rates = (_or_empty(one.pass_rate), _or_empty(one.mean_points), points(one.max_points))
            times = map(_or_empty, (one.median_seconds, one.p95_seconds))
            rows.append((lab, one.task, *counts, *rates, *times, _common(one)))
    write_whole(path, csv_bytes(rows))


def write_picture(lab: str, tasks: Sequence[TaskStatistics], path: Path) -> None:
    """Draw a chart of one lab: a bar for each task, with the most common mistake beside it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 1.6 + 0.62 * len(tasks)), layout="constrained")
    axes = figure.add_subplot()
    places = range(len(tasks))
    left = [0.0] * len(tasks)
    for status, (colour, hatch) in _LOOKS.items():
        widths = [_share(one, status) for one in tasks]
        axes.barh(
            places, widths, left=left, color=colour, hatch=hatch, edgecolor="black",
            linewidth=0.6, label=shown(status),
        )  # fmt: skip
        left = [at + width for at, width in zip(left, widths, strict=True)]
    for place, one in zip(places, tasks, strict=True):
        axes.text(102, place, _beside(one), va="center", fontsize=10)
    axes.set_yticks(list(places), [_name(one) for one in tasks], fontsize=10)
    axes.set_ylim(len(tasks) - 0.4, -0.6)
    axes.set_xlim(0, 100)
    axes.set_xlabel("submissions, %")
    among = plural(tasks[0].statuses.total(), "submission")
    axes.set_title(
        f"{cut(lab, 40)}: {among}; seconds of the grader's calls",
        loc="left",
        pad=30,
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        ncols=len(_LOOKS), loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=10
    )
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=120, metadata={"Software": None})
    write_whole(path, data.getvalue())


def _share(one: TaskStatistics, status: str) -> float:
    total = one.statuses.total()
    count = total - one.judged if status == "could_not_judge" else one.statuses[status]
    return 100 * count / total


def _name(one: TaskStatistics) -> str:
    """The task's name, broken to leave room for the bars; the table has the full name."""
    words = re.sub(r"^lab\d\d-", "", one.task).replace("_", "_ ").replace("/", "/ ")
    lines = textwrap.wrap(words, _WIDEST, max_lines=3, placeholder="...")
    return "\n".join(re.sub("([_/]) ", r"\1", line) for line in lines)


def _beside(one: TaskStatistics) -> str:
    mean, half, most = one.mean_points, one.median_seconds, one.p95_seconds
    score = (
        shown("left_out" if one.statuses["left_out"] else "could_not_judge")
        if mean is None
        else f"mean {points(round(mean, 2))} of {one.max_points:g}"
    )
    if one.mistakes:
        ((mistake, count),) = one.mistakes.most_common(1)
        score += f"; {count}x {cut(mistake.replace('_', ' '), _WIDEST)}"
    return score if half is None else f"{score}\nmedian {half:.2g} s, 95% within {most:.2g} s"


def _common(one: TaskStatistics) -> str:
    return ", ".join(f"{name} {count}" for name, count in one.mistakes.most_common(_MISTAKES))


def _or_empty(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
