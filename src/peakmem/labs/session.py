"""What a lab's first cell calls: names the lab and its device, and hides modules that solve it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

__all__ = ["GPU_EXERCISES", "HIDDEN_MODULES", "lab", "lift_refusals", "refusals_lifted"]

# Modules that hold the answers of a lab. The grader's sandbox hides the same ones for real, and
# modules that import one of them can't be imported there either.
HIDDEN_MODULES: dict[str, tuple[str, ...]] = {
    "lab01_formats": ("peakmem.numbers.formats", "gfloat", "ml_dtypes"),
    "lab02_sizing": (
        "peakmem.measure.meta_model",
        "peakmem.measure.trace",
        "peakmem.predict",
        "peakmem.specs.families",
        "peakmem.specs.models",
        "peakmem.specs.recipes",
    ),
    "lab03_adam": ("peakmem.specs.recipes",),
    "lab04_checkpointing": ("peakmem.plan", "checkpoint_schedules"),
    "lab05_accumulation": (),
    "lab06_swap": (
        "peakmem.execute.executor",
        "peakmem.execute.saved_tensors",
        "peakmem.plan.offload",
    ),
    "lab07_mixed_precision": (
        "peakmem.numbers.formats",
        "peakmem.numbers.rounding_outcomes",
        "peakmem.specs.recipes",
    ),
    "lab08_shards": (
        "peakmem.predict",
        "peakmem.scale",
        "peakmem.specs.recipes",
    ),
    "lab09_quantization": ("peakmem.numbers.quantization",),
    "lab10_attention": ("peakmem.measure.snapshot", "peakmem.predict.roofline"),
}

# Exercises that only a CUDA GPU can run; elsewhere their points leave the total.
GPU_EXERCISES: dict[str, str] = {
    "lab04_checkpointing": "lab04-gpu_tradeoff",
    "lab06_swap": "lab06-gpu_overlap",
    "lab07_mixed_precision": "lab07-gpu_speed",
}


class Refusal(importlib.abc.MetaPathFinder):
    """Refuses to import modules that answer the lab's exercises: a courtesy, not security."""

    def __init__(self, lab_name: str, modules: Sequence[str]) -> None:
        self.lab_name = lab_name
        self.modules = tuple(modules)

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if any(name == module or name.startswith(module + ".") for module in self.modules):
            raise ImportError(
                f"{name} holds answers of {self.lab_name}, and the grader hides it too. "
                "Write the function yourself; restart the kernel to use the module elsewhere."
            )
        return None


def lab(name: str) -> None:
    """Begin the lab `name`: print its device line and refuse the modules that would solve it.

    Raises ValueError, with the known names, for any other name.
    """
    if name not in HIDDEN_MODULES:
        known = ", ".join(HIDDEN_MODULES)
        raise ValueError(f"there is no lab named {name!r}; the labs are {known}")
    lift_refusals()
    sys.meta_path.insert(0, Refusal(name, HIDDEN_MODULES[name]))
    print(f"{name} on {_device(name)}")


def lift_refusals() -> list[Refusal]:
    """Let everything be imported again; return what refused it."""
    refusals = [finder for finder in sys.meta_path if isinstance(finder, Refusal)]
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder not in refusals]
    return refusals


@contextmanager
def refusals_lifted() -> Iterator[list[Refusal]]:
    """Let a block import what `lab` refuses; yield what refused it.

    Afterwards it refuses again, except modules that were imported meanwhile and stay loaded.
    """
    refusals = lift_refusals()
    try:
        yield refusals
    finally:
        sys.meta_path[:0] = refusals


def _device(name: str) -> str:
    torch = sys.modules.get("torch")  # labs that measure have imported it; others need not wait
    if torch is None:
        return "the CPU."
    if torch.cuda.is_available():
        gib = torch.cuda.get_device_properties(0).total_memory / 2**30
        return f"{torch.cuda.get_device_name(0)}, {gib:.1f} GiB. Measurements use the GPU."
    apple = "; Apple's GPU is not used" if torch.backends.mps.is_available() else ""
    left_out = " Exercises marked GPU are left out of your total." if name in GPU_EXERCISES else ""
    return f"the CPU (no CUDA GPU here{apple}).{left_out}"
