"""Calculator of quantization: a model's weights in few bits, its fit on a GPU, and the error."""

from __future__ import annotations

from functools import lru_cache

import ipywidgets
import numpy as np
import traitlets

from peakmem.core.units import GB, both
from peakmem.numbers.quantization import SCHEMES, Blocks, bits_a_weight, round_trip
from peakmem.predict.inference import Inference, Serving
from peakmem.predict.model_states import model_states, weight_bytes
from peakmem.show.palette import OWNERS
from peakmem.show.widgets import svg
from peakmem.show.widgets.calculator import Calculator, Result
from peakmem.show.widgets.parts import gb_and_gib, unbroken_table
from peakmem.specs.hardware import ACCELERATORS, accelerator
from peakmem.specs.kv_cache import cache_of_shape
from peakmem.specs.models import MODELS, ModelShape, model
from peakmem.specs.parameter_table import table_of_shape
from peakmem.specs.recipes import Recipe

__all__ = ["quantization"]

_USES = {"generate text": "inference", "train with QLoRA": "qlora"}
_CONTEXT = 4096  # tokens in the cache, of one sequence
_RANK = 64  # of the adapters
_SAMPLE = (64, 1024)  # weights: enough to know the error to a few thousandths of it


def quantization(*, predict: bool = False) -> Calculator:
    """Return a calculator of quantized weights.

    Matrices of attention and MLP are quantized; embeddings, norms and biases stay in bf16. Besides
    the weights, generating text takes keys and values of 4096 tokens in bf16, and QLoRA takes
    adapters of rank 64 on all matrices, at 16 bytes per parameter. Activations come on top.

    Traits: model (a key of MODELS), scheme (a key of SCHEMES), use ("inference" or "qlora"), gpu (a
    key of ACCELERATORS), doublings (5 to 10: blocks of 32 to 1024 weights). With `predict`, the
    result is hidden until the viewer has guessed the total in GB.
    """
    return _Quantization(predict)


class _Quantization(Calculator):
    model = traitlets.Unicode("llama2-7b")
    scheme = traitlets.Unicode("nf4")
    use = traitlets.Unicode("inference")
    gpu = traitlets.Unicode("v100-16gb")
    doublings = traitlets.Int(6)

    def __init__(self, predict: bool) -> None:
        blocks = [(str(2**n), n) for n in range(5, 11)]
        super().__init__(
            {
                "model": ipywidgets.Dropdown(options=list(MODELS), description="model"),
                "scheme": ipywidgets.Dropdown(options=list(SCHEMES), description="scheme"),
                "doublings": ipywidgets.SelectionSlider(options=blocks, description="block"),
                "use": ipywidgets.Dropdown(options=list(_USES.items()), description="to"),
                "gpu": ipywidgets.Dropdown(options=list(ACCELERATORS), description="GPU"),
            },
            question="How many GB does it take in total?" if predict else None,
            subject=["model", "scheme", "use"],
            presets={
                "QLoRA's 65B": {
                    "model": "llama-65b",
                    "scheme": "nf4_double",
                    "use": "qlora",
                    "gpu": "a6000-48gb",
                    "doublings": 6,
                },
            },
        )

    def answer(self) -> Result:
        shape, block, gpu = model(self.model), 2**self.doublings, accelerator(self.gpu)
        weights = {name: _weight_bytes(shape, name, block) for name in SCHEMES}
        beside = _cache_bytes(shape) if self.use == "inference" else _adapter_bytes(shape)
        rows = [
            (
                name,
                f"{bits_a_weight(name, block):.2f}",
                gb_and_gib(size),
                f"{_error(name, block):.2%}",
                "yes" if size + beside <= gpu.memory_bytes else "no",
            )
            for name, size in weights.items()
        ]
        head = ("", "bits per weight", "weights, GB (GiB)", "error", f"fits {gpu.name}")
        words = unbroken_table(rows, head)
        what = "keys and values of 4096 tokens" if self.use == "inference" else "adapters, rank 64"
        total = weights[self.scheme] + beside
        note = (
            f"<p>With {self.scheme}: {both(total)} in total, {both(beside)} of it {what}, plus "
            "activations. The error is the root mean square for normally distributed weights.</p>"
        )
        owner = "activation" if self.use == "inference" else "optimizer"
        picture = _draw(weights, beside, gpu.memory_bytes, self.scheme, (what, owner))
        return Result(words + note, picture, (total / GB, "GB"))


def _weight_bytes(shape: ModelShape, name: str, block: int) -> int:
    return weight_bytes(table_of_shape(shape), "bf16", Blocks(name, block))


def _cache_bytes(shape: ModelShape) -> int:
    serving = Serving(context=_CONTEXT, precision="bf16")
    inference = Inference(table_of_shape(shape), cache_of_shape(shape), shape.vocab, serving)
    return inference.by_owner()["kv_cache"]


def _adapter_bytes(shape: ModelShape) -> int:
    """The bytes of training with adapters on all matrices, minus the frozen weights in 16 bits."""
    table = table_of_shape(shape)
    recipe = Recipe("mixed", lora_rank=_RANK, lora_targets=("all-linear",))
    return sum(model_states(table, recipe).values()) - weight_bytes(table, "bf16")


@lru_cache(maxsize=64)
def _error(name: str, block: int) -> float:
    x = _sample()
    return float(np.linalg.norm(round_trip(x, name, block) - x) / np.linalg.norm(x))


@lru_cache(maxsize=1)
def _sample() -> np.ndarray:
    return np.random.default_rng(0).standard_normal(_SAMPLE)


def _draw(
    weights: dict[str, int], beside: int, memory_bytes: int, chosen: str, what: tuple[str, str]
) -> str:
    """One bar per scheme, with the other memory at its end, and a board's memory as a line.

    `what` is the name of that other memory, and the owner whose colour it has.
    """
    most = max(*(size + beside for size in weights.values()), memory_bytes) / GB
    across = svg.Scale(0, most, 92, svg.WIDTH - 14)
    parts = []
    for row, (name, size) in enumerate(weights.items()):
        y = 30 + 34 * row
        parts.append(svg.text(6, y + 18, name))
        ends = (0.0, size / GB, (size + beside) / GB)
        for start, end, owner in zip(ends, ends[1:], ("weights", what[1]), strict=False):
            x = across(start)
            title = f"{name}: {end - start:.2f} GB"
            parts.append(svg.rect(x, y, across(end) - x, 26, OWNERS[owner], title=title))
        if name == chosen:
            parts.append(svg.line(92, y + 29, across(ends[-1]), y + 29, width=3))
    parts += svg.limit(across(memory_bytes / GB), 200, "one board's memory")
    parts.append(svg.axis_x(across, 202, "GB"))
    for n, (label, owner) in enumerate((("weights", "weights"), what)):
        parts += svg.key(92 + 110 * n, 252, OWNERS[owner], label)
    return svg.picture(276, parts, "A model's weights under each scheme, and the other memory")
