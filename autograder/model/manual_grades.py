"""The points and comments that an instructor gave one submission in Formgrader."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

__all__ = ["NO_MANUAL_GRADES", "ManualGrades"]


@dataclass(frozen=True)
class ManualGrades:
    """Manual points and comments."""

    #: Points by grade cell, extra credit included.
    points: Mapping[str, float] = field(default_factory=dict)
    #: Comments by the cell they were written at.
    comments: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """A digest of these grades, to tell whether a page shows them; empty for no grades."""
        if not (self.points or self.comments):
            return ""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


NO_MANUAL_GRADES = ManualGrades()
