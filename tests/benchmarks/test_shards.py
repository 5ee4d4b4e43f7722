"""ZeRO's stages on real processes, by lab 8's solution."""

from __future__ import annotations

import pytest
import torch

from benchmarks.shards import measured_stages, measured_traffic
from benchmarks.solutions import solved


def test_each_stage_holds_and_sends_what_the_formulas_say() -> None:
    names = solved("lab08_shards")
    for row in measured_stages(names):
        assert row["metered_mib"] == pytest.approx(row["predicted_mib"], rel=0.01), row
    for row in measured_traffic(names):
        assert row["metered_times"] == pytest.approx(row["predicted_times"], rel=0.01), row


def test_a_stage_that_shares_nothing_shows() -> None:
    names = dict(solved("lab08_shards"))
    names["ShardedAdam"] = torch.optim.Adam
    stage1 = next(row for row in measured_stages(names) if row["stage"] == 1)
    assert stage1["metered_mib"] > 1.3 * stage1["predicted_mib"]
