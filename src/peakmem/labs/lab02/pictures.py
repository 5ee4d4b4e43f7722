"""Plots of a student's own functions, and sliders for one of them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from peakmem.core.units import GB, both
from peakmem.labs.figures import show_figure

__all__ = ["memory_sliders", "show_memory_over_length", "show_models"]

Count = Callable[..., Mapping[str, int]]
_GPT2 = (12, 768, 12, 1024)  # layers, d_model, heads, context
_V100 = 16 * GB
_H100 = 80 * GB


def show_memory_over_length(parameters: Count, activations: Count) -> None:
    """Show GPT-2's training memory over the sequence length, with and without flash attention."""
    import matplotlib.pyplot as plt

    from peakmem.show.plots import memory_over_length

    n_layers, d_model, n_heads, context = _GPT2
    lengths = list(range(128, 8193, 128))
    state = 16 * sum(parameters(n_layers, d_model, 50257, context).values())
    curves = {
        f"{kind} attention": [
            (state + n_layers * sum(activations(seq, 1, d_model, n_heads, kind).values())) / GB
            for seq in lengths
        ]
        for kind in ("standard", "flash")
    }
    figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    memory_over_length(ax, lengths, curves, limit_gb=_V100 / GB, limit_name="V100, 16 GB")
    ax.set_title("Training GPT-2, a batch of one sequence", pad=34)  # above the legend
    show_figure(
        figure,
        "Memory of training GPT-2 on one sequence, over its length. Both curves begin at 2 GB. "
        "With flash attention the line is straight and stays below 5 GB at 8192 tokens; with "
        "standard attention it bends upward and crosses the V100's 16 GB at about 4200 tokens.",
    )


def show_models(table: Sequence[Mapping[str, Any]], parameters: Count, activations: Count) -> None:
    """Show what training each model of a table takes at one sequence of 2048 tokens."""
    import matplotlib.pyplot as plt

    from peakmem.show.plots import stacked_bars

    limit = _H100 / GB
    bars = {row["name"]: _bar(row, parameters, activations) for row in table}
    largest = {table[-1]["name"]: bars[table[-1]["name"]]}
    others = {name: bar for name, bar in bars.items() if name not in largest}
    figure, (ax, below) = plt.subplots(
        2, figsize=(8, 6), layout="constrained", gridspec_kw={"height_ratios": [7, 1.6]}
    )
    stacked_bars(ax, others, label="", limit=limit, limit_name="H100, 80 GB")
    stacked_bars(below, largest, label="memory (GB)", limit=limit)
    below.get_legend().remove()
    show_figure(
        figure,
        "Stacked bars of training memory for the eight GPT-3 models. The five smaller ones end "
        "before the line of 80 GB, 6.7B and 13B extend beyond it. A second picture on another "
        "scale has GPT-3 175B with over 3000 GB, where the 80 GB are a thin strip at the left.",
    )


def _bar(row: Mapping[str, Any], parameters: Count, activations: Count) -> dict[str, float]:
    n = sum(parameters(row["n_layers"], row["d_model"]).values())
    layer = sum(activations(2048, 1, row["d_model"], row["n_heads"]).values())
    sizes = {
        "weights": 2 * n,
        "gradients": 2 * n,
        "fp32 weights": 4 * n,
        "two moments": 8 * n,
        "activations": row["n_layers"] * layer,
    }
    return {part: size / GB for part, size in sizes.items()}


def memory_sliders(parameters: Count, activations: Count) -> Any:
    """Return sliders for GPT-2's batch and sequence, and its training memory by your functions.

    Without ipywidgets, shows memory over the sequence length as a still picture instead.
    """
    if importlib.util.find_spec("ipywidgets") is None:
        show_memory_over_length(parameters, activations)
        return None
    import ipywidgets

    batch = ipywidgets.IntSlider(4, 1, 64, description="batch")
    seq = ipywidgets.IntSlider(1024, 128, 8192, step=128, description="tokens")
    kind = ipywidgets.Dropdown(options=["standard", "flash"], description="attention")
    answer = ipywidgets.HTML()

    def show(_: Any = None) -> None:
        answer.value = _in_words(parameters, activations, batch.value, seq.value, kind.value)

    for control in (batch, seq, kind):
        control.observe(show, names="value")
    show()
    return ipywidgets.VBox([ipywidgets.HBox([batch, seq, kind]), answer])


def _in_words(parameters: Count, activations: Count, batch: int, seq: int, kind: str) -> str:
    n_layers, d_model, n_heads, context = _GPT2
    try:
        state = 16 * sum(parameters(n_layers, d_model, 50257, context).values())
        kept = n_layers * sum(activations(seq, batch, d_model, n_heads, kind).values())
    except NotImplementedError:
        return "Write <code>gpt_parameters</code> and <code>layer_activation_bytes</code> first."
    except Exception as error:  # a student's code may raise anything
        return f"Your functions raise {type(error).__name__} here."
    verdict = "fits" if state + kept <= _V100 else "does not fit"
    return (
        f"16 bytes per parameter: {both(state)}; activations: {both(kept)}.<br>"
        f"<b>{both(state + kept)}</b> {verdict} on a V100 with {both(_V100)}."
    )
