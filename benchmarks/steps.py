"""A GPT's training step in each precision and with checkpointing: time and measured peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.figures import Figure
from benchmarks.speeds import seconds_of
from peakmem.core.units import MiB
from peakmem.measure.meter import measure
from peakmem.measure.reference_models import GPT, training_step
from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.models import ModelShape
from peakmem.specs.recipes import Recipe

__all__ = ["checkpointing", "precisions"]

_LARGE = ModelShape("GPT", 12, 1024, 16, vocab=32000, context=1024)
_TINY = ModelShape("GPT", 4, 32, 2, vocab=100, context=32)
_BATCH = 4
_PRECISIONS: dict[torch.dtype | None, str] = {
    None: "fp32",
    torch.bfloat16: "amp_bf16",
    torch.float16: "amp_fp16",
}


@dataclass(frozen=True)
class _Arm:
    """One way to take the step, with a fresh model."""

    options: dict[str, Any]
    autocast: torch.dtype | None = None
    tf32: bool = False


def precisions(device: torch.device) -> list[Figure]:
    """Take the step in fp32, in tf32 and under autocast: what 16 bits gain in time and memory."""
    arms = {
        "fp32": _Arm({}),
        "tf32": _Arm({}, tf32=True),
        "autocast bf16": _Arm({}, torch.bfloat16),
    }
    if device.type == "cuda":
        arms["autocast fp16"] = _Arm({}, torch.float16)
    found = {name: _take(arm, device) for name, arm in arms.items()}
    figures = _figures(found, arms, device)
    if device.type == "cuda":
        seconds = found["autocast bf16"][0] / found["fp32"][0]
        figures.append(Figure("time of bf16 over fp32", seconds, "x", most=0.9))
    return figures


def checkpointing(device: torch.device) -> list[Figure]:
    """Take the step keeping everything, with segments, and keeping only layers' inputs."""
    arms = {
        "keep all": _Arm({}),
        "selective": _Arm({"checkpointing": "selective"}),
        "every 3": _Arm({"checkpointing": "every_k", "checkpoint_every": 3}),
        "full": _Arm({"checkpointing": "full"}),
    }
    found = {name: _take(arm, device) for name, arm in arms.items()}
    time, peak = (found["full"][i] / found["keep all"][i] for i in range(2))
    most = 1.6 if device.type == "cuda" else None
    return [
        *_figures(found, arms, device),
        Figure("time of full over keep all", time, "x", most=most),
        Figure("peak of full over keep all", peak, "x", most=0.95),
    ]


def _take(arm: _Arm, device: torch.device) -> tuple[float, int]:
    """Return the step's seconds and its measured peak in bytes, without cuBLAS's workspaces."""
    shape = _LARGE if device.type == "cuda" else _TINY

    def build_step(device: torch.device) -> Any:
        with device:
            gpt = GPT(shape, attention="standard", **arm.options)
            tokens = torch.randint(0, shape.vocab, (_BATCH, shape.context))
        sgd = torch.optim.SGD(gpt.parameters(), 1e-3)
        return lambda: training_step(gpt, sgd, [(tokens, tokens)], autocast=arm.autocast)

    torch.backends.cuda.matmul.allow_tf32 = arm.tf32
    try:
        seconds = seconds_of(build_step(device), device, repeats=5)
        ledger = measure(build_step, device)
        workspaces = sum(t.bytes for t in ledger.live(0) if t.name.endswith("workspace of cuda"))
        return seconds, ledger.peak_bytes - workspaces
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


def _figures(
    found: dict[str, tuple[float, int]], arms: dict[str, _Arm], device: torch.device
) -> list[Figure]:
    figures = []
    for name, (seconds, peak_bytes) in found.items():
        ratio = peak_bytes / _predicted_bytes(arms[name], device)
        figures.append(Figure(f"{name}, time", 1000 * seconds, "ms"))
        figures.append(Figure(f"{name}, peak", peak_bytes / MiB, "MiB"))
        figures.append(Figure(f"{name}, peak over predicted", ratio, "x", 0.995, 1.005))
    return figures


def _predicted_bytes(arm: _Arm, device: torch.device) -> int:
    shape = _LARGE if device.type == "cuda" else _TINY
    recipe = Recipe(
        precision=_PRECISIONS[arm.autocast],
        optimizer="sgd",
        attention="standard",
        batch=_BATCH,
        sequence=shape.context,
        **arm.options,
    )
    return build_ledger(shape, recipe, profile=f"torch-{device.type}").peak_bytes
