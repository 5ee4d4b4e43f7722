"""Probe of lab 7's trace of the dtype that each module computes in, and its models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from peakmem.probes import Namespace
from peakmem.probes.hooks import hooks_on

__all__ = ["MODELS", "dtype_trace", "model_and_input"]


class _Block(nn.Module):
    """A residual block whose modules run in another order than registered, one twice in a row."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Linear(16, 8)
        self.up = nn.Linear(8, 16)
        self.act = nn.GELU()
        self.norm = nn.LayerNorm(8)
        self.unused = nn.Tanh()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner: torch.Tensor = self.down(self.act(self.act(self.up(self.norm(x)))))
        return x + inner


class _Twice(nn.Module):
    """An embedding, a block that runs twice, dropout used only in training mode, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.block = _Block()
        self.drop = nn.Dropout(0.5)
        self.head = nn.Sequential(nn.Linear(8, 5), nn.Sequential(nn.Softmax(-1)))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.block(self.block(self.embed(tokens)))
        result: torch.Tensor = self.head(self.drop(x) if self.training else x)
        return result


def _images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3)
    )


def _rows() -> nn.Module:
    return nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 6), nn.Dropout(0.5), nn.Softmax(-1))


#: Name -> a function that makes a model, the shape of its input, and whether it takes tokens.
MODELS: Mapping[str, tuple[Callable[[], nn.Module], tuple[int, ...], bool]] = {
    "images": (_images, (2, 3, 4, 4), False),
    "rows": (_rows, (3, 6), False),
    "twice": (_Twice, (2, 7), True),
    "alone": (lambda: nn.Linear(4, 2), (3, 4), False),
}


def model_and_input(model: str, training: bool, seed: int) -> tuple[nn.Module, torch.Tensor]:
    """Return a model of `MODELS` in training or evaluation mode, and an input for it."""
    make, shape, tokens = MODELS[model]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        x = torch.randint(11, shape) if tokens else torch.randn(shape)
        return make().train(training), x


def dtype_trace(
    student: Namespace, model: str, training: bool, seed: int, dtype: str
) -> dict[str, Any]:
    """Trace one of `MODELS` by the student's `dtype_trace`.

    Returns `trace`, a list of [name, dtype] in which the type's name replaces a value that isn't a
    string; `hooks`, how many hooks the modules have gained, or -1 if an earlier one is gone; and
    everything that changed: `state`, names of parameters and buffers; `frozen`, names of parameters
    that no longer require a gradient; `modes`, names of modules in another mode; and `rng`, whether
    the RNG state differs.
    """
    module, x = model_and_input(model, training, seed)
    leaf = next(part for part in module.modules() if not list(part.children()))
    leaf.register_forward_hook(lambda *_: None)  # an earlier hook, which must stay
    leaf.eval()  # like a frozen layer, without effect on the output
    before = {name: value.clone() for name, value in module.state_dict().items()}
    modes = {name: part.training for name, part in module.named_modules()}
    torch.rand(1)  # so that seeding again doesn't restore this state
    random = torch.get_rng_state()
    found = student.dtype_trace(module, x, getattr(torch, dtype))
    rng = not torch.equal(random, torch.get_rng_state())
    torch.set_rng_state(random)
    return {
        "trace": [[_text(part) for part in entry] for entry in found],
        "hooks": hooks_on(module) - 1,
        "state": [n for n, v in module.state_dict().items() if not torch.equal(v, before[n])],
        "frozen": [name for name, value in module.named_parameters() if not value.requires_grad],
        "modes": [name for name, part in module.named_modules() if part.training != modes[name]],
        "rng": rng,
    }


def _text(part: Any) -> str:
    return part if isinstance(part, str) else f"a {type(part).__name__}, not a string"
