"""Predictions against real steps on the CPU, byte for byte, and against published figures."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed._tools.mem_tracker import MemTracker
from torch.nn import functional as F

from peakmem.measure.meter import MemoryMeter
from peakmem.measure.reference_models import GPT, training_step
from peakmem.predict import step_ledger
from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.hardware import accelerator
from peakmem.specs.ledger import Ledger
from peakmem.specs.models import ModelShape, model, parameter_count
from peakmem.specs.recipes import Parallelism, Recipe

SMALL = ModelShape("small", n_layers=3, d_model=32, n_heads=4, vocab=90, context=32)
WIDE_LOSS = ModelShape("wide loss", n_layers=2, d_model=32, n_heads=4, vocab=3000, context=16)
HALF_LLAMA = replace(SMALL, gated=True)
ONE_HEAD = ModelShape("one head", n_layers=2, d_model=32, n_heads=1, vocab=70, context=16)

PRECISIONS = ("fp32", "bf16", "amp_bf16")
AUTOCAST = {"amp_bf16": torch.bfloat16, "amp_fp16": torch.float16}
CHECKPOINTING = (
    {},
    {"checkpointing": "selective"},
    {"checkpointing": "full"},
    {"checkpointing": "every_k", "checkpoint_every": 2},
)
OPTIMIZERS = {
    ("sgd", "for-loop"): lambda p: torch.optim.SGD(p, foreach=False),
    ("momentum", "for-loop"): lambda p: torch.optim.SGD(p, momentum=0.9, foreach=False),
    ("momentum", "foreach"): lambda p: torch.optim.SGD(p, momentum=0.9, foreach=True),
    ("adam", "for-loop"): lambda p: torch.optim.Adam(p, foreach=False),
    ("adamw", "for-loop"): lambda p: torch.optim.AdamW(p, foreach=False),
    ("adamw", "foreach"): lambda p: torch.optim.AdamW(p, foreach=True),
    ("adamw", "fused"): lambda p: torch.optim.AdamW(p, fused=True),
}

# What a layer keeps and when: precision x attention x dropout x checkpointing.
LAYERS = [
    Recipe(
        batch=3, sequence=16, precision=precision, attention=attention, dropout=dropout, **segments
    )
    for precision, attention, dropout, segments in product(
        PRECISIONS, ("flash", "standard"), (0.0, 0.1), CHECKPOINTING
    )
]
# What the step adds: precision x optimizer x accumulation.
STEPS = [
    Recipe(
        batch=4,
        sequence=16,
        precision=precision,
        optimizer=optimizer,
        implementation=implementation,
        micro_batches=micro_batches,
    )
    for precision, (optimizer, implementation), micro_batches in product(
        ("fp32", "amp_bf16"), OPTIMIZERS, (1, 2)
    )
]
EDGES = [
    (SMALL, Recipe(batch=1, sequence=32, attention="standard", dropout=0.1)),
    (SMALL, Recipe(batch=1, sequence=16, dropout=0.1)),
    (SMALL, Recipe(batch=2, sequence=1)),
    (SMALL, Recipe(batch=2, sequence=16, precision="amp_fp16", dropout=0.1)),
    (ONE_HEAD, Recipe(batch=2, sequence=16, attention="standard", checkpointing="full")),
    (ONE_HEAD, Recipe(batch=2, sequence=16, precision="amp_bf16", dropout=0.1)),
    (WIDE_LOSS, Recipe(batch=8, sequence=16)),
    (WIDE_LOSS, Recipe(batch=8, sequence=16, precision="amp_bf16", micro_batches=2)),
    (WIDE_LOSS, Recipe(batch=8, sequence=16, precision="bf16", dropout=0.1)),
]


def in_words(value: ModelShape | Recipe) -> str:
    if isinstance(value, ModelShape):
        return value.name
    changed = {k: v for k, v in vars(value).items() if v != getattr(Recipe(), k)}
    changed.pop("sequence", None)
    return " ".join(map(str, changed.values()))


class Real:
    """A real model, its optimizer and its micro-batches, as a recipe describes them."""

    def __init__(self, shape: ModelShape, recipe: Recipe) -> None:
        torch.manual_seed(0)
        self.model = GPT(
            shape,
            attention=recipe.attention,
            dropout=recipe.dropout,
            checkpointing=recipe.checkpointing,
            checkpoint_every=recipe.checkpoint_every,
        )
        if recipe.precision == "bf16":
            self.model.to(torch.bfloat16)
        implementation = recipe.implementation or "for-loop"
        self.optimizer = OPTIMIZERS[recipe.optimizer, implementation](self.model.parameters())
        size = (recipe.micro_batch, recipe.sequence)
        self.batches = [
            tuple(torch.randint(0, shape.vocab, size) for _ in range(2))
            for _ in range(recipe.micro_batches)
        ]
        self.autocast = AUTOCAST.get(recipe.precision)

    def step(self) -> None:
        training_step(self.model, self.optimizer, self.batches, autocast=self.autocast)

    def third_step(self) -> MemoryMeter:
        """Measure the step in which the optimizer's state is there from the start."""
        for _ in range(2):
            self.step()
        self.optimizer.zero_grad(set_to_none=True)
        meter = MemoryMeter("cpu").track(self.model, self.optimizer, self.batches)
        with meter:
            self.step()
        return meter

    def saved_bytes(self) -> int:
        """Bytes of the distinct storages that autograd keeps, parameters left out."""
        parameters = {p.untyped_storage()._cdata for p in self.model.parameters()}
        kept: dict[int, torch.UntypedStorage] = {}

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage._cdata not in parameters:
                kept[storage._cdata] = storage
            return tensor

        tokens, targets = self.batches[0]
        hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
        enabled = self.autocast is not None
        with hooks, torch.autocast("cpu", self.autocast or torch.bfloat16, enabled=enabled):
            F.cross_entropy(self.model(tokens).flatten(0, 1), targets.flatten())
        return sum(storage.nbytes() for storage in kept.values())


def saved_bytes(ledger: Ledger) -> int:
    """What a ledger says is kept when backward starts: activations, the loss's part with them."""
    phases = [event.phase for event in ledger.events]
    there = ledger.by_owner(phases.index("backward") - 1)
    return there["activation"] + there["logits"]


@pytest.mark.parametrize("recipe", LAYERS, ids=in_words)
def test_saved_activations_are_those_of_the_hooks(recipe: Recipe) -> None:
    ledger = build_ledger(SMALL, recipe, profile="torch-cpu")
    assert saved_bytes(ledger) == Real(SMALL, recipe).saved_bytes()


@pytest.mark.parametrize(
    ("shape", "recipe"),
    [*((SMALL, recipe) for recipe in LAYERS + STEPS), *EDGES],
    ids=in_words,
)
def test_the_step_is_the_metered_one(shape: ModelShape, recipe: Recipe) -> None:
    ledger = build_ledger(shape, recipe, profile="torch-cpu")
    meter = Real(shape, recipe).third_step()
    assert ledger.live_bytes[0] == meter.baseline_bytes
    # To the byte with the torch that is pinned; another one may differ by a temporary.
    assert ledger.peak_bytes == meter.peak_bytes
    # And not by chance: each level of the predicted curve is in the measured one, in order.
    births = {tensor.birth for tensor in ledger.tensors}
    measured = (live for _, live in meter.timeline)
    assert all(ledger.live_bytes[event] in measured for event in sorted(births))
    # Afterwards there are gradients too, and no loss any more.
    assert (
        meter.live_bytes
        == meter.baseline_bytes + ledger.by_owner(len(ledger.events) - 1)["gradient"]
    )


@pytest.mark.parametrize("recipe", [LAYERS[0], LAYERS[-1], STEPS[10]], ids=in_words)
def test_the_step_is_that_of_torchs_own_tracker(recipe: Recipe) -> None:
    real = Real(SMALL, recipe)
    for _ in range(2):
        real.step()
    real.optimizer.zero_grad(set_to_none=True)
    tracker = MemTracker()
    tracker.track_external(real.model, real.optimizer, *real.batches[0])
    with warnings.catch_warnings(), tracker:
        warnings.simplefilter("ignore")  # of its module hooks; they have no say in the totals
        real.step()
    peak = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]
    assert build_ledger(SMALL, recipe, profile="torch-cpu").peak_bytes == peak


def test_a_wrong_rule_would_be_seen() -> None:
    """The comparisons above can fail: a step that is not the recipe's has another peak."""
    recipe = Recipe(batch=3, sequence=16, dropout=0.1)
    peak = Real(SMALL, recipe).third_step().peak_bytes
    for other in ({"attention": "standard"}, {"dropout": 0.0}, {"precision": "amp_bf16"}):
        ledger = build_ledger(SMALL, replace(recipe, **other), profile="torch-cpu")
        assert ledger.peak_bytes != peak


def test_where_the_peak_is() -> None:
    activations = build_ledger(WIDE_LOSS, Recipe(batch=8, sequence=16), profile="torch-cpu")
    assert activations.peak_phase == "backward"
    # What the loss kept, its gradient, and the logits' gradient.
    logits = 8 * 16 * 3000 * 4
    assert [tensor.bytes for tensor in activations.live()[:3]] == [logits] * 3
    parameters = build_ledger(
        replace(SMALL, d_model=64), Recipe(batch=1, sequence=4), profile="torch-cpu"
    )
    assert parameters.peak_phase == "optimizer"


# Published figures.


def by_owner_at_the_end(shape: ModelShape, recipe: Recipe, *more: Parallelism) -> dict[str, int]:
    ledger = build_ledger(shape, recipe, *more, profile="paper")
    return dict(ledger.by_owner(len(ledger.events) - 1))


@pytest.mark.parametrize("precision", ["fp32", "mixed", "amp_bf16"])
def test_16_bytes_a_parameter(precision):
    gpt2 = model("gpt2")
    there = by_owner_at_the_end(gpt2, Recipe(precision=precision, sequence=8))
    there.pop("activation")  # the tokens
    assert sum(there.values()) == 16 * sum(parameter_count(gpt2).values())


def test_gpt3_needs_2800_gb_before_any_activation():
    there = by_owner_at_the_end(model("gpt3-175b"), Recipe(precision="mixed", checkpointing="full"))
    parameters = 174_604_259_328
    assert there["parameter"] == there["gradient"] == 2 * parameters  # 350 GB each
    assert there["master"] == 4 * parameters  # 700 GB
    assert there["optimizer_state"] == 8 * parameters  # 1400 GB
    # QLoRA's "more than 780 GB" for 65B is this without masters: 12 bytes a parameter.
    assert (sum(there.values()) - there["master"]) // parameters * 65 == 780


@pytest.mark.parametrize(
    ("zero", "gigabytes"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.9)], ids="stage {}".format
)
def test_zero_figure_1(zero, gigabytes):
    """7.5B parameters on 64 devices; the bytes a parameter are those of any model."""
    gpt2 = model("gpt2")
    there = by_owner_at_the_end(
        gpt2, Recipe(precision="mixed", sequence=8), Parallelism(data=64, zero=zero)
    )
    there.pop("activation")
    a_parameter = sum(there.values()) / sum(parameter_count(gpt2).values())
    assert 7.5 * a_parameter == pytest.approx(gigabytes, abs=0.05)


def test_zero_offload_trains_13b_on_one_v100():
    recipe = Recipe(precision="mixed", sequence=1024, checkpointing="full")
    gpt3 = model("gpt3-13b")
    alone = build_ledger(gpt3, recipe, profile="paper")
    offloaded = build_ledger(gpt3, replace(recipe, offload=True), profile="paper")
    budget = accelerator("v100-32gb").memory_bytes
    assert offloaded.peak_bytes < budget < alone.peak_bytes
    assert set(offloaded.by_owner(0)) == {"parameter", "activation"}
    gradients = tuple(t for t in offloaded.tensors if t.owner == "gradient")
    # At worst the tied embedding's: from its two uses, and their sum.
    assert Ledger(gradients, offloaded.events).peak_bytes == 3 * gradients[0].bytes


def bytes_a_layer(
    shape: ModelShape, recipe: Recipe, profile: str, parallelism: Parallelism | None = None
) -> float:
    """What one more layer keeps, over sbh."""
    kept = [
        saved_bytes(build_ledger(replace(shape, n_layers=layers), recipe, parallelism, profile))
        for layers in (2, 3)
    ]
    return (kept[1] - kept[0]) / (recipe.batch * recipe.sequence * shape.d_model)


@pytest.mark.parametrize("name", ["gpt2", "gpt3-6.7b", "gpt3-175b"])
def test_korthikanti_table_2(name):
    shape = model(name)
    recipe = Recipe(precision="mixed", batch=2, sequence=1024, dropout=0.1)
    standard = replace(recipe, attention="standard")
    selective = replace(standard, checkpointing="selective")
    full = replace(standard, checkpointing="full")
    squares = 5 * shape.n_heads * recipe.sequence / shape.d_model
    assert bytes_a_layer(shape, standard, "paper") == pytest.approx(34 + squares)
    assert bytes_a_layer(shape, recipe, "paper") == 34
    assert bytes_a_layer(shape, selective, "paper") == 34
    assert bytes_a_layer(shape, full, "paper") == 2


@pytest.mark.parametrize(
    ("d_model", "n_heads", "batch", "mebibytes", "percent"),
    [
        (6144, 64, 4, 1264, (66.8, 49.4, 16.1, 7.6)),  # 22B
        (12288, 96, 1, 552, (62.0, 56.5, 18.5, 8.7)),  # 175B
        (20480, 128, 1, 840, (58.3, 61.9, 20.2, 9.5)),  # 530B
        (25600, 160, 1, 1050, (58.3, 61.9, 20.2, 9.5)),  # 1T
    ],
)
def test_korthikanti_figure_7(d_model, n_heads, batch, mebibytes, percent):
    """A layer on 8 devices: tensor parallelism, then what more of it leaves, in percent."""
    shape = ModelShape("wide", 3, d_model, n_heads, vocab=51200, context=2048)
    recipe = Recipe(
        precision="mixed", batch=batch, sequence=2048, attention="standard", dropout=0.1
    )
    selective = replace(recipe, checkpointing="selective")
    tensor, sequence = Parallelism(tensor=8), Parallelism(tensor=8, sequence=True)
    base = bytes_a_layer(shape, recipe, "paper", tensor)
    assert base * batch * 2048 * d_model / 2**20 == pytest.approx(mebibytes, abs=0.5)
    left = [
        bytes_a_layer(shape, recipe, "paper", sequence),
        bytes_a_layer(shape, selective, "paper", tensor),
        bytes_a_layer(shape, selective, "paper", sequence),
        bytes_a_layer(shape, replace(recipe, checkpointing="full"), "paper", tensor),
    ]
    assert [100 * kept / base for kept in left] == pytest.approx(percent, abs=0.06)


def test_tensor_parallel_parts_make_the_whole():
    recipe = Recipe(precision="mixed", sequence=64)
    gpt3 = model("gpt3-small")
    whole = by_owner_at_the_end(gpt3, recipe)["parameter"]
    part = by_owner_at_the_end(gpt3, recipe, Parallelism(tensor=4))["parameter"]
    # Norms, the last biases of attention and MLP, and positions are on every device.
    d, layers = gpt3.d_model, gpt3.n_layers
    copied = 2 * (layers * 6 * d + 2 * d + gpt3.context * d)
    padding = 2 * 3 * d  # 50257 rows in 4 equal parts
    assert 4 * part == whole + 3 * copied + padding


def test_why_the_papers_34_is_not_what_torch_keeps():
    """Hugging Face's GPT-2 was measured at 112.1 and 56.1: its GELU keeps 48 and 24 more."""
    recipe = Recipe(batch=2, sequence=1024)
    fp32 = bytes_a_layer(model("gpt2"), recipe, "torch-cpu")
    bf16 = bytes_a_layer(model("gpt2"), replace(recipe, precision="bf16"), "torch-cpu")
    assert fp32 + 48 == pytest.approx(112.1, abs=0.05)
    assert bf16 + 24 == pytest.approx(56.1, abs=0.05)


@pytest.mark.parametrize(
    ("implementation", "mebibytes"), [("for-loop", 2193.3), ("foreach", 2373.5)]
)
def test_a_step_of_gpt2_that_was_measured(implementation, mebibytes):
    recipe = Recipe(batch=1, sequence=256, implementation=implementation)
    ledger = build_ledger(model("gpt2"), recipe, profile="torch-cpu")
    assert ledger.peak_bytes / 2**20 == pytest.approx(mebibytes, abs=0.05)


# Properties.

recipes = st.builds(
    Recipe,
    precision=st.sampled_from(PRECISIONS),
    batch=st.sampled_from([2, 4]),
    sequence=st.sampled_from([4, 16, 32]),
    attention=st.sampled_from(["standard", "flash"]),
    dropout=st.sampled_from([0.0, 0.1]),
)
profiles = st.sampled_from(["torch-cpu", "torch-cuda", "paper"])


@settings(max_examples=25)
@given(recipe=recipes, profile=profiles)
def test_more_work_never_takes_less_memory(recipe, profile):
    peak = build_ledger(SMALL, recipe, profile=profile).peak_bytes
    for more in ({"batch": recipe.batch * 2}, {"attention": "standard"}, {"dropout": 0.1}):
        assert build_ledger(SMALL, replace(recipe, **more), profile=profile).peak_bytes >= peak
    kept = saved_bytes(build_ledger(SMALL, recipe, profile=profile))
    less = replace(recipe, checkpointing="full")
    assert saved_bytes(build_ledger(SMALL, less, profile=profile)) < kept


@settings(max_examples=15)
@given(recipe=recipes, devices=st.integers(1, 70), zero=st.sampled_from([0, 1, 2]))
def test_shards_hold_at_least_the_whole(recipe, devices, zero):
    whole = build_ledger(SMALL, recipe)
    shard = build_ledger(SMALL, recipe, Parallelism(data=devices, zero=zero))
    own = [t for t in shard.tensors if t.owner != "communication"]
    for tensor, part in zip(whole.tensors, own, strict=True):
        assert part.bytes <= tensor.bytes <= part.bytes * devices
    assert shard.by_owner(0)["parameter"] == whole.by_owner(0)["parameter"]


def test_gpt3_is_predicted_without_delay():
    ledger = build_ledger(
        model("gpt3-175b"), Recipe(precision="amp_bf16", sequence=2048, checkpointing="full")
    )
    assert ledger.by_owner(0)["parameter"] == 4 * 174_604_259_328
    assert len(ledger.tensors) > 10_000


@pytest.mark.parametrize(
    ("shape", "recipe", "parallelism", "profile", "message"),
    [
        (SMALL, {}, {}, "mps", "profile='mps' is unknown; use one of 'torch-cuda', 'torch-cpu'"),
        (HALF_LLAMA, {}, {}, "paper", "rules for two kinds of blocks, .* use trace"),
        (model("llama3-8b"), {"dropout": 0.1}, {}, "torch-cpu", "dropout=0, or trace"),
        (SMALL, {"sequence": 33}, {}, "paper", "positions for 32 tokens, but sequence is 33"),
        (SMALL, {}, {"tensor": 8}, "paper", r"8 devices can't share its heads \(4\) equally"),
        (model("gpt3-13b"), {}, {"tensor": 8}, "paper", "its 40 heads can't be of equal size"),
        (SMALL, {}, {"tensor": 4, "sequence": True}, "paper", r"share its sequence \(18\)"),
        (
            SMALL,
            {"lora_rank": 4, "lora_targets": ("mlp.gate",)},
            {},
            "paper",
            "no layers 'mlp.gate'; cho",
        ),
    ],
)
def test_what_there_are_no_rules_for_is_refused(shape, recipe, parallelism, profile, message):
    with pytest.raises(ValueError, match=message):
        build_ledger(
            *(shape, Recipe(**{"sequence": 18, **recipe}), Parallelism(**parallelism)),
            profile=profile,
        )


def test_only_what_was_promised_is_public():
    assert step_ledger.__all__ == ["build_ledger"]
