"""Turns the journal of a results folder into everything that leaves."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from autograder.base.files import drop_drafts
from autograder.model.manual_grades import NOTHING
from autograder.model.result import Result
from autograder.publish.export import write_grades
from autograder.publish.gradebook import look_again, write_gradebook
from autograder.publish.pages import Shown, are_there, write_missing
from autograder.publish.wholeness import require_whole
from autograder.rules.semester import read_semester
from autograder.rules.waivers import waive, waivers
from autograder.store.database import given_by_people, save_students
from autograder.store.journal import Journal
from autograder.store.published import await_gradebook, note_published, put_back
from autograder.store.roll import absent, taken

__all__ = ["publish"]


def publish(out: Path, root: Path, *, anew: bool = False) -> list[Result]:
    """Write grades.csv, the gradebook and all pages that are missing; return the results.

    A page that does not show what people gave in formgrader counts as missing; with `anew` each
    page is written again. They hold every submission that was taken in and has its result, of all
    labs. The results come without their notebooks: those of a large class are read one by one, and
    never held together.

    Raises Damaged, before anything is written, for a damaged file in `out`.
    """
    require_whole(out)
    drop_drafts(out)
    journal, waived = Journal(out), waivers(out)
    judged = (journal.verdicts(lab, student) for student, lab in taken(out))
    results = [waive(result, waived) for result in judged if result is not None]
    await_gradebook(out)
    write_gradebook(results, out, root)
    put_back(out)
    look_again(
        {
            (r.student, r.lab): (journal.submission(r.lab, r.student) or "")[:16]
            for r in results
            if r.end != "failed"  # of which no content is kept
        },
        out,
    )
    people = given_by_people(out)
    wanted = []
    for result in results:
        given = people.get((result.student, result.lab), NOTHING)
        if anew or not are_there(result, out, root, given):
            wanted.append(Shown(result.student, result.lab, given))
    write_missing(wanted, out, root)
    roster = read_semester(out, None).roster
    if results:
        save_students(out, map(asdict, roster))
    write_grades(results, out / "grades.csv", root, absent(out, [student.id for student in roster]))
    note_published(out)
    return results
