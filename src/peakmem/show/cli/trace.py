"""`peakmem trace`: attributes the peak of your own script, run on tensors without memory."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["trace"]

Script = Annotated[str, typer.Argument(help="A Python file that creates a model and trains it.")]
Given = Annotated[list[str] | None, typer.Argument(help="Arguments for the script.")]
Profile = Annotated[str, typer.Option(help="Whose memory to predict: torch-cuda or torch-cpu.")]
Plot = Annotated[
    str | None,
    typer.Option(
        help="Plot memory by owner over time to a .png, .svg or .pdf file.", metavar="FILE"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON, in bytes.")]


def trace(
    script: Script,
    arguments: Given = None,
    profile: Profile = "torch-cuda",
    plot: Plot = None,
    json: Json = False,
) -> int:
    """Run a script on tensors without memory, and show which owners hold the peak."""
    from peakmem.show.trace_report import print_trace  # here, so that help is quick

    return print_trace(script, arguments or [], profile, plot, as_json=json)
