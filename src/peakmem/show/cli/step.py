"""The options of `peakmem estimate`, in groups, and the training step that they describe.

A new option is a field of `Step`. One with the name of a field of `Recipe` reaches the recipe by
itself.
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

GIVEN = "--memory"  # the source of a memory that the user gave


def _group(title: str) -> Any:
    """Return the function that declares an option of this group: its help, names and the rest."""

    def option(text: str, *names: str, **rest: Any) -> Any:
        return typer.Option(*names, help=text, rich_help_panel=title, **rest)

    return option


_what, _where, _how = _group("The model"), _group("The device"), _group("The training")
_text, _kept = _group("Text instead of training"), _group("What is kept")
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


_PATH = "A Hugging Face config.json, its folder, or a model id in the local cache."
_GPU = "Such as a100-80gb; without it, the smallest that fits is named."
_N: dict[str, Any] = {"metavar": "N"}


@dataclass(frozen=True, kw_only=True)
class Step:
    """One training step, as a command line describes it."""

    model: Annotated[str | None, _what("Such as gpt3-175b.", autocompletion=_models)] = None
    config: Annotated[str | None, _what(_PATH, metavar="PATH")] = None
    show_list: Annotated[bool, _what("List models and GPUs, with their memory.", "--list")] = False

    gpu: Annotated[str | None, _where(_GPU, autocompletion=_gpus)] = None
    memory: Annotated[
        str | None, _where("Of one device, such as 40GiB; also without --gpu.", metavar="SIZE")
    ] = None

    precision: Annotated[str, _how("Such as amp_fp16.", autocompletion=_precisions)] = (
        Recipe.precision
    )
    optimizer: Annotated[str, _how("Such as adam.", autocompletion=_optimizers)] = Recipe.optimizer
    implementation: Annotated[str | None, _how("Of the optimizer: for-loop, foreach or fused.")] = (
        None
    )
    batch: Annotated[int, _how("Sequences a step on each replica.", **_N)] = Recipe.batch
    sequence: Annotated[int, _how("Tokens a sequence.", "--seq", **_N)] = Recipe.sequence
    largest_batch: Annotated[
        bool, _how("Say how many sequences fit at once.", "--largest-batch")
    ] = False
    micro_batches: Annotated[int, _how("Parts the batch is cut into.", **_N)] = Recipe.micro_batches
    attention: Annotated[str, _how("standard or flash.")] = Recipe.attention
    dropout: Annotated[float, _how("Probability of a mask.", **_N)] = Recipe.dropout
    lora_rank: Annotated[int, _how("Train adapters of this rank only.", metavar="R")] = (
        Recipe.lora_rank
    )
    lora_targets: Annotated[
        str, _how("Such as q_proj,v_proj, attention or all-linear.", metavar="NAMES")
    ] = ",".join(Recipe.lora_targets)
    quantized_base: Annotated[
        str | None, _how("Of adapters, or to generate with: int8, nf4 or fp8_e4m3.")
    ] = None
    loss_chunks: Annotated[int, _how("Parts of head and loss.", **_N)] = Recipe.loss_chunks

    inference: Annotated[bool, _text("Generate text; no training.", "--inference")] = False
    context: Annotated[
        int | None, _text("Tokens in each sequence's KV cache.", metavar="TOKENS")
    ] = None

    checkpointing: Annotated[str, _kept("none, selective, every_k or full.")] = Recipe.checkpointing
    checkpoint_every: Annotated[int, _kept("Under every_k.", metavar="LAYERS")] = (
        Recipe.checkpoint_every
    )
    offload: Annotated[bool, _kept("The optimizer works on the host.", "--offload")] = False

    data: Annotated[int, _many("Replicas.", "--data-parallel", **_N)] = 1
    zero: Annotated[int, _many("0, 1, 2 or 3.", metavar="STAGE")] = 0
    tensor: Annotated[int, _many("Parts of each layer.", "--tensor-parallel", **_N)] = 1
    cut_sequence: Annotated[
        bool, _many("Cut the sequence between those parts, too.", "--sequence-parallel")
    ] = False
    pipeline: Annotated[int, _many("Stages of layers, 1F1B.", **_N)] = 1
    context_devices: Annotated[
        int, _many("Parts of each sequence.", "--context-parallel", **_N)
    ] = 1
    context_method: Annotated[
        str, _many("Of those parts: ring (attention) or ulysses.", metavar="NAME")
    ] = Parallelism.context_method
    expert: Annotated[int, _many("Devices that share the experts.", "--expert-parallel", **_N)] = 1

    trace: Annotated[
        bool, _output("Of a config: run transformers' class, without its memory.", "--trace")
    ] = False
    by: Annotated[str, _output("Second table: by layer or module.", metavar="WHAT")] = "layer"
    plot: Annotated[
        str | None, _output("Draw who holds the peak, as .png, .svg or .pdf.", metavar="FILE")
    ] = None
    json: Annotated[bool, _output("Print figures for programs, in bytes.", "--json")] = False
    export: Annotated[
        str | None, _output("Print a file for accelerate, deepspeed or fsdp.", metavar="KIND")
    ] = None
    quiet: Annotated[bool, _output("Print only whether it fits.", "--quiet", "-q")] = False

    def __post_init__(self) -> None:
        for one, other in (("model", "config"), ("json", "export"), ("json", "quiet")):
            if getattr(self, one) and getattr(self, other):
                raise ValueError(f"--{one} and --{other} exclude each other; leave one out")
        if self.by not in (known := ("layer", "module")):
            raise ValueError(
                f"--by {self.by!r} is unknown{did_you_mean(self.by, known)}; use layer or module"
            )

    @property
    def recipe(self) -> Recipe:
        """How one device trains; ValueError for a value that makes no sense."""
        names = {field.name for field in fields(self)}
        shared = [field.name for field in fields(Recipe) if field.name in names]
        given = {name: getattr(self, name) for name in shared}
        return Recipe(**given | {"lora_targets": read_targets(self.lora_targets)})

    @property
    def parallelism(self) -> Parallelism:
        """How many devices share the work; ValueError likewise."""
        shared = ("data", "zero", "tensor", "pipeline", "context_method", "expert")
        cuts = {name: getattr(self, name) for name in shared}
        return Parallelism(**cuts, sequence=self.cut_sequence, context=self.context_devices)

    @property
    def device(self) -> Accelerator | None:
        """The device that --gpu and --memory describe; None if neither is given."""
        from peakmem.core.units import parse
        from peakmem.specs.hardware import Memory, accelerator, unnamed

        named = accelerator(self.gpu) if self.gpu is not None else None
        if self.memory is None:
            return named
        n_bytes = parse(self.memory)
        if n_bytes < 1:
            raise ValueError("--memory is 0 bytes, and nothing fits into that; give at least 1B")
        if named is None:
            return unnamed(n_bytes, GIVEN)
        return replace(named, memory=Memory(n_bytes, GIVEN, reported=False))
