"""What a library keeps and allocates for each operator of a transformer: rules as data.

Three profiles. "torch-cpu" and "torch-cuda" are PyTorch 2.13's eager mode: the derivatives of its
derivatives.yaml, and the operators that its layers really run. On the CPU they agree with measured
steps to the byte; those for CUDA follow what is documented of it, and no step on a GPU has been
measured against them yet. "paper" is the count of Korthikanti et al. 2022, Reducing Activation
Recomputation in Large Transformer Models: it leaves out statistics of norms, masks of the future,
copies between layouts, casts, and all that is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

__all__ = ["PROFILES", "Profile", "Rule"]


@dataclass(frozen=True)
class Rule:
    """What autograd does for one operator; its tensors go by the names they have in the operator.

    In `backward`, "~x" is scratch as large as the operand x, there until the rest is done. Names
    of operands that a call does not have (a bias, say) are passed over, and so are gradients of
    operands that need none.
    """

    #: What it keeps until its backward has run: operands, "output", side outputs.
    saves: tuple[str, ...] = ()
    #: Its backward's operators in order, each with the operands whose gradients it makes.
    backward: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: Operands whose gradient is the output's own, passed on.
    passes: tuple[str, ...] = ()
    #: Operands that were broadcast; theirs is summed to their size after the rest.
    sums: tuple[str, ...] = ()
    #: Operands whose gradient `backward` makes in the output's shape and format first, and then
    #: sums or casts to theirs where these differ.
    wide: tuple[str, ...] = ()
    #: What is kept for the gradient of one operand alone: pairs of saved name, operand.
    only: tuple[tuple[str, str], ...] = ()

    @cached_property
    def gradients(self) -> set[str]:
        """Operands that it can make a gradient of."""
        made = {key for _, keys in self.backward for key in keys}
        return made.union(self.passes, self.sums)


@dataclass(frozen=True)
class Profile:
    """The rules of one library on one kind of device."""

    #: By the operator's name.
    rules: Mapping[str, Rule]
    #: Of the optimizer's step where the recipe does not say.
    implementation: str = "foreach"
    #: Implementations whose step counters (fp32, one a parameter) are on the device.
    counters: frozenset[str] = frozenset()
    #: Format of a dropout mask. None if it is made first, in its input's format, and multiplied
    #: with the input.
    mask: str | None = "bool"
    #: Whether the fused attention does dropout itself. If not, torch runs plain operators.
    fused_dropout: bool = True
    #: Format of a layer norm's mean and deviation; None for its input's.
    norm_statistics: str | None = "fp32"
    #: Whether softmax is on autocast's list of operators that run in fp32.
    fp32_softmax: bool = True
    #: Whether operators on heads need their tensors contiguous.
    copies: bool = True
    #: Whether autocast's casts and all temporaries count.
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
    # Gradients come in the alphabetical order of the names that derivatives.yaml has for them.
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
    # The 16-bit matrix is made anew from the quantized one, forward and backward.
    "quantized linear": Rule(backward=(("dequantize", ("~weight",)), ("mm", ("x",)))),
    "weighted": Rule(  # by a parameter that is broadcast
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
    # Views cost nothing forward; some orders of dimensions take a copy to undo them backward.
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

_PAPER = _TORCH | {
    "layer norm": Rule(saves=("x",), backward=_TORCH["layer norm"].backward),
    "mask": Rule(backward=_TORCH["mask"].backward),
    "flash attention": Rule(
        saves=("q", "k", "v", "output"), backward=_TORCH["flash attention"].backward
    ),
}

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "torch-cuda": Profile(_TORCH, counters=frozenset({"fused"})),
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
