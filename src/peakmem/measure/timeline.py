"""A meter's compact log: events, the bytes live after each, and the part of the step it is in."""

from __future__ import annotations

from array import array

__all__ = ["Timeline"]


class Timeline:
    """Events in order, each with the bytes live right after it.

    It grows by only 17 bytes with every operator, so that it doesn't disturb the measurement.

    >>> timeline = Timeline()
    >>> timeline.add("start", 0, 0)
    >>> timeline.add("mul", 1024, 0)
    >>> timeline.events
    [('start', 0), ('mul', 1024)]
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}  # name -> number, in the order of first appearance
        self._names = array("L")
        self._levels = array("q")
        self._parts = bytearray()

    def __len__(self) -> int:
        return len(self._names)

    def add(self, name: str, live_bytes: int, part: int) -> None:
        """Append an event; `part` is a number below 256."""
        self._names.append(self._numbers.setdefault(name, len(self._numbers)))
        self._levels.append(live_bytes)
        self._parts.append(part)

    @property
    def names(self) -> list[str]:
        """The events' names."""
        known = list(self._numbers)
        return [known[number] for number in self._names]

    @property
    def events(self) -> list[tuple[str, int]]:
        """Each event's name with the bytes live right after it."""
        return list(zip(self.names, self._levels, strict=True))

    @property
    def parts(self) -> bytes:
        """The events' parts, one byte each."""
        return bytes(self._parts)
