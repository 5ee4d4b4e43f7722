"""The memory calculator beside the library's estimate."""

from __future__ import annotations

import asyncio
import gc
import json

import pytest

from peakmem.core.units import both
from peakmem.predict.estimate import estimate
from peakmem.predict.suggestions import suggest
from peakmem.show.palette import VERDICTS
from peakmem.show.widgets import memory
from peakmem.show.widgets.calculator import Calculator
from peakmem.show.widgets.estimates import no_collection, remembered_estimate
from peakmem.specs.hardware import accelerator
from peakmem.specs.models import ModelShape, model
from peakmem.specs.recipes import Parallelism, Recipe


@pytest.fixture
def no_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the map, which needs two dozen ledgers."""
    monkeypatch.setattr(type(memory()), "later", Calculator.later)


@pytest.mark.usefixtures("no_map")
def test_the_peak_is_the_estimates() -> None:
    calculator = memory()
    calculator.set(model="gpt2-medium", precision="amp_bf16", zero=1, data=4, offload=True)
    recipe = Recipe(precision="amp_bf16", batch=8, offload=True)
    found = estimate(
        model("gpt2-medium"), recipe, accelerator("rtx3090-24gb"), Parallelism(4, zero=1)
    )
    assert both(found.peak_bytes) in calculator._text.value
    assert calculator.answer().figure == (found.peak_bytes / 1e9, "GB")


@pytest.mark.usefixtures("no_map")
def test_lora_freezes_the_rest() -> None:
    calculator = memory()
    before = calculator.estimate().peak_bytes
    calculator.set(lora_rank=8)
    recipe = Recipe(batch=8, lora_rank=8)
    found = estimate(model("gpt2"), recipe, accelerator("rtx3090-24gb"))
    assert both(found.peak_bytes) in calculator._text.value
    assert found.peak_bytes < before


def test_an_own_shape_shows_its_sizes() -> None:
    calculator = memory()
    sizes = calculator._controls["layers"].layout
    assert sizes.display == "none"
    calculator.set(model="own shape", layers=2, d_model=64, heads=4, vocab=100, context=64)
    calculator.set(sequence=128, batch=1)
    assert sizes.display == ""
    shape = ModelShape("own", 2, 64, 4, vocab=100, context=64)
    assert calculator.shape() == shape


@pytest.mark.usefixtures("no_map")
def test_heads_that_cannot_share_are_a_sentence() -> None:
    calculator = memory()
    calculator.set(model="own shape", heads=7)
    assert "7 heads cannot share a d_model of 768 equally" in calculator.message


def test_suggestions_and_deepspeeds_file() -> None:
    calculator = memory()
    calculator.set(model="own shape", layers=2, batch=64, context=4096, sequence=4096)
    calculator.find_suggestions()
    cheapest = suggest(calculator.estimate())[0]
    assert "; ".join(cheapest.changes) in calculator._more.value
    text = calculator._more.value
    start, end = text.index("{"), text.rindex("}")
    assert json.loads(text[start : end + 1].replace("&quot;", '"'))
    calculator.set(batch=1)
    assert calculator._more.value == ""


def test_a_large_models_verdict_follows_its_peak() -> None:
    calculator = memory()

    async def change() -> tuple[str, str]:
        calculator.model = "gpt3-13b"
        at_once = calculator._text.value
        assert calculator._pieces is not None
        await calculator._pieces
        return at_once, calculator._text.value

    at_once, whole = asyncio.run(change())
    found = estimate(model("gpt3-13b"), Recipe(batch=8, sequence=1024), accelerator("rtx3090-24gb"))
    assert both(found.peak_bytes) in at_once
    assert at_once.count("...") == 3, "the allocator's two rows, and the verdict"
    assert both(found.allocation.reserved_bytes) in whole
    assert "..." not in whole
    calculator.gpu = "h200-141gb"
    assert "..." not in calculator._text.value, "another GPU needs no second allocation"


def test_the_map_says_what_fits() -> None:
    calculator = memory()
    recipe = Recipe(batch=32, sequence=1024)
    fits = estimate(model("gpt2"), recipe, accelerator("rtx3090-24gb"))
    assert not fits.fits
    assert f">{fits.peak_bytes / 1e9:.3g}</text>" in calculator._map.value
    assert calculator._map.value.count(VERDICTS["does not fit"]) >= 1
    assert (
        calculator._map.value.count(VERDICTS["fits"])
        + calculator._map.value.count(VERDICTS["does not fit"])
        == 24
    )


def test_another_gpu_gives_what_the_library_says() -> None:
    shape, recipe = model("gpt2"), Recipe(batch=2)
    for gpu in ("t4-16gb", "h100-80gb", "m2-24gb", "t4-16gb"):
        found = remembered_estimate(shape, recipe, gpu)
        assert found == estimate(shape, recipe, accelerator(gpu))
        assert found.device.name == gpu
    with pytest.raises(ValueError, match="shares the host's memory"):
        remembered_estimate(shape, Recipe(offload=True), "m2-24gb")


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_as_it_was(enabled: bool) -> None:
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with no_collection():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was else gc.disable)()
