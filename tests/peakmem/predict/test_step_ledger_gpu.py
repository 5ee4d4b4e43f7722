"""Predictions for CUDA against its allocator; the large grid is a part of `course.py gpu`."""

from __future__ import annotations

import pytest
import torch

from peakmem.measure.meter import measure
from peakmem.measure.reference_models import GPT, training_step
from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.models import ModelShape
from peakmem.specs.recipes import Recipe

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]
SHAPE = ModelShape("GPT", 6, 768, 12, vocab=16000, context=512)


@pytest.mark.parametrize("precision", ["fp32", "amp_bf16"])
@pytest.mark.parametrize("checkpointing", ["none", "full"])
def test_the_step_is_that_of_the_allocator(precision: str, checkpointing: str) -> None:
    recipe = Recipe(precision=precision, batch=4, sequence=512, checkpointing=checkpointing)

    def build_step(device: torch.device):
        gpt = GPT(SHAPE, checkpointing=checkpointing).to(device)
        adamw = torch.optim.AdamW(gpt.parameters())
        tokens, targets = torch.zeros(2, 4, 512, dtype=torch.long, device=device)
        autocast = torch.bfloat16 if precision == "amp_bf16" else None
        return lambda: training_step(gpt, adamw, [(tokens, targets)], autocast=autocast)

    measured = measure(build_step, "cuda")
    workspaces = sum(t.bytes for t in measured.live(0) if "workspace" in t.name)
    predicted = build_ledger(SHAPE, recipe).peak_bytes + workspaces
    assert predicted == pytest.approx(measured.peak_bytes, rel=0.002)
