"""Publishes a results folder: turns its journal into the files that leave the grader."""

from __future__ import annotations

from dataclasses import asdict

from autograder.base.course import Course
from autograder.base.files import drop_drafts
from autograder.model.lateness import ON_TIME
from autograder.model.manual_grades import NO_MANUAL_GRADES
from autograder.model.result import Result
from autograder.publish.gradebook import look_again, write_gradebook
from autograder.publish.grades_csv import write_grades
from autograder.publish.pages import Shown, are_there, write_missing
from autograder.publish.wholeness import require_whole
from autograder.rules.counting import counting_of
from autograder.rules.semester import read_semester
from autograder.store.database import save_students
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from autograder.store.out_format import FORMAT, format_of, write_format
from autograder.store.published import await_gradebook, note_published, put_back
from autograder.store.roll import absent, lateness, taken
from autograder.store.scores import manual_grades

__all__ = ["publish"]


def publish(out: OutFolder, course: Course, *, anew: bool = False) -> list[Result]:
    """Write grades.csv, the gradebook and all missing pages; return the results.

    A page that doesn't show the current manual grades counts as missing; with `anew` every page is
    rewritten. The output covers every submission, of all labs, that was taken in and has a result.
    A folder in an older format is migrated to the current one. The results come without their
    notebooks, because those of a large class are read one by one and never held in memory together.

    Raises Damaged, before anything is written, if a file in `out` is damaged.
    """
    require_whole(out)
    older = format_of(out) < FORMAT
    drop_drafts(out.path)
    journal, counting = Journal(out), counting_of(out, course)
    judged = (journal.verdicts(key) for key in taken(out))
    results = [counting.count(result) for result in judged if result is not None]
    await_gradebook(out)
    write_gradebook(results, out, course, counting)
    put_back(out)
    look_again(
        {
            result.key: (journal.submission(result.key) or "")[:16]
            for result in results
            if result.end != "failed"  # these keep no content
        },
        out,
    )
    manual, late = manual_grades(out), lateness(out)
    wanted = []
    for result in results:
        given = manual.get(result.key, NO_MANUAL_GRADES)
        if anew or older or not are_there(result, out, course, given):
            wanted.append(Shown(result.key, given, late.get(result.key, ON_TIME)))
    write_missing(wanted, out, course)
    roster = read_semester(out, None).roster
    if results:
        save_students(out, map(asdict, roster))
    missing = absent(out, [student.id for student in roster])
    write_grades(results, out, course, missing=missing, counting=counting)
    note_published(out)
    if older:
        out.old_review_queue.unlink(missing_ok=True)
        write_format(out)
    return results
