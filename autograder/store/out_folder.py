"""A results folder, the OUT of a command: where each of its files is. See docs/out_folder.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from autograder.base.files import inside
from autograder.model.submission import SubmissionKey

__all__ = ["FILES", "FOLDERS", "OutFolder"]

_ATTEMPTS, _REGRADE = "attempts", "regrade"
_SUBMITTED = "submitted"  # the attempts that came in the submissions' folder itself

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
#: Patterns of the files that the grader writes into a results folder.
FILES = (
    "format.json",
    "taken.json",
    "waived.json",
    "counted.json",
    "shown.json",
    "published.json",
    "nbgrader_config.py",
    "gradebook.db",
    ".gradebook.lock",
    "grades.csv",
    "manual_review.csv",
    "changes.csv",
    "changes_proposed.csv",
    "journal/*/*.entry",
    "feedback/*/*.html",
    "source/*/*.ipynb",
    "autograded/*/*/*.ipynb",
    "export/*",
)


@dataclass(frozen=True)
class OutFolder:
    """A results folder. Every path in it comes from here."""

    #: The folder as the user named it.
    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def resolve(self) -> OutFolder:
        """Return the same folder by its absolute path."""
        return OutFolder(self.path.resolve())

    # Folders within it that are laid out as it is

    @property
    def attempts_folder(self) -> Path:
        """The folder of the attempts, if receipts name several."""
        return self.path / _ATTEMPTS

    def attempt(self, folder: str) -> OutFolder:
        """Return where the attempts are graded that came in this folder of the submissions'."""
        return OutFolder(inside(self.attempts_folder, folder or _SUBMITTED))

    def attempts(self) -> list[OutFolder]:
        """Return the folders in which attempts are graded; empty if receipts name none."""
        return [OutFolder(path) for path in self.matching(f"{_ATTEMPTS}/*") if path.is_dir()]

    @property
    def regrade(self) -> OutFolder:
        """Where new grades wait for the instructor to agree to them."""
        return OutFolder(self.path / _REGRADE)

    # What is kept of each submission

    def entry(self, key: SubmissionKey) -> Path:
        """Return where the journal's entry of a submission is."""
        return inside(self.path, "journal", key.lab, f"{key.student}.entry")

    def entries(self) -> dict[SubmissionKey, Path]:
        """Return all entries of the journal, damaged ones included."""
        found = self.matching("journal/*/*.entry")
        return {SubmissionKey(path.stem, path.parent.name): path for path in found}

    @property
    def feedback(self) -> Path:
        """The folder of the feedback pages, one folder a student."""
        return self.path / "feedback"

    def feedback_page(self, key: SubmissionKey) -> Path:
        """Return where the feedback page of a submission is."""
        return inside(self.feedback, key.student, f"{key.lab}.html")

    def feedback_pages(self) -> dict[SubmissionKey, Path]:
        """Return all feedback pages, damaged ones included."""
        found = self.matching("feedback/*/*.html")
        return {SubmissionKey(path.parent.name, path.stem): path for path in found}

    # The course folder that Formgrader opens

    @property
    def gradebook(self) -> Path:
        """Nbgrader's database."""
        return self.path / "gradebook.db"

    def gradebook_parts(self) -> list[Path]:
        """Return the database, and what SQLite leaves beside it when it is killed."""
        return [self.gradebook, *self.matching(f"{self.gradebook.name}-*")]

    @property
    def gradebook_lock(self) -> Path:
        """The file that a writer of the gradebook locks."""
        return self.path / ".gradebook.lock"

    @property
    def nbgrader_config(self) -> Path:
        """The settings with which Formgrader starts here."""
        return self.path / "nbgrader_config.py"

    def source(self, lab: str) -> Path:
        """Return the folder of a lab's source notebooks as they were when it was graded."""
        return inside(self.path, "source", lab)

    def source_notebook(self, lab: str, name: str) -> Path:
        """Return where one of a lab's source notebooks is."""
        return inside(self.source(lab), f"{name}.ipynb")

    def graded_notebook(self, key: SubmissionKey, name: str) -> Path:
        """Return where Formgrader finds a notebook of a submission."""
        return inside(self._graded(key), f"{name}.ipynb")

    def graded_notebooks(self, key: SubmissionKey) -> list[Path]:
        """Return all notebooks of a submission that Formgrader finds."""
        return sorted(self._graded(key).glob("*.ipynb"))

    def submitted(self, key: SubmissionKey) -> Path:
        """Return the empty folder by which Formgrader counts a submission."""
        return inside(self.path, "submitted", key.student, key.lab)

    # What people and other programs read

    @property
    def grades(self) -> Path:
        """The table of all grades."""
        return self.path / "grades.csv"

    @property
    def manual_review(self) -> Path:
        """The manual-review queue."""
        return self.path / "manual_review.csv"

    @property
    def old_review_queue(self) -> Path:
        """The name that the manual-review queue had in folders of format 0."""
        return self.path / "needs_a_person.csv"

    @property
    def changes(self) -> Path:
        """The log of scores that have changed."""
        return self.path / "changes.csv"

    @property
    def proposed_changes(self) -> Path:
        """The scores that would change, while the instructor is asked."""
        return self.path / "changes_proposed.csv"

    @property
    def exports(self) -> Path:
        """The folder of what `export` writes."""
        return self.path / "export"

    def export(self, name: str) -> Path:
        """Return where one of the exported files is."""
        return inside(self.exports, name)

    # The grader's own notes, and the instructor's rules

    @property
    def semester(self) -> Path:
        """The rules of the course: the one file here that an instructor writes."""
        return self.path / "semester.toml"

    @property
    def receipts(self) -> Path:
        """When submissions were received, as `collect` writes it and the rules may name it."""
        return self.path / "receipts.csv"

    @property
    def format(self) -> Path:
        """The version of this folder's format."""
        return self.path / "format.json"

    @property
    def published(self) -> Path:
        """What the last publication rested on."""
        return self.path / "published.json"

    def small_file(self, name: str) -> Path:
        """Return where one of the small JSON files is."""
        return inside(self.path, name)

    def beacon(self, token: str) -> Path:
        """Return an empty file by which other machines know that they see this very folder."""
        return inside(self.path, f".controller-{token}")

    # Damage

    @property
    def damaged(self) -> Path:
        """The folder to which damaged files are moved."""
        return self.path / "damaged"

    def matching(self, pattern: str) -> list[Path]:
        """Return the files and folders that match a pattern such as those in `FILES`, in order."""
        return sorted(self.path.glob(pattern))

    def _graded(self, key: SubmissionKey) -> Path:
        return inside(self.path, "autograded", key.student, key.lab)
