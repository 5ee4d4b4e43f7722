"""Packs what students get into zips: one with every lab, and one per lab for learning platforms.

Each holds the notebooks in `released/`, the library as a wheel, the versions it was tested with, a
start page and `start.py`, which copies notebooks into `my-labs/`. No zip has a file in `my-labs/`,
so unpacking one over a student's folder overwrites no work. All contents are listed below by name;
nothing else of the course's folder gets into a zip.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import nbformat
from markupsafe import Markup

from autograder.authoring.build import check, find_sources
from autograder.base.course import Course
from autograder.base.files import write_whole
from autograder.base.markdown import markdown_to_html
from autograder.base.template import TEMPLATES, html_template
from autograder.notebooks.released import release_of
from autograder.notebooks.stamp import release_version

__all__ = [
    "FOLDER",
    "PLAIN",
    "PRIVATE",
    "PROGRAM",
    "grader_wheel",
    "library_wheel",
    "make_release",
    "pack",
    "student_files",
]

FOLDER = "peakmem-labs"  # the folder that every zip unpacks to
_WHEN = (1980, 1, 1, 0, 0, 0)  # constant, so that the same content gives the same zip
PLAIN, PROGRAM, PRIVATE = 0o100644, 0o100755, 0o100600  # modes of a file in a zip


def make_release(course: Course, labs: Sequence[str] | None, out: Path) -> dict[Path, list[str]]:
    """Write the zips of these labs, by default all, into `out`; return the contents of each.

    Raises ValueError if a lab is unknown or a built notebook differs from what its source builds,
    and RuntimeError, with pip's message, if the wheel can't be built.
    """
    names = [source.stem for source in find_sources(course, labs)]
    if stale := check(course, names):
        raise ValueError("\n".join(stale))
    versions, notebooks = {}, {}
    for name in names:
        versions[name], notebooks[name] = _notebook(course, name)
    shared = student_files(course)
    written = {}
    for archive, held in [("peakmem-labs", names), *((name, [name]) for name in names)]:
        files = {f"released/{name}/{name}.ipynb": notebooks[name] for name in held}
        path = out / f"{archive}.zip"
        write_whole(path, _zip({**shared, **files}))
        written[path] = [versions[name] for name in held]
    return written


def student_files(course: Course) -> dict[str, bytes]:
    """Return the files that every zip contains besides the notebooks: name -> content."""
    wheel, library = library_wheel(course)
    pins = course.constraints_file.read_text(encoding="utf-8").splitlines()
    conda = course.environment_file.read_text(encoding="utf-8")
    texts = {
        "START-HERE.html": _start_page(course),
        "start.py": (TEMPLATES / "start.py").read_text(encoding="utf-8"),
        "requirements.txt": f"-c constraints.txt\n./{wheel}[lab]\n",
        "constraints.txt": "\n".join(pin for pin in pins if not pin.startswith("#")) + "\n",
        "environment.yml": conda.replace("-e .[lab]", f"./{wheel}[lab]"),
    }
    return {wheel: library, **{name: text.encode() for name, text in texts.items()}}


def _notebook(course: Course, lab: str) -> tuple[str, bytes]:
    """The version of a lab's release, and its notebook with that version in the metadata."""
    notebook = nbformat.from_dict(release_of(lab, course.releases))
    version = release_version(notebook)
    notebook.metadata.setdefault("peakmem", nbformat.NotebookNode())["release"] = version
    return version, (nbformat.writes(notebook) + "\n").encode()


def _start_page(course: Course) -> str:
    guide = course.student_guide.read_text(encoding="utf-8")
    # Other documentation pages aren't in the zip, so links to them become plain words.
    guide = re.sub(r"\[([^]]*)\]\((?!https?:|#)[^)]*\)", r"\1", guide)
    style = (TEMPLATES / "feedback.css").read_text(encoding="utf-8")
    page = html_template("start", filters={})
    return page.render(style=Markup(style), guide=Markup(markdown_to_html(guide)))


def library_wheel(course: Course) -> tuple[str, bytes]:
    """Return the name and content of the library's wheel, which students install."""
    return _wheel(course.peakmem, course.name_of(course.peakmem), course.project_files)


def grader_wheel(course: Course) -> tuple[str, bytes]:
    """Return the name and content of the grader's wheel, which holds all tasks and answers."""
    return _wheel(course.grader, ".", [])


def _wheel(package: Path, place: str, files: Sequence[Path]) -> tuple[str, bytes]:
    """A wheel built from copies of `package` at `place` and these files; building leaves litter."""
    with tempfile.TemporaryDirectory(prefix="peakmem-release-") as folder:
        source, built = Path(folder, "source"), Path(folder, "built")
        source.mkdir()
        shutil.copytree(
            package,
            source / place,
            ignore=shutil.ignore_patterns("__pycache__", ".*", "*.egg-info", "build"),
            dirs_exist_ok=True,
        )
        for file in files:
            shutil.copy(file, source)
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
        build += ["--no-deps", "--no-build-isolation", "--wheel-dir", str(built), str(source)]
        # SOURCE_DATE_EPOCH is the time of the files in setuptools' wheels: 1980-01-01.
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "315532800"}
        done = subprocess.run(build, capture_output=True, text=True, check=False, env=environment)
        wheels = sorted(built.glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            raise RuntimeError(f"a wheel couldn't be built:\n{done.stderr.strip()}")
        return wheels[0].name, wheels[0].read_bytes()


def _zip(files: Mapping[str, bytes]) -> bytes:
    return pack(
        {
            f"{FOLDER}/{name}": (data, PROGRAM if name == "start.py" else PLAIN)
            for name, data in files.items()
        }
    )


def pack(files: Mapping[str, tuple[bytes, int]]) -> bytes:
    """Return a zip of these files, name -> content and mode; the same files give the same bytes."""
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in sorted(files):
            data, mode = files[name]
            entry = zipfile.ZipInfo(name, _WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, for its permissions, on any system
            entry.external_attr = mode << 16
            packed.writestr(entry, data)
    return archive.getvalue()
