"""The roofline: both of its sides, and the corner where they meet."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmem.predict.roofline import micro_batch_seconds
from peakmem.specs.hardware import accelerator
from peakmem.specs.models import model
from peakmem.specs.recipes import Recipe

GPU, GPT2, N = accelerator("a100-80gb"), model("gpt2"), 124_439_808
BF16 = Recipe(precision="bf16", sequence=1024)


def test_many_tokens_are_bound_by_arithmetic() -> None:
    seconds = micro_batch_seconds(GPT2, BF16, GPU)
    assert seconds == pytest.approx(6 * N * 1024 / 312e12)
    again = micro_batch_seconds(GPT2, replace(BF16, checkpointing="full"), GPU)
    assert again == pytest.approx(seconds * 8 / 6)


def test_few_tokens_wait_for_the_weights() -> None:
    few = replace(BF16, sequence=8)
    assert micro_batch_seconds(GPT2, few, GPU) == pytest.approx(3 * 2 * N / 2039e9)


@given(st.integers(1, 64), st.sampled_from([16, 128, 1024]))
def test_time_a_sequence_never_rises_with_the_micro_batch(batch: int, sequence: int) -> None:
    def each(batch: int) -> float:
        recipe = replace(BF16, batch=batch, sequence=sequence)
        return micro_batch_seconds(GPT2, recipe, GPU) / batch

    assert each(batch + 1) <= each(batch) * (1 + 1e-12)


def test_a_format_without_a_rate_runs_as_fp32() -> None:
    v100 = accelerator("v100-16gb")
    assert micro_batch_seconds(GPT2, BF16, v100) == pytest.approx(6 * N * 1024 / 15.7e12)
