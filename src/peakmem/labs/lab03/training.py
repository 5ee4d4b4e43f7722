"""A small language model trained with a step that is given, and its losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch

__all__ = ["losses_of"]

_VOCAB, _BATCH, _CONTEXT = 64, 16, 32

Step = Callable[..., object]


def losses_of(step: Step, lr: float, steps: int = 120) -> list[float]:
    """Return the losses of a small GPT trained with `step`, the same batches at each call.

    Each token of a sequence has two possible followers, drawn with equal chances, so no model gets
    below a loss of ln 2.
    """
    from peakmem.measure.reference_models import GPT

    with _one_thread():
        torch.manual_seed(0)
        shape = SimpleNamespace(n_layers=2, d_model=64, n_heads=4, vocab=_VOCAB, context=_CONTEXT)
        model = GPT(shape)
        params, losses = list(model.parameters()), []
        state: dict[Any, Any] = {}
        for tokens in _batches(steps):
            model.zero_grad(set_to_none=True)
            logits = model(tokens[:, :-1]).flatten(0, 1)
            loss = torch.nn.functional.cross_entropy(logits, tokens[:, 1:].flatten())
            loss.backward()  # type: ignore[no-untyped-call]
            step(params, [param.grad for param in params], state, lr=lr)
            losses.append(loss.item())
    return losses


def _batches(count: int) -> Iterator[torch.Tensor]:
    """Yield batches of sequences (B, T + 1)."""
    dice = torch.Generator().manual_seed(0)
    followers = torch.randint(_VOCAB, (_VOCAB, 2), generator=dice)
    for _ in range(count):
        tokens = [torch.randint(_VOCAB, (_BATCH,), generator=dice)]  # (B,)
        for _ in range(_CONTEXT):
            pick = torch.randint(2, (_BATCH,), generator=dice)
            tokens.append(followers[tokens[-1], pick])
        yield torch.stack(tokens, dim=1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch use one thread: with more, a model this small takes up to ten times as long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
