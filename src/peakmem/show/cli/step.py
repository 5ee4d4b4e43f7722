"""The options of `peakmem estimate` in groups, and the training step they describe.

To add an option, add a field to `Step`. If `Recipe` has a field of the same name, the value
reaches the recipe automatically.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from peakmem.core.errors import did_you_mean
from peakmem.specs.adapters import read_targets
from peakmem.specs.recipes import OPTIMIZERS, PRECISIONS, Parallelism, Recipe

if TYPE_CHECKING:
    from peakmem.specs.hardware import Accelerator

__all__ = ["GIVEN", "Step"]

GIVEN = "--memory"  # the source of a memory size that the user gave


def _group(title: str) -> Any:
    """Return a function that declares an option of this group: its help, names and settings."""

    def option(text: str, *names: str, **rest: Any) -> Any:
        return typer.Option(*names, help=text, rich_help_panel=title, **rest)

    return option


_what, _where, _how = _group("The model"), _group("The device"), _group("The training")
_text, _kept = _group("Inference"), _group("Saved activations and state")
_many, _output = _group("Many devices"), _group("The output")


def _models() -> Iterable[str]:
    from peakmem.specs.models import MODELS

    return list(MODELS)


def _gpus() -> Iterable[str]:
    from peakmem.specs.hardware import ACCELERATORS

    return list(ACCELERATORS)


def _precisions() -> Iterable[str]:
    return list(PRECISIONS)


def _optimizers() -> Iterable[str]:
    return list(OPTIMIZERS)


_PATH = "Hugging Face config.json, its folder, or a cached model's id."
_GPU = "GPU, such as a100-80gb; by default, the smallest that fits."
_N: dict[str, Any] = {"metavar": "N"}


@dataclass(frozen=True, kw_only=True)
class Step:
    """The training step that a command line describes."""

    model: Annotated[
        str | None, _what("Known model, such as gpt3-175b.", autocompletion=_models)
    ] = None
    config: Annotated[str | None, _what(_PATH, metavar="PATH")] = None
    show_list: Annotated[
        bool, _what("List known models, and GPUs with their memory.", "--list")
    ] = False

    gpu: Annotated[str | None, _where(_GPU, autocompletion=_gpus)] = None
    memory: Annotated[
        str | None,
        _where("Memory of one device, such as 40GiB; works without --gpu.", metavar="SIZE"),
    ] = None

    precision: Annotated[
        str, _how("Number formats, such as amp_fp16.", autocompletion=_precisions)
    ] = Recipe.precision
    optimizer: Annotated[str, _how("Optimizer, such as adam.", autocompletion=_optimizers)] = (
        Recipe.optimizer
    )
    implementation: Annotated[str | None, _how("Implementation: for-loop, foreach or fused.")] = (
        None
    )
    batch: Annotated[int, _how("Sequences per step on each replica.", **_N)] = Recipe.batch
    sequence: Annotated[int, _how("Tokens per sequence.", "--seq", **_N)] = Recipe.sequence
    largest_batch: Annotated[
        bool, _how("Print the largest batch that fits.", "--largest-batch")
    ] = False
    micro_batches: Annotated[int, _how("Micro-batches per batch.", **_N)] = Recipe.micro_batches
    attention: Annotated[str, _how("Attention: standard or flash.")] = Recipe.attention
    dropout: Annotated[float, _how("Dropout probability.", metavar="P")] = Recipe.dropout
    lora_rank: Annotated[int, _how("Train only adapters of this rank.", metavar="R")] = (
        Recipe.lora_rank
    )
    lora_targets: Annotated[
        str,
        _how("Layers with adapters: q_proj,v_proj, attention, all-linear, ...", metavar="NAMES"),
    ] = ",".join(Recipe.lora_targets)
    quantized_base: Annotated[
        str | None, _how("Format of frozen or inference weights: int8, nf4 or fp8_e4m3.")
    ] = None
    loss_chunks: Annotated[int, _how("Number of parts for head and loss.", **_N)] = (
        Recipe.loss_chunks
    )

    inference: Annotated[
        bool, _text("Predict inference instead of a training step.", "--inference")
    ] = False
    context: Annotated[
        int | None, _text("Tokens in each sequence's KV cache.", metavar="TOKENS")
    ] = None

    checkpointing: Annotated[str, _kept("Checkpointing: none, selective, every_k or full.")] = (
        Recipe.checkpointing
    )
    checkpoint_every: Annotated[
        int, _kept("Layers between checkpoints with every_k.", metavar="LAYERS")
    ] = Recipe.checkpoint_every
    offload: Annotated[bool, _kept("Run the optimizer on the host.", "--offload")] = False

    data: Annotated[int, _many("Number of replicas.", "--data-parallel", **_N)] = 1
    zero: Annotated[int, _many("ZeRO stage: 0, 1, 2 or 3.", metavar="STAGE")] = 0
    tensor: Annotated[int, _many("Devices that share each layer.", "--tensor-parallel", **_N)] = 1
    cut_sequence: Annotated[
        bool, _many("Split the sequence over them, too.", "--sequence-parallel")
    ] = False
    pipeline: Annotated[int, _many("Pipeline stages (1F1B).", **_N)] = 1
    context_devices: Annotated[
        int, _many("Devices that share each sequence.", "--context-parallel", **_N)
    ] = 1
    context_method: Annotated[
        str, _many("How they share it: ring (attention) or ulysses.", metavar="NAME")
    ] = Parallelism.context_method
    expert: Annotated[int, _many("Devices that share the experts.", "--expert-parallel", **_N)] = 1

    trace: Annotated[
        bool, _output("Run the config's class on tensors without memory.", "--trace")
    ] = False
    by: Annotated[str, _output("Second table: by layer or module.", metavar="WHAT")] = "layer"
    plot: Annotated[
        str | None, _output("Plot the peak by owner to a .png, .svg or .pdf file.", metavar="FILE")
    ] = None
    json: Annotated[bool, _output("Print the figures as JSON, in bytes.", "--json")] = False
    export: Annotated[
        str | None, _output("Print a file for accelerate, deepspeed or fsdp.", metavar="KIND")
    ] = None
    quiet: Annotated[bool, _output("Print only whether it fits.", "--quiet", "-q")] = False

    def __post_init__(self) -> None:
        for one, other in (("model", "config"), ("json", "export"), ("json", "quiet")):
            if getattr(self, one) and getattr(self, other):
                raise ValueError(f"--{one} and --{other} can't be combined; leave one out")
        if self.by not in (known := ("layer", "module")):
            raise ValueError(
                f"--by {self.by!r} is unknown{did_you_mean(self.by, known)}; use layer or module"
            )

    @property
    def recipe(self) -> Recipe:
        """How one device trains. Raises ValueError for an invalid value."""
        names = {field.name for field in fields(self)}
        shared = [field.name for field in fields(Recipe) if field.name in names]
        given = {name: getattr(self, name) for name in shared}
        return Recipe(**given | {"lora_targets": read_targets(self.lora_targets)})

    @property
    def parallelism(self) -> Parallelism:
        """How devices share the work. Raises ValueError for an invalid value."""
        shared = ("data", "zero", "tensor", "pipeline", "context_method", "expert")
        cuts = {name: getattr(self, name) for name in shared}
        return Parallelism(**cuts, sequence=self.cut_sequence, context=self.context_devices)

    @property
    def device(self) -> Accelerator | None:
        """The device that --gpu and --memory describe; None without either."""
        from peakmem.core.units import parse
        from peakmem.specs.hardware import Memory, accelerator, unnamed

        named = accelerator(self.gpu) if self.gpu is not None else None
        if self.memory is None:
            return named
        n_bytes = parse(self.memory)
        if n_bytes < 1:
            raise ValueError("--memory is 0 bytes; give at least 1B")
        if named is None:
            return unnamed(n_bytes, GIVEN)
        return replace(named, memory=Memory(n_bytes, GIVEN, reported=False))
