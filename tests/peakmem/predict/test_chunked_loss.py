"""A loss that takes its tokens in parts, on a real step, against the prediction."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from peakmem.measure.meter import MemoryMeter
from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.models import ModelShape, model
from peakmem.specs.recipes import Recipe

SHAPE = ModelShape(
    "small",
    n_layers=1,
    d_model=32,
    n_heads=4,
    vocab=900,
    context=32,
    gated=True,
    biases=False,
    learned_positions=False,
    tied=False,
)


def cross_entropy(head: nn.Module, h: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(head(h), targets, reduction="sum")


def chunked(head: nn.Module, h: Tensor, targets: Tensor, n: int) -> Tensor:
    """Add up the parts' losses; backward makes each part's logits again."""
    parts = list(zip(h.flatten(0, 1).chunk(n), targets.flatten().chunk(n), strict=True))
    run = partial(checkpoint, cross_entropy, use_reentrant=False)
    losses = [run(head, *part) for part in parts]
    total = losses[0]
    for loss in losses[1:]:
        total = total + loss
    return total / targets.numel()


def llama() -> Any:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=SHAPE.vocab,
        hidden_size=SHAPE.d_model,
        intermediate_size=SHAPE.mlp_width,
        num_hidden_layers=SHAPE.n_layers,
        num_attention_heads=SHAPE.n_heads,
        pad_token_id=None,
    )
    return transformers.LlamaForCausalLM(config)


def metered(recipe: Recipe) -> MemoryMeter:
    module = llama()
    if recipe.precision == "bf16":
        module = module.to(torch.bfloat16)
    for buffer in module.buffers():
        buffer.data = buffer.data.float()  # as models are that are made in bf16
    sgd = torch.optim.SGD(module.parameters(), foreach=False)
    size = (recipe.batch, recipe.sequence)
    tokens, targets = torch.randint(0, 900, size), torch.randint(0, 900, size)
    low: Any = torch.autocast("cpu", torch.bfloat16, enabled=recipe.precision == "amp_bf16")

    def loss() -> Tensor:
        with low:
            h = module.model(tokens, use_cache=False).last_hidden_state
            return chunked(module.lm_head, h, targets, recipe.loss_chunks)

    def step() -> None:
        sgd.zero_grad()
        whole = loss()
        (whole / 1).backward()
        sgd.step()

    step()
    sgd.zero_grad()
    meter = MemoryMeter("cpu").track(module, sgd, tokens, targets)
    with meter:
        step()
    return meter


@pytest.mark.parametrize("chunks", [2, 8])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "amp_bf16"])
def test_the_step_is_the_metered_one(precision: str, chunks: int) -> None:
    recipe = Recipe(precision, "sgd", batch=4, sequence=32, loss_chunks=chunks)
    meter = metered(recipe)
    ledger = build_ledger(SHAPE, recipe, profile="torch-cpu")
    assert ledger.live_bytes[0] == meter.baseline_bytes
    assert ledger.peak_bytes == meter.peak_bytes


def test_parts_lower_the_peak_by_logits() -> None:
    """An eighth of 128,256 logits per token is live, and then the peak is elsewhere.

    The loss in one part has logits in 16 bits, a copy in 32 and its log softmax in 32.
    """
    recipe = {"precision": "bf16", "checkpointing": "full", "sequence": 8192, "optimizer": "lomo"}
    whole, parts = (
        build_ledger(model("llama3-8b"), Recipe(**recipe, loss_chunks=n))  # type: ignore[arg-type]
        for n in (1, 8)
    )
    logits = 2 * 8192 * 128256
    assert 4 * logits < whole.peak_bytes - parts.peak_bytes < 5 * logits


def test_parts_must_be_equal() -> None:
    with pytest.raises(ValueError, match=r"1000 tokens can.t be cut into 3 equal parts"):
        Recipe(sequence=1000, loss_chunks=3)
