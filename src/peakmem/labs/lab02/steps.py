"""Real programs, measured: live memory over time, and the tensors that hold the peak."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from tqdm.auto import tqdm

from peakmem.core.units import both
from peakmem.labs.figures import show_figure
from peakmem.labs.lab02.machine import machine_bytes
from peakmem.labs.self_check import beside_bound
from peakmem.measure.meter import MemoryMeter
from peakmem.measure.reference_models import GPT, training_step
from peakmem.probes import Namespace
from peakmem.probes.lab02 import evaluate_batches, find_the_leak, losses_bound
from peakmem.specs.ledger import Ledger

__all__ = [
    "evaluation_losses",
    "evaluation_peak",
    "evaluation_rise",
    "measured_peak",
    "measured_saved",
    "measured_step",
    "show_lives",
    "show_real_step",
    "show_two_steps",
]

_SHAPES = {
    "many tokens": (SimpleNamespace(n_layers=2, d_model=128, n_heads=4, vocab=1000, context=64), 8),
    "many parameters": (
        SimpleNamespace(n_layers=2, d_model=128, n_heads=4, vocab=4000, context=64),
        1,
    ),
}
_SEQ = 32
_EVALUATION = {"count": 28, "rows": 512, "width": 128, "seed": 1}


def measured_step(shape: Any, batch: int, seq: int, device: str = "cpu") -> Ledger:
    """Return every tensor of the third training step of a real GPT under AdamW(foreach=False)."""
    torch.manual_seed(0)
    model = GPT(shape).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    tokens, targets = torch.randint(shape.vocab, (2, batch, seq), device=device)
    for _ in tqdm(range(2), desc="two warm-up steps", leave=False, delay=2):
        training_step(model, optimizer, [(tokens, targets)])
    meter = MemoryMeter(device).track(model, optimizer, tokens, targets)
    with meter:
        training_step(model, optimizer, [(tokens, targets)])
    return meter.ledger()


def measured_peak(shape: Any, batch: int, seq: int) -> int:
    """Return the most bytes live at once in a real step."""
    return measured_step(shape, batch, seq).peak_bytes


def measured_saved(shape: Any, batch: int, seq: int) -> int:
    """Return the bytes of saved activations at the end of a real forward pass, without logits."""
    ledger = measured_step(shape, batch, seq)
    phases = [event.phase for event in ledger.events]
    return ledger.by_owner(phases.index("backward") - 1)["activation"]


def show_two_steps() -> None:
    """Show live memory over two real steps, and what is live at the peak of each."""
    ledgers = {name: measured_step(shape, batch, _SEQ) for name, (shape, batch) in _SHAPES.items()}
    _show_phases(
        ledgers,
        "Live memory of two real steps, over their operators, with backward shaded. With many "
        "tokens it rises in the forward pass to a sharp peak where backward begins, and then "
        "falls. With many parameters it rises all the way through backward, and has two spikes of "
        "almost equal height, at its end and in the optimizer's step.",
    )
    for name, found in ledgers.items():
        shape, batch = _SHAPES[name]
        print(f"\n{name}: {batch} x {_SEQ} tokens, d_model {shape.d_model}, vocab {shape.vocab}")
        _print_peak(found)


def _show_phases(ledgers: Mapping[str, Ledger], alt: str) -> None:
    """Draw a panel for each step, its three phases named and backward shaded."""
    import matplotlib.pyplot as plt

    from peakmem.show.plots import live_timelines

    figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for ax, (name, ledger) in zip(panels, ledgers.items(), strict=True):
        live_timelines(ax, {name: [n / 2**20 for n in ledger.live_bytes]}, unit="MiB")
        ax.set_ylim(top=1.1 * ax.get_ylim()[1])  # room for the phases' names
        first = 0
        for phase, events in groupby(event.phase for event in ledger.events):
            last = first + len(list(events)) - 1
            if last - first > 5:  # not the two operators between backward and the optimizer
                place = (first + last) / 2, 0.97
                ax.text(*place, phase, transform=ax.get_xaxis_transform(), ha="center", va="top")
            if phase == "backward":
                ax.axvspan(first, last, color="0.9", zorder=0)
            first = last + 1
    show_figure(figure, alt)


def _print_peak(ledger: Ledger) -> None:
    event = ledger.events[ledger.peak_event]
    print(f"  peak {ledger.peak_bytes:,} bytes in the {event.phase} phase, at {event.name}")
    for owner, n_bytes in ledger.by_owner().items():
        print(f"    {owner.replace('_', ' '):16} {n_bytes:12,}")
    large = Counter(
        (tensor.owner.replace("_", " "), tensor.shape)
        for tensor in ledger.live()
        if tensor.owner in ("logits", "temporary") and tensor.bytes > 2**16
    )
    for (kind, shape), count in large.items():
        print(f"    of these: {count} x {kind} of {' x '.join(map(str, shape))} numbers")


def show_real_step(
    predict: Callable[..., Mapping[str, int]], shape: Any, batch: int, seq: int
) -> None:
    """Print what `predict` says of a step and, if that fits this machine, what a meter says."""
    found, here = predict(shape, batch, seq), machine_bytes()
    for key, size in found.items():
        print(f"{key:18} {both(int(size))}")
    fits = "fits" if found["peak"] < here else "does not fit"
    print(f"this machine       {both(here)}: it {fits}")
    if found["peak"] >= 0.7 * here:
        print("too close to the limit to try: choose a smaller step")
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    measured = measured_step(shape, batch, seq, device).peak_bytes
    print(f"measured on {device:6} {both(measured)}")
    print(f"predicted / measured = {found['peak'] / measured:.4f}")


def show_lives() -> None:
    """Show live memory of inference and of training, for 24 linear layers with GELUs."""
    torch.manual_seed(0)
    layers = nn.Sequential(
        *(module for _ in range(24) for module in (nn.Linear(256, 256), nn.GELU()))
    )
    x = torch.randn(1024, 256)  # 1 MiB

    def infer() -> None:
        with torch.no_grad():
            layers(x)

    def train() -> None:
        layers(x).sum().backward()

    curves = {}
    for name, program in [("inference", infer), ("training (forward, then backward)", train)]:
        meter = MemoryMeter("cpu").track(layers, x)
        with meter:
            program()
        curves[name] = [(live - meter.baseline_bytes) / 2**20 for _, live in meter.timeline]
    _show_timelines(
        curves,
        "Live memory over the operators that ran. Inference stays flat at 2 MiB. Training rises in "
        "a straight line to 48 MiB in the forward pass, and falls in the backward pass to the "
        "6 MiB of the gradients.",
    )
    for name, mib in curves.items():
        print(f"{name}: at most {max(mib):.2f} MiB")


def _show_timelines(curves: dict[str, list[float]], alt: str) -> None:
    import matplotlib.pyplot as plt

    from peakmem.show.plots import live_timelines

    figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    live_timelines(ax, curves, unit="MiB")
    show_figure(figure, alt)


def evaluation_losses(function: Callable[..., Any]) -> dict[str, Any]:
    """Return what `function(model, batches)` makes of three small batches."""
    return evaluate_batches(function, count=3, rows=4, width=8, seed=1)


def evaluation_rise(function: Callable[..., Any]) -> int:
    """Return the bytes that `function(model, batches)` takes at its peak, on 28 batches."""
    answer = find_the_leak(Namespace({"evaluate": function}), metered=True, **_EVALUATION)
    return int(answer["rise_bytes"] + answer["numpy_rise_bytes"])


def evaluation_peak(function: Callable[..., Any]) -> str:
    """Return how the peak on 28 batches compares with the bound of the exercise."""
    return beside_bound(evaluation_rise(function), losses_bound(_EVALUATION))
