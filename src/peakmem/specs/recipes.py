"""How one device trains (`Recipe`), and how many devices share the work (`Parallelism`), as data.

A recipe and a model's shape fix every tensor of a training step. What a library makes of a recipe
(which tensors it keeps, which temporaries it needs) is not said here but in `predict`'s profiles.

Long because names and checks are a recipe's and its devices' alike, and are read side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod
from types import MappingProxyType
from typing import Literal, get_args

from peakmem.core.errors import did_you_mean, require_whole
from peakmem.numbers.formats import FORMATS

__all__ = [
    "OPTIMIZERS",
    "PRECISIONS",
    "Parallelism",
    "Precision",
    "Recipe",
    "quantized_scales",
    "state_shapes",
    "storage_bytes",
]

# Bits of one element of what `formats` does not describe: integers and truth values.
_INTEGER_BITS = {"int64": 64, "int32": 32, "int8": 8, "uint8": 8, "int4": 4, "nf4": 4, "bool": 8}


@dataclass(frozen=True)
class Precision:
    """The formats of a recipe: what is stored, and what forward and backward compute in."""

    weights: str
    gradients: str
    #: Of a second copy of the weights, which the optimizer updates; None if there is none.
    master: str | None
    states: str
    compute: str
    #: Whether the operators on torch's lists cast their inputs to `compute` as they run. If not,
    #: everything is in `compute` from the start.
    autocast: bool = False


PRECISIONS: Mapping[str, Precision] = MappingProxyType(
    {
        "fp32": Precision("fp32", "fp32", None, "fp32", "fp32"),
        # torch.autocast: weights stay in fp32, 16-bit copies of them are made as they are needed.
        "amp_fp16": Precision("fp32", "fp32", None, "fp32", "fp16", autocast=True),
        "amp_bf16": Precision("fp32", "fp32", None, "fp32", "bf16", autocast=True),
        # Micikevicius et al. 2018 and ZeRO: 16-bit weights beside fp32 masters, 16 bytes in all.
        "mixed": Precision("fp16", "fp16", "fp32", "fp32", "fp16"),
        "mixed_fp32_grads": Precision("bf16", "fp32", "fp32", "fp32", "bf16"),
        "bf16": Precision("bf16", "bf16", None, "bf16", "bf16"),
    }
)

# Optimizers, with what each keeps for a parameter beside the parameter itself.
OPTIMIZERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "sgd": (),
        "momentum": ("momentum",),
        "adam": ("first_moment", "second_moment"),
        "adamw": ("first_moment", "second_moment"),
        "adafactor": ("row_moment", "column_moment"),
        "adam8bit": ("first_moment", "second_moment", "first_scale", "second_scale"),
        "lion": ("momentum",),  # Chen et al. 2023
        "muon": ("momentum",),  # of layers' matrices; all else is trained by AdamW beside it
        "lomo": (),  # Lv et al. 2023: each gradient is used, and gone, as soon as it is complete
    }
)

Implementation = Literal["for-loop", "foreach", "fused"]
Attention = Literal["standard", "flash"]
Checkpointing = Literal["none", "selective", "every_k", "full"]
Quantized = Literal["int8", "nf4", "fp8_e4m3"]
ContextMethod = Literal["ring", "ulysses"]


@dataclass(frozen=True)
class Recipe:
    """One device's training step.

    Raises ValueError for a value out of range, with the range.

    >>> Recipe(precision="amp_bf16", batch=8, micro_batches=4, sequence=512).micro_batch
    2
    """

    #: A key of PRECISIONS.
    precision: str = "fp32"
    #: A key of OPTIMIZERS.
    optimizer: str = "adamw"
    #: How torch runs its step; None for the profile's own default (a loop over parameters on
    #: the CPU, all at once, "foreach", on CUDA).
    implementation: Implementation | None = None
    #: Sequences a step on this device, all micro-batches together.
    batch: int = 1
    #: Tokens a sequence.
    sequence: int = 1024
    #: Equal parts that the batch is cut into; gradients add up over them.
    micro_batches: int = 1
    #: "standard" keeps the scores' matrices, "flash" does not.
    attention: Attention = "flash"
    #: Equal parts of a micro-batch's tokens that the head and the loss take one after another.
    #: From 2 on, logits are not kept: backward makes each part's again.
    loss_chunks: int = 1
    #: Probability; anything above 0 means masks.
    dropout: float = 0.0
    #: What is kept for backward: "none" keeps everything, "selective" leaves out what attention
    #: makes between queries, keys and values and its result, "full" keeps only each layer's
    #: input, "every_k" the input of every `checkpoint_every` layers.
    checkpointing: Checkpointing = "none"
    #: Length of a segment under "every_k".
    checkpoint_every: int = 1
    #: Whether the host's memory has the optimizer's state and the masters, and takes each
    #: gradient as soon as it is complete (ZeRO-Offload, Ren et al. 2021).
    offload: bool = False
    #: Rank of the adapters beside `lora_targets`; all other parameters are frozen then (LoRA,
    #: Hu et al. 2022). 0 trains the model itself.
    lora_rank: int = 0
    #: Layers that get one, by name or by kind: see `specs.adapters`.
    lora_targets: tuple[str, ...] = ("attention.qkv",)
    #: The blocks' frozen matrices in 8 bits with a scale a row ("int8", Dettmers et al. 2022),
    #: or in 4 with scales that are quantized too ("nf4", QLoRA, Dettmers et al. 2023), or in fp8
    #: with a scale for each block of 128 x 128 ("fp8_e4m3", DeepSeek-V3); None for as they are.
    quantized_base: Quantized | None = None

    def __post_init__(self) -> None:
        _require_one_of("precision", self.precision, PRECISIONS)
        _require_one_of("optimizer", self.optimizer, OPTIMIZERS)
        _require_one_of(
            "implementation", self.implementation, (None, "for-loop", "foreach", "fused")
        )
        _require_one_of("attention", self.attention, ("standard", "flash"))
        _require_one_of(
            "checkpointing", self.checkpointing, ("none", "selective", "every_k", "full")
        )
        for name in ("batch", "sequence", "micro_batches", "checkpoint_every", "loss_chunks"):
            require_whole(name, getattr(self, name))
        if self.batch % self.micro_batches:
            raise ValueError(
                f"a batch of {self.batch} cannot be cut into {self.micro_batches} equal parts; "
                "let micro_batches divide batch"
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"expected dropout from 0 to below 1, but got {self.dropout!r}")
        if self.checkpointing == "full" and self.checkpoint_every != 1:
            raise ValueError(
                "checkpointing='full' has segments of 1 layer; use 'every_k' for "
                f"checkpoint_every={self.checkpoint_every}"
            )
        tokens = self.micro_batch * self.sequence
        if tokens % self.loss_chunks:
            raise ValueError(
                f"a micro-batch of {tokens} tokens cannot be cut into {self.loss_chunks} equal "
                "parts; let loss_chunks divide them"
            )
        if self.optimizer == "lomo" and self.micro_batches > 1:
            raise ValueError(
                "lomo uses each gradient at once and cannot add them up; use micro_batches=1"
            )
        _require_one_of("quantized_base", self.quantized_base, (None, *get_args(Quantized)))
        if isinstance(self.lora_rank, bool) or self.lora_rank < 0:
            raise ValueError(f"expected lora_rank of 0 or more, but got {self.lora_rank!r}")
        if self.quantized_base and not self.lora_rank:
            raise ValueError(
                "a quantized base cannot be trained itself; give it adapters, such as lora_rank=16"
            )

    @property
    def micro_batch(self) -> int:
        """Sequences in one micro-batch."""
        return self.batch // self.micro_batches

    @property
    def segment(self) -> int:
        """Layers of a checkpointed segment; 0 where whole layers are kept."""
        return self.checkpoint_every if self.checkpointing in ("every_k", "full") else 0

    @property
    def keeps_gradients(self) -> bool:
        """Whether all gradients are there together when backward ends."""
        return not self.offload and self.optimizer != "lomo"

    @property
    def formats(self) -> Precision:
        """What the precision's name stands for."""
        return PRECISIONS[self.precision]


@dataclass(frozen=True)
class Parallelism:
    """Devices that share a training step.

    >>> Parallelism(data=64, zero=3).devices
    64
    """

    #: Replicas that each take a batch of their own.
    data: int = 1
    #: Stage of ZeRO over `shards`: what is cut among them is the optimizer's state and masters
    #: (1), gradients too (2), parameters too (3), or nothing (0).
    zero: Literal[0, 1, 2, 3] = 0
    #: Devices that share each layer's matrices.
    tensor: int = 1
    #: Whether they also share what lies between the matrices (Korthikanti et al. 2022).
    sequence: bool = False
    #: Devices that share the layers.
    pipeline: int = 1
    #: Devices that share each sequence's tokens.
    context: int = 1
    #: How their attention sees all tokens: keys and values travel around a ring (Liu et al. 2023,
    #: Ring Attention), or tokens are exchanged for heads and back (Jacobs et al. 2023, DeepSpeed
    #: Ulysses).
    context_method: ContextMethod = "ring"
    #: Replicas that share a layer's experts (Lepikhin et al. 2021, GShard); what is no expert they
    #: all have.
    expert: int = 1

    def __post_init__(self) -> None:
        for name in ("data", "tensor", "pipeline", "context", "expert"):
            require_whole(name, getattr(self, name))
        _require_one_of("zero", self.zero, (0, 1, 2, 3))
        _require_one_of("context_method", self.context_method, get_args(ContextMethod))
        if self.shards % self.expert:
            raise ValueError(
                f"{self.shards} replicas cannot share experts {self.expert} at a time; let expert "
                "divide data times context"
            )

    @property
    def devices(self) -> int:
        """All of them."""
        return self.shards * self.tensor * self.pipeline

    @property
    def shards(self) -> int:
        """Devices with the same weights, which ZeRO cuts among them: data times context."""
        return self.data * self.context

    @property
    def gathers(self) -> bool:
        """Whether parameters are cut, and gathered where they are needed."""
        return self.zero == 3 and self.shards > 1


def storage_bytes(elements: int, dtype: str) -> int:
    """Return the bytes of so many elements, rounded up; ValueError for an unknown dtype.

    >>> storage_bytes(3, "bf16"), storage_bytes(3, "int4")
    (6, 2)
    """
    if dtype in FORMATS:
        bits = 32 if dtype == "tf32" else FORMATS[dtype].width  # tf32 lies in memory as fp32
    else:
        _require_one_of("dtype", dtype, _INTEGER_BITS)
        bits = _INTEGER_BITS[dtype]
    return ceil(elements * bits / 8)


def quantized_scales(shape: tuple[int, ...], dtype: str) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return what a quantized matrix keeps beside its codes: name -> (shape, dtype).

    "int8" has one fp32 scale a row. "nf4" has an 8-bit scale for each block of 64 elements, and an
    fp32 scale for each 256 of those (QLoRA, section 3): 0.127 bits a parameter. "fp8_e4m3" has an
    fp32 scale for each block of 128 x 128 (DeepSeek-V3, section 3.3.2).

    >>> quantized_scales((128, 64), "nf4")["scales"]
    ((128,), 'uint8')
    """
    if dtype == "int8":
        return {"scales": (shape[:-1], "fp32")}
    if dtype == "fp8_e4m3":
        blocks_2d = (ceil(shape[-2] / 128), ceil(shape[-1] / 128))
        return {"scales": ((*shape[:-2], *blocks_2d), "fp32")}
    blocks = ceil(prod(shape) / 64)
    return {"scales": ((blocks,), "uint8"), "scales of scales": ((ceil(blocks / 256),), "fp32")}


def state_shapes(
    optimizer: str, shape: tuple[int, ...], dtype: str, *, in_layer: bool = True
) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return the optimizer's state of one parameter: name -> (shape, dtype), counters left out.

    Adafactor factors what has two dimensions or more into means over the last and over the one
    before it (Shazeer and Stern 2018), and keeps no first moment. 8-bit Adam has one fp32 scale
    for each block of 256 elements (Dettmers et al. 2022), its tables of codes left out. Muon has
    its momentum for matrices `in_layer`; vectors, embeddings and heads have AdamW's state (Jordan
    et al. 2024).

    >>> state_shapes("adafactor", (100, 64), "fp32")["row_moment"]
    ((100, 1), 'fp32')
    """
    _require_one_of("optimizer", optimizer, OPTIMIZERS)
    names = OPTIMIZERS[optimizer]
    if optimizer == "muon" and not (in_layer and len(shape) >= 2):
        names = OPTIMIZERS["adamw"]
    if optimizer == "adam8bit":
        scales = (ceil(prod(shape) / 256),)
        return {
            name: (scales, "fp32") if name.endswith("scale") else (shape, "uint8") for name in names
        }
    if optimizer == "adafactor" and len(shape) >= 2:
        shapes = ((*shape[:-1], 1), (*shape[:-2], 1, shape[-1]))
        return {name: (part, dtype) for name, part in zip(names, shapes, strict=True)}
    if optimizer == "adafactor":
        return {"second_moment": (shape, dtype)}
    return dict.fromkeys(names, (shape, dtype))


def _require_one_of(name: str, value: object, known: object) -> None:
    choices = list(known)  # type: ignore[call-overload]
    if value not in choices:
        raise ValueError(
            f"{name}={value!r} is unknown{did_you_mean(value, choices)}; "
            f"use one of {', '.join(map(repr, choices))}"
        )
