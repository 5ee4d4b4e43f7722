"""Shows scores that are about to change, with the reason, and asks for approval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from autograder.base.csv_table import csv_bytes
from autograder.base.files import write_whole
from autograder.base.plain_text import one_line
from autograder.model.result import Result
from autograder.model.status import SCORED, shown
from autograder.model.submission import SubmissionKey
from autograder.model.task import Verdict
from autograder.publish.grades_csv import points
from autograder.store.out_folder import OutFolder

__all__ = ["COLUMNS", "Change", "agreed", "between", "note_down", "told"]

COLUMNS = ("time", "student", "lab", "task", "old", "new", "why", "before")
_SHOWN = 300  # characters shown of a message
_MOST = 20  # changes shown


@dataclass(frozen=True)
class Change:
    """One score that changes."""

    #: The submission.
    key: SubmissionKey
    #: The task.
    task: str
    #: The points so far, or the status if there are none.
    old: str
    #: The points from now on, or the status if there are none.
    new: str
    #: The grader's message now.
    why: str
    #: The grader's message before.
    before: str

    def to_json(self) -> dict[str, str]:
        """Return the change in the form that `--json` prints."""
        names = ("task", "old", "new", "why", "before")
        return {**self.key._asdict(), **{name: getattr(self, name) for name in names}}


def between(old: Result, new: Result) -> Iterator[Change]:
    """Yield a change for each task whose score differs between two results of a submission."""
    before = {verdict.task: verdict for verdict in old.verdicts}
    after = {verdict.task: verdict for verdict in new.verdicts}
    for task in dict.fromkeys((*before, *after)) or ("",):
        was, now = _score(old, before.get(task)), _score(new, after.get(task))
        if was != now:
            yield Change(
                key=old.key,
                task=task,
                old=was,
                new=now,
                why=_said(new, after.get(task)),
                before=_said(old, before.get(task)),
            )


def told(changes: Sequence[Change], out: OutFolder) -> str:
    """Return the changes as text: who, which task, old and new score, and why.

    If there are many, only the first are shown; the text then names a file with all of them.
    """
    if not changes:
        return "No score changes."
    lines = [line for change in changes[:_MOST] for line in _lines(change)]
    if len(changes) > _MOST:
        _write(changes, out.proposed_changes)
        lines.append(
            f"... and {len(changes) - _MOST} more; {out.proposed_changes} has all of them."
        )
    tasks = Counter(change.task or change.key.lab for change in changes)
    by_task = ", ".join(f"{task} {count}" for task, count in tasks.items())
    students = len({change.key.student for change in changes})
    lines.append(f"Scores that change: {len(changes)} ({by_task}). Students: {students}.")
    return "\n".join(lines)


def agreed() -> bool:
    """Ask for approval; no answer counts as no."""
    try:
        return input("Write them? [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def note_down(changes: Sequence[Change], out: OutFolder) -> None:
    """Append the changes to changes.csv, for when a student asks why a score changed."""
    out.proposed_changes.unlink(missing_ok=True)
    if changes:
        path = out.changes
        old = path.read_bytes() if path.is_file() else b""
        _write(changes, path, old if old.endswith(b"\n") or not old else old + b"\n")


def _write(changes: Sequence[Change], path: Path, old: bytes = b"") -> None:
    """Write the changes to a CSV file, after its existing rows."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    records = [{"time": now, **change.to_json()} for change in changes]
    rows = [[record[column] for column in COLUMNS] for record in records]
    write_whole(path, old + csv_bytes(rows if old else [COLUMNS, *rows]))


def _lines(change: Change) -> list[str]:
    return [
        f"{change.key.student}, {change.task or change.key.lab}: {change.old} -> {change.new}",
        f"    now:    {one_line(change.why, _SHOWN)}",
        f"    before: {one_line(change.before, _SHOWN)}",
    ]


def _score(result: Result, verdict: Verdict | None) -> str:
    if result.end != "graded":
        return shown(result.end)
    if verdict is None:
        return "no such task"
    return points(verdict.points) if verdict.status in SCORED else shown(verdict.status)


def _said(result: Result, verdict: Verdict | None) -> str:
    if result.end != "graded":
        return result.reason
    return "The lab has no such task." if verdict is None else verdict.message
