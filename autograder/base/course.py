"""The layout of a course: sources, releases, settings, data files, the secret."""

from __future__ import annotations

import fnmatch
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.base.files import inside

if TYPE_CHECKING:
    from traitlets.config import Config

__all__ = ["COURSE", "Course", "is_ignored"]

_IGNORED = (".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback")  # nbgrader's own default


@dataclass(frozen=True)
class Course:
    """A course's folder, and the paths in it, laid out as nbgrader_config.py says."""

    #: The course's top folder.
    root: Path

    def __str__(self) -> str:
        return str(self.root)

    def resolve(self) -> Course:
        """Return this course with its absolute path."""
        return Course(self.root.resolve())

    def name_of(self, path: Path) -> str:
        """Return a path as messages show it: relative to the course's folder, with `/`."""
        return path.relative_to(self.root).as_posix()

    @property
    def command_options(self) -> list[str]:
        """The command-line words that select this course; empty for the grader's own."""
        return [] if self.resolve() == COURSE else ["--course", str(self)]

    @property
    def config_file(self) -> Path:
        """The settings file of nbgrader, which says where the source notebooks are."""
        return self.root / "nbgrader_config.py"

    @property
    def config(self) -> Config:
        """The settings of nbgrader; empty if the course has none."""
        from traitlets.config import Config  # labs are also graded without Jupyter

        path = self.config_file
        return _loaded(path, path.stat().st_mtime_ns) if path.is_file() else Config()

    @property
    def sources(self) -> Path:
        """The folder of the source notebooks, with one folder for each assignment.

        `CourseDirectory.source_directory` of nbgrader_config.py sets it. Without that setting it is
        `source`, nbgrader's default, or `solutions` if only that exists.
        """
        said = self.config.get("CourseDirectory", {}).get("source_directory")
        if isinstance(said, str):
            return self.root / said
        solutions, source = self.root / "solutions", self.root / "source"
        return solutions if solutions.is_dir() and not source.is_dir() else source

    def source(self, assignment: str) -> Path:
        """Return the folder of an assignment's source notebooks."""
        return inside(self.sources, assignment)

    def source_notebooks(self, assignment: str) -> list[Path]:
        """Return an assignment's source notebooks, sorted by name."""
        return sorted(self.source(assignment).glob("*.ipynb"))

    def assignments(self) -> list[str]:
        """Return the names of the folders that hold source notebooks, in order."""
        folders = sorted(self.sources.iterdir()) if self.sources.is_dir() else []
        return [path.name for path in folders if any(path.glob("*.ipynb"))]

    def data_files(self, assignment: str) -> dict[str, Path]:
        """Return an assignment's data files by their paths within its folder.

        nbgrader copies these files beside each submission: all except notebooks and names that
        match `CourseDirectory.ignore`.
        """
        folder = self.source(assignment)
        return dict(_files(folder, folder, self.ignored))

    @property
    def ignored(self) -> tuple[str, ...]:
        """Patterns of names that nbgrader never copies: `CourseDirectory.ignore`."""
        return tuple(self.config.get("CourseDirectory", {}).get("ignore", _IGNORED))

    @property
    def releases(self) -> Path:
        """The folder of the labs' released notebooks."""
        return self.root / "labs"

    @property
    def solutions(self) -> Path:
        """The folder of the labs' hand-edited sources and their solved notebooks."""
        return self.root / "solutions"

    def lab_sources(self) -> dict[str, Path]:
        """Return each lab's hand-edited source by the lab's name, in order."""
        return {path.stem: path for path in sorted(self.solutions.glob("lab*.py"))}

    def solved_notebook(self, lab: str) -> Path:
        """Return the path of a lab's solved notebook, which nbgrader calls the source."""
        return self.solutions / lab / f"{lab}.ipynb"

    def released_notebook(self, lab: str) -> Path:
        """Return the path of a lab's released notebook."""
        return self.releases / lab / f"{lab}.ipynb"

    def built_notebooks(self, lab: str) -> list[Path]:
        """Return a lab's released and solved notebooks, if they exist."""
        built = (self.released_notebook(lab), self.solved_notebook(lab))
        return [path for path in built if path.is_file()]

    @property
    def peakmem(self) -> Path:
        """The package that students install."""
        return self.root / "src" / "peakmem"

    @property
    def grader(self) -> Path:
        """The grader's package, which students never get."""
        return self.root / "autograder"

    @property
    def project_files(self) -> list[Path]:
        """The library's metadata: pyproject.toml, and the license, which it includes."""
        return [self.root / "pyproject.toml", self.root / "LICENSE"]

    @property
    def constraints_file(self) -> Path:
        """The versions the course was tested with."""
        return self.root / "constraints.txt"

    @property
    def environment_file(self) -> Path:
        """The conda environment."""
        return self.root / "environment.yml"

    @property
    def student_guide(self) -> Path:
        """The page students start with."""
        return self.root / "docs" / "students.md"

    @property
    def bank(self) -> Path:
        """The answer bank: correct and incorrect answers to every task."""
        return self.root / "bank"

    def explained_mutants(self, lab: str) -> Path:
        """Return the file that lists which mutants of a lab may survive, and why."""
        return self.bank / "mutants" / f"{lab}.toml"

    @property
    def secret_file(self) -> Path:
        """The file with the secret that seeds all drawn cases."""
        return self.root / ".course_secret"

    def secret(self) -> bytes:
        """Return the secret that seeds all drawn cases; create it on first use.

        Anyone who knows it can draw the cases of any submission, so only its owner may read the
        file. Raises ValueError if the file holds no secret.
        """
        path = self.secret_file
        if not path.exists():
            opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(opened, "w") as file:
                file.write(secrets.token_hex(32))
        try:
            secret = bytes.fromhex(path.read_text().strip())
        except ValueError:
            secret = b""
        if len(secret) < 16:
            raise ValueError(
                f"{path} contains no secret; expected at least 32 hexadecimal digits. Restore the "
                "course's secret from a backup, or delete the file to create a new one."
            )
        return secret


#: The course that contains this grader.
COURSE = Course(Path(__file__).resolve().parents[2])


def is_ignored(name: str, ignored: tuple[str, ...]) -> bool:
    """Tell whether a file's or folder's name matches one of the patterns."""
    return any(fnmatch.fnmatch(name, pattern) for pattern in ignored)


def _files(folder: Path, top: Path, ignored: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.iterdir()):
        if path.suffix == ".ipynb" or is_ignored(path.name, ignored):
            continue
        if path.is_dir():
            yield from _files(path, top, ignored)
        elif path.is_file():
            yield path.relative_to(top).as_posix(), path


@lru_cache
def _loaded(path: Path, _changed_ns: int) -> Config:
    from traitlets.config.loader import PyFileConfigLoader

    try:
        return PyFileConfigLoader(path.name, path=str(path.parent)).load_config()
    except Exception as error:
        raise ValueError(f"{path} can't be read: {type(error).__name__}: {error}") from error
