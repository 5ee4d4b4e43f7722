"""What the sandbox shows of this machine, as arguments of bubblewrap, and what it hides there."""

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

GUEST = Path(__file__).parents[1] / "guest"  # all that runs inside, and nothing else
GRADER = Path(__file__).parents[2]
COURSE_INSIDE = "/course"  # where the course's own modules lie inside
PACKAGES_INSIDE = "/course/packages"  # where the installed packages lie inside
FILES = "/course/files"  # where an assignment's data files lie inside


def system_binds() -> Iterator[str]:
    """Show /usr and what belongs to it, and this Python wherever it lies."""
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
    """Lay emptiness over the course and the grader where they lie in a folder that is shown."""
    secrets = [GRADER]
    root = COURSE.root  # of an installed grader the folder of packages
    if COURSE.solutions.is_dir():
        secrets.insert(0, root)
    for secret in secrets:
        if secret.is_relative_to(shown):
            yield from _emptiness(str(within / secret.relative_to(shown)))


def course_binds() -> Iterator[str]:
    """Show the library, what runs inside, and the installed packages, at fixed places.

    So it makes no difference where the course lies, and where that is does not show inside.
    """
    library = Path(peakmem.__file__).parent
    guest = f"{COURSE_INSIDE}/autograder/sandbox/guest"
    yield from _readable_parents(Path(guest))
    yield from ("--ro-bind", str(installed_packages()), PACKAGES_INSIDE)
    yield from _masks(installed_packages(), PACKAGES_INSIDE)
    yield from ("--ro-bind", str(library), f"{COURSE_INSIDE}/peakmem")
    yield from ("--ro-bind", str(GUEST), guest)


def installed_packages() -> Path:
    """Return the folder that pip installs packages in: on Linux one, for pure and compiled ones."""
    return Path(sysconfig.get_path("platlib")).resolve()


def hiding_binds(hides: Sequence[str], scratch: Path) -> Iterator[str]:
    """Lay a refusal over each module that holds the lab's answers, and over its compiled copies."""
    for name in hides:
        origin = _origin(name)
        if origin is None:
            continue  # not installed, so not to be imported either
        refusal = scratch / name
        refusal.mkdir()
        refusal.chmod(0o755)  # another user reads it
        file = refusal / "__init__.py"
        file.write_text(f'raise ImportError("{name} holds answers of this lab")\n')
        file.chmod(0o644)  # whatever the shell's umask says
        if origin.name == file.name:  # a package: its modules go too, which load without it
            yield from ("--ro-bind", str(refusal), _seen_inside(origin.parent))
            continue
        yield from ("--ro-bind", str(file), _seen_inside(origin))
        compiled = origin.with_name("__pycache__")
        with contextlib.suppress(OSError):  # the grader may write there yet, where it can
            compiled.mkdir(exist_ok=True)
        if compiled.is_dir():
            yield from _emptiness(_seen_inside(compiled))


def _emptiness(place: str) -> Iterator[str]:
    """Lay an empty folder over a place, to which an ordinary user could write, were it not so."""
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
    # bubblewrap makes missing parents readable by their owner only, which is not the student.
    for parent in reversed(path.parents):
        if str(parent) != "/":
            yield from ("--perms", "0755", "--dir", str(parent))
