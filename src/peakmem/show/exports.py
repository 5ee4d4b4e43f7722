"""Output of `peakmem estimate --export`: a configuration file for a recipe, or for its remedy."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from peakmem.predict.deepspeed import deepspeed_config
from peakmem.predict.estimate import Estimate
from peakmem.predict.fsdp import accelerate_config, fsdp_config
from peakmem.predict.suggestions import suggest
from peakmem.show.cli.terminal import tell
from peakmem.specs.models import ModelShape
from peakmem.specs.recipes import Parallelism, Recipe

__all__ = ["EXPORTS", "print_export"]

#: Name of the file's kind -> the function that makes it.
EXPORTS: Mapping[str, Callable[[ModelShape, Recipe, Parallelism], dict[str, Any]]] = (
    MappingProxyType(
        {"accelerate": accelerate_config, "deepspeed": deepspeed_config, "fsdp": fsdp_config}
    )
)
# The settings that each file decides; others belong to the script that reads it.
_REPLICAS = frozenset({"data", "zero", "offload", "checkpointing"})
_SAYS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "accelerate": _REPLICAS | {"precision"},
        "deepspeed": _REPLICAS | {"precision", "micro_batches", "optimizer", "implementation"},
        "fsdp": _REPLICAS,
    }
)


def print_export(kind: str, found: Estimate, *, judged: bool) -> int:
    """Print the file for an estimate, and return 0.

    If the step is `judged` and doesn't fit, the file is for the cheapest remedy that it has
    settings for, and stderr names the remedy.

    Raises ValueError if the kind is unknown or the file has no setting for the recipe.
    """
    if kind not in EXPORTS:
        raise ValueError(f"--export {kind!r} is unknown; use {', '.join(EXPORTS)}")
    config = _remedys_file(kind, found) if judged and not found.fits else None
    if config is None:
        config = EXPORTS[kind](found.model, found.recipe, found.parallelism)
    print(json.dumps(config, indent=2))
    return 0


def _remedys_file(kind: str, found: Estimate) -> dict[str, Any] | None:
    """Return the file of the cheapest remedy it has settings for; name the remedy on stderr."""
    for remedy in suggest(found):
        if remedy.changed <= _SAYS[kind]:
            try:
                made = remedy.estimate
                config = EXPORTS[kind](found.model, made.recipe, made.parallelism)
            except ValueError:  # the file has no setting for a value of the remedy
                continue
            changes = "; ".join(remedy.changes)
            tell(f"The step doesn't fit; the file is for this remedy: {changes}.", to=sys.stderr)
            return config
    tell(
        "The step doesn't fit, and the file can express none of the cheapest remedies; it is for "
        "the step as given.",
        to=sys.stderr,
    )
    return None
