"""Self-checks as data: a table of cases with hints, and one function that goes through it.

A self-check prints a line per case instead of a traceback, goes on after a failure, and raises at
its end, so that nbgrader's Validate reports it. Values are compared as grading compares them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from peakmem.core import serialization
from peakmem.core.errors import PeakmemError, RankError, RanksTimeout
from peakmem.labs.compare import differing, same, show
from peakmem.probes import as_sent, describe, is_unwritten, raised_type

__all__ = ["Case", "SelfCheckFailed", "beside_bound", "self_check"]

_NO_RETURN = "Is a return missing?"
_WIDTH = 78  # nbgrader's Validate cuts lines at 90, its own indentation included


@dataclass(frozen=True)
class Case:
    """One call of the function that an exercise asks for, and the expected result."""

    #: The call's arguments; a notebook's lambda may make them for each call (see `function`).
    args: Sequence[Any]
    #: What the function must return.
    expected: Any = None
    #: What a student reads first if the case fails: where to look, not the result.
    hint: str = ""
    #: The call's keyword arguments.
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    #: The exception that the function must raise, instead of returning anything.
    raises: type[Exception] | None = None
    #: Results that common mistakes lead to, each with a hint of its own.
    wrong: Mapping[Any, str] = field(default_factory=dict)
    #: How the call is written; by default the function's name and its arguments.
    label: str = ""
    #: The function to call, if it isn't the table's.
    function: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.args, (tuple, list)):
            raise TypeError(
                f"args is {self.args!r}; expected a tuple of arguments. A single one is written "
                f"({self.args!r},)."
            )


class SelfCheckFailed(PeakmemError, AssertionError):
    """Some cases of a self-check don't pass; the message begins with the first one's hint."""

    def _render_traceback_(self) -> list[str]:
        """Return what Jupyter shows instead of a traceback, in lines that Validate doesn't cut."""
        return textwrap.wrap(str(self), _WIDTH)


@dataclass(frozen=True)
class _Failure:
    """Why a case doesn't pass."""

    #: What the case tells students about their mistake.
    hint: str
    #: What came back, or the exception.
    said: str
    #: The function that isn't written yet; empty if all are.
    missing: str = ""
    #: Whether a known mistake gives this result; the hint names it.
    known: bool = False
    #: Whether ranks waited forever: they would in the next case too, for seconds.
    stuck: bool = False
    #: The exception, and the line that raised it or a rank's function; empty if a value came back.
    error: str = ""


def beside_bound(peak_bytes: int, bound_bytes: int) -> str:
    """Return how a peak compares with the bound of an exercise.

    >>> beside_bound(5 * 2**20, 6 * 2**20), beside_bound(7 * 2**20, 6 * 2**20)
    ('within the 6.0 MiB allowed', '7.0 MiB, above the 6.0 MiB allowed')
    """
    allowed = f"the {bound_bytes / 2**20:.1f} MiB allowed"
    is_within = peak_bytes <= bound_bytes
    return f"within {allowed}" if is_within else f"{peak_bytes / 2**20:.1f} MiB, above {allowed}"


def self_check(
    function: Callable[..., Any],
    cases: Sequence[Case],
    *,
    equal: Callable[[Any, Any], bool] = same,
) -> None:
    """Print for each case whether `function` passes it, with a hint where it doesn't.

    After the first failure a hint is only a possibility, unless the result is one of the
    case's `wrong` ones.

    `equal(expected, got)` compares two values, as in the exercise's judge: `same`, `whole()` for
    exercises that need whole numbers, `close(...)`. A function that isn't written yet is called
    once.

    >>> self_check(abs, [Case((-2,), 2), Case((3,), 3)])
    ✔ abs(-2) → 2
    ✔ abs(3) → 3

    Raises SelfCheckFailed after the last case if any has failed.
    """
    failures: list[tuple[str, _Failure]] = []
    unwritten: set[object] = set()  # functions, and the missing names they ran into
    for case in cases:
        target = case.function or function
        call = case.label or _written(target, case)
        skipped = target in unwritten or any(one.stuck for _, one in failures)
        failure = None if skipped else _failure(target, case, equal)
        if skipped or (failure is not None and failure.missing in unwritten):
            print(f"· {call}: not reached", flush=True)
            continue
        if failure is None:
            print(f"✔ {call}{_outcome(case)}", flush=True)
            continue
        # A mistake that one case has shown may well fail the next ones, whatever those are about.
        unsure = bool(failures) and bool(failure.hint) and not failure.known
        hint = f"Perhaps the same cause. If not: {failure.hint}" if unsure else failure.hint
        again = any(failure.error and one.error == failure.error for _, one in failures)
        failures.append((call, failure))
        if failure.missing:
            unwritten |= {target, failure.missing}
        if again:
            print(f"✘ {call}: the same error", flush=True)
            continue
        print("\n    ".join(part for part in (f"✘ {call}", hint, failure.said) if part))
    if failures:
        raise SelfCheckFailed(_summary(failures, len(cases))) from None


def _failure(
    target: Callable[..., Any], case: Case, equal: Callable[[Any, Any], bool]
) -> _Failure | None:
    """What is wrong with the function's answer to a case, or None."""
    before = [_bytes(argument) for argument in case.args]
    try:
        got = as_sent(target(*case.args, **case.kwargs))
    except RanksTimeout as error:
        return _Failure(case.hint, f"{str(error)[:1].upper()}{str(error)[1:]}", stuck=True)
    except Exception as error:  # a student's code may raise anything
        return _of_exception(error, target, case)
    for number, (argument, there) in enumerate(zip(case.args, before, strict=True), 1):
        if there is not None and _bytes(argument) != there:
            return _Failure("", f"Your function changed its argument number {number} in place.")
    if case.raises is not None:
        return _Failure(case.hint, f"Expected a {case.raises.__name__}, but got {show(got)}.")
    expected = as_sent(case.expected)
    return None if equal(expected, got) else _of_value(expected, got, case, equal)


def _of_exception(error: Exception, target: Callable[..., Any], case: Case) -> _Failure | None:
    """What is wrong with an exception of the function, or of its result's encoding."""
    if is_unwritten(error):
        missing = _raised_in(error, target)
        return _Failure("", f"{missing} is not written yet.", missing)
    if case.raises is not None and raised_type(error) == case.raises.__name__:
        return None
    raised = _raised(error)
    expected = case.raises.__name__ if case.raises else show(as_sent(case.expected))
    said = f"Expected {expected}, but your function raised {raised}"
    if "'NoneType'" in str(error):  # as in whatever takes the result of a missing return
        said += f". {_NO_RETURN}"
    if isinstance(error, serialization.PlainError):  # by `as_sent`: the function has returned
        said = f"Expected {expected}, but your result can't be graded: {error}."
    if isinstance(error, RankError) and error.function:  # ranks that differ raise it in turn
        return _Failure(case.hint, said, error=f"{error.kind} in {error.function}")
    return _Failure(case.hint, said, error=raised)


def _of_value(expected: Any, got: Any, case: Case, equal: Callable[[Any, Any], bool]) -> _Failure:
    """What is wrong with a value that differs from the expected one."""
    wrong = case.wrong.items()
    known = next((text for value, text in wrong if same(value, got) or equal(value, got)), "")
    asked, answered = differing(expected, got, equal)
    if isinstance(asked, dict) and not asked:
        known = "Return the keys that are asked for, and no others."
    said = f"Expected {show(asked)}, but got {show(answered)}."
    if got is None and case.function is None:  # what Python returns without a return
        said += f" {_NO_RETURN}"
    if asked is not expected and len(asked) < len(expected):
        said += " The other keys are right."
    return _Failure(known or case.hint, said, known=bool(known))


def _bytes(argument: Any) -> bytes | None:
    """A plain argument's value, to tell later whether it was changed; None for all others.

    Tensors are plain, those that autograd follows excepted.
    """
    try:
        return serialization.encode(as_sent(argument))
    except (serialization.PlainError, RuntimeError, TypeError):
        return None


def _raised_in(error: BaseException, target: Callable[..., Any]) -> str:
    """The function that isn't written, perhaps another exercise's."""
    if isinstance(error.__cause__, RankError):
        return error.__cause__.function or _name(target)
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name = trace.tb_frame.f_code.co_name if trace is not None else ""
    return name if name.isidentifier() else _name(target)


def _raised(error: Exception) -> str:
    kind, message, lines = describe(error)
    told = isinstance(error, RankError)  # its message has the lines of the rank itself
    where = lines.splitlines()[-1].strip() if lines and not told else ""
    raised = f"{kind}: {message}".rstrip(": ")
    return f"{raised} ({where})" if where else raised


def _written(target: Callable[..., Any], case: Case) -> str:
    arguments = [show(argument, 40) for argument in case.args]
    arguments += [f"{name}={show(value, 40)}" for name, value in case.kwargs.items()]
    return f"{_name(target)}({', '.join(arguments)})"


def _name(target: Callable[..., Any]) -> str:
    return getattr(target, "__name__", type(target).__name__)


def _outcome(case: Case) -> str:
    if case.label:
        return ""
    return f" raises {case.raises.__name__}" if case.raises else f" → {show(case.expected, 60)}"


def _summary(failures: Sequence[tuple[str, _Failure]], n_cases: int) -> str:
    """The first failure in a sentence or two, hint first."""
    call, first = failures[0]
    verb = "fails" if len(failures) == 1 else "fail"
    hint = f"{first.hint}." if first.hint and first.hint[-1] not in ".?!" else first.hint
    parts = [hint, first.said if first.missing else f"{call}: {first.said}"]
    if n_cases > 1 and not first.missing:
        parts.append(f"{len(failures)} of {n_cases} cases {verb}.")
    return " ".join(part for part in parts if part)
