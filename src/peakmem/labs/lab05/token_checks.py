"""What lab 5's self-checks of token means call: a student's function on a table of logits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from peakmem.labs.lab05.limits import (
    Function,
    beside_one,
    check_size,
    no_number,
    recording_left_on,
)
from peakmem.measure.meter import measure_call
from peakmem.probes.hooks import hooks_on

__all__ = ["token_mean_of", "token_rise_of"]

_DIGITS = 4


class Table(nn.Embedding):
    """Its logits for a token are the token's row and a shift. It takes up to `most` at a time."""

    def __init__(self, most: int, training: bool = True) -> None:
        super().__init__(3, 2)
        self.weight.data = torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
        self.shift = nn.Parameter(torch.zeros(2))
        self.most = most
        self.caller_trains = training
        self.train(training)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the rows of the tokens, shifted."""
        check_size(tokens, self.most)
        if self.training != self.caller_trains:
            raise ValueError("the mode is the caller's to set: don't call train() or eval()")
        return super().forward(tokens) + self.shift


TOKENS = torch.tensor([[0, 1, 2], [2, 2, 2], [1, 1, 1]])


def token_mean_of(accumulate: Function) -> Function:
    """Return a function (labels, micro_batch, ...) -> (mean, verdict on the gradient)."""

    def run(
        labels: list[list[int]],
        micro_batch: int,
        before: float = 0.0,
        training: bool = True,
        **options: int,
    ) -> object:
        model, wanted = Table(micro_batch, training), torch.tensor(labels)
        model.weight.grad = torch.full((3, 2), before) if before else None
        found = accumulate(model, TOKENS, wanted, micro_batch, **options)
        if not recording_left_on():
            return "gradients are off"
        if hooks_on(model):
            return "a hook is left"
        if problem := no_number(found, "mean"):
            return problem
        whole = Table(3)
        ignored = options.get("ignore_index", -100)
        losses = F.cross_entropy(
            whole(TOKENS).flatten(0, 1), wanted.flatten(), ignore_index=ignored, reduction="sum"
        )
        (losses / (wanted != ignored).sum().clamp(min=1)).backward()  # type: ignore[no-untyped-call]
        expected, gradient = (
            torch.zeros(3, 2) if weight.grad is None else weight.grad
            for weight in (whole.weight, model.weight)
        )
        right = torch.allclose(gradient, before + expected)
        return round(float(found), _DIGITS), "right gradient" if right else "another gradient"

    return run


def token_rise_of(accumulate: Function) -> Callable[[], str]:
    """Return a function that says whether eight micro-batches of tokens take more than one."""

    def rise_bytes(samples: int) -> int:
        given = torch.zeros(samples, 64, dtype=torch.long)
        found = measure_call(accumulate, nn.Embedding(3, 500), given, given, 1, device="cpu")
        recording_left_on()
        return found.rise_bytes

    def run() -> str:
        return beside_one(rise_bytes(1), rise_bytes(8))

    return run
