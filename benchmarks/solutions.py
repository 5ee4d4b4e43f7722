"""The definitions in a lab's solved notebook, for benchmarks that measure them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from autograder.base.course import COURSE

__all__ = ["solved"]


def solved(lab: str, *given: str) -> Mapping[str, Any]:
    """Return the names that a lab's solved notebook defines, without its checks and pictures.

    `given` names the cells with code that the lab provides, such as "block_scores". Modules that
    the lab's first cell hides from students stay importable.
    """
    names: dict[str, Any] = {"__name__": f"{lab}_solved"}
    text = (COURSE.solutions / f"{lab}.py").read_text("utf-8")
    finders = list(sys.meta_path)
    try:
        for cell in text.split("\n# %% ")[1:]:
            heading, _, source = cell.partition("\n")
            if any(f'-{name}"' in heading for name in ("setup", "solution", *given)):
                exec(source, names)
    finally:
        sys.meta_path[:] = finders
    return names
