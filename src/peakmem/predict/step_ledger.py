"""A training step's memory, predicted without running it: a model and a recipe in, a Ledger out.

The step is that of `peakmem.nn.training_step` after a first step, so the optimizer state exists:
clear gradients, forward and backward of each micro-batch, the optimizer's step. A tape plays it
operator by operator by the rules of a profile; no figure was fitted to a measurement.

The ledger counts the bytes that tensors request. It leaves out the CUDA context, cuBLAS's
workspaces, the allocator's rounding, and scratch memory inside an operator. For several devices, it
leaves out communication buffers, except these: a running layer's tensors that ZeRO's replicas hold
whole (gradients from stage 2 on, and parameters, in the compute format, in stage 3), tensors that
devices sharing a sequence exchange (see `layers` and `shared_attention`), and the inputs that
stages of a pipeline receive.

Some features aren't torch's own. Master weights follow a simple loop (see `optimizers`), a
quantized matrix is dequantized each time it is used, and adapters have no dropout.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import ceil

from peakmem.core.errors import require_one_of
from peakmem.predict.autograd_rules import PROFILES, Profile
from peakmem.predict.gpt import Transformer
from peakmem.predict.llama import Llama
from peakmem.predict.micro_batches import play_last_stage, play_stage
from peakmem.predict.optimizers import is_hidden, play_step
from peakmem.predict.replicas import part_of_replica
from peakmem.predict.simulated_autograd import Tape, Value
from peakmem.predict.stages import PipelineStage, stage_of, stage_tensors
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
    """Return the ledger of one training step on one device, in bytes.

    Args:
        model: a shape with the blocks of GPT (`peakmem.nn.GPT` or Hugging Face's) or of Llama
            (Hugging Face's); see `models`.
        recipe: how the device trains it.
        parallelism: devices that share the work; None for one device. ZeRO's replicas share state,
            and in stage 3 gather each layer's parameters while it runs. "tensor" cuts matrices,
            heads and vocabulary as Megatron does, "context" sequences, and "pipeline" layers.
        profile: "torch-cuda", "torch-cpu" or "paper"; see `autograd_rules`. A "paper" ledger has
            no temporaries, only saved tensors and model states.
        stage: the stage of a pipeline, from 0; the first has the most micro-batches in flight.

    Raises ValueError, with an alternative, if there are no rules for the step.

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
    play = play_last_stage if part.is_last else play_stage
    held = play(tape, played, batches)
    with tape.holding(*held):
        play_step(tape, trained, recipe, implementation)
    return part_of_replica(tape.ledger(), parallelism, eager=rules.eager)


def _checked(model: ModelShape, recipe: Recipe, parallelism: Parallelism, profile: str) -> Profile:
    """Return the profile. Raises ValueError if there are no rules for the step."""
    require_one_of("profile", profile, PROFILES)
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
            f"{model.name}: attention={recipe.attention!r} has no rules for Hugging Face's GPT-2; "
            "use attention='flash', or trace"
        )
    if llama and (recipe.dropout or recipe.attention == "standard"):
        raise ValueError(
            f"{model.name}: attention={recipe.attention!r} with dropout={recipe.dropout} has no "
            "rules for Llama; use attention='flash' and dropout=0, or trace"
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
            "equal parts of them; choose a context that divides them, or use "
            "context_method='ring'"
        )


def _part_of(model: ModelShape, recipe: Recipe, parallelism: Parallelism) -> ModelShape:
    """Return the shape of one device's part of the model (Shoeybi et al. 2019, Megatron-LM)."""
    devices, context = parallelism.tensor, parallelism.context
    if recipe.sequence % context:
        raise ValueError(
            f"{model.name}: {context} devices can't share {recipe.sequence} tokens equally; "
            "choose a number that divides them"
        )
    if devices == 1:
        return model
    cut = {"heads": model.n_heads, "MLP width": model.mlp_width}
    cut |= {"sequence": recipe.sequence // context} if parallelism.sequence else {}
    for name, size in cut.items():
        if size % devices:
            raise ValueError(
                f"{model.name}: {devices} devices can't share its {name} ({size}) equally; choose "
                "a number that divides it"
            )
    if model.attention_width % model.n_heads:
        raise ValueError(
            f"{model.name}: its {model.n_heads} heads can't be of equal size in a width of "
            f"{model.attention_width}, so devices can't share them; use another model"
        )
    return replace(
        model,
        n_heads=model.n_heads // devices,
        kv_heads=model.kv_heads and ceil(model.kv_heads / devices),  # some have the same ones
        d_head=model.attention_width // model.n_heads,
        d_ff=model.mlp_width // devices,
        vocab=ceil(model.vocab / devices),  # padded, so that all parts are equal
    )


def _parameters(
    tape: Tape, model: ModelShape, recipe: Recipe, stage: PipelineStage
) -> dict[str, Value]:
    """Put the parameters on the tape, including adapters and scales of quantized matrices."""
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
    """Whether a parameter is the matrix of a block's linear layer."""
    return tensor.component in ("attention", "mlp") and len(tensor.shape) == 2


def _adapted(model: ModelShape, recipe: Recipe, stage: PipelineStage) -> list[ParameterTensor]:
    """Return the matrices that get adapters."""
    if not recipe.lora_rank:
        return []
    linear = [tensor for tensor in stage_tensors(model, stage) if _is_matrix(tensor)]

    def module(tensor: ParameterTensor) -> str:  # the module's name within a layer
        return tensor.name.removeprefix(f"{tensor.layer}.").removesuffix(".weight")

    targets = adapted_layers(recipe.lora_targets, map(module, linear))
    return [tensor for tensor in linear if module(tensor) in targets]


def _states(tape: Tape, trained: list[Value], recipe: Recipe, counters: bool) -> None:
    """Put master weights and optimizer state on the tape, unless the host holds them."""
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
        uncounted = "momentum" in states  # SGD, Lion and Muon have no step counter
        if states and counters and not uncounted:
            put(f"{name} (step)", "optimizer_state", (), "fp32")
