"""Estimates: the verdict at the edge of a budget, and what JSON says."""

from collections import Counter
from dataclasses import replace

import pytest

from peakmem.predict.caching_allocator import replay
from peakmem.predict.estimate import Estimate, estimate
from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.hardware import Accelerator, Memory, accelerator, unnamed
from peakmem.specs.models import model
from peakmem.specs.recipes import Parallelism, Recipe

STEP = Recipe(precision="amp_bf16", batch=8, sequence=512)


def with_memory(memory_bytes: int) -> Accelerator:
    return replace(accelerator("a100-40gb"), memory=Memory(memory_bytes, "this test"))


def on(memory_bytes: int, recipe: Recipe = STEP) -> Estimate:
    return estimate(model("gpt2"), recipe, with_memory(memory_bytes))


def test_it_fits_where_the_process_does_and_not_a_byte_below() -> None:
    found = on(1)
    assert found.peak_bytes == build_ledger(model("gpt2"), STEP).peak_bytes
    most = replay(found.ledger).reserved_bytes + 783_876_096 + 66 * 2**20
    assert on(most).fits
    assert on(most).verdict == "fits"
    assert on(most).margin_bytes == 0
    assert not on(most - 1).fits
    assert on(most - 1).margin_bytes == -1


def test_between_the_least_and_the_most_it_may_fit() -> None:
    low, high = on(1).process_bytes
    assert low == on(1).peak_bytes + 287_047_680
    assert on(high - 1).verdict == on(low).verdict == "may fit"
    assert on(low).excess_bytes == 0
    assert on(low - 1).verdict == "reduce activations"
    assert on(low - 1).excess_bytes == 1


def test_shared_memory_is_compared_with_the_peak() -> None:
    mac = accelerator("m2-24gb")
    peak = estimate(model("gpt2"), STEP, mac).peak_bytes
    exact = replace(mac, memory=Memory(peak, "this test"))
    assert estimate(model("gpt2"), STEP, exact).margin_bytes == 0
    assert estimate(model("gpt2"), STEP, exact).verdict == "fits"
    short = replace(mac, memory=Memory(peak - 1, "this test"))
    assert estimate(model("gpt2"), STEP, short).excess_bytes == 1


def test_the_two_verdicts_part_where_one_sequence_fits() -> None:
    alone = on(1, replace(STEP, micro_batches=8)).process_bytes[1]
    assert on(alone).verdict == "reduce activations"
    assert on(alone - 1).verdict == "no batch size can fix this"


@pytest.mark.parametrize("batch", [3, 4, 9])
@pytest.mark.parametrize("precision", ["fp32", "amp_bf16"])
def test_a_few_micro_batches_stand_for_all(batch: int, precision: str) -> None:
    recipe = replace(STEP, batch=batch, precision=precision)
    whole = on(1, replace(recipe, micro_batches=batch))
    few = on(1, recipe)._one_at_a_time()
    assert len(few.ledger.events) <= len(whole.ledger.events)
    assert few.peak_bytes == whole.peak_bytes
    assert few.allocation == whole.allocation


def test_another_device_costs_no_second_replay() -> None:
    here = on(1)
    there = here.on(with_memory(10**12))
    assert "allocation" not in there.__dict__
    _ = here.allocation
    there = here.on(with_memory(10**12))
    assert there.__dict__["allocation"] is here.allocation
    assert there.verdict == "fits"
    assert there == on(10**12)


def test_one_sequence_that_does_not_fit_has_no_batch_to_blame() -> None:
    one = replace(STEP, batch=1)
    least = on(1, one).process_bytes[0]
    assert on(least - 1, one).verdict == "no batch size can fix this"


def test_layers_add_up_to_owners() -> None:
    found = on(10**12).as_json()
    by_owner: Counter[str] = Counter()
    for of_layer in found["by_layer"].values():
        by_owner.update(of_layer)
    assert by_owner == found["by_owner"]
    layers = {name: of for name, of in found["by_layer"].items() if name}
    assert list(layers) == [f"blocks.{n}" for n in range(12)]
    matrices = 4 * (12 * 768 * 768 + 13 * 768)  # of one layer, in fp32
    assert {of["parameter"] for of in layers.values()} == {matrices}
    assert {of["optimizer_state"] for of in layers.values()} == {2 * matrices}


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
    assert figures["margin_bytes"] == int(39.5 * 2**30) - figures["process_bytes"][1]
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
