"""Estimates: the verdict at the edge of a budget, and what JSON says."""

from dataclasses import replace

import pytest

from peakmem.predict.estimate import Estimate, estimate
from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.hardware import Accelerator, Memory, accelerator, unnamed
from peakmem.specs.models import model
from peakmem.specs.recipes import Parallelism, Recipe

STEP = Recipe(precision="amp_bf16", batch=4, sequence=512)


def with_memory(memory_bytes: int) -> Accelerator:
    return replace(accelerator("a100-40gb"), memory=Memory(memory_bytes, "this test"))


def on(memory_bytes: int, recipe: Recipe = STEP) -> Estimate:
    return estimate(model("gpt2"), recipe, with_memory(memory_bytes))


def test_it_fits_at_its_peak_and_not_a_byte_below() -> None:
    peak = on(1).peak_bytes
    assert peak == build_ledger(model("gpt2"), STEP).peak_bytes
    assert on(peak).fits
    assert on(peak).verdict == "fits"
    assert on(peak).margin_bytes == 0
    assert not on(peak - 1).fits
    assert on(peak - 1).margin_bytes == -1


def test_the_two_verdicts_part_where_one_sequence_fits() -> None:
    alone = on(1, replace(STEP, micro_batches=4)).peak_bytes
    assert on(alone).verdict == "reduce activations"
    assert on(alone - 1).verdict == "no batch size can fix this"


def test_one_sequence_that_does_not_fit_has_no_batch_to_blame() -> None:
    one = replace(STEP, batch=1)
    peak = on(1, one).peak_bytes
    assert on(peak - 1, one).verdict == "no batch size can fix this"


def test_states_are_what_is_no_activation() -> None:
    found = on(10**12)
    others = {"activation", "logits", "temporary", "communication"}
    by_owner = found.ledger.by_owner()
    assert found.state_bytes == sum(n for owner, n in by_owner.items() if owner not in others)


def test_json_has_the_figures() -> None:
    found = estimate(model("gpt2"), STEP, accelerator("a100-40gb"), Parallelism(data=4, zero=1))
    figures = found.as_json()
    assert figures["parameters"] == 124_439_808
    assert figures["devices"] == 4
    assert sum(figures["by_owner"].values()) == figures["peak_bytes"] == found.peak_bytes
    assert figures["fits"] is True
    assert figures["margin_bytes"] == int(39.5 * 2**30) - found.peak_bytes
    assert "CoSeR" in figures["memory_source"]
    assert figures["peak_phase"] in ("forward", "backward", "optimizer")


def test_what_cannot_be_predicted_is_refused() -> None:
    with pytest.raises(ValueError, match="positions for 1024 tokens"):
        estimate(model("gpt2"), Recipe(sequence=2000), accelerator("a100-40gb"))


def test_a_device_of_memory_alone_has_no_name() -> None:
    figures = estimate(model("gpt2"), STEP, unnamed(10**10, "this test")).as_json()
    assert figures["gpu"] is None
    assert (figures["memory_bytes"], figures["memory_source"]) == (10**10, "this test")


def test_a_device_that_shares_the_hosts_memory_offloads_nothing() -> None:
    mac = accelerator("m2-24gb")
    assert estimate(model("gpt2"), STEP, mac).fits
    with pytest.raises(ValueError, match="frees nothing on m2-24gb"):
        estimate(model("gpt2"), replace(STEP, offload=True), mac)
