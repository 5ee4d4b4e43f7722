"""Predict a training step's memory without running it: a model and a recipe in, a Ledger out.

The step is that of `peakmem.nn.training_step` once it has run before, so that the optimizer's state
is there: clear gradients, forward and backward of each micro-batch, the optimizer's step. It is
played operator by operator by the rules of a profile; no figure here was fitted to a measurement.

What it counts are the bytes that tensors ask for. It leaves out what the CUDA context, cuBLAS's
workspaces and the allocator's rounding add, scratch memory inside an operator, and, for several
devices, buffers of communication.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from peakmem.ledger import Ledger, Owner, Tensor
from peakmem.models import ModelShape, parameter_tensors
from peakmem.profiles import PROFILES, Profile
from peakmem.recipes import Parallelism, Recipe, state_shapes
from peakmem.tape import Tape, Value
from peakmem.transformer import Transformer

__all__ = ["build_ledger"]

# From which stage on ZeRO cuts what an owner holds into as many parts as there are replicas.
_ZERO_STAGE: dict[Owner, int] = {
    "optimizer_state": 1,
    "master": 1,
    "gradient": 2,
    "parameter": 3,
}


def build_ledger(
    model: ModelShape,
    recipe: Recipe,
    parallelism: Parallelism | None = None,
    profile: str = "torch-cuda",
) -> Ledger:
    """Return the ledger of one training step of one device, in bytes.

    Args:
        model: a shape of GPT's kind; see `models`.
        recipe: how the device trains it.
        parallelism: devices that share the work; None for one. Replicas share state by ZeRO;
            "tensor" cuts matrices, heads and vocabulary as Megatron does.
        profile: "torch-cuda", "torch-cpu" or "paper"; see `profiles`. A "paper" ledger has only
            what is kept: no temporaries.

    Raises ValueError for what it has no rules for, and says what to use instead.

    >>> from peakmem.models import model
    >>> step = Recipe(precision="mixed", batch=1, sequence=1024)
    >>> ledger = build_ledger(model("gpt2"), step, profile="paper")
    >>> end = ledger.by_owner(len(ledger.events) - 1)
    >>> sum(n for owner, n in end.items() if owner != "activation") / 124_439_808
    16.0
    """
    parallelism = parallelism or Parallelism()
    rules = _checked(model, recipe, parallelism, profile)
    implementation = recipe.implementation or rules.implementation
    local = _part_of(model, recipe, parallelism)
    tape = Tape(keep_gradients=not recipe.offload)
    parameters = _residents(tape, local, recipe, counters=implementation in rules.counters)
    batches = [
        [
            tape.resident(name, "activation", (recipe.micro_batch, recipe.sequence), "int64")
            for name in ("tokens", "targets")
        ]
        for _ in range(recipe.micro_batches)
    ]
    between = recipe.sequence // (parallelism.tensor if parallelism.sequence else 1)
    transformer = Transformer(tape, local, recipe, rules, parameters, between)
    _play(tape, transformer, batches, recipe, implementation)
    return _shared(tape.ledger(), parallelism, keep_temporaries=rules.eager)


def _play(
    tape: Tape,
    transformer: Transformer,
    batches: list[list[Value]],
    recipe: Recipe,
    implementation: str,
) -> None:
    """Play `peakmem.nn.training_step`."""
    held: list[Value] = []  # the loss of the micro-batch before, which still has its name
    for tokens, targets in batches:
        tape.phase = "forward"
        loss = transformer.loss(tokens, targets)
        tape.touch(held)
        held = [loss]
        part = transformer.part_of_mean(loss)
        tape.phase = "backward"
        tape.event("start of backward", [part])
        seed = tape.make("gradient of the loss", (), part.dtype)
        with tape.holding(loss, part, seed):
            tape.backward(part, seed)
    tape.phase = "optimizer"
    with tape.holding(*held):
        _optimizer_step(tape, list(transformer.parameters.values()), recipe, implementation)


def _checked(model: ModelShape, recipe: Recipe, parallelism: Parallelism, profile: str) -> Profile:
    """Return the profile, or refuse what there are no rules for."""
    if profile not in PROFILES:
        raise ValueError(f"profile={profile!r} is unknown; use one of {', '.join(PROFILES)}")
    plain = ModelShape(
        *(model.name, model.n_layers, model.d_model, model.n_heads, model.vocab, model.context),
        d_head=model.d_head,
        source=model.source,
    )
    if model != plain:
        raise ValueError(
            f"{model.name}: build_ledger has rules for GPT's blocks only (layer norms, GELU of "
            "width 4 d_model, biases, learned positions, a tied head); trace another model"
        )
    if recipe.sequence > model.context and model.learned_positions:
        raise ValueError(
            f"{model.name} has positions for {model.context} tokens, but sequence is "
            f"{recipe.sequence}; shorten it, or give the model a larger context"
        )
    eager = PROFILES[profile].eager
    if eager and recipe.optimizer in ("adafactor", "adam8bit"):
        raise ValueError(
            f"{profile} has no rules for the temporaries of {recipe.optimizer}; use profile='paper'"
        )
    if eager and recipe.offload:
        raise ValueError(f"{profile} has no rules for offloading; use profile='paper'")
    if eager and recipe.formats.master:
        raise ValueError(
            f"{profile} has no rules for master weights, which torch does not keep by itself; use "
            "precision 'amp_fp16' or 'amp_bf16', or profile='paper'"
        )
    if parallelism.pipeline > 1:
        raise ValueError(
            "build_ledger plays one whole model; for a pipeline give it the layers of one stage, "
            "with as many micro-batches as are under way there"
        )
    if eager and (parallelism.zero == 3 or parallelism.tensor > 1):
        raise ValueError(
            f"{profile} has no rules for what devices send each other within a layer; use "
            "zero=2 and tensor=1, or profile='paper'"
        )
    return PROFILES[profile]


def _part_of(model: ModelShape, recipe: Recipe, parallelism: Parallelism) -> ModelShape:
    """Return the shape of what one of `tensor` devices holds (Shoeybi et al. 2019, Megatron-LM)."""
    devices = parallelism.tensor
    if devices == 1:
        return model
    cut = {"heads": model.n_heads, "MLP width": model.mlp_width}
    cut |= {"sequence": recipe.sequence} if parallelism.sequence else {}
    for name, size in cut.items():
        if size % devices:
            raise ValueError(
                f"{model.name}: {devices} devices cannot share its {name} ({size}) equally; choose "
                "a number that divides it"
            )
    if model.attention_width % model.n_heads:
        raise ValueError(
            f"{model.name}: its {model.n_heads} heads are not of equal size in a width of "
            f"{model.attention_width}, so devices cannot share them; use another row"
        )
    return replace(
        model,
        n_heads=model.n_heads // devices,
        d_head=model.attention_width // model.n_heads,
        d_ff=model.mlp_width // devices,
        vocab=ceil(model.vocab / devices),  # padded, so that all parts are equal
    )


def _residents(tape: Tape, model: ModelShape, recipe: Recipe, counters: bool) -> dict[str, Value]:
    """Put parameters, masters and optimizer state on the tape; return the parameters by name."""
    formats = recipe.formats
    parameters = {}
    for tensor in parameter_tensors(model):
        name, shape = tensor.name, tensor.shape
        parameters[name] = tape.resident(
            name, "parameter", shape, formats.weights, formats.gradients
        )
        if recipe.offload:
            continue  # the rest is with the host
        if formats.master:
            tape.resident(f"{name} (master)", "master", shape, formats.master)
        states = state_shapes(recipe.optimizer, shape, formats.states)
        for state, (state_shape, dtype) in states.items():
            tape.resident(f"{name} ({state})", "optimizer_state", state_shape, dtype)
        if states and counters and recipe.optimizer != "momentum":
            tape.resident(f"{name} (step)", "optimizer_state", (), "fp32")
    return parameters


def _optimizer_step(
    tape: Tape, parameters: list[Value], recipe: Recipe, implementation: str
) -> None:
    """Play the step: Adam takes the root of the second moment, the others work in place."""
    if recipe.offload:
        tape.event("step of the host")
        return
    if recipe.optimizer not in ("adam", "adamw") or implementation == "fused":
        tape.event(f"{recipe.optimizer} in place")
        return
    states = recipe.formats.states
    if implementation == "foreach":  # roots of all parameters at once
        tape.event("roots of all second moments")
        for parameter in parameters:
            tape.make(f"{parameter.storage.name} (root)", parameter.shape, states)
        return
    before: list[Value] = []  # the loop's name for the last divisor, until it has a new one
    for parameter in parameters:
        name = parameter.storage.name
        tape.event(f"{name}: root", before)
        root = tape.make(f"{name} (root)", parameter.shape, states)
        tape.event(f"{name}: divisor", [*before, root])
        before = [tape.make(f"{name} (divisor)", parameter.shape, states)]


def _shared(ledger: Ledger, parallelism: Parallelism, keep_temporaries: bool) -> Ledger:
    """Cut what ZeRO cuts; leave temporaries out where the profile does not count them."""

    def cut(tensor: Tensor) -> Tensor:
        stage = _ZERO_STAGE.get(tensor.owner)
        if ledger.events[tensor.birth].phase == "optimizer":
            stage = 1  # its temporaries: each replica updates its part only
        if stage is None or stage > parallelism.zero:
            return tensor
        return replace(tensor, bytes=ceil(tensor.bytes / parallelism.data))

    kept = (t for t in ledger.tensors if keep_temporaries or t.owner != "temporary")
    return Ledger(tuple(map(cut, kept)), ledger.events)
