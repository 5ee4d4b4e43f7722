"""recompute_attention_only: attention is recomputed, while the MLP's tensors are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from autograder.content.lab04.forbidden import UNSEEN
from autograder.model.restrictions import Ban
from autograder.model.task import Answer, Case, Finding, Task
from peakmem.probes.lab04 import run_attention

__all__ = ["recompute_attention_only"]

_GRADIENTS, _KEPT, _AGAIN = "gradients", "kept bytes", "recomputed operations"
_SLACK_BYTES = 32 * 1024


def _cases(rng: np.random.Generator) -> list[Case]:
    # Heads times length is far above the bound on the linear terms, so a quadratic term shows.
    sizes = [(2, 16, 16, 4), (1, 128, 32, 8)]
    inputs = [
        {"seed": int(rng.integers(2**31)), "batch": b, "length": t, "d_model": d, "n_heads": a}
        for b, t, d, a in sizes
    ]
    return [Case((_GRADIENTS,), inputs[0]), Case((_GRADIENTS, _KEPT, _AGAIN), inputs[1])]


def _plain(block: Any, x: Any) -> Any:
    return block(x)


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    found = _findings(case.inputs, answer.value)
    return {part: found[part] for part in case.parts}


def _findings(inputs: Mapping[str, Any], value: Any) -> dict[str, Finding]:
    expected = run_attention(_plain, **inputs)
    counts = ("kept_bytes", "softmax", "gelu", "addmm", "fused")
    if not isinstance(value, dict) or any(type(value.get(name)) is not int for name in counts):
        return dict.fromkeys(_PARTS, Finding(False, "The answers came back garbled."))
    if not _close(value.get("outputs"), expected["outputs"]):
        wrong = Finding(False, "The result differs from the block's.", ("another_result",))
        return dict.fromkeys(_PARTS, wrong)
    if value.get("unchanged") is not True:
        wrong = Finding(
            False, "Afterwards the block's attributes have changed.", ("block_changed",)
        )
        return dict.fromkeys(_PARTS, wrong)
    if not _close(value.get("gradients"), expected["gradients"]):
        wrong = Finding(
            False, "After backward, the gradients differ from the block's.", ("gradients",)
        )
        return dict.fromkeys(_PARTS, wrong)
    return {
        _GRADIENTS: Finding(True),
        _KEPT: _kept(inputs, value),
        _AGAIN: _again(inputs, value),
    }


def _linear_bytes(inputs: Mapping[str, Any]) -> int:
    return 4 * int(inputs["batch"]) * int(inputs["length"]) * int(inputs["d_model"])


def _kept(inputs: Mapping[str, Any], value: Mapping[str, int]) -> Finding:
    """Judge the kept bytes: 8 sbh for the MLP's two tensors, up to 16 with all but the scores."""
    linear = _linear_bytes(inputs)
    if _keeps_probabilities(inputs, value):
        said = (
            "After forward, more bytes are live than a multiple of b s h: the attention "
            "probabilities are still saved."
        )
        return Finding(False, said, ("nothing_recomputed",) if value["softmax"] == 1 else ())
    if value["fused"]:
        return Finding(False, _FUSED, ("fused",))
    if value["gelu"] == 1 and value["kept_bytes"] < 8 * linear:  # backward needs more than this
        return Finding(False, doubt=UNSEEN)
    return _unseen(value) or Finding(True)


def _keeps_probabilities(inputs: Mapping[str, Any], value: Mapping[str, int]) -> bool:
    return value["kept_bytes"] > 16 * _linear_bytes(inputs) + _SLACK_BYTES


def _again(inputs: Mapping[str, Any], value: Mapping[str, int]) -> Finding:
    softmax, gelu, addmm = (value[name] for name in ("softmax", "gelu", "addmm"))
    if gelu > 1 or addmm > 6:
        said = (
            f"The MLP ran {gelu} times and linear layers ran {addmm} times; expected at most 1 "
            "and 6."
        )
        whole = value["kept_bytes"] < _linear_bytes(inputs)
        return Finding(False, said, ("whole_block",) if whole else ("twice",))
    if value["fused"]:
        return Finding(False, _FUSED, ("fused",))
    if softmax == 1:
        return Finding(False, "Attention ran only once.", ("nothing_recomputed",))
    if softmax > 2:
        return Finding(False, f"Attention ran {softmax} times, expected 2.", ("twice",))
    if _keeps_probabilities(inputs, value):  # whatever the second softmax was of
        said = "The attention probabilities are still saved, so backward doesn't recompute them."
        return Finding(False, said)
    return _unseen(value) or Finding(True)


def _unseen(value: Mapping[str, int]) -> Finding | None:
    """A doubt if the meter saw fewer operators than the block needs."""
    if value["softmax"] >= 1 and value["gelu"] >= 1 and value["addmm"] >= 4:
        return None
    return Finding(False, doubt=UNSEEN)


_FUSED = "You call torch's fused attention instead of the block's own."


def _close(got: Any, expected: list[Any]) -> bool:
    return (
        isinstance(got, list)
        and len(got) == len(expected)
        and all(
            isinstance(a, np.ndarray)
            and isinstance(b, np.ndarray)
            and a.shape == b.shape
            and np.allclose(a, b, rtol=1e-3, atol=1e-4 * max(float(np.abs(b).max()), 1e-3))
            for a, b in zip(got, expected, strict=True)
        )
    )


_PARTS: dict[str, float] = {_GRADIENTS: 1, _KEPT: 1, _AGAIN: 1}

recompute_attention_only = Task(
    id="lab04-recompute_attention",
    parts=_PARTS,
    defines=("recompute_attention_only",),
    probe="recompute_attention_only",
    cases=_cases,
    judge=_judge,
    mistakes={
        "whole_block": "You recompute the whole block. The MLP is most of the work and saves no "
        "quadratic term: run it outside the checkpoint.",
        "nothing_recomputed": "The attention probabilities are saved. Run attention through "
        "checkpoint.",
        "twice": "Something runs too often: run attention once in forward and once in backward, "
        "and the MLP only once.",
        "fused": "You call torch's fused attention, which recomputes for you. Recompute the "
        "block's own attention: run it through checkpoint.",
        "block_changed": "You change an attribute of the block or of one of its parts. Call its "
        "parts, and leave them as they are.",
        "another_result": "The result differs from the block's. It is a + mlp(norm2(a)) with "
        "a = x + attention(norm1(x)).",
        "gradients": "Some gradients differ: every parameter of attention, MLP and norms gets "
        "one, and so does x, along both of its paths.",
    },
    ban=Ban(
        names=frozenset({".recompute"}),
        reason="Run the parts yourself, and leave the block's switch alone.",
    ),
    trust="measured",
    stretch=True,
)
