"""Remedies: each really fits, none changes more than needed, and the cheapest comes first."""

import pytest

from peakmem.predict.estimate import Estimate, estimate
from peakmem.predict.step_ledger import build_ledger
from peakmem.predict.suggestions import suggest
from peakmem.scale.parallelism import offload_link_bytes
from peakmem.specs.hardware import accelerator
from peakmem.specs.models import model
from peakmem.specs.recipes import Parallelism, Recipe

TIGHT = {
    "batch": ("gpt2", "rtx3080-10gb", Recipe(precision="amp_bf16", batch=16)),
    "scores": ("gpt2", "rtx3080-10gb", Recipe(batch=8, attention="standard")),
    "states": ("gpt3-6.7b", "a100-80gb", Recipe(precision="amp_bf16", batch=4, sequence=2048)),
    "far too large": ("gpt3-175b", "a100-80gb", Recipe(precision="amp_fp16", sequence=2048)),
}


def asked(name: str) -> Estimate:
    shape, gpu, recipe = TIGHT[name]
    return estimate(model(shape), recipe, accelerator(gpu))


SLOW = {"far too large"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in TIGHT]
)
def test_every_remedy_fits_and_the_cheapest_is_first(name: str) -> None:
    problem = asked(name)
    assert not problem.fits
    found = suggest(problem)
    assert 1 <= len(found) <= 3
    assert len({len(r.changes) for r in found}) == 1  # as few things as possible
    assert [r.cost for r in found] == sorted(r.cost for r in found)
    for suggestion in found:
        again = build_ledger(
            problem.model, suggestion.estimate.recipe, suggestion.estimate.parallelism
        ).peak_bytes
        assert again == suggestion.estimate.peak_bytes
        assert suggestion.estimate.process_bytes[1] <= problem.device.memory_bytes
        assert suggestion.changes
        assert suggestion.estimate.recipe.batch == problem.recipe.batch  # the training is the same


def test_smaller_micro_batches_are_found_first_where_the_batch_is_to_blame() -> None:
    best = suggest(asked("batch"))[0]
    assert best.cost == 1.0
    assert best.changes == ("4 micro-batches of 4 instead of 16 at once",)


def test_no_micro_batch_is_proposed_where_the_states_are_to_blame() -> None:
    problem = asked("states")
    assert problem.verdict == "no batch size can fix this"
    assert all(len(r.changes) > 1 or "micro-batches" not in r.changes[0] for r in suggest(problem))


def test_recomputation_costs_a_third_and_offloading_something() -> None:
    recipe = Recipe(precision="amp_bf16", batch=1, sequence=1024)
    tight = estimate(model("gpt2-xl"), recipe, accelerator("rtx3090-24gb"))
    assert not tight.fits
    by_words = {r.changes: r for r in suggest(tight, most=9)}
    offloaded = by_words["optimizer offloaded to the host",]
    link = offload_link_bytes(1_557_611_200) / accelerator("rtx3090-24gb").host_link_bytes_per_s
    compute = 6 * 1_557_611_200 * 1024 / (71e12 * 0.45)
    assert offloaded.cost == pytest.approx(1 + link / compute)


def test_what_fits_needs_no_remedy() -> None:
    fits = estimate(model("gpt2"), Recipe(), accelerator("a100-80gb"), Parallelism())
    assert suggest(fits) == []


def test_nothing_is_offloaded_from_a_device_that_shares_the_hosts_memory() -> None:
    recipe = Recipe(precision="amp_bf16", batch=1, sequence=1024)
    gpt2_xl, words = model("gpt2-xl"), {}
    for gpu in ("m2-24gb", "rtx5080-16gb"):
        tight = estimate(gpt2_xl, recipe, accelerator(gpu))
        assert not tight.fits
        words[gpu] = str([suggestion.changes for suggestion in suggest(tight, most=99)])
    assert "offloaded" in words["rtx5080-16gb"]
    assert "offloaded" not in words["m2-24gb"]
