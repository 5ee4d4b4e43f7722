"""Generated memory snapshots of GPT-2 in training, for use without a GPU.

Two steps with Adam in fp32, 4 sequences of 1024 tokens. Sizes are those of the tensors, without
what torch rounds up and what kernels take for themselves. Stacks name lines of two files that don't
exist.
"""

from __future__ import annotations

from typing import Any

from peakmem.measure.generated_snapshot import Frame, Recording, frame

__all__ = ["LAYERS", "generated_gpt"]

LAYERS, _HEADS, _WIDTH, _VOCAB = 12, 12, 768, 50257
_BATCH, _TOKENS = 4, 1024
_STEPS = 2
_FP32 = 4

_MODEL, _TRAIN = "/home/you/model.py", "/home/you/train.py"
_TORCH = "/opt/env/torch"

# Tensors that are as wide as the model, one number per token and channel.
_WIDE = _FP32 * _BATCH * _TOKENS * _WIDTH
_SCORES = _FP32 * _BATCH * _HEADS * _TOKENS**2
_LOGITS = _FP32 * _BATCH * _TOKENS * _VOCAB

#: Parameter of a layer -> how many numbers, weights and biases together.
_LAYER = {
    "norm 1": 2 * _WIDTH,
    "qkv": 3 * _WIDTH * (_WIDTH + 1),
    "projection": _WIDTH * (_WIDTH + 1),
    "norm 2": 2 * _WIDTH,
    "up": 4 * _WIDTH * (_WIDTH + 1),
    "down": _WIDTH * (4 * _WIDTH + 1),
}


def generated_gpt(*, blocks: bool = False, loss_chunks: int = 1) -> dict[str, Any]:
    """Return the snapshot of two training steps of GPT-2, in the form that torch records.

    With `blocks`, no layer keeps attention probabilities, as with FlashAttention; the logits come
    in `loss_chunks` chunks, each with its backward at once.
    """
    return _Training(blocks, loss_chunks).snapshot()


class _Training:
    """Writes down what each part of a step takes and frees."""

    def __init__(self, blocks: bool, loss_chunks: int) -> None:
        self._blocks, self._chunks = blocks, loss_chunks
        self._recording = Recording()

    def snapshot(self) -> dict[str, Any]:
        parameters = {"tokens": _VOCAB * _WIDTH, "positions": _TOKENS * _WIDTH}
        for layer in range(LAYERS):
            parameters |= {f"{layer} {name}": count for name, count in _LAYER.items()}
        parameters["last norm"] = 2 * _WIDTH
        sizes = {name: _FP32 * count for name, count in parameters.items()}
        for name, size in sizes.items():
            self._build(name, size)
        for step in range(_STEPS):
            self._step(sizes, first=step == 0)
        return self._recording.snapshot()

    def _step(self, sizes: dict[str, int], *, first: bool) -> None:
        for layer in range(LAYERS):
            self._forward(layer)
        self._loss(sizes["tokens"])
        self._take("gradient of last norm", sizes["last norm"])
        for layer in reversed(range(LAYERS)):
            self._backward(layer, sizes)
        self._take("gradient of positions", sizes["positions"])
        for name, size in sizes.items():
            self._update(name, size, first=first)
        self._recording.free(*(f"gradient of {name}" for name in sizes))

    def _take(self, name: str, size: int, *frames: Frame) -> None:
        self._recording.alloc(name, size, *frames)

    def _build(self, name: str, size: int) -> None:
        kind, line = ("normalization", 12) if "norm" in name else ("linear", 14)
        if name in ("tokens", "positions"):
            kind, line = "sparse", 41
        where = frame(f"{_TORCH}/nn/modules/{kind}.py", 100, "__init__")
        self._take(name, size, where, frame(_MODEL, line, "__init__"), frame(_TRAIN, 5, "<module>"))

    def _forward(self, layer: int) -> None:
        def take(name: str, size: int, line: int, module: str = "") -> None:
            inner = [frame(f"{_TORCH}/nn/modules/{module}.py", 100, "forward")] if module else []
            mine = frame(_MODEL, line, "forward")
            self._take(f"{layer} {name}", size, *inner, mine, frame(_TRAIN, 12, "step"))

        take("normed 1", _WIDE, 20, "normalization")
        take("qkv out", 3 * _WIDE, 21, "linear")
        if self._blocks:
            take("attended", _WIDE, 24)
        else:
            take("scores", _SCORES, 22)
            take("probabilities", _SCORES, 23)
            self._recording.free(f"{layer} scores")
            take("attended", _WIDE, 24)
        take("projected", _WIDE, 25, "linear")
        take("middle", _WIDE, 25)
        self._recording.free(f"{layer} projected")
        take("normed 2", _WIDE, 27, "normalization")
        take("hidden", 4 * _WIDE, 28, "linear")
        take("gelu", 4 * _WIDE, 29, "activation")
        take("mlp out", _WIDE, 30, "linear")
        take("out", _WIDE, 30)
        self._recording.free(f"{layer} mlp out")

    def _loss(self, tied_bytes: int) -> None:
        """The weights of the logits are those of the tokens, so their gradient begins here."""
        mine, size = frame(_TRAIN, 14, "step"), _LOGITS // self._chunks
        loss = frame(f"{_TORCH}/nn/functional.py", 3494, "cross_entropy")
        if self._chunks > 1:
            self._take("gradient of out", _WIDE)
        for chunk in range(self._chunks):
            self._take("logits", size, frame(_TRAIN, 13, "step"))
            self._take("log-probabilities", size, loss, mine)
            self._take("gradient of logits", size)
            self._recording.free("log-probabilities")
            if chunk == 0:
                self._take("gradient of tokens", tied_bytes)
            if self._chunks == 1:
                self._take("gradient of out", _WIDE)
            self._recording.free("logits", "gradient of logits")

    def _backward(self, layer: int, sizes: dict[str, int]) -> None:
        """Backward of a layer: each gradient of an activation goes once the next is there."""

        def weights(*names: str) -> None:
            for name in names:
                self._take(f"gradient of {layer} {name}", sizes[f"{layer} {name}"])

        def free(*names: str) -> None:
            self._recording.free(*(f"{layer} {name}" for name in names))

        weights("down")
        self._take("gradient of gelu", 4 * _WIDE)
        self._take("gradient of hidden", 4 * _WIDE)
        self._recording.free("gradient of gelu")
        free("gelu", "hidden", "out")
        weights("up", "norm 2")
        self._recording.free("gradient of hidden")
        free("normed 2", "middle")
        weights("projection")
        if not self._blocks:
            self._take("gradient of probabilities", _SCORES)
            self._take("gradient of scores", _SCORES)
            self._recording.free("gradient of probabilities")
            free("probabilities")
            self._recording.free("gradient of scores")
        self._take("gradient of qkv out", 3 * _WIDE)
        free("attended", "qkv out")
        weights("qkv", "norm 1")
        self._recording.free("gradient of qkv out")
        free("normed 1")
        if layer == 0:
            self._recording.free("gradient of out")

    def _update(self, name: str, size: int, *, first: bool) -> None:
        stack = frame(f"{_TORCH}/optim/adam.py", 400, "step"), frame(_TRAIN, 16, "step")
        if first:
            self._take(f"first moment of {name}", size, *stack)
            self._take(f"second moment of {name}", size, *stack)
        self._take("denominator", size, *stack)
        self._recording.free("denominator")
