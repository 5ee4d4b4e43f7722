"""Picture files of an estimate or a trace: the peak's owners, and live memory over the step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmem.core.units import GB, MB
from peakmem.specs.ledger import Ledger

__all__ = ["require_picture", "save_ledger", "save_owners"]

_ENDINGS = (".pdf", ".png", ".svg")
_LIMIT = "memory"


def require_picture(path: str) -> None:
    """Raise ValueError if the path has another ending than a picture's."""
    if Path(path).suffix not in _ENDINGS:
        raise ValueError(
            f"--plot {path!r} isn't a picture; expected a name in {', '.join(_ENDINGS)}"
        )


def save_owners(
    path: str, name: str, by_owner: Mapping[Any, int], memory_bytes: int | None = None
) -> None:
    """Draw bytes by owner as one bar, with the device's memory as a line.

    Raises ValueError if the path has another ending than a picture's, or can't be written.
    """
    figure = _figure(path, rows=1)
    _bar(figure.axes[0], name, by_owner, memory_bytes)
    _save(figure, path)


def save_ledger(path: str, name: str, ledger: Ledger, memory_bytes: int | None = None) -> None:
    """Draw the peak by owner, and below it live memory at each operator, by owner.

    Raises ValueError if the path has another ending than a picture's, or can't be written.
    """
    from peakmem.show.plots.memory import live_by_owner  # late, because it loads matplotlib

    figure = _figure(path, rows=2)
    _bar(figure.axes[0], name, ledger.by_owner(), memory_bytes)
    live_by_owner(figure.axes[1], ledger, x_label="operators run so far")
    _save(figure, path)


def _bar(ax: Any, name: str, by_owner: Mapping[Any, int], memory_bytes: int | None) -> None:
    from peakmem.show.plots import stacked_bars

    most = max(sum(by_owner.values()), memory_bytes or 0)
    unit, scale = ("GB", GB) if most >= GB else ("MB", MB)
    limit = None if memory_bytes is None else memory_bytes / scale
    parts = {owner.replace("_", " "): n_bytes / scale for owner, n_bytes in by_owner.items()}
    stacked_bars(ax, {name: parts}, label=f"{unit} at the peak", limit=limit, limit_name=_LIMIT)


def _figure(path: str, rows: int) -> Any:
    require_picture(path)
    from matplotlib.figure import Figure  # late, because matplotlib is slow to load

    figure = Figure(figsize=(9, 2.8 * rows), layout="constrained")
    figure.subplots(rows)
    return figure


def _save(figure: Any, path: str) -> None:
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise ValueError(
            f"--plot {path!r} can't be written ({error.strerror}); give a folder that exists"
        ) from None
