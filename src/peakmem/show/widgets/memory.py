"""Calculator of memory: a training step's peak by owner, a GPU's memory, and changes that fit.

The bar and the verdict appear at once. The map over batch and sequence takes a prediction for each
cell, so it follows later, cell by cell, while the controls stay live.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any

import ipywidgets
import traitlets

from peakmem.core.units import GB, both
from peakmem.predict.deepspeed import deepspeed_config
from peakmem.predict.estimate import Estimate
from peakmem.predict.suggestions import suggest
from peakmem.show.palette import VERDICTS
from peakmem.show.widgets import svg
from peakmem.show.widgets.calculator import Calculator, Result
from peakmem.show.widgets.estimates import is_whole, remembered_estimate
from peakmem.show.widgets.memory_result import result_of
from peakmem.show.widgets.parts import row_of, table, whole_row
from peakmem.specs.hardware import ACCELERATORS
from peakmem.specs.models import MODELS, ModelShape, model
from peakmem.specs.recipes import OPTIMIZERS, PRECISIONS, Parallelism, Recipe

__all__ = ["memory"]

_OWN = "own shape"
_OWN_SIZES = ("layers", "d_model", "heads", "vocab", "context")
_BATCHES = (1, 2, 4, 8, 16, 32)
_SHARES = (8, 4, 2, 1)  # of the model's context


def memory(*, predict: bool = False) -> Calculator:
    """Return the memory calculator: a model, a GPU, a recipe and devices; does it fit?

    Traits: model, gpu, precision, optimizer, batch, sequence, micro_batches, attention,
    checkpointing, zero, data, tensor, offload, lora_rank; for the model "own shape", which is like
    GPT-2, also layers, d_model, heads, vocab, context. With `predict`, the result is hidden until
    the viewer has guessed the peak.
    """
    return _Memory(predict)


class _Memory(Calculator):
    model = traitlets.Unicode("gpt2")
    gpu = traitlets.Unicode("rtx3090-24gb")
    precision = traitlets.Unicode("fp32")
    optimizer = traitlets.Unicode("adamw")
    batch = traitlets.Int(8)
    sequence = traitlets.Int(1024)
    micro_batches = traitlets.Int(1)
    attention = traitlets.Unicode("flash")
    checkpointing = traitlets.Unicode("none")
    zero = traitlets.Int(0)
    data = traitlets.Int(1)
    tensor = traitlets.Int(1)
    offload = traitlets.Bool(False)
    lora_rank = traitlets.Int(0)
    layers = traitlets.Int(12)
    d_model = traitlets.Int(768)
    heads = traitlets.Int(12)
    vocab = traitlets.Int(50257)
    context = traitlets.Int(1024)

    def __init__(self, predict: bool) -> None:
        self._map = ipywidgets.HTML()
        self._more = ipywidgets.HTML()
        button = ipywidgets.Button(description="Look for cheap changes")
        button.on_click(lambda _: self.find_suggestions())
        long = ipywidgets.VBox([self._more])
        long.add_class("peakmem-long")
        super().__init__(
            _controls(),
            question="How many GB is the peak on one device?" if predict else None,
            presets={
                "GPT-2, RTX 3090": {"model": "gpt2", "gpu": "rtx3090-24gb"},
                "GPT-3, A100": {"model": "gpt3-175b", "gpu": "a100-80gb", "batch": 1},
            },
            subject=["model"],
            views={
                "by owner": [],
                "what fits": [self._map],
                "make it fit": [row_of([button]), long],
            },
        )

    def answer(self) -> Result:
        for name in _OWN_SIZES:
            self._controls[name].layout.display = "" if self.model == _OWN else "none"
        found = self.estimate(allocation=False)
        self._more.value = ""
        return result_of(found)

    def estimate(self, *, allocation: bool = True) -> Estimate:
        """Return the library's estimate for the current state; see `remembered_estimate`."""
        recipe = Recipe(
            precision=self.precision,
            optimizer=self.optimizer,
            batch=self.batch,
            sequence=self.sequence,
            micro_batches=self.micro_batches,
            attention=self.attention,  # type: ignore[arg-type]
            checkpointing=self.checkpointing,  # type: ignore[arg-type]
            offload=self.offload,
            lora_rank=self.lora_rank,
        )
        zero: Any = self.zero
        devices = Parallelism(data=self.data, zero=zero, tensor=self.tensor)
        return remembered_estimate(self.shape(), recipe, self.gpu, devices, allocation=allocation)

    def shape(self) -> ModelShape:
        """Return the model. Raises ValueError if the own shape is invalid."""
        if self.model != _OWN:
            return model(self.model)
        sizes = (self.layers, self.d_model, self.heads, self.vocab, self.context)
        if self.d_model % self.heads:
            raise ValueError(
                f"{self.heads} heads cannot share a d_model of {self.d_model} equally; "
                "choose heads that divide it"
            )
        return ModelShape("own", *sizes)

    def find_suggestions(self) -> None:
        """Show the cheapest changes that would fit, and DeepSpeed's file for the current state."""
        try:
            found = self.estimate()
        except ValueError:
            return  # the page shows its sentence already
        self._more.value = _suggestions(found) + _deepspeed(found)

    def later(self) -> Iterator[None]:
        """Add what the allocator decides, and draw the map of what fits, cell by cell."""
        self._map.value = ""
        if not is_whole(self.estimate(allocation=False)):
            yield
            self._put(result_of(self.estimate()))
        if not self.shows("what fits"):
            return
        asked = self.estimate()
        sequences = [max(asked.model.context // share, 1) for share in _SHARES]
        cells: dict[tuple[int, int], Estimate | None] = {}
        for sequence in sequences:
            for batch in _BATCHES:
                yield
                recipe = replace(asked.recipe, batch=batch, sequence=sequence, micro_batches=1)
                cells[sequence, batch] = _or_none(asked, recipe)
            self._map.value = _draw_map(asked, sequences, cells)


def _or_none(asked: Estimate, recipe: Recipe) -> Estimate | None:
    try:
        return remembered_estimate(asked.model, recipe, asked.device.name, asked.parallelism)
    except ValueError:
        return None


def _controls() -> dict[str, ipywidgets.Widget]:
    def choice(options: Any, words: str) -> ipywidgets.Dropdown:
        return ipywidgets.Dropdown(options=list(options), description=words)

    def count(words: str, most: int, least: int = 1) -> ipywidgets.BoundedIntText:
        return ipywidgets.BoundedIntText(least, min=least, max=most, description=words)

    return {
        "model": whole_row(choice([*MODELS, _OWN], "model")),
        "gpu": whole_row(choice(ACCELERATORS, "GPU")),
        "precision": whole_row(choice(PRECISIONS, "precision")),
        "batch": whole_row(ipywidgets.IntSlider(8, 1, 64, description="batch")),
        "sequence": whole_row(
            ipywidgets.IntSlider(1024, 128, 8192, step=128, description="tokens")
        ),
        "layers": count("layers", 200),
        "d_model": count("d_model", 65536),
        "heads": count("heads", 256),
        "vocab": count("vocabulary", 1_000_000),
        "context": count("context", 1_000_000),
        "optimizer": choice(OPTIMIZERS, "optimizer"),
        "micro_batches": count("micro-batches", 64),
        "attention": choice(("flash", "standard"), "attention"),
        "checkpointing": choice(("none", "selective", "full"), "checkpointing"),
        "zero": ipywidgets.IntSlider(0, 0, 3, description="ZeRO stage"),
        "data": count("replicas", 4096),
        "tensor": count("tensor parallel", 64),
        "lora_rank": count("LoRA rank", 1024, least=0),
        "offload": ipywidgets.Checkbox(description="Adam on the host"),
    }


def _suggestions(found: Estimate) -> str:
    rows = [
        (
            "; ".join(suggestion.changes),
            f"{suggestion.cost:.2f}",
            both(suggestion.estimate.peak_bytes),
        )
        for suggestion in suggest(found)
    ]
    if rows:
        return table(rows, ("cheapest changes that fit", "device time", "peak"))
    return "<p>It fits as it is.</p>" if found.fits else "<p>No tested change makes it fit.</p>"


def _deepspeed(found: Estimate) -> str:
    try:
        config = deepspeed_config(found.model, found.recipe, found.parallelism)
    except ValueError as error:
        return f"<p>No DeepSpeed file: {escape(str(error))}.</p>"
    text = escape(json.dumps(config, indent=2))
    return f"<p>ds_config.json for these settings:</p><pre>{text}</pre>"


def _draw_map(
    asked: Estimate, sequences: list[int], cells: dict[tuple[int, int], Estimate | None]
) -> str:
    """Draw a cell for each batch and sequence: its peak, and whether it fits."""
    wide, high, left, top = 62, 30, 96, 30
    parts = [svg.text(4, 16, "peak in GB over sequence and batch (no micro-batches)")]
    for row, sequence in enumerate(sequences):
        y = top + high * row
        parts.append(svg.text(left - 8, y + 20, f"{sequence} tokens", anchor="end"))
        for column, batch in enumerate(_BATCHES):
            if (sequence, batch) not in cells:
                continue
            one, x = cells[sequence, batch], left + wide * column
            fits = one is not None and one.fits
            fill = VERDICTS["fits" if fits else "does not fit"]
            words = "-" if one is None else f"{one.peak_bytes / GB:.3g}"
            parts.append(svg.rect(x, y, wide - 3, high - 3, fill))
            parts.append(svg.text(x + wide / 2, y + 19, words, anchor="middle", bold=fits))
    y = top + high * len(sequences) + 14
    for column, batch in enumerate(_BATCHES):
        parts.append(svg.text(left + wide * (column + 0.5), y, f"{batch}", anchor="middle"))
    parts.append(svg.text(left - 8, y, "batch", anchor="end"))
    parts.append(svg.text(left, y + 24, "blue and bold: fits; orange: does not fit"))
    return svg.picture(y + 34, parts, f"What fits on {asked.device.name}, by batch and sequence")
