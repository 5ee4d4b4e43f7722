"""Devices that share sequences, layers or a pipeline: shares sum to the whole; real stages."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from peakmem.measure.meter import measure
from peakmem.measure.reference_models import GPT
from peakmem.predict.step_ledger import build_ledger
from peakmem.scale.pipelines import schedule
from peakmem.specs.ledger import Ledger, Tensor
from peakmem.specs.models import ModelShape, model, parameter_count
from peakmem.specs.recipes import Parallelism, Recipe

GPT_SHAPE = ModelShape("gpt", n_layers=4, d_model=32, n_heads=4, vocab=96, context=64)
LLAMA = replace(
    GPT_SHAPE, d_ff=64, kv_heads=2, gated=True, biases=False, learned_positions=False, tied=False
)
SHAPES = pytest.mark.parametrize("shape", [GPT_SHAPE, LLAMA], ids=["gpt", "llama"])


def kept_bytes(ledger: Ledger) -> int:
    """The tensors that one micro-batch's forward saves for backward, without tokens and tables."""
    start = next(n for n, event in enumerate(ledger.events) if event.phase == "backward")
    owners = ("activation", "logits")
    return sum(
        t.bytes
        for t in ledger.live(start - 1)
        if t.owner in owners and t.birth > 0 and len(t.shape) >= 2
    )


def ledger_of(shape: ModelShape, recipe: Recipe, **many: Any) -> Ledger:
    return build_ledger(shape, recipe, Parallelism(**many))


# A sequence on several devices.


@SHAPES
@pytest.mark.parametrize("checkpointing", ["none", "selective", "full"])
@pytest.mark.parametrize("method", ["ring", "ulysses"])
@pytest.mark.parametrize("n", [2, 4])
def test_what_devices_keep_of_a_sequence_sums_to_the_whole(
    shape: ModelShape, checkpointing: Any, method: str, n: int
) -> None:
    shape = replace(shape, kv_heads=4) if shape.gated else shape
    recipe = Recipe("bf16", batch=2, sequence=64, checkpointing=checkpointing)
    alone = kept_bytes(ledger_of(shape, recipe))
    shared = kept_bytes(ledger_of(shape, recipe, context=n, context_method=method))
    twice = 0
    if method == "ulysses" and checkpointing == "none":
        twice = shape.n_layers * 2 * 64 * 32 * 2  # outputs, before and after their exchange
    assert shared * n == alone + twice


def largest(ledger: Ledger, owner: str, phase: str) -> list[Tensor]:
    """Return the tensors of an owner that are there when it has the most in this phase."""
    bytes_at = ledger.live_by_owner()[owner]  # type: ignore[index]
    events = [n for n, event in enumerate(ledger.events) if event.phase == phase]
    at = max(events, key=lambda n: bytes_at[n])
    return [t for t in ledger.live(at) if t.owner == owner]


@pytest.mark.parametrize(("n", "blocks"), [(2, 4), (4, 6), (8, 6)])
def test_a_ring_has_the_papers_six_blocks(n: int, blocks: int) -> None:
    """Queries, outputs, and two pairs of keys and values that travel, of b c h numbers each.

    (Liu et al. 2023, section 3.) Of two devices no pair arrives while another one is there. The
    device's own pair, which backward needs, comes on top, and so does the sum in fp32.
    """
    recipe = Recipe("bf16", batch=2, sequence=64)
    buffers = largest(ledger_of(GPT_SHAPE, recipe, context=n), "communication", "forward")
    block = 2 * (64 // n) * 32 * 2
    assert sum(t.bytes for t in buffers) == (blocks - 2) * block + 2 * block


def test_a_rings_backward_has_travelling_gradients_in_fp32() -> None:
    recipe = Recipe("bf16", batch=2, sequence=64)
    buffers = largest(ledger_of(GPT_SHAPE, recipe, context=4), "communication", "backward")
    block = 2 * 16 * 32
    assert sum(t.bytes for t in buffers) == 4 * 2 * block + 4 * 4 * block + 4 * block


def test_ulysses_repeats_heads_of_keys_where_there_are_too_few() -> None:
    recipe = Recipe("bf16", batch=2, sequence=64)
    found = ledger_of(LLAMA, recipe, context=4, context_method="ulysses")
    exchanged = {t.name[-1]: t.shape for t in found.tensors if t.name.endswith(("of q", "of k"))}
    assert exchanged == {"q": (2, 64, 8), "k": (2, 64, 8)}  # 2 heads of keys, 4 devices


def test_a_long_context_needs_less_on_each_of_more_devices() -> None:
    recipe = Recipe("bf16", sequence=32768, checkpointing="full")
    peaks = [
        ledger_of(model("llama3-8b"), recipe, context=n, zero=3).peak_bytes for n in (1, 2, 4, 8)
    ]
    assert peaks == sorted(peaks, reverse=True)


def test_zero_cuts_among_devices_that_share_sequences_too() -> None:
    recipe = Recipe("bf16", sequence=64)
    parts = [
        ledger_of(LLAMA, recipe, zero=3, **many).by_owner(0)["parameter"]
        for many in ({"data": 8}, {"context": 8}, {"data": 2, "context": 4})
    ]
    assert parts[0] == parts[1] == parts[2]


# A sequence among devices that share layers (Megatron's sequence parallelism).


@SHAPES
@pytest.mark.parametrize("checkpointing", ["none", "selective", "full"])
def test_with_sequence_parallelism_devices_keep_nothing_twice(
    shape: ModelShape, checkpointing: Any
) -> None:
    recipe = Recipe("bf16", batch=2, sequence=64, checkpointing=checkpointing)
    alone = kept_bytes(ledger_of(shape, recipe))
    tensor, both = ({"tensor": 2}, {"tensor": 2, "sequence": True})
    twice = 2 * 64 * 8 * 2 if shape.gated else 0  # cosine and sine are of all tokens
    assert kept_bytes(ledger_of(shape, recipe, **both)) * 2 == alone + twice
    assert kept_bytes(ledger_of(shape, recipe, **tensor)) * 2 > alone + twice


def test_sequence_parallelism_gathers_before_a_matrix_and_scatters_after() -> None:
    recipe = Recipe("bf16", batch=2, sequence=64)
    found = ledger_of(GPT_SHAPE, recipe, tensor=2, sequence=True)
    names = {t.name for t in found.tensors if t.owner == "communication"}
    layers = ("attention.qkv", "attention.out", "mlp.up", "mlp.down")
    assert {f"blocks.0.{layer}: all tokens" for layer in layers} <= names
    gathered = {t.bytes for t in found.tensors if t.name.endswith(": all tokens")}
    assert gathered == {2 * 64 * 32 * 2}
    of_gradients = {n for n in names if n.endswith("gradient of all tokens")}
    assert len(of_gradients) == 4 * 2 + 1  # of qkv and up, and of the head


# Pipelines.


@pytest.mark.parametrize("tied", [True, False])
def test_stages_have_all_parameters_and_a_tied_table_twice(tied: bool) -> None:
    shape = replace(LLAMA, tied=tied)
    recipe = Recipe("bf16", batch=4, micro_batches=4, sequence=64)
    stages = [
        build_ledger(shape, recipe, Parallelism(pipeline=4), stage=n).by_owner(0)["parameter"]
        for n in range(4)
    ]
    counts = parameter_count(shape)
    total = sum(counts.values()) + (counts["token_embedding"] if tied else 0)
    assert sum(stages) == 2 * total


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 4), (4, 8), (4, 2)])
def test_as_many_are_under_way_as_the_schedule_has(stages: int, micro_batches: int) -> None:
    recipe = Recipe("bf16", batch=micro_batches, micro_batches=micro_batches, sequence=64)
    table = schedule("1f1b", stages, micro_batches)
    for stage in range(stages):
        found = build_ledger(GPT_SHAPE, recipe, Parallelism(pipeline=stages), stage=stage)
        inputs = [t for t in found.tensors if t.name == "blocks.0.norm1"]
        if stage:
            inputs = [t for t in found.tensors if t.name == "input of the stage"]
        together = max(
            sum(t.birth <= n <= t.death for t in inputs) for n in range(len(found.events))
        )
        under_way, most = 0, 0
        for operation in table.of_stage(stage):
            under_way += {"F": 1, "B": -1}.get(operation.kind, 0)
            most = max(most, under_way)
        assert together == most


class FirstHalf(nn.Module):
    """The embeddings of a GPT and its first blocks, or some of the others."""

    def __init__(self, gpt: GPT, blocks: slice) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(list(gpt.blocks)[blocks])
        self.is_first = blocks.start == 0
        if self.is_first:
            self.token, self.position = gpt.token_embedding, gpt.position_embedding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.is_first:
            x = self.token(x) + self.position.weight[: x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return x


@pytest.mark.parametrize("stage", [0, 1])
@pytest.mark.parametrize("micro_batches", [2, 5])
def test_a_stage_that_runs_holds_what_is_predicted(stage: int, micro_batches: int) -> None:
    """1F1B on the CPU: outputs are freed when they are sent, inputs stay until their backward."""
    shape, stages = replace(GPT_SHAPE, n_layers=6), 3
    recipe = Recipe(
        *("fp32", "adamw", "for-loop"),
        batch=2 * micro_batches,
        micro_batches=micro_batches,
        sequence=64,
    )
    predicted = build_ledger(shape, recipe, Parallelism(pipeline=stages), "torch-cpu", stage=stage)

    def build(device: torch.device) -> Any:
        part = FirstHalf(GPT(shape, attention="flash"), slice(2 * stage, 2 * stage + 2))
        adam = torch.optim.AdamW(part.parameters(), foreach=False)
        tokens = [torch.zeros(2, 64, dtype=torch.int64) for _ in range(micro_batches)]
        under_way: deque[tuple[Any, Any]] = deque()

        def forward(n: int) -> None:
            given = torch.zeros(2, 64, 32, requires_grad=True) if stage else tokens[n]
            output = part(given)
            under_way.append((given, output))
            output.data = torch.empty(0)  # sent

        def backward() -> None:
            given, output = under_way.popleft()  # noqa: RUF059 - `given` stays until this returns
            gradient = torch.zeros(2, 64, 32)
            torch.autograd.Variable._execution_engine.run_backward(
                (output,), (gradient,), False, False, (), True, True
            )

        def step() -> None:
            adam.zero_grad()
            for n in range(micro_batches):
                forward(n)
                if len(under_way) == stages - stage:
                    backward()
            while under_way:
                backward()
            adam.step()

        return step

    assert predicted.peak_bytes == pytest.approx(measure(build, "cpu").peak_bytes, rel=0.01)


# What is refused.


@pytest.mark.parametrize(
    ("recipe", "many", "says"),
    [
        ({}, {"context": 3}, "3 devices can't share 64 tokens equally"),
        ({"attention": "standard"}, {"context": 2}, "use attention='flash'"),
        ({}, {"context": 8, "context_method": "ulysses"}, "choose a context that divides"),
        ({}, {"data": 2, "expert": 2}, "has no experts that 2 devices could share"),
        ({}, {"sequence": True}, "use tensor=2 or more, or context=2"),
        ({"lora_rank": 4}, {"tensor": 2, "sequence": True}, "use sequence=False"),
        ({}, {"pipeline": 3}, "4 layers cannot be cut into 3 equal stages"),
    ],
)
def test_what_cannot_be_shared_is_refused(recipe: Any, many: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ledger_of(GPT_SHAPE, Recipe(**{"sequence": 64, **recipe}), **many)


def test_a_stage_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a stage from 0 to 1, but got 2"):
        build_ledger(GPT_SHAPE, Recipe(sequence=64), Parallelism(pipeline=2), stage=2)


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_devices_share_heads_of_keys_and_values(devices: int) -> None:
    """Llama 3 has 8 of them; norms are on every device, and so are the heads that are too few."""
    shape = model("llama3-8b")
    part = ledger_of(shape, Recipe("bf16", sequence=64), tensor=devices).by_owner(0)["parameter"]
    norms = parameter_count(shape)["layer_norms"] + parameter_count(shape)["final_norm"]
    total = sum(parameter_count(shape).values())
    assert part == 2 * ((total - norms) // devices + norms)
