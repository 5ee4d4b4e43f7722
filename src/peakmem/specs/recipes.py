"""How a device trains (`Recipe`), and how devices share the work (`Parallelism`), as data.

A recipe and a model's shape determine every tensor of a training step. The profiles in `predict`
add how a library implements a recipe: which tensors it saves, and which temporaries it needs.

Long because a recipe's checks and those of its devices share names and are read side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil, prod
from types import MappingProxyType
from typing import Literal, get_args

from peakmem.core.errors import require_one_of, require_whole
from peakmem.numbers.formats import FORMATS

__all__ = [
    "MOST_MICRO_BATCHES",
    "OPTIMIZERS",
    "PRECISIONS",
    "Parallelism",
    "Precision",
    "Recipe",
    "quantized_scales",
    "state_shapes",
    "storage_bytes",
]

_MOST = 2**24  # sequences of a batch, or tokens of a sequence
#: The most micro-batches of a step; each is played.
MOST_MICRO_BATCHES = 1024

# Bits of an element, for dtypes that aren't in `formats`: integers and booleans.
_INTEGER_BITS = {"int64": 64, "int32": 32, "int8": 8, "uint8": 8, "int4": 4, "nf4": 4, "bool": 8}


@dataclass(frozen=True, kw_only=True)
class Precision:
    """A recipe's formats: for storage, and for forward and backward."""

    #: Format of the stored weights.
    weights: str
    #: Format of the gradients.
    gradients: str
    #: Format of the master weights, which the optimizer updates; None if there are none.
    master: str | None = None
    #: Format of the optimizer's states.
    states: str
    #: Format of forward and backward.
    compute: str
    #: Whether operators on autocast's lists cast their inputs to `compute` when they run. If not,
    #: everything is in `compute` from the start.
    autocast: bool = False


_fp32_storage = partial(Precision, weights="fp32", gradients="fp32", states="fp32")
_fp32_master = partial(Precision, master="fp32", states="fp32")

PRECISIONS: Mapping[str, Precision] = MappingProxyType(
    {
        "fp32": _fp32_storage(compute="fp32"),
        # torch.autocast: weights stay in fp32, and operators make 16-bit copies as they need them.
        "amp_fp16": _fp32_storage(compute="fp16", autocast=True),
        "amp_bf16": _fp32_storage(compute="bf16", autocast=True),
        # Micikevicius et al. 2018 and ZeRO: 16-bit weights, fp32 master weights; 16 bytes in all.
        "mixed": _fp32_master(weights="fp16", gradients="fp16", compute="fp16"),
        "mixed_fp32_grads": _fp32_master(weights="bf16", gradients="fp32", compute="bf16"),
        "bf16": Precision(weights="bf16", gradients="bf16", states="bf16", compute="bf16"),
    }
)

# Optimizer -> its state of one parameter.
OPTIMIZERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "sgd": (),
        "momentum": ("momentum",),
        "adam": ("first_moment", "second_moment"),
        "adamw": ("first_moment", "second_moment"),
        "adafactor": ("row_moment", "column_moment"),
        "adam8bit": ("first_moment", "second_moment", "first_scale", "second_scale"),
        "lion": ("momentum",),  # Chen et al. 2023
        "muon": ("momentum",),  # for layers' matrices; AdamW trains everything else
        "lomo": (),  # Lv et al. 2023: updates with each gradient as soon as it is complete
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

    Raises ValueError, with the range, if a value is out of range.

    >>> Recipe(precision="amp_bf16", batch=8, micro_batches=4, sequence=512).micro_batch
    2
    """

    #: A key of PRECISIONS.
    precision: str = "fp32"
    #: A key of OPTIMIZERS.
    optimizer: str = "adamw"
    #: How torch runs the optimizer's step; None for the profile's default ("for-loop" on the CPU,
    #: "foreach" on CUDA).
    implementation: Implementation | None = None
    #: Sequences per step on this device, all micro-batches together.
    batch: int = 1
    #: Tokens per sequence.
    sequence: int = 1024
    #: Equal parts that the batch is cut into; gradients accumulate over them.
    micro_batches: int = 1
    #: "standard" saves the matrices of scores, "flash" doesn't.
    attention: Attention = "flash"
    #: Equal parts of a micro-batch's tokens that the head and the loss process in turn. From 2 on,
    #: logits aren't saved: backward recomputes each part's.
    loss_chunks: int = 1
    #: Probability; anything above 0 means masks.
    dropout: float = 0.0
    #: What is saved for backward. "none" saves everything. "selective" leaves out attention's
    #: tensors between queries, keys and values and its result. "full" saves only each layer's
    #: input, and "every_k" the input of every `checkpoint_every` layers.
    checkpointing: Checkpointing = "none"
    #: Layers in a segment under "every_k".
    checkpoint_every: int = 1
    #: Whether host memory holds the optimizer state and the master weights, and takes each gradient
    #: as soon as it is complete (ZeRO-Offload, Ren et al. 2021).
    offload: bool = False
    #: Rank of the adapters of `lora_targets`; all other parameters are then frozen (LoRA, Hu et al.
    #: 2022). 0 trains the model itself.
    lora_rank: int = 0
    #: Layers that get adapters, by name or by kind: see `specs.adapters`.
    lora_targets: tuple[str, ...] = ("attention.qkv",)
    #: Format of the blocks' frozen matrices: 8 bits with a scale for each row ("int8", Dettmers et
    #: al. 2022), 4 bits with quantized scales ("nf4", QLoRA, Dettmers et al. 2023), or fp8 with a
    #: scale for each block of 128 x 128 ("fp8_e4m3", DeepSeek-V3); None if not quantized.
    quantized_base: Quantized | None = None

    def __post_init__(self) -> None:
        require_one_of("precision", self.precision, PRECISIONS)
        require_one_of("optimizer", self.optimizer, OPTIMIZERS)
        require_one_of("implementation", self.implementation, (None, *get_args(Implementation)))
        require_one_of("attention", self.attention, get_args(Attention))
        require_one_of("checkpointing", self.checkpointing, get_args(Checkpointing))
        for name in ("batch", "sequence", "micro_batches", "checkpoint_every", "loss_chunks"):
            require_whole(name, getattr(self, name))
        if max(self.batch, self.sequence) > _MOST or self.micro_batches > MOST_MICRO_BATCHES:
            raise ValueError(
                f"batch={self.batch}, sequence={self.sequence} and "
                f"micro_batches={self.micro_batches} are too large to play; give at most {_MOST} "
                f"sequences, {_MOST} tokens each, and {MOST_MICRO_BATCHES} micro-batches, because "
                "all after the third take the same memory"
            )
        if self.batch % self.micro_batches:
            raise ValueError(
                f"a batch of {self.batch} can't be cut into {self.micro_batches} equal parts; "
                "choose micro_batches that divide batch"
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"expected dropout from 0 to below 1, but got {self.dropout!r}")
        if self.checkpointing == "full" and self.checkpoint_every != 1:
            raise ValueError(
                f"checkpoint_every={self.checkpoint_every} contradicts checkpointing='full', whose "
                "segments have 1 layer; use 'every_k'"
            )
        tokens = self.micro_batch * self.sequence
        if tokens % self.loss_chunks:
            raise ValueError(
                f"a micro-batch of {tokens} tokens can't be cut into {self.loss_chunks} equal "
                "parts; choose loss_chunks that divide them"
            )
        if self.optimizer == "lomo" and self.micro_batches > 1:
            raise ValueError(
                f"lomo can't accumulate gradients over micro_batches={self.micro_batches}, because "
                "it uses each gradient at once; use micro_batches=1"
            )
        require_one_of("quantized_base", self.quantized_base, (None, *get_args(Quantized)))
        if isinstance(self.lora_rank, bool) or self.lora_rank < 0:
            raise ValueError(f"expected lora_rank of 0 or more, but got {self.lora_rank!r}")
        if self.quantized_base and not self.lora_rank:
            raise ValueError(
                f"a base in {self.quantized_base!r} can't be trained itself; give it adapters, "
                "such as lora_rank=16"
            )

    @property
    def micro_batch(self) -> int:
        """Sequences in one micro-batch."""
        return self.batch // self.micro_batches

    @property
    def segment(self) -> int:
        """Layers in a checkpointed segment; 0 if layers aren't checkpointed as a whole."""
        return self.checkpoint_every if self.checkpointing in ("every_k", "full") else 0

    @property
    def keeps_gradients(self) -> bool:
        """Whether all gradients coexist when backward ends."""
        return not self.offload and self.optimizer != "lomo"

    @property
    def formats(self) -> Precision:
        """The formats that `precision` names."""
        return PRECISIONS[self.precision]


@dataclass(frozen=True)
class Parallelism:
    """Devices that share a training step. Raises ValueError if a value is out of range.

    >>> Parallelism(data=64, zero=3).devices
    64
    """

    #: Replicas that each take a batch of their own.
    data: int = 1
    #: Stage of ZeRO over the `shards`, which share nothing (0), optimizer state and master weights
    #: (1), gradients too (2), parameters too (3).
    zero: Literal[0, 1, 2, 3] = 0
    #: Devices that share each layer's matrices.
    tensor: int = 1
    #: Whether they also share the activations between the matrices (Korthikanti et al. 2022).
    sequence: bool = False
    #: Devices that share the layers.
    pipeline: int = 1
    #: Devices that share each sequence's tokens.
    context: int = 1
    #: How their attention sees all tokens: keys and values travel around a ring (Liu et al. 2023,
    #: Ring Attention), or tokens are exchanged for heads and back (Jacobs et al. 2023, DeepSpeed
    #: Ulysses).
    context_method: ContextMethod = "ring"
    #: Replicas that share a layer's experts (Lepikhin et al. 2021, GShard); they all have
    #: the other weights.
    expert: int = 1

    def __post_init__(self) -> None:
        for name in ("data", "tensor", "pipeline", "context", "expert"):
            require_whole(name, getattr(self, name))
        require_one_of("zero", self.zero, (0, 1, 2, 3))
        require_one_of("context_method", self.context_method, get_args(ContextMethod))
        if self.shards % self.expert:
            raise ValueError(
                f"expert={self.expert} doesn't divide the {self.shards} replicas with experts; "
                "choose a divisor of data times context"
            )

    @property
    def devices(self) -> int:
        """Number of devices."""
        return self.shards * self.tensor * self.pipeline

    @property
    def shards(self) -> int:
        """Devices with the same weights, over which ZeRO shards state: data times context."""
        return self.data * self.context

    @property
    def gathers(self) -> bool:
        """Whether parameters are sharded, and gathered when they are needed."""
        return self.zero == 3 and self.shards > 1


def storage_bytes(elements: int, dtype: str) -> int:
    """Return the bytes of `elements` elements, rounded up. Raises ValueError for unknown dtypes.

    >>> storage_bytes(3, "bf16"), storage_bytes(3, "int4")
    (6, 2)
    >>> storage_bytes(2**54 + 1, "int4") - 2**53
    1
    """
    if dtype in FORMATS:
        bits = 32 if dtype == "tf32" else FORMATS[dtype].width  # tf32 is stored as fp32
    else:
        require_one_of("dtype", dtype, _INTEGER_BITS)
        bits = _INTEGER_BITS[dtype]
    return -(-elements * bits // 8)


def quantized_scales(shape: tuple[int, ...], dtype: str) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return the tensors of a quantized matrix besides its codes: name -> (shape, dtype).

    "int8" has one fp32 scale for each row. "nf4" has an 8-bit scale for each block of 64 elements,
    and an fp32 scale for every 256 of those: 0.127 bits per parameter (QLoRA, section 3).
    "fp8_e4m3" has an fp32 scale for each block of 128 x 128 (DeepSeek-V3, section 3.3.2).

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
    """Return the optimizer state of one parameter: name -> (shape, dtype), without step counters.

    Adafactor factors tensors of two or more dimensions into means over the last and over the
    second-to-last dimension (Shazeer and Stern 2018), and has no first moment. 8-bit Adam has one
    fp32 scale for each block of 256 elements (Dettmers et al. 2022); its code tables are left out.
    Muon has momentum for matrices `in_layer`; vectors, embeddings and heads have AdamW's state
    (Jordan et al. 2024).

    Raises ValueError if the optimizer is unknown.

    >>> state_shapes("adafactor", (100, 64), "fp32")["row_moment"]
    ((100, 1), 'fp32')
    """
    require_one_of("optimizer", optimizer, OPTIMIZERS)
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
