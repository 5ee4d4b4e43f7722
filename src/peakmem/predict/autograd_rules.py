"""What a library saves and allocates for each operator of a transformer: autograd rules as data.

There are three profiles. "torch-cpu" and "torch-cuda" follow PyTorch 2.13's eager mode: its
derivatives.yaml, and the operators that its layers really run. They agree with measured steps to
the byte on the CPU, and within 128 bytes on an H200 and an H100 (docs/measurements). "paper" counts
like Korthikanti et al. 2022, Reducing Activation Recomputation in Large Transformer Models: it
leaves out statistics of norms, causal masks, copies between layouts, casts, and all tensors that
aren't saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

__all__ = ["PROFILES", "Profile", "Rule"]


@dataclass(frozen=True)
class Rule:
    """What autograd saves and computes for one operator; tensors have the operator's names.

    In `backward`, "~x" is scratch as large as the operand x, held until backward is done. Names of
    operands that a call doesn't have (a bias, say) are skipped, and so are the gradients of
    operands that need none.
    """

    #: Tensors saved until backward has run: operands, "output", side outputs.
    saves: tuple[str, ...] = ()
    #: The operators of backward in order, each with the operands whose gradients it makes.
    backward: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: Operands that share the output's gradient.
    passes: tuple[str, ...] = ()
    #: Broadcast operands; their gradients are summed to their size at the end.
    sums: tuple[str, ...] = ()
    #: Operands whose gradient `backward` makes in the output's shape and format, and then sums or
    #: casts if theirs differ.
    wide: tuple[str, ...] = ()
    #: Tensors saved for the gradient of one operand alone: pairs (saved name, operand).
    only: tuple[tuple[str, str], ...] = ()

    @cached_property
    def gradients(self) -> set[str]:
        """Operands whose gradient the rule can make."""
        made = {key for _, keys in self.backward for key in keys}
        return made.union(self.passes, self.sums)


@dataclass(frozen=True)
class Profile:
    """The rules of one library on one kind of device."""

    #: Operator name -> rule.
    rules: Mapping[str, Rule]
    #: Default implementation of the optimizer's step.
    implementation: str = "foreach"
    #: Implementations that keep step counters (fp32, one for each parameter) on the device.
    counters: frozenset[str] = frozenset()
    #: Format of a dropout mask; None if the mask is made before, in the input's format, and
    #: multiplied with the input.
    mask: str | None = "bool"
    #: Whether fused attention supports dropout. If not, torch runs separate operators.
    fused_dropout: bool = True
    #: Whether fused attention in fp32 supports grouped heads. If not, torch runs operators.
    fused_groups: bool = True
    #: Format of a layer norm's mean and deviation; None for the input's.
    norm_statistics: str | None = "fp32"
    #: Whether autocast runs softmax in fp32.
    fp32_softmax: bool = True
    #: Whether autocast runs all of cross entropy in fp32, or only the loss after the log softmax.
    fp32_cross_entropy: bool = True
    #: Whether operators on heads need contiguous tensors.
    copies: bool = True
    #: Whether autocast's casts and temporaries count.
    eager: bool = True


_EACH_FOR_THE_OTHER = (("x", "weight"), ("weight", "x"))

_TORCH: dict[str, Rule] = {
    "embedding": Rule(saves=("indices",), backward=(("embedding backward", ("table",)),)),
    "slice": Rule(backward=(("slice backward", ("whole",)),)),
    "add positions": Rule(passes=("x",), sums=("positions",)),
    "add": Rule(passes=("x", "branch")),
    "layer norm": Rule(
        saves=("x", "weight", "mean", "deviation"),
        backward=(("layer norm backward", ("x", "weight", "bias")),),
    ),
    # Gradients are made in the alphabetical order of their names in derivatives.yaml.
    "linear": Rule(
        saves=("x", "weight"),
        backward=(("mm", ("x",)), ("mm", ("weight",))),
        sums=("bias",),
        only=_EACH_FOR_THE_OTHER,
    ),
    "linear without bias": Rule(
        saves=("x", "weight"),
        backward=(("mm", ("weight",)), ("mm", ("x",))),
        only=_EACH_FOR_THE_OTHER,
    ),
    # Forward and backward each dequantize the matrix to 16 bits.
    "quantized linear": Rule(backward=(("dequantize", ("~weight",)), ("mm", ("x",)))),
    "weighted": Rule(  # multiplied by a broadcast parameter
        saves=("x", "weight"),
        backward=(("mul", ("weight",)), ("mul", ("x",))),
        wide=("weight",),
        only=_EACH_FOR_THE_OTHER,
    ),
    "product": Rule(saves=("a", "b"), backward=(("mul", ("a",)), ("mul", ("b",))), wide=("a", "b")),
    "times constant": Rule(saves=("constant",), backward=(("mul", ("x",)),), wide=("x",)),
    "power": Rule(saves=("x",), backward=(("pow", ("~x",)), ("mul", ("~x",)), ("mul", ("x",)))),
    "mean": Rule(backward=(("div", ("x",)),)),
    "shift": Rule(passes=("x",)),
    "rsqrt": Rule(
        saves=("output",), backward=(("pow", ("~x",)), ("mul", ("~x",)), ("mul", ("x",)))
    ),
    "neg": Rule(backward=(("neg", ("x",)),)),
    "cat": Rule(passes=("a", "b")),
    "silu": Rule(saves=("x",), backward=(("silu backward", ("x",)),)),
    "bmm": Rule(saves=("a", "b"), backward=(("bmm", ("b",)), ("bmm", ("a",)))),
    "split": Rule(backward=(("cat", ("whole",)),)),
    # Views are free in forward; undoing some of them in backward takes a copy.
    "view": Rule(passes=("whole",)),
    "view undone by copy": Rule(backward=(("copy", ("whole",)),)),
    "copy": Rule(passes=("x",)),
    "scale": Rule(backward=(("scale", ("x",)),)),
    "mask": Rule(saves=("future",), backward=(("mask", ("x",)),)),
    "add mask": Rule(passes=("x",)),
    "softmax": Rule(saves=("output",), backward=(("softmax backward", ("x",)),)),
    "dropout": Rule(saves=("mask",), backward=(("dropout backward", ("x",)),)),
    "flash attention": Rule(
        saves=("q", "k", "v", "output", "logsumexp"),
        backward=(("flash attention backward", ("q", "k", "v")),),
    ),
    "gelu": Rule(saves=("x",), backward=(("gelu backward", ("x",)),)),
    "tanh": Rule(saves=("output",), backward=(("tanh backward", ("x",)),)),
    "log softmax": Rule(saves=("output",), backward=(("log softmax backward", ("x",)),)),
    "nll": Rule(saves=("x", "targets", "total weight"), backward=(("nll backward", ("x",)),)),
    "mean over micro-batches": Rule(backward=(("div", ("x",)),)),
}

# CUDA's kernel first multiplies the gradient by the output, in a tensor of its own.
_CUDA = _TORCH | {
    "softmax": Rule(saves=("output",), backward=(("mul", ("~x",)), ("softmax backward", ("x",)))),
}

_PAPER = _TORCH | {
    "layer norm": Rule(saves=("x",), backward=_TORCH["layer norm"].backward),
    "mask": Rule(backward=_TORCH["mask"].backward),
    "flash attention": Rule(
        saves=("q", "k", "v", "output"), backward=_TORCH["flash attention"].backward
    ),
}

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "torch-cuda": Profile(
            _CUDA, counters=frozenset({"fused"}), fused_groups=False, fp32_cross_entropy=False
        ),
        "torch-cpu": Profile(
            _TORCH,
            implementation="for-loop",
            counters=frozenset({"for-loop", "foreach", "fused"}),
            mask=None,
            fused_dropout=False,
            norm_statistics=None,
            fp32_softmax=False,
        ),
        "paper": Profile(_PAPER, copies=False, eager=False),
    }
)
