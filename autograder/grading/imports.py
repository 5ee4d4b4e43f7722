"""Finds the imports that a run needs: drops unused given imports, lists modules to preload.

A lab's setup cell imports for the whole lab, including demonstrations, which don't run. Importing
torch takes longer than grading a lab that doesn't need it. This module reads source text and runs
nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from autograder.model.definitions import DEFINITIONS, Statement, statements
from autograder.model.submission import RunCell
from autograder.sandbox.host.sandbox import EVERYTHING
from peakmem import probes

__all__ = ["WITHOUT_TORCH", "heavy_imports", "modules_of", "needed", "needs_torch", "probe_sources"]

#: Modules and folders of peakmem that don't load torch.
WITHOUT_TORCH = (
    "peakmem.core",
    "peakmem.errors",
    "peakmem.hardware",
    "peakmem.models",
    "peakmem.labs.check",
    "peakmem.labs.compare",
    "peakmem.labs.doctor",
    "peakmem.labs.figures",
    "peakmem.labs.predictions",
    "peakmem.labs.session",
    "peakmem.numbers",
    "peakmem.plots",
    "peakmem.show.plots",
    "peakmem.specs",
    "peakmem.units",
)

# Modules that may be imported before a fork: they leave no thread running and no file open.
_FORKABLE = ("matplotlib", "numpy", "pandas", "peakmem", "scipy", "sympy", "torch", "tqdm")

# A budget doesn't pay for what a metered call imports, either; numpy imports its `random` at first
# use, and that takes 3 MiB.
_LIGHT = ("torch", "numpy.random", "peakmem.measure.meter")

# With these, a cell may use names that its source doesn't mention.
_USES_UNSEEN = frozenset({"eval", "exec", "globals", "locals", "vars", "get_ipython"})
_WORD = re.compile(r"\w+")
# Optimizers, checkpoints and collectives make torch import its compiler, or more, at their first
# use, which a budget would pay; all else a notebook may import too.
_HEAVY = re.compile(
    r"\b(optim(?!\.Optimizer)|checkpoint|compile|distributed|func|matplotlib|plt|peakmem\.show"
    r"|tqdm)\b"
)
_MAGIC = re.compile(r"^[^\S\n]*[%!?]", re.MULTILINE)  # within a line: there may be many blank ones


def needed(cells: Sequence[RunCell], names: Collection[str] = ()) -> list[RunCell]:
    """Return the cells with unused given imports and functions blanked.

    Names in `names` count as used. Line numbers stay the same. In a cell that doesn't parse, every
    word counts as a use.
    """
    setups = [cell for cell in cells if cell.kind == "given" and cell.task is None]
    used = set(names)
    idle: list[Statement] = []
    for cell in cells:
        own = statements(cell.source)
        if not own or _MAGIC.search(cell.source):
            used.update(_WORD.findall(cell.source))
        for statement in own:
            if cell in setups and _may_go(statement, own):
                idle.append(statement)
            else:
                used |= statement.takes
    if not used.isdisjoint(_USES_UNSEEN):
        return list(cells)
    while now := [statement for statement in idle if not statement.binds.isdisjoint(used)]:
        idle = [statement for statement in idle if statement not in now]
        used.update(*(statement.takes for statement in now))
    gone = {id(statement.node) for statement in idle}
    return [_without(cell, gone) if cell in setups else cell for cell in cells]


def modules_of(sources: Iterable[str]) -> tuple[str, ...]:
    """Return the modules that the sources import and that may be imported before a fork."""
    found: dict[str, None] = {}
    for source in sources:
        for statement in statements(source):
            found |= dict.fromkeys(_imported(statement.node))
    return tuple(name for name in found if name.partition(".")[0] in _FORKABLE)


def needs_torch(modules: Iterable[str]) -> bool:
    """Tell whether importing these modules may load torch."""
    return any(
        name.partition(".")[0] == "torch"
        or (name.startswith("peakmem.") and not name.startswith(WITHOUT_TORCH))
        for name in modules
    )


def heavy_imports(modules: Iterable[str], sources: Iterable[str]) -> tuple[str, ...]:
    """Return the slow imports that code with these imports needs, for a fork's parent.

    Students shouldn't wait for these, and memory budgets shouldn't pay for them. So if the code
    names anything slow besides torch, this returns all of them.
    """
    if not needs_torch(modules):
        return ()
    return (*_LIGHT, *EVERYTHING) if any(map(_HEAVY.search, sources)) else _LIGHT


def probe_sources(number: str) -> list[str]:
    """Return the source of a lab's probes (`lab01` for one), which run beside students' code."""
    folder = Path(probes.__file__).parent
    paths = [folder / f"{number}.py", *(folder / number).glob("*.py")]
    return [path.read_text(encoding="utf-8") for path in paths if path.is_file()]


def _imported(node: ast.stmt) -> Iterator[str]:
    """The modules that a statement imports, and the imported names that may be modules."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import):
            yield from (alias.name for alias in inner.names)
        elif isinstance(inner, ast.ImportFrom) and inner.module and not inner.level:
            yield inner.module
            yield from (f"{inner.module}.{alias.name}" for alias in inner.names)


def _may_go(statement: Statement, others: Iterable[Statement]) -> bool:
    """Whether a statement only binds names, and shares no line with another statement."""
    node = statement.node
    if isinstance(node, DEFINITIONS):
        binds_only = not node.decorator_list and not isinstance(node, ast.ClassDef)
    else:
        binds_only = isinstance(node, (ast.Import, ast.ImportFrom)) and not statement.binds_unseen
    lines = _lines(node)
    shared = any(lines & _lines(other.node) for other in others if other is not statement)
    return binds_only and not shared


def _without(cell: RunCell, gone: Collection[int]) -> RunCell:
    blank = {
        line
        for statement in statements(cell.source)
        if id(statement.node) in gone
        for line in _lines(statement.node)
    }
    if not blank:
        return cell
    lines = cell.source.splitlines()
    kept = ["" if number in blank else line for number, line in enumerate(lines, 1)]
    return replace(cell, source="\n".join(kept))


def _lines(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
