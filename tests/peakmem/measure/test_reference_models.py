"""The reference GPT: its parameters, and that no way to run it changes what it learns."""

import pytest
import torch
from torch.nn import functional as F

from peakmem.measure.reference_models import GPT, training_step
from peakmem.specs.models import ModelShape, model, parameter_tensors

SHAPE = ModelShape("tiny", n_layers=3, d_model=32, n_heads=4, vocab=50, context=16)


def build(seed: int = 0, **options: object) -> GPT:
    torch.manual_seed(seed)
    return GPT(SHAPE, **options)


def batch(size: int = 4, length: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, SHAPE.vocab, (size, length + 1), generator=generator)
    return tokens[:, :-1], tokens[:, 1:]


def gradients(gpt: GPT, micro_batches: int = 1, **options: object) -> list[torch.Tensor]:
    """Gradients of one step that moves nothing."""
    tokens, targets = batch()
    parts = list(zip(tokens.chunk(micro_batches), targets.chunk(micro_batches), strict=True))
    torch.manual_seed(2)  # for dropout
    training_step(gpt, torch.optim.SGD(gpt.parameters(), lr=0.0), parts, **options)
    return [parameter.grad for parameter in gpt.parameters()]


@pytest.mark.parametrize("shape", [SHAPE, model("gpt2"), model("gpt3-175b")], ids=lambda s: s.name)
def test_parameters_are_those_that_models_lists(shape):
    with torch.device("meta"):
        gpt = GPT(shape)
    named = [(name, tuple(parameter.shape)) for name, parameter in gpt.named_parameters()]
    assert named == [(parameter.name, parameter.shape) for parameter in parameter_tensors(shape)]
    assert list(gpt.buffers()) == []


def test_a_token_sees_no_later_one():
    gpt = build()
    tokens, _ = batch()
    changed = tokens.clone()
    changed[:, 7] = (changed[:, 7] + 1) % SHAPE.vocab
    for kind in ("standard", "flash"):
        for block in gpt.blocks:
            block.attention.kind = kind
        before, after = gpt(tokens), gpt(changed)
        torch.testing.assert_close(before[:, :7], after[:, :7])
        assert not torch.allclose(before[:, 7:], after[:, 7:])


@pytest.mark.parametrize(
    ("options", "micro_batches"),
    [
        ({"attention": "standard"}, 1),
        ({"checkpointing": "full"}, 1),
        ({"checkpointing": "every_k", "checkpoint_every": 2}, 1),
        ({"checkpointing": "selective"}, 1),
        ({"checkpointing": "selective", "attention": "standard"}, 1),
        ({}, 4),
        ({"attention": "standard", "checkpointing": "full"}, 2),
    ],
)
def test_gradients_do_not_depend_on_how_it_is_run(options, micro_batches):
    expected = gradients(build())
    for got, want in zip(gradients(build(**options), micro_batches), expected, strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("attention", ["standard", "flash"])
@pytest.mark.parametrize("checkpointing", ["selective", "full"])
def test_what_is_computed_again_drops_the_same_activations(attention, checkpointing):
    kept = gradients(build(attention=attention, dropout=0.2))
    again = gradients(build(attention=attention, dropout=0.2, checkpointing=checkpointing))
    for got, want in zip(again, kept, strict=True):
        torch.testing.assert_close(got, want)


def test_gradients_under_autocast_are_near_and_in_fp32():
    for got, want in zip(
        gradients(build(), autocast=torch.bfloat16), gradients(build()), strict=True
    ):
        assert got.dtype == torch.float32
        assert F.cosine_similarity(got.flatten(), want.flatten(), dim=0) > 0.98


def test_it_learns_its_batch():
    gpt = build(dropout=0.1)
    optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-2)
    losses = [training_step(gpt, optimizer, [batch()]) for _ in range(40)]
    assert losses[0] == pytest.approx(torch.log(torch.tensor(SHAPE.vocab)).item(), abs=0.2)
    assert losses[-1] < 0.5
    gpt.eval()
    tokens, _ = batch()
    assert torch.equal(gpt(tokens), gpt(tokens))  # nothing is dropped any more


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"attention=.fast. is unknown.*; use one of 'standard'"):
        build(attention="fast")
    with pytest.raises(ValueError, match=r"checkpointing=.all. is unknown.*; use one of 'none'"):
        build(checkpointing="all")
    with pytest.raises(ValueError, match="checkpoint_every to be a whole number of at least 1"):
        build(checkpointing="every_k", checkpoint_every=0)
    with pytest.raises(ValueError, match=r"5 heads don.t divide d_model=32"):
        GPT(ModelShape("odd", n_layers=1, d_model=32, n_heads=5, vocab=10, context=8))
    with pytest.raises(ValueError, match="17 tokens per sequence exceed the context of 16"):
        build()(torch.zeros(1, 17, dtype=torch.long))
