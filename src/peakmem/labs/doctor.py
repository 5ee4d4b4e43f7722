"""What this machine can run: what the labs need, what is installed, and how to get the rest."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata

from peakmem.core.units import GiB, both
from peakmem.labs.session import GPU_EXERCISES, HIDDEN_MODULES

__all__ = ["Check", "check_machine", "labs_here"]

_OLDEST, _NEWEST = (3, 11), (3, 13)
_PACKAGES = {
    "torch": "2.8",
    "numpy": "2.0",
    "matplotlib": "3.9",
    "ipywidgets": "8.1",
    "jupyterlab": "4.2",
    "nbgrader": "0.9.6",
}
_DISK_BYTES = 1 * GiB  # the most that lab 6 keeps in files, with room to spare


@dataclass(frozen=True)
class Check:
    """One thing that the labs need: what was found, and the remedy if that isn't enough."""

    #: What is checked, such as "Python".
    name: str
    #: Whether it is enough for the labs.
    ok: bool
    #: What the machine has.
    found: str
    #: What to do if it isn't enough.
    remedy: str = ""


def check_machine(version_of: Callable[[str], str] = metadata.version) -> list[Check]:
    """Return all checks, in the order in which to fix failures.

    `version_of(package)` gives an installed version, or raises PackageNotFoundError.
    """
    python = sys.version_info[:2]
    checks = [
        Check(
            "Python",
            _OLDEST <= python <= _NEWEST,
            "{}.{}".format(*python),
            "install Python {}.{} from python.org and make a new environment".format(*_NEWEST),
        )
    ]
    checks += [_package(name, least, version_of) for name, least in _PACKAGES.items()]
    free = shutil.disk_usage(tempfile.gettempdir()).free
    checks.append(
        Check(
            "disk",
            free >= _DISK_BYTES,
            f"{both(free)} free for temporary files",
            f"free {both(_DISK_BYTES)} in {tempfile.gettempdir()} for lab 6",
        )
    )
    return checks


def labs_here(has_gpu: bool) -> dict[str, str]:
    """Describe for each lab what runs on a machine with or without a CUDA GPU.

    >>> labs_here(has_gpu=True)["lab01_formats"]
    'everything'
    """
    left_out = {} if has_gpu else GPU_EXERCISES
    return {
        lab: f"all but {left_out[lab]}, which needs a CUDA GPU" if lab in left_out else "everything"
        for lab in HIDDEN_MODULES
    }


def _package(name: str, least: str, version_of: Callable[[str], str]) -> Check:
    remedy = f'pip install "{name}>={least}"'
    try:
        version = version_of(name)
    except metadata.PackageNotFoundError:
        return Check(name, False, "not installed", remedy)
    return Check(name, _numbers(version) >= _numbers(least), version, remedy)


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: 2.13.0 of 2.13.0+cpu."""
    numbers: list[int] = []
    for part in version.partition("+")[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
