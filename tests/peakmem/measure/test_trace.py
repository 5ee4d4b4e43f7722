"""Traces of steps on fake tensors, against the meter's record of the same steps on real ones."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import nn

from peakmem.measure.meter import BuildStep, measure
from peakmem.measure.reference_models import GPT, training_step
from peakmem.measure.trace import trace
from peakmem.specs.ledger import Ledger
from peakmem.specs.models import ModelShape

SHAPE = ModelShape("small", n_layers=2, d_model=32, n_heads=4, vocab=90, context=32)
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p),
    "momentum": lambda p: torch.optim.SGD(p, momentum=0.9, foreach=True),
    "adam": lambda p: torch.optim.Adam(p),
    "adamw, for-loop": lambda p: torch.optim.AdamW(p, foreach=False),
    "adamw, foreach": lambda p: torch.optim.AdamW(p, foreach=True),
    "adamw, fused": lambda p: torch.optim.AdamW(p, fused=True),
    "adafactor": lambda p: torch.optim.Adafactor(p),
}
CHECKPOINTING: list[dict[str, Any]] = [
    {"checkpointing": "none"},
    {"checkpointing": "selective"},
    {"checkpointing": "full"},
    {"checkpointing": "every_k", "checkpoint_every": 2},
]
CHOICES = ((None, torch.bfloat16), ("standard", "flash"), (0.0, 0.1), range(len(CHECKPOINTING)))
# The quick half has every three of the four choices together.
LAYERS = [
    pytest.param(
        *(choice[at] for choice, at in zip(CHOICES, places, strict=True)),
        marks=[pytest.mark.slow] * (sum(places) % 2),
    )
    for places in product(*(range(len(choice)) for choice in CHOICES))
]


def gpt_step(
    optimizer: str = "adamw, for-loop",
    micro_batches: int = 1,
    autocast: torch.dtype | None = None,
    **options: Any,
) -> BuildStep:
    """A build_step of a small GPT."""

    def build(device: torch.device) -> Callable[[], object]:
        model = GPT(SHAPE, **options).to(device)
        steps = OPTIMIZERS[optimizer](model.parameters())
        size = (4 // micro_batches, 16)
        batches = [
            (torch.zeros(size, dtype=torch.long), torch.zeros(size, dtype=torch.long))
            for _ in range(micro_batches)
        ]
        return lambda: training_step(model, steps, batches, autocast=autocast)

    return build


def assert_traced(build_step: BuildStep) -> None:
    """A trace has the peak, the owners at it, and the events of the real step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        real, traced = measure(build_step, "cpu"), trace(build_step, "torch-cpu")
    assert traced.peak_bytes == pytest.approx(real.peak_bytes, rel=0.01)
    assert traced.peak_phase == real.peak_phase
    for owner in ("parameter", "gradient", "optimizer_state", "activation"):
        ours, theirs = (x.by_owner().get(owner, 0) for x in (traced, real))  # type: ignore[call-overload]
        assert ours == pytest.approx(theirs, rel=0.01)


@pytest.mark.parametrize(("autocast", "attention", "dropout", "segments"), LAYERS)
def test_a_traced_gpt_has_the_peak_of_the_real_one(
    autocast: torch.dtype | None, attention: str, dropout: float, segments: int
) -> None:
    options = CHECKPOINTING[segments]
    assert_traced(gpt_step(autocast=autocast, attention=attention, dropout=dropout, **options))


@pytest.mark.parametrize(("optimizer", "micro_batches"), list(product(OPTIMIZERS, (1, 2))))
def test_a_traced_optimizer_has_the_peak_of_the_real_one(
    optimizer: str, micro_batches: int
) -> None:
    assert_traced(gpt_step(optimizer, micro_batches))


def test_a_trace_is_told_from_that_of_another_step() -> None:
    # The comparisons above can fail.
    with pytest.raises(AssertionError):
        assert measure(gpt_step(), "cpu").peak_bytes == pytest.approx(
            trace(gpt_step(dropout=0.1), "torch-cpu").peak_bytes, rel=0.01
        )


def transformers_step(name: str) -> BuildStep:
    """A build_step of a small model of the transformers library."""
    transformers = pytest.importorskip("transformers")
    kind, attention = name.split()
    llama = {"num_key_value_heads": 2}
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "attn_implementation": attention,
    }
    text = {"vocab_size": 90, "max_position_embeddings": 32}
    gpt2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 90, "n_positions": 32}
    ids = {"bos_token_id": 0, "eos_token_id": 0, "attn_implementation": attention}
    model_of = {
        "GPT2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(**gpt2, **ids)),
        "Llama": lambda: transformers.LlamaForCausalLM(
            transformers.LlamaConfig(**sizes, **text, **llama)
        ),
        "Bert": lambda: transformers.BertForMaskedLM(transformers.BertConfig(**sizes, **text)),
        "ViT": lambda: transformers.ViTForImageClassification(
            transformers.ViTConfig(**sizes, image_size=32, patch_size=8)
        ),
    }

    def build(device: torch.device) -> Callable[[], object]:
        model = model_of[kind]().to(device).train()
        adam = torch.optim.AdamW(model.parameters())
        tokens = torch.zeros(2, 16, dtype=torch.long, device=device)
        batch = {"input_ids": tokens, "labels": tokens}
        if kind == "ViT":
            batch = {"pixel_values": torch.zeros(2, 3, 32, 32), "labels": tokens[:, 0]}

        def step() -> float:
            adam.zero_grad()
            loss = model(**batch).loss
            loss.backward()
            adam.step()
            return float(loss.item())

        return step

    return build


@pytest.mark.parametrize(
    "name",
    [
        "GPT2 eager",
        pytest.param("GPT2 sdpa", marks=pytest.mark.slow),
        pytest.param("Llama eager", marks=pytest.mark.slow),
        "Llama sdpa",
        "Bert sdpa",
        pytest.param("Bert eager", marks=pytest.mark.slow),
        "ViT sdpa",
    ],
)
def test_models_of_the_transformers_library_trace(name: str) -> None:
    assert_traced(transformers_step(name))


def test_steps_that_read_values_trace() -> None:
    def build(device: torch.device) -> Callable[[], object]:
        layer = nn.Linear(50, 50, device=device)
        sgd = torch.optim.SGD(layer.parameters(), lr=0.01, momentum=0.9)
        scaler = torch.amp.GradScaler("cpu")
        x = torch.ones(3, 50, device=device)

        def step() -> float:
            sgd.zero_grad()
            with torch.autocast("cpu", torch.float16):
                loss = layer(x).square().mean()
            scaler.scale(loss).backward()
            scaler.unscale_(sgd)
            nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
            scaler.step(sgd)
            scaler.update()
            if torch.isnan(loss) or not torch.isfinite(loss).item() > -1:
                raise RuntimeError("the loss is not a number")
            return loss.item() if loss.item() > 0 else 0.0

        return step

    assert_traced(build)


def build_of(step: Callable[[torch.Tensor], object]) -> BuildStep:
    """A build_step of a function of one tensor."""

    def build(device: torch.device) -> Callable[[], object]:
        x = torch.ones(9, device=device)
        return lambda: step(x)

    return build


@pytest.mark.parametrize(
    ("step", "remedy"),
    [
        (lambda x: x[x > 0], "depends on values.*masked_fill"),
        (lambda x: x.numpy(), "no values for numpy"),
    ],
)
def test_what_cannot_be_traced_says_what_to_change(
    step: Callable[[torch.Tensor], object], remedy: str
) -> None:
    with pytest.raises(NotImplementedError, match=remedy):
        trace(build_of(step), "torch-cpu")


def test_other_errors_of_a_step_pass_through() -> None:
    with pytest.raises(RuntimeError, match="shape"):
        trace(build_of(lambda x: x.view(2, -1)))
    with pytest.raises(ValueError, match="torch-tpu"):
        trace(build_of(torch.sin), "torch-tpu")


def kept(ledger: Ledger) -> int:
    """Activations and logits when forward ends."""
    phases = [event.phase for event in ledger.events]
    live = ledger.by_owner(phases.index("backward") - 1)
    return live["activation"] + live["logits"]


def test_cudas_profile_keeps_byte_masks_and_fused_attention() -> None:
    # Per layer 4 x 16 tokens: three masks (after embedding one, two a layer) of 1 byte, not 4.
    standard = gpt_step(attention="standard", dropout=0.1)
    scores, tokens = 2 * 4 * 4 * 16 * 16, 4 * 16 * 32
    masks = scores + tokens * (1 + 2 * 2)
    assert kept(trace(standard, "torch-cpu")) - kept(trace(standard, "torch-cuda")) == 3 * masks
    flash, without = gpt_step(dropout=0.1), gpt_step()
    more = kept(trace(flash, "torch-cuda")) - kept(trace(without, "torch-cuda"))
    assert more == tokens * (1 + 2 * 2)


def test_cudas_profile_takes_foreach_and_leaves_functions_as_they_were() -> None:
    before = nn.functional.dropout, torch.softmax, torch.Tensor.softmax
    ledger = trace(gpt_step("adam"), "torch-cuda")
    assert any("_foreach_sqrt" in event.name for event in ledger.events)
    assert (nn.functional.dropout, torch.softmax, torch.Tensor.softmax) == before
    states = [t for t in ledger.tensors if t.owner == "optimizer_state"]
    assert all(t.shape for t in states)


def test_cudas_autocast_runs_softmax_in_fp32() -> None:
    build = gpt_step(autocast=torch.bfloat16, attention="standard")
    dtypes = [
        {t.dtype for t in trace(build, profile).tensors if t.name.endswith("of aten::_softmax")}
        for profile in ("torch-cpu", "torch-cuda")
    ]
    assert dtypes == [{"bf16"}, {"fp32"}]


@pytest.mark.slow
def test_gpt_3_fits_a_laptop() -> None:
    code = """
import sys, torch
from peakmem.models import model
from peakmem.nn import GPT, training_step
from peakmem.measure.trace import trace
import os
from autograder.base.memory import status_bytes
def build(device):
    gpt = GPT(model("gpt3-175b"))
    adam = torch.optim.AdamW(gpt.parameters())
    tokens = torch.zeros(1, 2048, dtype=torch.long)
    return lambda: training_step(gpt, adam, [(tokens, tokens)])
before = status_bytes(os.getpid(), "VmHWM")
ledger = trace(build)
print(ledger.peak_bytes, status_bytes(os.getpid(), "VmHWM") - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    peak_bytes, rise_bytes = map(int, done.stdout.split())
    assert peak_bytes > 16 * 174e9
    assert rise_bytes < 2**30


def test_all_holds_and_nothing_any() -> None:
    def build_step(device: torch.device):
        x = torch.ones(4, device=device)
        seen = []

        def step() -> None:
            seen.append((bool((x == 0).all()), bool((x == 0).any()), bool(x.isfinite().all())))
            assert seen[-1] == (True, False, True)

        return step

    trace(build_step, "torch-cpu")


def test_a_sum_of_truths_is_how_many_there_are() -> None:
    """As transformers' `fast_all` asks whether no token is padding."""

    def build_step(device: torch.device):
        x = torch.ones(4, device=device)

        def step() -> None:
            no_padding = x.bool()
            assert no_padding.sum() == no_padding.numel()
            assert not no_padding.sum() == 3  # noqa: SIM201
            assert not x.sum() == 4  # noqa: SIM201

        return step

    trace(build_step, "torch-cpu")


def test_a_library_that_asks_does_not_see_that_it_is_traced() -> None:
    def build_step(device: torch.device):
        x = torch.ones(4, device=device)

        def step() -> None:
            assert not isinstance(x, torch._subclasses.FakeTensor)
            x.add_(1)

        return step

    trace(build_step, "torch-cpu")
    from torch._subclasses.fake_tensor import FakeTensor

    assert torch._subclasses.FakeTensor is FakeTensor  # put back
