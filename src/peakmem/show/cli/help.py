"""The text of `--help`: fits a terminal of 80 by 24, with the last groups of options folded.

Typer's own help draws a box around each group, so the help of most commands didn't fit.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from typer.core import TyperArgument, TyperOption

from peakmem.show.cli.terminal import TITLE, painted

__all__ = ["ALL", "COLUMNS", "LINES", "Group", "help_of", "page"]

#: The option that shows every group unfolded.
ALL = "--help-all"
COLUMNS = 80
#: Lines of help: a terminal of 24 lines keeps one for the prompt or for an error.
LINES = 23

_NEVER_LISTED = ("--help", ALL)  # the page itself is what they show
_NAMES_MOST = 26  # columns of names; a longer name has its text on the next line
_KINDS = {str: "NAME", int: "N", float: "X"}  # values of options that declare no metavar


@dataclass(frozen=True)
class Group:
    """Commands or options under one title."""

    #: Empty for the arguments that every call needs; they come first and are never folded.
    title: str
    #: The name of each, with its value, and what it does.
    rows: tuple[tuple[str, str], ...]

    def unfolded(self, width: int) -> list[str]:
        """The title, and each row in one line or more; names take `width` columns."""
        lines = [painted(f"{self.title}:", TITLE)] if self.title else []
        for name, about in self.rows:
            margin = " " * (width + 4)
            told = textwrap.wrap(about, COLUMNS - len(margin), break_on_hyphens=False) or [""]
            first = f"  {name:<{width}}  "
            if len(first) > len(margin):
                lines.append(first.rstrip())
                first = margin
            lines += [f"{first}{told[0]}".rstrip(), *(margin + line for line in told[1:])]
        return lines

    def folded(self) -> list[str]:
        """The title and the bare names, in one line if they fit."""
        names = ", ".join(_bare(name) for name, _ in self.rows)
        title = f"{self.title}: "
        first, *rest = textwrap.wrap(
            title + names, COLUMNS, subsequent_indent="  ", break_on_hyphens=False
        )
        return [painted(title, TITLE) + first.removeprefix(title), *rest]


def page(head: Sequence[str], groups: Sequence[Group], end: Sequence[str], note: str) -> str:
    """Return the help, in at most `LINES` lines if its groups folded are short enough.

    Groups are unfolded in order, each if it still fits. `note`, the line before `end`, says
    how to unfold the others; if it is empty, all are unfolded.
    """
    is_open = [True] * len(groups)
    if note and _height(head, groups, is_open, end) > LINES:
        end = [note, *end]
        is_open = [not group.title for group in groups]
        for at in range(len(groups)):
            one_more = [*is_open[:at], True, *is_open[at + 1 :]]
            if _height(head, groups, one_more, end) <= LINES:
                is_open = one_more
    return "\n".join(_lines(head, groups, is_open, end))


def _height(*parts: Any) -> int:
    return len(_lines(*parts))


def _lines(
    head: Sequence[str], groups: Sequence[Group], is_open: Sequence[bool], end: Sequence[str]
) -> list[str]:
    shown = list(zip(groups, is_open, strict=True))
    names = [len(name) for group, unfolded in shown if unfolded for name, _ in group.rows]
    width = max((length for length in names if length <= _NAMES_MOST), default=0)
    lines = [*head, ""]
    for group, unfolded in shown:
        lines += group.unfolded(width) if unfolded else group.folded()
    return [*lines, *([""] if end else []), *end]


def help_of(command: Any, context: Any, *, whole: bool) -> str:
    """Return the help of one of Typer's commands, or of a program with commands.

    `whole` unfolds all groups.
    """
    parameters = [p for p in command.get_params(context) if _is_listed(p, whole=whole)]
    needed = [p for p in parameters if p.required or isinstance(p, TyperArgument)]
    options = [p for p in parameters if p not in needed]
    commands = [one for one in getattr(command, "commands", {}).values() if not one.hidden]
    groups = [Group("", tuple(map(_row, needed)))] if needed else []
    groups += _grouped((one.rich_help_panel, (one.name, _first_line(one))) for one in commands)
    groups += _grouped((p.rich_help_panel or "Options", _row(p)) for p in options)
    path = context.command_path
    note = f"`{path} {ALL}` describes every option."
    if commands:
        note = f"`{path} COMMAND --help` describes one command, `{path} {ALL}` all."
    usage = f"Usage: {path} {_call_of(context, needed, options, commands)}".rstrip()
    about = " ".join((command.help or "").split())
    end = textwrap.wrap(command.epilog or "", COLUMNS, break_on_hyphens=False)
    head = textwrap.wrap(usage, COLUMNS, subsequent_indent=" " * 7, break_on_hyphens=False)
    return page([*head, "", *textwrap.wrap(about, COLUMNS)], groups, end, "" if whole else note)


def _call_of(
    context: Any, needed: Sequence[Any], options: Sequence[Any], commands: Sequence[Any]
) -> str:
    """What comes after the command's name."""
    if commands:
        return "COMMAND ..."
    words = [_call(p) for p in needed]
    some = ["[OPTION]..."] if options else []
    # Options come first where everything after the first argument is passed on.
    return " ".join([*words, *some] if context.allow_interspersed_args else [*some, *words])


def _bare(name: str) -> str:
    """`--batch` of `-b, --batch N`."""
    return next((word for word in name.split() if word.startswith("--")), name)


def _is_listed(parameter: Any, *, whole: bool) -> bool:
    if parameter.hidden or set(parameter.opts) & set(_NEVER_LISTED):
        return False
    return whole or "--show-completion" not in parameter.opts


def _grouped(rows: Iterable[tuple[str, tuple[str, str]]]) -> Iterator[Group]:
    groups: dict[str, list[tuple[str, str]]] = {}
    for title, row in rows:
        groups.setdefault(title, []).append(row)
    for title, of_title in groups.items():
        yield Group(title, tuple(of_title))


def _first_line(command: Any) -> str:
    return (command.help or "").strip().partition("\n\n")[0]


def _row(parameter: Any) -> tuple[str, str]:
    about = parameter.help or ""
    if (default := _default(parameter)) and not parameter.required:
        about = f"{about} [default: {default}]"
    if not isinstance(parameter, TyperOption):
        return _call(parameter), about
    names = ", ".join(sorted(parameter.opts, key=len))
    value = _value(parameter)
    return f"{names} {value}".rstrip(), about


def _call(parameter: Any) -> str:
    """The parameter as the usage line shows it: `LAB`, `[LAB]...`, `--out OUT`."""
    if isinstance(parameter, TyperOption):
        return f"{max(parameter.opts, key=len)} {_value(parameter)}"
    name = parameter.metavar or parameter.name.upper()
    if parameter.metavar is None and not parameter.required:
        name = f"[{name}]"
    many = parameter.nargs != 1 and not name.endswith("...")
    return f"{name}..." if many else name


def _value(option: TyperOption) -> str:
    if option.is_flag:
        return ""
    return option.metavar or _KINDS.get(option.type_descriptor.annotation, "VALUE")


def _default(parameter: Any) -> str:
    """The default as help shows it; empty if there is none."""
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    value = parameter.default
    if value is None or isinstance(value, bool):
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
