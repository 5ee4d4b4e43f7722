"""`peakmem trace`: the owners of the peak of your own script, which runs without its memory."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["trace"]

Script = Annotated[str, typer.Argument(help="A Python file that makes its model and trains it.")]
Given = Annotated[list[str] | None, typer.Argument(help="What the script is given.")]
Profile = Annotated[str, typer.Option(help="torch-cuda or torch-cpu.")]
Plot = Annotated[
    str | None,
    typer.Option(help="Draw who holds memory when, as .png, .svg or .pdf.", metavar="FILE"),
]
Json = Annotated[bool, typer.Option("--json", help="Print figures for programs, in bytes.")]


def trace(
    script: Script,
    arguments: Given = None,
    profile: Profile = "torch-cuda",
    plot: Plot = None,
    json: Json = False,
) -> int:
    """Run a script without its memory, and say who holds the peak."""
    from peakmem.show.trace_report import print_trace  # late, so that help is quick

    return print_trace(script, arguments or [], profile, plot, as_json=json)
