"""Groups of command-line options, declared once as the fields of a dataclass.

    @dataclass(frozen=True)
    class Output:
        quiet: Annotated[bool, typer.Option("--quiet", "-q")] = False

    @app.command()
    @flat
    def estimate(output: Output) -> int: ...

Typer expects each option as a parameter of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, get_type_hints

__all__ = ["flat", "options_of", "taking"]

Result = TypeVar("Result")


def flat(function: Callable[..., Result], *own: str) -> Callable[..., Result]:
    """Return the function with one parameter for each field of its dataclasses, in order.

    It takes all parameters by keyword. Parameters named in `own` stay as they are and don't become
    options. Field names must be unique.
    """
    kinds = get_type_hints(function, include_extras=True)
    groups: dict[str, type] = {}
    parameters: list[Parameter] = []
    for name, parameter in signature(function).parameters.items():
        if name in own:
            continue
        if is_dataclass(kinds[name]):
            groups[name] = kinds[name]
            parameters += options_of(kinds[name])
        else:
            kind = Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(annotation=kinds[name], kind=kind))

    @wraps(function)
    def call(**given: Any) -> Result:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        return function(**given)

    return taking(call, parameters)


def options_of(group: type) -> Iterator[Parameter]:
    """Yield a parameter for each field of a dataclass."""
    kinds = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = Parameter.empty if field.default is MISSING else field.default
        kind = Parameter.KEYWORD_ONLY
        yield Parameter(field.name, kind, default=default, annotation=kinds[field.name])


def taking(function: Callable[..., Result], parameters: list[Parameter]) -> Callable[..., Result]:
    """Return the function with this signature, which Typer reads."""
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return function
