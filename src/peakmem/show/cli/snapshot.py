"""`peakmem snapshot`: attributes the peak of a snapshot that torch recorded on a GPU."""

from __future__ import annotations

from typing import Annotated

import typer

from peakmem.show.cli.terminal import tell

__all__ = ["snapshot"]

File = Annotated[str, typer.Argument(help="A file that torch.cuda.memory._dump_snapshot wrote.")]
Device = Annotated[int, typer.Option(help="Index of the GPU, if there are several.", metavar="N")]
Plot = Annotated[
    str | None,
    typer.Option(help="Plot memory over time to a .png, .svg or .pdf file.", metavar="FILE"),
]


def snapshot(file: File, device: Device = 0, plot: Plot = None) -> int:
    """Show which owners hold the peak of a recorded snapshot."""
    from peakmem.show.snapshot_report import snapshot_report  # here, so that help is quick

    try:
        tell(*snapshot_report(file, device=device, plot=plot))
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}; check the path") from None
    return 0
