"""`peakmem snapshot`: the owners of the peak in a snapshot that torch recorded on a GPU."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["snapshot"]

File = Annotated[str, typer.Argument(help="As torch.cuda.memory._dump_snapshot writes it.")]
Device = Annotated[int, typer.Option(help="Of several GPUs.", metavar="N")]
Plot = Annotated[
    str | None,
    typer.Option(help="Draw memory over time, as .png, .svg or .pdf.", metavar="FILE"),
]


def snapshot(file: File, device: Device = 0, plot: Plot = None) -> int:
    """Say who holds the peak of a recorded snapshot."""
    from peakmem.show.snapshot_report import snapshot_report  # late, so that help is quick

    try:
        print("\n".join(snapshot_report(file, device=device, plot=plot)))
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}; give a file that is there") from None
    return 0
