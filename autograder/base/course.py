"""Where everything of a course is: sources, releases, settings, data files, the secret."""

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
    """A course's folder. Paths in it come from here, laid out as nbgrader_config.py says."""

    #: The folder that holds all of the course.
    root: Path

    def __str__(self) -> str:
        return str(self.root)

    def resolve(self) -> Course:
        """Return the same course by its absolute path."""
        return Course(self.root.resolve())

    def name_of(self, path: Path) -> str:
        """Return a path as messages name it: from the course's folder on, with `/` in it."""
        return path.relative_to(self.root).as_posix()

    @property
    def command_options(self) -> list[str]:
        """The words that name this course on a command line; none for the grader's own."""
        return [] if self.resolve() == COURSE else ["--course", str(self)]

    @property
    def config_file(self) -> Path:
        """The settings of nbgrader, which say where the source notebooks are."""
        return self.root / "nbgrader_config.py"

    @property
    def config(self) -> Config:
        """What the settings of nbgrader say; empty if the course has none."""
        from traitlets.config import Config  # labs are graded where there is no Jupyter, too

        path = self.config_file
        return _loaded(path, path.stat().st_mtime_ns) if path.is_file() else Config()

    @property
    def sources(self) -> Path:
        """The folder that holds one folder of source notebooks an assignment.

        It is `CourseDirectory.source_directory` of nbgrader_config.py. Without that setting it is
        `source`, nbgrader's own name, or `solutions` if only that exists.
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
        """Return the files of an assignment's source notebooks, by name."""
        return sorted(self.source(assignment).glob("*.ipynb"))

    def assignments(self) -> list[str]:
        """Return the names of the folders that hold source notebooks, in order."""
        folders = sorted(self.sources.iterdir()) if self.sources.is_dir() else []
        return [path.name for path in folders if any(path.glob("*.ipynb"))]

    def data_files(self, assignment: str) -> dict[str, Path]:
        """Return the files beside an assignment's notebooks, by their paths within its folder.

        They are those that nbgrader copies beside a submission: all but notebooks and what
        `CourseDirectory.ignore` names.
        """
        folder = self.source(assignment)
        return dict(_files(folder, folder, self.ignored))

    @property
    def ignored(self) -> tuple[str, ...]:
        """Patterns of names that nbgrader copies nowhere: `CourseDirectory.ignore`."""
        return tuple(self.config.get("CourseDirectory", {}).get("ignore", _IGNORED))

    @property
    def releases(self) -> Path:
        """The folder of the labs' released notebooks."""
        return self.root / "labs"

    @property
    def solutions(self) -> Path:
        """The folder of the labs' hand-edited sources and of the solved notebooks built of them."""
        return self.root / "solutions"

    def lab_sources(self) -> dict[str, Path]:
        """Return the hand-edited source of every lab, by the lab's name, in order."""
        return {path.stem: path for path in sorted(self.solutions.glob("lab*.py"))}

    def solved_notebook(self, lab: str) -> Path:
        """Return where a lab's solved notebook is built, the one that nbgrader calls the source."""
        return self.solutions / lab / f"{lab}.ipynb"

    def released_notebook(self, lab: str) -> Path:
        """Return where a lab's released notebook is built."""
        return self.releases / lab / f"{lab}.ipynb"

    def built_notebooks(self, lab: str) -> list[Path]:
        """Return the released and the solved notebook of a lab, those of them that exist."""
        built = (self.released_notebook(lab), self.solved_notebook(lab))
        return [path for path in built if path.is_file()]

    @property
    def peakmem(self) -> Path:
        """The package that students install."""
        return self.root / "src" / "peakmem"

    @property
    def grader(self) -> Path:
        """The package that grades, and that no student gets."""
        return self.root / "autograder"

    @property
    def project_files(self) -> list[Path]:
        """The library's metadata: pyproject.toml, and the page that it shows, README.md."""
        return [self.root / "pyproject.toml", self.root / "README.md"]

    @property
    def constraints_file(self) -> Path:
        """The versions that the course was tested with."""
        return self.root / "constraints.txt"

    @property
    def environment_file(self) -> Path:
        """The environment for conda."""
        return self.root / "environment.yml"

    @property
    def student_guide(self) -> Path:
        """The page that students start with."""
        return self.root / "docs" / "students.md"

    @property
    def bank(self) -> Path:
        """The answer bank: correct and incorrect answers to every task."""
        return self.root / "bank"

    def explained_mutants(self, lab: str) -> Path:
        """Return the file that says which mutants of a lab may survive, and why."""
        return self.root / "tests" / "mutants" / f"{lab}.toml"

    @property
    def secret_file(self) -> Path:
        """The file of the secret from which all cases are drawn."""
        return self.root / ".course_secret"

    def secret(self) -> bytes:
        """Return the secret from which all cases are drawn; make it on first use.

        With it the cases of any submission can be drawn, so only its owner may read the file.
        Raises ValueError if the file holds no secret.
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
                f"{path} holds no secret; expected at least 32 hexadecimal digits. Put the "
                "course's secret back from a copy, or delete the file to make a new one."
            )
        return secret


#: The course that this grader is part of.
COURSE = Course(Path(__file__).resolve().parents[2])


def is_ignored(name: str, ignored: tuple[str, ...]) -> bool:
    """Tell whether one of these patterns matches the name of a file or folder."""
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
        raise ValueError(f"{path} cannot be read: {type(error).__name__}: {error}") from error
