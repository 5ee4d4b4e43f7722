"""The accumulation calculator beside the library's estimate."""

from __future__ import annotations

from peakmem.core.units import both
from peakmem.predict.estimate import estimate
from peakmem.show.widgets import accumulation
from peakmem.specs.hardware import accelerator
from peakmem.specs.models import model
from peakmem.specs.recipes import Recipe

GPU = accelerator("rtx3080-10gb")


def test_the_peak_and_the_largest_that_fits() -> None:
    calculator = accumulation()
    calculator.set(doublings=4, micro_doublings=1, sequence=512)
    peaks, needed = {}, {}
    for micro in (1, 2, 4, 8, 16):
        parts = min(16 // micro, 2)
        recipe = Recipe(
            precision="amp_bf16", batch=micro * parts, micro_batches=parts, sequence=512
        )
        found = estimate(model("gpt2"), recipe, GPU)
        peaks[micro], needed[micro] = found.peak_bytes, found.process_bytes[1]
    largest = max(micro for micro, n_bytes in needed.items() if n_bytes <= GPU.memory_bytes)
    assert both(peaks[2]) in calculator._text.value
    assert "8 of 2" in calculator._text.value
    assert f"{largest} sequences" in calculator._all.value
    assert calculator.largest() == largest


def test_a_micro_batch_above_the_batch_is_a_sentence() -> None:
    calculator = accumulation()
    calculator.set(doublings=1, micro_doublings=3)
    assert "a micro-batch of 8 exceeds the batch of 2" in calculator.message
