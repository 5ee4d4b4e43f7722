"""All planners by name: a chain and a budget in, a plan out; `peakmem.simulate` judges it.

Recomputing: `keep_all`, `every_k`, `best_every_k`, `kept_set`, `kept_set_optimal` (module `kept`);
`optimal` (module `rotor`). Swapping, alone or as well: `with_offload`, `joint` (module `offload`).
"""

from __future__ import annotations

from peakmem.kept import best_every_k, best_kept_set, every_k, keep_all, kept_set, kept_set_optimal
from peakmem.offload import joint, with_offload
from peakmem.rotor import optimal

__all__ = [
    "best_every_k",
    "best_kept_set",
    "every_k",
    "joint",
    "keep_all",
    "kept_set",
    "kept_set_optimal",
    "optimal",
    "with_offload",
]
