"""Searches the library for functions that answer an exercise.

A right answer of the bank is run through the exercise's probe, and each call of it is recorded.
Then every public function and class of peakmem is called with the arguments of these calls, in all
orders, with objects of the library's own where it asks for such. A function that returns the same
values on all calls replaces the right answer, and the exercise's judge decides.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import pkgutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from itertools import islice, permutations, product
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

import peakmem
from autograder.model.judge import judge_safely
from autograder.model.task import Case, Lab, Task
from autograder.sandbox.host.in_process import LocalStudent
from peakmem.core import serialization
from tests.answers import answers

__all__ = ["answers_to", "public_names"]

_MAX_ORDERS = 24  # of arguments, for one function
_MAX_ARGUMENTS = 5
_SEEDS = range(2)
_CPU_SECONDS = 0.05  # that one call of a candidate may take
_MAX_CALLS = 40  # of those recorded, spread over all cases
# These draw, print, ask, call or start processes: they return nothing that a function of a
# student's could. Some are searched nevertheless, in the labs whose solutions may use them.
_NO_ANSWERS = (
    *("peakmem.core.errors", "peakmem.core.lazy", "peakmem.core.serialization", "peakmem.labs"),
    *("peakmem.measure.rank", "peakmem.probes", "peakmem.ranks", "peakmem.show"),
)

Arguments = tuple[Any, ...]
Expression = Callable[[Arguments], Any]


@dataclass
class _Call:
    arguments: Arguments
    options: dict[str, Any]
    returned: Any


@contextmanager
def _nothing_reported() -> Iterator[None]:
    """Keep from pytest what Python swallows.

    The time limit may strike in the callback of a weak reference, and in pytest's hook for it too.
    """
    hook, sys.unraisablehook = sys.unraisablehook, _report_nothing
    try:
        yield
    finally:
        sys.unraisablehook = hook


def _report_nothing(_what: object) -> None:
    return


@_nothing_reported()
def answers_to(task: Task, lab: Lab, hides: Sequence[str] | None = None) -> set[str]:
    """Return the public names of peakmem that answer one of the functions that `task` asks for.

    Omits modules that the lab hides, or those in `hides`, with all that import them.
    """
    names = public_names(lab.hides if hides is None else hides, lab.allows)
    drawn = [case for seed in _SEEDS for case in task.cases(np.random.default_rng(seed))]
    cases = [case for case in drawn if case.budget is None and not case.fixed]
    found: set[str] = set()
    for defined in task.defines:
        calls = _recorded(task, lab, defined, cases)
        if not calls:
            continue
        with _no_ranks():
            for label, candidate in names.items():
                if label not in found and _answers(task, lab, defined, cases, calls, candidate):
                    found.add(label)
    return found


def _no_ranks() -> Any:
    """Let no candidate start processes, which the limit on its own time doesn't count."""
    return mock.patch("peakmem.measure.ranks.launch_watched", side_effect=PermissionError)


# The library


def public_names(hides: Sequence[str], allows: Sequence[str] = ()) -> dict[str, Any]:
    """Return the public functions and classes of the library that may be imported, by their names.

    A module that imports one of `hides` cannot be imported either. Modules that return no answers
    are left out, except those that `allows` names.
    """
    found: dict[str, Any] = {}
    for name, module in _modules().items():
        is_searched = not name.startswith(_NO_ANSWERS) or name in allows
        if is_searched and not _reaches(name, frozenset(hides)):
            for public in module.__all__:
                value = getattr(module, public)
                if callable(value) and value.__module__ == name:
                    found[f"{name}.{public}"] = value
    return found


@cache
def _modules() -> dict[str, Any]:
    found = [m for m in pkgutil.walk_packages(peakmem.__path__, "peakmem.") if not m.ispkg]
    modules = {m.name: importlib.import_module(m.name) for m in found if _is_importable(m.name)}
    return {name: module for name, module in modules.items() if hasattr(module, "__all__")}


def _is_importable(name: str) -> bool:
    """Whether importing it has no effect, unlike a program's main module or a rank's."""
    return not name.startswith(("peakmem.measure.rank", "peakmem.show")) and "__main__" not in name


@cache
def _reaches(module: str, hides: frozenset[str]) -> bool:
    """Whether a module is hidden, or imports one at its top that does."""
    if any(f"{module}.".startswith(f"{hidden}.") for hidden in hides):
        return True
    path = Path(str(_modules()[module].__file__))
    imports = [n for n in ast.parse(path.read_text("utf-8")).body if isinstance(n, ast.ImportFrom)]
    inner = {
        name for n in imports for name in (n.module, *(f"{n.module}.{a.name}" for a in n.names))
    }
    return any(_reaches(name, hides) for name in inner if name in _modules() or name in hides)


@cache
def _constants(kind: str) -> tuple[Any, ...]:
    """The library's own objects of the class of this name."""
    found: list[Any] = []
    for module in _modules().values():
        for value in [getattr(module, name) for name in module.__all__]:
            values = value.values() if isinstance(value, Mapping) else [value]
            found += [v for v in values if type(v).__name__ == kind and v not in found]
    return tuple(found)


@cache
def _tables() -> tuple[Mapping[Any, Any], ...]:
    return tuple(
        value
        for module in _modules().values()
        for name in module.__all__
        if isinstance(value := getattr(module, name), Mapping)
    )


@cache
def _classes() -> dict[str, type]:
    values = [getattr(module, name) for module in _modules().values() for name in module.__all__]
    return {v.__name__: v for v in values if isinstance(v, type) and is_dataclass(v)}


# Calls of a right answer


@cache
def _right_answer(lab: str, task: str) -> dict[str, Any]:
    right = [e for e in answers(lab) if e.kind == "right" and e.task.endswith(f"-{task}")][-1]
    names: dict[str, Any] = {}
    exec(compile(right.source, right.label, "exec"), names)
    return names


def _recorded(task: Task, lab: Lab, name: str, cases: Sequence[Case]) -> list[_Call]:
    """Some of the calls that the probe makes of a right answer: those that return plain values."""
    calls: list[_Call] = []
    function = _right_answer(lab.name, task.name)[name]

    def record(*arguments: Any, **options: Any) -> Any:
        try:
            before = copy.deepcopy((arguments, options))
        except Exception:
            return function(*arguments, **options)
        returned = function(*arguments, **options)
        if _is_plain(returned):
            calls.append(_Call(*before, returned))
        return returned

    if inspect.isfunction(function):
        for case in cases:
            _run(task, {**_right_answer(lab.name, task.name), name: record}, case)
    telling = sorted(calls, key=lambda call: _size(call.returned), reverse=True)
    return telling[:: max(1, len(telling) // _MAX_CALLS)]


def _is_plain(value: Any) -> bool:
    try:
        serialization.encode(value)
    except serialization.PlainError:
        return False
    return value is not None


def _size(value: Any) -> int:
    """How much a value reveals: 0 or True may match by chance."""
    return len(repr(value)) if isinstance(value, np.ndarray) or value else 0


def _run(task: Task, names: Mapping[str, Any], case: Case) -> bool:
    """Whether these names earn a part that the case decides."""
    ask = task.ask(case) if task.ask else None
    answer = LocalStudent(names).run(task.probe_path, case.inputs, ask)
    return any(judge_safely(task, [case], [answer]).earned[part] > 0 for part in case.parts)


# Candidates


def _answers(
    task: Task, lab: Lab, name: str, cases: Sequence[Case], calls: Sequence[_Call], candidate: Any
) -> bool:
    for expression in _expressions(candidate, calls[0]):
        if all(_agrees(expression, call) for call in calls):
            function = _as_function(expression)
            names = {**_right_answer(lab.name, task.name), name: function}
            if any(_run(task, names, case) for case in cases):
                return True
    return False


def _as_function(expression: Expression) -> Callable[..., Any]:
    return lambda *arguments, **options: expression((*arguments, *options.values()))


def _agrees(expression: Expression, call: _Call) -> bool:
    arguments = (*call.arguments, *call.options.values())
    try:
        with _cpu_limit():
            return _is_same(expression(copy.deepcopy(arguments)), call.returned)
    except Exception:
        return False


class _TooLong(Exception):
    """A candidate took too long."""


@contextmanager
def _cpu_limit() -> Iterator[None]:
    """Stop the block's code after a while, and keep its warnings from ending it."""
    signal.signal(signal.SIGVTALRM, _raise_too_long)
    # Again and again, since Python swallows what is raised in the callback of a weak reference.
    signal.setitimer(signal.ITIMER_VIRTUAL, _CPU_SECONDS, _CPU_SECONDS)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _raise_too_long(_number: int, frame: FrameType | None) -> None:
    if not _is_importing(frame):  # a half-imported module fails later tests
        raise _TooLong


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _is_same(got: Any, expected: Any) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            return _same(got, expected)
    except Exception:
        return False


def _same(got: Any, expected: Any) -> bool:
    if isinstance(expected, Mapping):
        if not isinstance(got, Mapping):
            got = {key: getattr(got, str(key)) for key in expected}
        return all(_same(got[key], value) for key, value in expected.items())
    if isinstance(expected, (str, bool, type(None))):
        return type(got) is type(expected) and bool(got == expected)
    if isinstance(expected, (list, tuple, set)):
        same_length = len(got) == len(expected)
        return same_length and all(_same(g, e) for g, e in zip(got, expected, strict=True))
    both = np.asarray(got, dtype=float), np.asarray(expected, dtype=float)
    same_shape = both[0].shape == both[1].shape
    return same_shape and bool(np.allclose(*both, rtol=1e-6, atol=0, equal_nan=True))


def _expressions(candidate: Any, call: _Call) -> Iterator[Expression]:
    """Ways to call the candidate with a call's arguments; what it returns, and what that holds."""
    arguments = (*call.arguments, *call.options.values())
    for make in _makes(candidate, arguments):
        try:
            with _cpu_limit():
                value = make(copy.deepcopy(arguments))
        except Exception:
            continue
        if _is_same(value, call.returned):
            yield make
        for part in _parts(value):
            if _is_same(_part(value, part), call.returned):
                yield lambda a, make=make, part=part: _part(make(a), part)  # type: ignore[misc]


def _parts(value: Any) -> list[str]:
    """The fields, properties and methods without arguments of one of the library's objects."""
    if isinstance(value, type) or not is_dataclass(value):
        return []
    return [name for name in dir(value) if not name.startswith("_")]


def _part(value: Any, name: str) -> Any:
    try:
        part = getattr(value, name)
        return part() if inspect.ismethod(part) else part
    except Exception:
        return None


def _makes(candidate: Any, arguments: Arguments) -> Iterator[Expression]:
    try:
        parameters = list(inspect.signature(candidate).parameters.values())
    except (TypeError, ValueError):
        return
    needed = [p for p in parameters if p.default is p.empty and p.kind < p.VAR_POSITIONAL]
    named = [p for p in parameters if p.default is p.empty and p.kind == p.KEYWORD_ONLY]
    usual = [p for p in parameters if p.default is not p.empty]
    for more in range(len(usual) + 1):
        asked = [*needed, *named, *usual[:more]]
        if len(asked) > _MAX_ARGUMENTS or (more and len(asked) > len(arguments)):
            return
        choices = [list(_choices(p, arguments)) for p in asked]
        for chosen in islice(filter(_uses_each_once, product(*choices)), _MAX_ORDERS):
            yield _calling(candidate, [p.name for p in asked], [make for _, make in chosen])


def _uses_each_once(chosen: Sequence[tuple[int, Expression]]) -> bool:
    places = [place for place, _ in chosen if place >= 0]
    return len(set(places)) == len(places)


def _calling(candidate: Any, names: Sequence[str], makes: Sequence[Expression]) -> Expression:
    def call(arguments: Arguments) -> Any:
        given = {name: make(arguments) for name, make in zip(names, makes, strict=True)}
        return candidate(**given)

    return call


def _choices(
    parameter: inspect.Parameter, arguments: Arguments
) -> Iterator[tuple[int, Expression]]:
    """Possible values of a parameter, each with the position of the argument it uses up, or -1."""
    wanted = str(parameter.annotation)
    for place, argument in enumerate(arguments):
        if _may_be(argument, wanted):
            yield place, lambda a, place=place: a[place]  # type: ignore[misc]
        if isinstance(argument, str):
            for table in _tables():
                if argument in table:
                    yield place, lambda a, place=place, table=table: table[a[place]]  # type: ignore[misc]
    for name, kind in _classes().items():
        if name in wanted:
            for constant in _constants(name):
                yield -1, lambda a, constant=constant: constant  # type: ignore[misc]
            yield from ((-1, make) for make in _builds(kind, arguments))


def _builds(kind: type, arguments: Arguments) -> Iterator[Expression]:
    """Objects of a class of the library's, from all the arguments, or from one that is a table."""
    names = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    for order in permutations(range(len(arguments)), min(len(arguments), len(names), 3)):
        yield lambda a, order=order: kind(*(a[i] for i in order))  # type: ignore[misc]
    for place, argument in enumerate(arguments):
        if isinstance(argument, Mapping):
            yield lambda a, place=place: kind(**a[place])  # type: ignore[misc]
        if isinstance(argument, SimpleNamespace):
            yield lambda a, place=place: kind(**vars(a[place]))  # type: ignore[misc]


_PLAIN: dict[str, Any] = {"int": int, "float": (int, float), "str": str, "bool": bool}
_SEVERAL = ("Sequence", "Iterable", "list", "tuple", "Mapping", "dict", "Collection", "ndarray")


def _may_be(argument: Any, wanted: str) -> bool:
    """Whether a parameter with this annotation may take the argument as it is."""
    if wanted in _PLAIN:
        return isinstance(argument, (_PLAIN[wanted], np.number))
    if wanted.startswith(_SEVERAL):
        return not isinstance(argument, (str, int, float, np.number))
    if wanted.startswith("Callable"):
        return callable(argument)
    own = any(name in wanted for name in _classes())
    return not (own and isinstance(argument, (str, int, float, np.number)))
