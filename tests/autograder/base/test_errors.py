"""The errors of the grader are the tree that its module draws."""

import importlib
import pkgutil

import autograder
from autograder.base import errors
from autograder.base.errors import AutograderError

LEFT_OUT = ("autograder.__main__", "autograder.templates", "autograder.platforms.dask")


def drawn(base: type[AutograderError], depth: int = 0) -> list[str]:
    """The names of a tree of classes, each indented by its depth."""
    lines = [" " * 4 * depth + base.__name__]
    for one in sorted(base.__subclasses__(), key=lambda one: one.__name__):
        lines += drawn(one, depth + 1)
    return lines


def test_the_docstring_draws_every_error() -> None:
    for module in pkgutil.walk_packages(autograder.__path__, "autograder."):
        if not module.name.startswith(LEFT_OUT):
            importlib.import_module(module.name)
    text = (errors.__doc__ or "").splitlines()
    tree = [line.partition(" - ")[0] for line in text[text.index("AutograderError") :]]
    assert tree == drawn(AutograderError)
