"""Predict a training step's memory without running it: a model and a recipe in, a Ledger out.

The step is that of `peakmem.nn.training_step` once it has run before, so that the optimizer's state
is there: clear gradients, forward and backward of each micro-batch, the optimizer's step. It is
played operator by operator by the rules of a profile; no figure here was fitted to a measurement.

What it counts are the bytes that tensors ask for. It leaves out what the CUDA context, cuBLAS's
workspaces and the allocator's rounding add, scratch memory inside an operator, and, for several
devices, buffers of communication other than these: what ZeRO's replicas hold whole of a layer while
it runs (its gradients from stage 2 on, its parameters in stage 3, in the format computed in), what
devices that share a sequence's tokens exchange (see `layers` and `shared_attention`), and what
stages of a pipeline receive.

Some things torch does not do by itself. Master weights are what a plain loop makes of them (see
`steps`), a quantized matrix is widened each time it is used, and adapters have no dropout.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import ceil

from peakmem.predict.autograd_rules import PROFILES, Profile
from peakmem.predict.gpt import Transformer
from peakmem.predict.layers import Layers
from peakmem.predict.llama import Llama
from peakmem.predict.optimizers import is_hidden, play_step
from peakmem.predict.replicas import part_of_replica
from peakmem.predict.simulated_autograd import Tape, Value
from peakmem.predict.stages import Stage, play_stage, stage_of, stage_tensors
from peakmem.specs.adapters import adapted_layers
from peakmem.specs.ledger import Ledger
from peakmem.specs.models import ModelShape, ParameterTensor
from peakmem.specs.recipes import Parallelism, Recipe, quantized_scales, state_shapes

__all__ = ["build_ledger"]


def build_ledger(
    model: ModelShape,
    recipe: Recipe,
    parallelism: Parallelism | None = None,
    profile: str = "torch-cuda",
    *,
    stage: int = 0,
) -> Ledger:
    """Return the ledger of one training step of one device, in bytes.

    Args:
        model: a shape with GPT's blocks (as `peakmem.nn.GPT` or Hugging Face has them) or Llama's
            (as Hugging Face has them); see `models`.
        recipe: how the device trains it.
        parallelism: devices that share the work; None for one. Replicas share state by ZeRO, and
            in stage 3 gather each layer's parameters while it runs; "tensor" cuts matrices, heads
            and vocabulary as Megatron does, "context" cuts sequences, "pipeline" the layers.
        profile: "torch-cuda", "torch-cpu" or "paper"; see `profiles`. A "paper" ledger has only
            what is kept: no temporaries.
        stage: of a pipeline, from 0; the first has the most micro-batches under way.

    Raises ValueError for what it has no rules for, and says what to use instead.

    >>> from peakmem.specs.models import model
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
    recipe = replace(recipe, sequence=recipe.sequence // parallelism.context)
    part = stage_of(model, parallelism, stage)
    tape = Tape(keep_gradients=recipe.keeps_gradients)
    parameters = _parameters(tape, local, recipe, part)
    trained = [value for value in parameters.values() if value.requires_grad]
    _states(tape, trained, recipe, counters=implementation in rules.counters)
    names = ["tokens"] * part.is_first + ["targets"] * part.is_last
    batches = [
        {
            name: tape.resident(name, "activation", (recipe.micro_batch, recipe.sequence), "int64")
            for name in names
        }
        for _ in range(recipe.micro_batches)
    ]
    between = recipe.sequence // (parallelism.tensor if parallelism.sequence else 1)
    blocks = Llama if model.gated else Transformer
    if model.gated:
        width = (2, local.attention_width // local.n_heads // 2)
        tape.resident("rotary frequencies", "activation", width, "fp32")
    played = blocks(tape, local, recipe, rules, parameters, between, part, parallelism)
    held = _play(tape, played, batches) if part.is_last else play_stage(tape, played, batches)
    with tape.holding(*held):
        play_step(tape, trained, recipe, implementation)
    return part_of_replica(tape.ledger(), parallelism, eager=rules.eager)


def _play(tape: Tape, model: Layers, batches: list[dict[str, Value]]) -> list[Value]:
    """Play `peakmem.nn.training_step` up to the optimizer's step; return the last loss.

    A pipeline's last stage does the same with what the stage before sends.
    """
    held: list[Value] = []  # the loss of the micro-batch before, which still has its name
    for batch in batches:
        tape.phase = "forward"
        start = batch["tokens"] if model.stage.is_first else model.received()
        loss = model.loss(start, batch["targets"])
        tape.touch(held)
        held = [loss]
        part = model.part_of_mean(loss)
        tape.phase = "backward"
        tape.event("start of backward", [part])
        seed = tape.make("gradient of the loss", (), part.dtype)
        with tape.holding(loss, part, seed, start):
            gradients = tape.backward(part, seed)
            if not model.stage.is_first:
                tape.event("send to the stage before", [gradients[start]])
    tape.phase = "optimizer"
    return held


def _checked(model: ModelShape, recipe: Recipe, parallelism: Parallelism, profile: str) -> Profile:
    """Return the profile, or refuse what there are no rules for."""
    if profile not in PROFILES:
        raise ValueError(f"profile={profile!r} is unknown; use one of {', '.join(PROFILES)}")
    gpt = model.biases and model.learned_positions and not model.gated and not model.kv_heads
    llama = model.gated and not model.biases and not model.learned_positions
    if not (gpt or llama):
        raise ValueError(
            f"{model.name}: build_ledger has rules for two kinds of blocks, GPT's (layer norms, "
            "biases, learned positions, GELU) and Llama's (RMS norms, no biases, rotary positions, "
            "a gated MLP); use trace for another model"
        )
    if recipe.sequence > model.context and model.learned_positions:
        raise ValueError(
            f"{model.name} has positions for {model.context} tokens, but sequence is "
            f"{recipe.sequence}; shorten it, or give the model a larger context"
        )
    if model.hugging_face and recipe.attention == "standard":
        raise ValueError(
            f"{model.name}: there are rules for Hugging Face's GPT-2 with attention='flash' only; "
            "use trace for others"
        )
    if llama and (recipe.dropout or recipe.attention == "standard"):
        raise ValueError(
            f"{model.name}: there are rules for Llama with attention='flash' and dropout=0 only; "
            "use trace for others"
        )
    _check_devices(model, recipe, parallelism, profile)
    return PROFILES[profile]


def _check_devices(model: ModelShape, recipe: Recipe, many: Parallelism, profile: str) -> None:
    """Refuse ways of sharing that there are no rules for, or that share nothing."""
    if many.expert > 1:
        raise ValueError(
            f"{model.name} has no experts that {many.expert} devices could share; use expert=1"
        )
    if many.sequence and many.tensor == 1:
        raise ValueError(
            "sequence parallelism is between devices that share layers' matrices, and tensor is "
            "1; use tensor=2 or more, or context=2 to share a sequence without them"
        )
    if many.sequence and recipe.lora_rank:
        raise ValueError(
            "there are no rules for adapters of layers whose sequence is cut; use sequence=False"
        )
    if many.context == 1:
        return
    if recipe.attention != "flash" or (recipe.dropout and profile != "torch-cuda"):
        raise ValueError(
            "devices that share a sequence (context) run fused attention; use attention='flash', "
            "and dropout=0 unless profile='torch-cuda'"
        )
    heads = model.n_heads // many.tensor
    if many.context_method == "ulysses" and heads % many.context:
        raise ValueError(
            f"{model.name}: Ulysses shares {heads} heads, and {many.context} devices cannot have "
            "equal parts of them; let context divide them, or use context_method='ring'"
        )


def _part_of(model: ModelShape, recipe: Recipe, parallelism: Parallelism) -> ModelShape:
    """Return the shape of what one of `tensor` devices holds (Shoeybi et al. 2019, Megatron-LM)."""
    devices, context = parallelism.tensor, parallelism.context
    if recipe.sequence % context:
        raise ValueError(
            f"{model.name}: {context} devices cannot share {recipe.sequence} tokens equally; "
            "choose a number that divides them"
        )
    if devices == 1:
        return model
    cut = {"heads": model.n_heads, "MLP width": model.mlp_width}
    cut |= {"sequence": recipe.sequence // context} if parallelism.sequence else {}
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
        kv_heads=model.kv_heads and ceil(model.kv_heads / devices),  # some have the same ones
        d_head=model.attention_width // model.n_heads,
        d_ff=model.mlp_width // devices,
        vocab=ceil(model.vocab / devices),  # padded, so that all parts are equal
    )


def _parameters(tape: Tape, model: ModelShape, recipe: Recipe, stage: Stage) -> dict[str, Value]:
    """Put the parameters on the tape, adapters and scales of quantized matrices among them."""
    formats, base = recipe.formats, recipe.quantized_base
    parameters = {}

    def put(name: str, shape: tuple[int, ...], tensor: ParameterTensor, trained: bool) -> None:
        parameters[name] = tape.resident(
            name=name,
            owner="parameter",
            shape=shape,
            dtype=formats.weights,
            gradient_dtype=formats.gradients,
            requires_grad=trained,
            layer=tensor.layer,
            module=tensor.component,
        )

    for tensor in stage_tensors(model, stage):
        name, shape = tensor.name, tensor.shape
        put_frozen = partial(
            tape.resident, owner="parameter", layer=tensor.layer, module=tensor.component
        )
        if base and _is_matrix(tensor):
            parameters[name] = put_frozen(name, shape=shape, dtype=base, requires_grad=False)
            for scale, (size, dtype) in quantized_scales(shape, base).items():
                put_frozen(f"{name} ({scale})", shape=size, dtype=dtype)
        else:
            put(name, shape, tensor, trained=not recipe.lora_rank)
    for tensor in _adapted(model, recipe, stage):
        wide, narrow = tensor.shape
        name = tensor.name.removesuffix(".weight")
        put(f"{name}.lora_a", (recipe.lora_rank, narrow), tensor, trained=True)
        put(f"{name}.lora_b", (wide, recipe.lora_rank), tensor, trained=True)
    return parameters


def _is_matrix(tensor: ParameterTensor) -> bool:
    """Tell whether it is the matrix of a linear layer of a block."""
    return tensor.component in ("attention", "mlp") and len(tensor.shape) == 2


def _adapted(model: ModelShape, recipe: Recipe, stage: Stage) -> list[ParameterTensor]:
    """Return the matrices that get adapters."""
    if not recipe.lora_rank:
        return []
    linear = [tensor for tensor in stage_tensors(model, stage) if _is_matrix(tensor)]

    def module(tensor: ParameterTensor) -> str:  # its name within a layer, as recipes have it
        return tensor.name.removeprefix(f"{tensor.layer}.").removesuffix(".weight")

    targets = adapted_layers(recipe.lora_targets, map(module, linear))
    return [tensor for tensor in linear if module(tensor) in targets]


def _states(tape: Tape, trained: list[Value], recipe: Recipe, counters: bool) -> None:
    """Put masters and optimizer state on the tape; offloaded ones are with the host."""
    formats = recipe.formats
    for parameter in [] if recipe.offload else trained:
        name, shape, storage = parameter.storage.name, parameter.shape, parameter.storage
        put = partial(tape.resident, layer=storage.layer, module=storage.module)
        if formats.master:
            put(f"{name} (master)", "master", shape, formats.master)
        hidden = is_hidden(parameter)
        states = state_shapes(recipe.optimizer, shape, formats.states, in_layer=hidden)
        for state, (state_shape, dtype) in states.items():
            put(f"{name} ({state})", "optimizer_state", state_shape, dtype)
        uncounted = "momentum" in states  # of SGD, Lion and Muon
        if states and counters and not uncounted:
            put(f"{name} (step)", "optimizer_state", (), "fp32")
