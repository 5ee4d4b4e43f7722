"""The layout of a results folder, the OUT of a command. See docs/out_folder.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from autograder.base.files import inside
from autograder.model.submission import SubmissionKey

__all__ = [
    "ENTRIES",
    "EXPORTS",
    "FILES",
    "FOLDERS",
    "GRADED_NOTEBOOKS",
    "PAGES",
    "SOURCE_NOTEBOOKS",
    "ExportName",
    "OutFolder",
    "SmallName",
]

#: The names of the small JSON files.
SmallName = Literal["taken", "waived", "counted", "shown"]
#: The names of the exports about the whole class.
ExportName = Literal["students", "canvas", "feedback_zip", "statistics"]

# Single files
_FORMAT, _PUBLISHED = "format.json", "published.json"
_CONFIG, _GRADEBOOK, _LOCK = "nbgrader_config.py", "gradebook.db", ".gradebook.lock"
_GRADES, _REVIEW = "grades.csv", "manual_review.csv"
_CHANGES, _PROPOSED = "changes.csv", "changes_proposed.csv"

_EXPORTED: Mapping[ExportName, str] = {
    "students": "students.csv",
    "canvas": "canvas.csv",
    "feedback_zip": "feedback.zip",
    "statistics": "statistics.csv",
}

# Folders
_ATTEMPTS, _REGRADE = "attempts", "regrade"
_SUBMITTED = "submitted"  # the name, among the attempts, for the submissions' folder itself

#: Patterns of the files that exist once per submission, lab or export.
ENTRIES = "journal/*/*.entry"
PAGES = "feedback/*/*.html"
SOURCE_NOTEBOOKS = "source/*/*.ipynb"
GRADED_NOTEBOOKS = "autograded/*/*/*.ipynb"
EXPORTS = "export/*"

#: Patterns of the files that the grader writes into a results folder.
FILES = (
    _FORMAT,
    *(f"{name}.json" for name in get_args(SmallName)),
    _PUBLISHED,
    _CONFIG,
    _GRADEBOOK,
    _LOCK,
    _GRADES,
    _REVIEW,
    _CHANGES,
    _PROPOSED,
    ENTRIES,
    PAGES,
    SOURCE_NOTEBOOKS,
    GRADED_NOTEBOOKS,
    EXPORTS,
)
#: Patterns of the folders in a results folder, from the top down.
FOLDERS = (
    "journal",
    "journal/*",
    "feedback",
    "feedback/*",
    "source",
    "source/*",
    "export",
    "autograded",
    "autograded/*",
    "autograded/*/*",
    "submitted",
    "submitted/*",
    "submitted/*/*",
    _ATTEMPTS,
    f"{_ATTEMPTS}/*",
    _REGRADE,
)


@dataclass(frozen=True)
class OutFolder:
    """A results folder, and the paths in it."""

    #: The folder as the user named it.
    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def resolve(self) -> OutFolder:
        """Return this folder with its absolute path."""
        return OutFolder(self.path.resolve())

    # Subfolders with the same layout

    @property
    def attempts_folder(self) -> Path:
        """The folder of the attempts, if receipts name several folders."""
        return self.path / _ATTEMPTS

    def attempt(self, folder: str) -> OutFolder:
        """Return the results folder for the attempts in this folder of the submissions."""
        return OutFolder(inside(self.attempts_folder, folder or _SUBMITTED))

    def attempts(self) -> list[OutFolder]:
        """Return the results folders of all attempts; empty if receipts name no folders."""
        return [OutFolder(path) for path in self.matching(f"{_ATTEMPTS}/*") if path.is_dir()]

    @property
    def regrade(self) -> OutFolder:
        """The folder in which new grades wait for the instructor's approval."""
        return OutFolder(self.path / _REGRADE)

    # Files for each submission

    def entry(self, key: SubmissionKey) -> Path:
        """Return the path of a submission's journal entry."""
        return inside(self.path, "journal", key.lab, f"{key.student}.entry")

    def entries(self) -> dict[SubmissionKey, Path]:
        """Return all entries of the journal, including damaged ones."""
        found = self.matching(ENTRIES)
        return {SubmissionKey(path.stem, path.parent.name): path for path in found}

    @property
    def feedback(self) -> Path:
        """The folder of the feedback pages, with one folder per student."""
        return self.path / "feedback"

    def feedback_page(self, key: SubmissionKey) -> Path:
        """Return the path of a submission's feedback page."""
        return inside(self.feedback, key.student, f"{key.lab}.html")

    def feedback_pages(self) -> dict[SubmissionKey, Path]:
        """Return all feedback pages, including damaged ones."""
        found = self.matching(PAGES)
        return {SubmissionKey(path.parent.name, path.stem): path for path in found}

    # The course folder that Formgrader opens

    @property
    def gradebook(self) -> Path:
        """Nbgrader's database."""
        return self.path / _GRADEBOOK

    def gradebook_parts(self) -> list[Path]:
        """Return the database, and the files that SQLite leaves beside it when killed."""
        return [self.gradebook, *self.matching(f"{self.gradebook.name}-*")]

    @property
    def gradebook_lock(self) -> Path:
        """The file that a writer of the gradebook locks."""
        return self.path / _LOCK

    @property
    def nbgrader_config(self) -> Path:
        """The settings with which Formgrader starts in this folder."""
        return self.path / _CONFIG

    def source(self, lab: str) -> Path:
        """Return the folder with a lab's source notebooks as they were when it was graded."""
        return inside(self.path, "source", lab)

    def source_notebook(self, lab: str, name: str) -> Path:
        """Return the path of one of a lab's source notebooks."""
        return inside(self.source(lab), f"{name}.ipynb")

    def graded_notebook(self, key: SubmissionKey, name: str) -> Path:
        """Return the path at which Formgrader looks for a submission's notebook."""
        return inside(self._graded(key), f"{name}.ipynb")

    def graded_notebooks(self, key: SubmissionKey) -> list[Path]:
        """Return all notebooks of a submission for Formgrader."""
        return sorted(self._graded(key).glob("*.ipynb"))

    def drop_pages(self, key: SubmissionKey) -> None:
        """Remove the pages of a submission, so that publishing writes them again."""
        for path in (self.feedback_page(key), *self.graded_notebooks(key)):
            path.unlink(missing_ok=True)

    def submitted(self, key: SubmissionKey) -> Path:
        """Return the empty folder that makes Formgrader count a submission."""
        return inside(self.path, "submitted", key.student, key.lab)

    # Files for people and other programs

    @property
    def grades(self) -> Path:
        """The table of all grades."""
        return self.path / _GRADES

    @property
    def manual_review(self) -> Path:
        """The manual-review queue."""
        return self.path / _REVIEW

    @property
    def old_review_queue(self) -> Path:
        """The manual-review queue of folders in format 0."""
        return self.path / "needs_a_person.csv"

    @property
    def changes(self) -> Path:
        """The log of changed scores."""
        return self.path / _CHANGES

    @property
    def proposed_changes(self) -> Path:
        """The scores that would change, for the instructor to approve."""
        return self.path / _PROPOSED

    @property
    def exports(self) -> Path:
        """The folder that `export` writes to."""
        return self.path / "export"

    def export(self, name: ExportName) -> Path:
        """Return the path of an export about the whole class."""
        return self.exports / _EXPORTED[name]

    def lab_statistics(self, lab: str) -> Path:
        """Return the path of the exported picture of a lab's statistics."""
        return inside(self.exports, f"statistics-{lab}.png")

    def lab_items(self, lab: str) -> Path:
        """Return the path of the exported page about a lab's exercises."""
        return inside(self.exports, f"items-{lab}.html")

    # The grader's own records, and the instructor's rules

    @property
    def semester(self) -> Path:
        """The rules of the course, the only file here that an instructor writes."""
        return self.path / "semester.toml"

    @property
    def receipts(self) -> Path:
        """The file with the times of receipt; `collect` writes it, and the rules may name it."""
        return self.path / "receipts.csv"

    @property
    def format(self) -> Path:
        """The file with the version of this folder's format."""
        return self.path / _FORMAT

    @property
    def published(self) -> Path:
        """The record of what the last publication was based on."""
        return self.path / _PUBLISHED

    def small_file(self, name: SmallName) -> Path:
        """Return the path of one of the small JSON files."""
        return self.path / f"{name}.json"

    def beacon(self, token: str) -> Path:
        """Return the empty file by which other machines verify that they see this folder."""
        return inside(self.path, f".controller-{token}")

    # Damage

    @property
    def damaged(self) -> Path:
        """The folder that damaged files are moved to."""
        return self.path / "damaged"

    def matching(self, pattern: str) -> list[Path]:
        """Return the files and folders that match a pattern such as those in `FILES`, in order."""
        return sorted(self.path.glob(pattern))

    def _graded(self, key: SubmissionKey) -> Path:
        return inside(self.path, "autograded", key.student, key.lab)
