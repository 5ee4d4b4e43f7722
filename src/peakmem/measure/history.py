"""A meter's history, for its timeline and its ledger: every event, and every storage's owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from peakmem.measure.attribution import Owners, StepPart, ledger_of
from peakmem.measure.storages import Row, Storages
from peakmem.measure.timeline import Timeline
from peakmem.specs.ledger import Ledger

__all__ = ["History"]


class History:
    """Events with the bytes live after each, and the owner of every storage.

    It grows with every operator: an event takes 17 bytes, and the row of a freed storage about 250.
    """

    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self._owners = Owners(storages)
        self._timeline = Timeline()
        self._unseen: list[Row] = []  # memory of CUDA's allocator that isn't in known tensors

    def __len__(self) -> int:
        return len(self._timeline)

    @property
    def events(self) -> list[tuple[str, int]]:
        """Each event's name with the bytes live right after it."""
        return self._timeline.events

    def start(self) -> None:
        """Watch modules and optimizers, which reveal owners of tensors, until `stop`."""
        self._owners.start()

    def stop(self) -> None:
        self._owners.stop()

    def claim(self, things: Any) -> None:
        """Record the tensors of modules and optimizers among the things given to the meter."""
        self._owners.claim(things)

    def took(self, arguments: Sequence[torch.Tensor]) -> None:
        """Record an operator's arguments, before its result is counted."""
        if self._owners.part() == StepPart.FORWARD:
            self._owners.took(arguments)

    def ran(self, operator: str, arguments: Sequence[torch.Tensor], result: Any) -> None:
        """Record what an operator reveals about its tensors, once its result is counted."""
        self._owners.ran(operator, arguments, result)

    def add(self, event: str, live_bytes: int, part: StepPart | None = None) -> None:
        """Append an event; `part` defaults to the part of the step that runs now."""
        self._timeline.add(event, live_bytes, self._owners.part() if part is None else part)
        self._storages.event = len(self._timeline)

    def add_unseen(self, maker: str, total_bytes: int, *, lasts: bool) -> None:
        """Record memory of CUDA's allocator that isn't in known tensors, at the last event.

        `total_bytes` is all memory that the allocator has handed out. If `lasts`, the record stays
        until the next one that lasts.
        """
        event = len(self._timeline) - 1
        lasting = next((row for row in self._unseen if row.death is None), None)
        if lasting is not None and lasts:
            lasting.death, lasting = event - 1, None
        seen_bytes = self._storages.read()[0] + (lasting.bytes if lasting else 0)
        unseen_bytes = max(total_bytes - seen_bytes, 0)
        death = None if lasts else event
        row = Row(f"workspace of {maker}", (), torch.uint8, unseen_bytes, event, death)
        row.owner = "temporary"
        self._unseen.append(row)

    def ledger(self, start: int) -> Ledger:
        """Return the ledger from event `start` on. Raises ValueError if there is no such event."""
        names = self._timeline.names
        if not 0 <= start < len(names):
            raise ValueError(f"expected an event from 0 to {len(names) - 1}, but got {start}")
        rows = [*self._storages.rows, *self._unseen]
        return ledger_of(rows, names, self._timeline.parts, start)
