"""Builds bubblewrap's arguments for what the sandbox shows of this machine, and what it hides."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

import peakmem
from autograder.base.course import COURSE

__all__ = [
    "COURSE_INSIDE",
    "FILES",
    "GRADER",
    "GUEST",
    "PACKAGES_INSIDE",
    "course_binds",
    "hiding_binds",
    "installed_packages",
    "system_binds",
]

GUEST = Path(__file__).parents[1] / "guest"  # the only part of the grader that runs inside
GRADER = Path(__file__).parents[2]
COURSE_INSIDE = "/course"  # the course's own modules, inside the sandbox
PACKAGES_INSIDE = "/course/packages"  # the installed packages, inside
FILES = "/course/files"  # an assignment's data files, inside


def system_binds() -> Iterator[str]:
    """Show /usr and its companions, and this Python wherever it is installed."""
    yield from ("--ro-bind", "/usr", "/usr")
    yield from _masks(Path("/usr"), "/usr")
    for folder in map(Path, ("/bin", "/sbin", "/lib", "/lib32", "/lib64")):
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    yield from _readable_parents(Path("/etc/ld.so.cache"))
    for place in ("/etc/ld.so.cache", "/etc/localtime", "/etc/fonts", "/etc/alternatives"):
        yield from ("--ro-bind-try", place, place)
    prefix = Path(sys.base_prefix).resolve()
    if not prefix.is_relative_to("/usr"):
        yield from _readable_parents(prefix)
        yield from ("--ro-bind", str(prefix), str(prefix))
        yield from _masks(prefix, str(prefix))


def _masks(shown: Path, within: str) -> Iterator[str]:
    """Hide the course and the grader behind empty folders if a shown folder contains them."""
    secrets = [GRADER]
    root = COURSE.root  # for an installed grader, the packages' folder
    if COURSE.solutions.is_dir():
        secrets.insert(0, root)
    for secret in secrets:
        if secret.is_relative_to(shown):
            yield from _emptiness(str(within / secret.relative_to(shown)))


def course_binds() -> Iterator[str]:
    """Show the library, the guest's code and the installed packages at fixed places.

    So the course's location makes no difference, and isn't visible inside.
    """
    library = Path(peakmem.__file__).parent
    guest = f"{COURSE_INSIDE}/autograder/sandbox/guest"
    yield from _readable_parents(Path(guest))
    yield from ("--ro-bind", str(installed_packages()), PACKAGES_INSIDE)
    yield from _masks(installed_packages(), PACKAGES_INSIDE)
    yield from ("--ro-bind", str(library), f"{COURSE_INSIDE}/peakmem")
    yield from ("--ro-bind", str(GUEST), guest)


def installed_packages() -> Path:
    """Return the folder that pip installs into; on Linux, one for pure and compiled packages."""
    return Path(sysconfig.get_path("platlib")).resolve()


def hiding_binds(hides: Sequence[str], scratch: Path) -> Iterator[str]:
    """Replace each module that holds the lab's answers with a refusal, and hide compiled copies."""
    for name in hides:
        origin = _origin(name)
        if origin is None:
            continue  # not installed, so it can't be imported either
        refusal = scratch / name
        refusal.mkdir()
        refusal.chmod(0o755)  # readable by another user
        file = refusal / "__init__.py"
        file.write_text(f'raise ImportError("{name} holds answers of this lab")\n')
        file.chmod(0o644)  # regardless of the umask
        if origin.name == file.name:  # a package: hide its modules too, which load without it
            yield from ("--ro-bind", str(refusal), _seen_inside(origin.parent))
            continue
        yield from ("--ro-bind", str(file), _seen_inside(origin))
        compiled = origin.with_name("__pycache__")
        with contextlib.suppress(OSError):  # the grader may still write there
            compiled.mkdir(exist_ok=True)
        if compiled.is_dir():
            yield from _emptiness(_seen_inside(compiled))


def _emptiness(place: str) -> Iterator[str]:
    """Lay a read-only empty folder over a place that ordinary users could otherwise write to."""
    yield from ("--perms", "0755", "--tmpfs", place, "--remount-ro", place)


def _origin(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin) if spec is not None and spec.origin else None


def _seen_inside(path: Path) -> str:
    for outside, within in (
        (Path(peakmem.__file__).parent, f"{COURSE_INSIDE}/peakmem"),
        (installed_packages(), PACKAGES_INSIDE),
    ):
        if path.is_relative_to(outside):
            return f"{within}/{path.relative_to(outside)}"
    return str(path)


def _readable_parents(path: Path) -> Iterator[str]:
    # bubblewrap would make missing parents readable only by their owner, who isn't the student.
    for parent in reversed(path.parents):
        if str(parent) != "/":
            yield from ("--perms", "0755", "--dir", str(parent))
