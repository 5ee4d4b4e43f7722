"""The points and comments an instructor gave one submission in Formgrader."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

__all__ = ["NOTHING", "Given"]


@dataclass(frozen=True)
class Given:
    """Points by grade cell, extra credit in them, and comments by the cell they were written at."""

    points: Mapping[str, float] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """What tells a page that shows this from one that does not; empty for nothing."""
        if not (self.points or self.comments):
            return ""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


NOTHING = Given()
