"""The tree of errors: every error of the library has one root, and the docstring shows them all."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re

import peakmem
from peakmem.core import errors
from peakmem.core.errors import PeakmemError


def test_every_error_of_the_library_hangs_on_one_tree_and_is_shown() -> None:
    found = set()
    for module in pkgutil.walk_packages(peakmem.__path__, "peakmem."):
        for name, value in vars(importlib.import_module(module.name)).items():
            ours = inspect.isclass(value) and value.__module__ == module.name
            if ours and issubclass(value, BaseException) and not name.startswith("_"):
                assert issubclass(value, PeakmemError), f"{module.name}.{name}"
                found.add(name)
    shown = re.findall(r"^ {4}[│├└─ ]*([A-Z]\w+)", errors.__doc__ or "", re.MULTILINE)
    assert found == set(shown)


def test_the_tree_is_drawn_as_it_is() -> None:
    depth: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"^ {4}([│├└─ ]*)([A-Z]\w+)(?: |$)", line):
            level = len(match[1]) // 4
            depth[level:] = [match[2]]
            if level:
                parent, child = (_class(name) for name in depth[-2:])
                assert issubclass(child, parent)
                assert child.__bases__[0] is parent


def _class(name: str) -> type:
    places = (
        *("core.errors", "core.serialization", "labs.self_check"),
        *("measure.workspaces", "measure.snapshot", "plan.player"),
        *("probes.conversions", "show.cli.program"),
    )
    modules = (importlib.import_module(f"peakmem.{place}") for place in places)
    return next(getattr(module, name) for module in modules if hasattr(module, name))
