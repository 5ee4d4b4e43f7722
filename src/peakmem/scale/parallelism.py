"""Closed forms for many devices: memory and traffic under ZeRO and tensor parallelism.

These are the formulas as the papers print them. They count model states and the activations saved
for backward, but no temporaries; `predict.build_ledger` plays a whole step on one device.

Sources: Rajbhandari et al. 2020 (ZeRO), Ren et al. 2021 (ZeRO-Offload), Korthikanti et al. 2022
(Reducing Activation Recomputation in Large Transformer Models).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal, get_args

from peakmem.core.errors import require_one_of, require_whole
from peakmem.specs.models import ModelShape

__all__ = [
    "RESIDUAL_STATES",
    "Recompute",
    "ZeroStates",
    "activation_bytes_per_layer",
    "offload_link_bytes",
    "zero_communicated_bytes",
    "zero_states",
]

Recompute = Literal["none", "selective", "full"]

# Bytes per parameter under mixed-precision Adam: fp16 parameters and gradients; fp32 master weights
# and both moments (K = 12).
_PARAMETER, _GRADIENT, _OPTIMIZER = 2, 2, 12


@dataclass(frozen=True)
class ZeroStates:
    """Bytes of model states on one device."""

    #: Bytes of the 16-bit parameters.
    parameters: int
    #: Bytes of the 16-bit gradients.
    gradients: int
    #: Bytes of the optimizer's fp32 states, master weights included.
    optimizer: int

    @property
    def total(self) -> int:
        """All three together."""
        return self.parameters + self.gradients + self.optimizer


@dataclass(frozen=True)
class ResidualState:
    """Memory beyond model states: its cause, and ZeRO-R's remedy."""

    #: What takes the memory.
    name: str
    #: Why it is there.
    cause: str
    #: What ZeRO-R does about it.
    remedy: str


# ZeRO-R, Rajbhandari et al. 2020, sections 4.2 and 6.
RESIDUAL_STATES: tuple[ResidualState, ...] = (
    ResidualState(
        "activations",
        "tensor parallelism keeps a copy of each checkpointed activation on every device",
        "cut the checkpoints among the devices (Pa), or move them to the host (Pa+cpu)",
    ),
    ResidualState(
        "temporary buffers",
        "fused all-reduce and norm computation copy the whole model into one fp32 buffer",
        "give the buffer a constant size (Cb)",
    ),
    ResidualState(
        "fragmented memory",
        "short-lived tensors between long-lived ones leave gaps that no large tensor fits into",
        "copy checkpoints and gradients into memory set aside for them in one piece (Md)",
    ),
)


def zero_states(
    n_parameters: int, devices: int, stage: int, *, offload: bool = False
) -> ZeroStates:
    """Return the bytes of a device's model states under mixed-precision Adam.

    Without ZeRO, a parameter takes 16 bytes. Stage 1 shards the optimizer's 12 bytes over the
    devices, stage 2 gradients too, stage 3 parameters too (figure 1 of the paper). With `offload`,
    the host holds optimizer state and gradients (ZeRO-Offload), and devices hold only parameters.

    Raises ValueError if a count is below 1 or the stage is unknown.

    >>> zero_states(7_500_000_000, devices=64, stage=3).total
    1875000000
    """
    require_whole("n_parameters", n_parameters)
    require_whole("devices", devices)
    require_one_of("stage", stage, (0, 1, 2, 3))
    share = ceil(Fraction(n_parameters, devices))  # the last device may have fewer

    def held(sharded_from: int) -> int:
        return share if stage >= sharded_from else n_parameters

    return ZeroStates(
        parameters=_PARAMETER * held(sharded_from=3),
        gradients=0 if offload else _GRADIENT * held(sharded_from=2),
        optimizer=0 if offload else _OPTIMIZER * held(sharded_from=1),
    )


def offload_link_bytes(n_parameters: int, devices: int = 1) -> int:
    """Return the bytes that cross one device's host link in a step: gradients out, weights in.

    Ren et al. 2021, section 3: 4 bytes per parameter, the least that any such split needs.

    >>> offload_link_bytes(10_000_000_000)
    40000000000
    """
    require_whole("n_parameters", n_parameters)
    require_whole("devices", devices)
    return (_PARAMETER + _GRADIENT) * ceil(Fraction(n_parameters, devices))


def zero_communicated_bytes(n_parameters: int, devices: int, stage: int) -> int:
    """Return the bytes that each device sends in a step, in fp16 and over rings.

    A reduce-scatter or an all-gather of a vector sends (N - 1)/N of it. Plain data parallelism and
    stages 1 and 2 need one of each, so about 2 elements per parameter. Stage 3 gathers the
    parameters twice, for forward and for backward, so about 3 (section 7 of the paper).

    Raises ValueError if a count is below 1 or the stage is unknown.

    >>> zero_communicated_bytes(1_000_000, devices=4, stage=3)
    4500000
    """
    require_whole("n_parameters", n_parameters)
    require_whole("devices", devices)
    require_one_of("stage", stage, (0, 1, 2, 3))
    passes = 3 if stage == 3 else 2
    return ceil(Fraction(passes * _PARAMETER * n_parameters * (devices - 1), devices))


def activation_bytes_per_layer(
    shape: ModelShape,
    batch: int,
    sequence: int,
    *,
    tensor: int = 1,
    sequence_parallel: bool = False,
    recompute: Recompute = "none",
) -> int:
    """Return the bytes that a 16-bit GPT layer with dropout saves for backward on one device.

    Source: Korthikanti et al. 2022, table 2. Tensor parallelism shards all but 10 sbh of the 34
    sbh, and sequence parallelism shards those too. Selective recomputation drops the 5as^2b of
    scores, softmax and its mask; full recomputation keeps only the input.

    Raises ValueError if `tensor` doesn't divide the heads, a count is below 1, or `recompute` is
    unknown.

    >>> from peakmem.specs.models import model
    >>> activation_bytes_per_layer(model("gpt3-175b"), 1, 2048, tensor=8) // 2**20
    552
    """
    for name, value in (("batch", batch), ("sequence", sequence), ("tensor", tensor)):
        require_whole(name, value)
    require_one_of("recompute", recompute, get_args(Recompute))
    if shape.n_heads % tensor:
        raise ValueError(
            f"{shape.name}: {shape.n_heads} heads can't be cut into {tensor} equal parts; choose a "
            "tensor that divides the heads"
        )
    whole = sequence * batch * shape.d_model  # sbh
    if recompute == "full":
        return 2 * whole
    outside = Fraction(10 * whole, tensor if sequence_parallel else 1)
    inside = Fraction(24 * whole, tensor)
    scores = Fraction(5 * shape.n_heads * sequence**2 * batch, tensor)
    return ceil(outside + inside + (scores if recompute == "none" else 0))
