"""Probes of lab 7, mixed precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as F

from peakmem.measure.meter import MemoryMeter
from peakmem.probes import Calls, Namespace, Outcomes, call_each, calling
from peakmem.probes.arrays import arrays_of
from peakmem.probes.gpu import gpu_seconds, require_gpu
from peakmem.probes.lab07.leak import find_the_leak
from peakmem.probes.lab07.scaler import loss_scaler, train_scaled
from peakmem.probes.lab07.trace import dtype_trace

__all__ = [
    "PRODUCT_SIZE",
    "TokenModel",
    "best_scale",
    "dtype_trace",
    "find_the_leak",
    "flushed_fraction",
    "gpu_speed",
    "loss_scaler",
    "master_weights",
    "train",
    "train_scaled",
    "training_bytes",
]

Array = npt.NDArray[Any]
PRODUCT_SIZE = 8192  # rows and columns of both matrices in `gpu_speed`

# dtype of the matrices, and torch's setting for products of float32 matrices ("high" is TF32).
_PRECISIONS = {
    "float32": (torch.float32, "highest"),
    "tf32": (torch.float32, "high"),
    "float16": (torch.float16, "highest"),
    "bfloat16": (torch.bfloat16, "highest"),
}


training_bytes = calling("training_bytes")  # (n_params, activation_bytes_fp32, recipe)


def flushed_fraction(student: Namespace, calls: Calls) -> Outcomes:
    """Call `flushed_fraction(grads, dtype, scale)`; each call has a list of arrays for `grads`."""
    return call_each(_on_tensors(student.flushed_fraction), calls)


def best_scale(student: Namespace, calls: Calls) -> Outcomes:
    """Call `best_scale(grads)`; each call has a list of arrays for `grads`."""
    return call_each(_on_tensors(student.best_scale), calls)


_CHANGED = "grads, changed in place"


def _on_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function on a list of tensors; its result is `_CHANGED` if it wrote into one."""

    def call(arrays: Sequence[Array], *rest: Any) -> Any:
        tensors = [torch.tensor(array) for array in arrays]
        given = list(tensors)
        value = function(given, *rest)
        kept = len(given) == len(tensors) and all(map(_equal, given, arrays))
        if not kept or not all(map(_equal, tensors, arrays)):
            return _CHANGED
        return value.item() if isinstance(value, torch.Tensor) else value

    return call


def _equal(tensor: torch.Tensor, array: Array) -> bool:
    return np.array_equal(tensor.numpy(), array)


@torch.enable_grad()  # restores the mode at the end, whatever a step switches off
def master_weights(
    student: Namespace,
    tensors: Sequence[Array],
    gradients: Sequence[Sequence[Array | None]],
    lr: float,
    dtype: str | None,
    beside: bool = False,
) -> dict[str, Any]:
    """Load float32 arrays into the student's `MasterWeights`, then step once for each gradient.

    Without `dtype`, the student's default applies, which has to be float16. With `beside`,
    another object with another rate loads other values before the steps; this must have no effect.

    Returns `steps`, dicts of `masters` and `params` after loading and after each step, each a list
    of float32 arrays; `forms`, whether at these moments the masters are float32 and the params are
    leaves in `dtype` that require a gradient (after the first moment when they don't, nothing more
    happens); `changed`, whether the loaded tensors have changed;
    and `records`, whether torch still records gradients.
    """
    low = getattr(torch, dtype or "float16")
    loaded = [torch.tensor(array) for array in tensors]
    weights = student.MasterWeights(lr, *([low] if dtype else []))
    weights.load(loaded)
    if beside:
        other = student.MasterWeights(2 * lr, *([low] if dtype else []))
        other.load([tensor + 1 for tensor in loaded])
    steps, forms = [_weights_now(weights)], [_have_form(weights, low)]
    for row in gradients:
        if not forms[-1]:  # torch would refuse a gradient of another dtype
            break
        for parameter, gradient in zip(weights.params, row, strict=True):
            parameter.grad = None if gradient is None else torch.tensor(gradient).to(low)
        weights.step()
        steps.append(_weights_now(weights))
        forms.append(_have_form(weights, low))
    changed = not all(map(_equal, loaded, tensors))
    records = torch.is_grad_enabled()
    return {"steps": steps, "forms": forms, "changed": changed, "records": records}


def _weights_now(weights: Any) -> dict[str, list[Array]]:
    params = arrays_of(parameter.float() for parameter in weights.params)
    return {"masters": arrays_of(master.float() for master in weights.master), "params": params}


def _have_form(weights: Any, low: torch.dtype) -> bool:
    return all(master.dtype == torch.float32 for master in weights.master) and all(
        p.dtype == low and p.is_leaf and p.requires_grad for p in weights.params
    )


class TokenModel(torch.nn.Module):
    """A tiny next-token model, whose loss is a small part of a huge batch's mean.

    The mean is over `parts` micro-batches, so every gradient has a factor of 1 / parts. A batch
    with the token RARE is a mean over itself alone, and the gradient of its middle layer is 2^25
    times as large, like an occasional burst of gradients: it overflows float16 at any scale that
    saves the others, but the gradients of the first and the last layer don't.
    """

    RARE = 16

    def __init__(self, weights: Sequence[Array], parts: int) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList([torch.tensor(w) for w in weights])
        self.parts = parts

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss in float32, of tokens and targets (N,)."""
        embedding, up, head = self.weights
        rare = bool((tokens == self.RARE).any())
        if rare and up.requires_grad:
            up = up.view_as(up)  # a hook on the parameter itself would outlive this call
            up.register_hook(_burst)
        hidden = torch.relu(F.embedding(tokens, embedding) @ up)  # (N, D)
        loss = F.cross_entropy((hidden @ head).float(), targets)
        return loss if rare else loss / self.parts


def _burst(gradient: torch.Tensor) -> torch.Tensor:
    return (gradient.float() * 2.0**25).to(gradient.dtype)


def train(
    student: Namespace,
    weights: Sequence[Array],
    parts: int,
    pool: Sequence[Sequence[Array]],
    order: Sequence[int],
    precision: str,
    lr: float | None,
) -> dict[str, Any]:
    """Train a TokenModel with the student's `train` under the meter.

    `pool` has the distinct batches, and `order` the index of each step's batch. Without `lr`, the
    student's default applies.

    Returns `losses`, the student's result as floats; `weights`, the model's afterwards; `in_place`,
    whether the parameters are still the same float32 tensors; `rise_bytes`, the rise of live bytes
    in this training; and `forwards`, the number of the model's forwards that had a gradient, by the
    dtype of the weights.
    """
    model = TokenModel(weights, parts)
    forwards = _note_forwards(model)
    before = list(model.parameters())
    tensors = [tuple(torch.tensor(array, dtype=torch.int64) for array in batch) for batch in pool]
    batches = [tensors[index] for index in order]
    with MemoryMeter("cpu").track([model, tensors]) as meter:
        losses = student.train(model, batches, precision, *([] if lr is None else [lr]))
    after = list(model.parameters())
    in_place = len(before) == len(after) and all(
        old is new and new.dtype == torch.float32 for old, new in zip(before, after, strict=True)
    )
    return {
        "losses": [float(loss) for loss in losses],
        "weights": arrays_of(parameter.float() for parameter in after),
        "in_place": in_place,
        "rise_bytes": meter.rise_bytes,
        "forwards": forwards(),
    }


def _note_forwards(model: TokenModel) -> Callable[[], dict[str, int]]:
    """Count the forwards of the model and its copies; return a function that reads the counts."""
    counts: dict[str, int] = {}

    class Noted(TokenModel):
        def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            loss = super().forward(tokens, targets)
            if loss.requires_grad:
                dtypes = {str(weight.dtype).removeprefix("torch.") for weight in self.weights}
                name = dtypes.pop() if len(dtypes) == 1 else "mixed"
                counts[name] = counts.get(name, 0) + 1
            return loss

    Noted.__name__ = Noted.__qualname__ = TokenModel.__name__
    model.__class__ = Noted
    return lambda: dict(counts)


def gpu_speed(student: Namespace) -> dict[str, Any]:
    """Time a matrix product in four precisions on this GPU, then let the student time it.

    Returns `own` and `student`: dicts of seconds for float32, tf32, float16 and bfloat16. Raises
    RuntimeError if torch finds no CUDA GPU.
    """
    require_gpu("gpu_speed times matrix products on")
    before = torch.get_float32_matmul_precision()
    try:
        own = {name: _seconds(*precision) for name, precision in _PRECISIONS.items()}
        torch.set_float32_matmul_precision("highest")
        return {"own": own, "student": student.speedup()}
    finally:
        torch.set_float32_matmul_precision(before)


def _seconds(dtype: torch.dtype, float32_precision: str) -> float:
    """Return the median seconds of one product."""
    torch.set_float32_matmul_precision(float32_precision)
    # Random values: a GPU multiplies zeros faster, because that takes less power.
    x, w = (torch.randn(PRODUCT_SIZE, PRODUCT_SIZE, device="cuda", dtype=dtype) for _ in range(2))
    return gpu_seconds(lambda: x @ w, warm_ups=2)
