"""All planners by name: a chain and a budget in, a plan out; `peakmem.simulate` judges it.

Recomputing: `keep_all`, `every_k`, `best_every_k`, `kept_set_optimal` (module `kept`).
"""

from __future__ import annotations

from peakmem.kept import best_every_k, best_kept_set, every_k, keep_all, kept_set, kept_set_optimal
from peakmem.rotor import optimal

__all__ = [
    "best_every_k",
    "best_kept_set",
    "every_k",
    "keep_all",
    "kept_set",
    "kept_set_optimal",
    "optimal",
]
