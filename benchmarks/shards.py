"""ZeRO's stages on real processes: what each rank holds and sends, compared with the formulas.

Run as `python -m benchmarks.shards`. Models, optimizers and the ring come from lab 8's solution. A
meter in each rank counts the bytes it holds, and Linux counts the bytes it writes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.solutions import solved
from peakmem.labs.lab08 import held_mib, sent_times

__all__ = ["main", "measured_stages", "measured_traffic"]

_PARAMETERS = 8 * 256 * 256  # of the model of `held_mib`
_WORLDS = (2, 4)
_STAGE = "{ranks} ranks, stage {stage}: {predicted_mib:.3f} MiB predicted, {metered_mib:.3f} held"
_TRAFFIC = "{ranks} ranks: {predicted_times:.3f} times x predicted, {metered_times:.3f} metered"


def measured_stages(names: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each number of ranks and stage: MiB per rank, predicted and metered."""
    ways, predicted = _stages(names), names["model_state_bytes"]
    return [
        {
            "ranks": world,
            "stage": stage,
            "predicted_mib": sum(predicted(_PARAMETERS, world, stage, "fp32").values()) / 2**20,
            "metered_mib": held_mib(prepare, world),
        }
        for world in _WORLDS
        for stage, prepare in ways.items()
    ]


def _stages(names: Mapping[str, Any]) -> dict[int, Any]:
    from torch import nn
    from torch.optim import Adam

    from peakmem.labs.lab08 import OwnersAdam

    def replicas(layers: list[Any]) -> Any:
        model = nn.Sequential(*layers)
        return names["DataParallel"](model), Adam(model.parameters())

    def optimizer_shared(layers: list[Any]) -> Any:
        model = nn.Sequential(*layers)
        return names["DataParallel"](model), names["ShardedAdam"](model.parameters())

    def gradients_shared(layers: list[Any]) -> Any:
        model = nn.Sequential(*layers)
        names["shard_gradients"](model)
        return model, OwnersAdam(model.parameters())

    def all_shared(layers: list[Any]) -> Any:
        model = names["ShardedLayers"](layers)
        layers.clear()
        return model, Adam(model.parameters())

    return {0: replicas, 1: optimizer_shared, 2: gradients_shared, 3: all_shared}


def measured_traffic(names: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each number of ranks: how many times x a rank sends in an all-reduce."""
    sent = sent_times(names["ring_all_reduce"], _WORLDS)
    return [
        {"ranks": world, "predicted_times": 2 * (world - 1) / world, "metered_times": times}
        for world, times in sent.items()
    ]


def main() -> int:
    """Print both tables; return 1 if a metered figure is off by more than 1 %."""
    parser = argparse.ArgumentParser(prog="shards", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    names = solved("lab08_shards")
    stages, traffic = measured_stages(names), measured_traffic(names)
    for row in stages:
        print(_STAGE.format(**row))
    for row in traffic:
        print(_TRAFFIC.format(**row))
    if options.json:
        options.json.write_text(json.dumps({"stages": stages, "traffic": traffic}, indent=1) + "\n")
    pairs = [(row["predicted_mib"], row["metered_mib"]) for row in stages]
    pairs += [(row["predicted_times"], row["metered_times"]) for row in traffic]
    return int(any(abs(metered / predicted - 1) > 0.01 for predicted, metered in pairs))


if __name__ == "__main__":
    raise SystemExit(main())
