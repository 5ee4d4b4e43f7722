"""What lab 10's notebook calls: its metered runs, a recorded snapshot, and its sliders."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from peakmem.measure.generated_snapshot import Recording, frame
from peakmem.show.explore import explore

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["attention_mib", "loss_mib", "recorded_snapshot", "roofline_sliders"]

_MIB = 2**20
_FILE, _TORCH = "/home/you/train.py", "/opt/env/torch/nn/functional.py"


def attention_mib(attention: Callable[..., Any], seq: int, *, backward: bool) -> float:
    """Return the MiB that `attention(q, k, v, block, causal)` takes besides q, k and v at its peak.

    One head of width 64, blocks of 128; with `backward`, q, k and v get gradients.
    """
    from peakmem.probes import lab10  # here, so that drawing loads no torch

    sizes: dict[str, Any] = {
        "batch": 1,
        "heads": 1,
        "seq": seq,
        "head_dim": 64,
        "block": 128,
        "seed": 0,
    }
    if backward:
        found = lab10.run_backward(attention, "one", True, causal=False, **sizes)
    else:
        found = lab10.run_attention(attention, True, True, causal=False, **sizes)
    return float(found["rise_bytes"]) / _MIB


def loss_mib(loss: Callable[..., Any], tokens: int, vocab: int, chunk: int) -> float:
    """Return the MiB that `loss(x, weight, targets, chunk)` and backward take besides arguments."""
    from peakmem.probes import lab10

    sizes: dict[str, Any] = {
        "tokens": tokens,
        "vocab": vocab,
        "chunk": chunk,
        "width": 32,
        "seed": 0,
    }
    return float(lab10.run_loss(loss, True, True, **sizes)["rise_bytes"]) / _MIB


def recorded_snapshot(seq: int = 1024) -> dict[str, Any]:
    """Return a memory snapshot of one small training step, in the form that torch records.

    It is made from a list of events, not recorded on a GPU: one layer with 12 heads on `seq` tokens
    of width 768, its loss over 50257 logits, and backward.
    """
    width, heads, vocab = 768, 12, 50257
    wide, scores, logits = 4 * seq * width, 4 * heads * seq**2, 4 * seq * vocab
    recording = Recording()

    def alloc(name: str, size: int, line: int = 0, by: str = "linear") -> None:
        """An event without a line is autograd's, whose own thread has no Python stack."""
        frames = [
            frame(_TORCH, 2000 + line, by),
            frame(_FILE, line, "step"),
            frame(_FILE, 60, "<module>"),
        ]
        recording.alloc(name, size, *(frames if line else ()))

    alloc("embedded", wide, 12)
    alloc("qkv", 3 * wide, 18)
    alloc("scores", scores, 21)
    alloc("probabilities", scores, 22)
    recording.free("scores")
    alloc("attended", wide, 23)
    alloc("hidden", 4 * wide, 27)
    alloc("gelu", 4 * wide, 28)
    alloc("out", wide, 29)
    alloc("logits", logits, 34)
    alloc("log_softmax", logits, 35, "cross_entropy")
    alloc("loss", 512, 35, "cross_entropy")
    alloc("gradient of log_softmax", logits)
    recording.free("log_softmax")
    alloc("gradient of logits", wide)
    recording.free("logits", "gradient of log_softmax")
    alloc("gradient of gelu", 4 * wide)
    recording.free("gelu", "hidden", "gradient of gelu", "probabilities", "attended", "qkv")
    return recording.snapshot()


def roofline_sliders(
    attention_cost: Callable[..., Any], least_seconds: Callable[..., float]
) -> Any:
    """Return sliders for a head's sequence, block and board, and attention on its roofline.

    Both functions are the student's, of exercises 10.1 and 10.2.
    """

    def draw(tokens: int, block: int, board: str) -> tuple[Figure, str]:
        from peakmem.show.plots.lab10 import draw_roofline
        from peakmem.specs.hardware import accelerator

        cost = attention_cost(1, 16, tokens, 128, True, 2)
        standard, tiled = cost["io_bytes_standard"], cost["io_bytes_tiled"](block)
        device = accelerator(board)
        operations = {
            "standard attention": (cost["flops"], standard),
            f"blocks of {block}": (cost["flops"], tiled),
        }
        figure = draw_roofline(operations, device, device.flops_per_s("fp16"))
        times = [1e6 * least_seconds(cost["flops"], moved, device) for moved in (standard, tiled)]
        said = f"at least {times[0]:.0f} µs standard, {times[1]:.0f} µs in blocks of {block}"
        figure.axes[0].set_title(said, pad=34)
        return figure, f"Roofline of {board} with {tokens} tokens: {said}."

    return explore(
        draw,
        tokens=[512, 1024, 2048, 4096, 8192, 16384],
        block=[16, 32, 64, 128, 256, 512],
        board=["v100-16gb", "a100-80gb", "h100-80gb"],
    )
