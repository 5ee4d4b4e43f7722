"""predict_training: a step's memory, compared with a real step on the trusted side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from autograder.content.lab02.training_rules import EXACT, MUTANTS, Sizes, rule_of_the_lab
from autograder.model.compare import are_outcomes, raised_text, show
from autograder.model.restrictions import Ban
from autograder.model.task import NOT_WRITTEN, Answer, Case, Finding, Task

__all__ = ["predict_training"]

_COMPONENTS, _NEAR, _NEARER = "components", "peak within 5%", "peak within 1%"
_PARTS = {_COMPONENTS: 2, _NEAR: 1, _NEARER: 1}
_TOLERANCES = {_NEAR: 0.05, _NEARER: 0.01}
_SAVED_TOLERANCE = 0.01
_RULES_OFF = 0.001  # the most by which the text's rules differ from a measured step
_KEYS = (*EXACT, "saved_activations", "peak")


def _cases(rng: np.random.Generator) -> list[Case]:
    """Two shapes of each kind, and the first shape with each of its numbers changed in turn.

    Their proportions vary little, so a mistake always costs the same points. Activations and logits
    dominate the first two, and the embedding dominates the next two. The last two have a small
    vocabulary, and the MLP's matrices are their largest parameters.
    """
    kinds = [(2, 128, 4, 1000, 256), (3, 128, 2, 1100, 288)]
    kinds += [(1, 96, 2, 3000, 32), (2, 128, 4, 3000, 32)]
    kinds += [(3, 128, 2, 100, 32), (4, 128, 4, 100, 32)]
    calls = [_call(rng, *kind) for kind in kinds]
    shape, batch, seq = calls[0]
    # Catch results cached without the batch, the length, or part of the shape.
    calls += [(shape, 2 * batch, seq), (shape, batch, 24 - seq)]
    sizes = {"n_layers": 3, "d_model": 96, "vocab": shape["vocab"] + 100, "context": 30}
    calls += [({**shape, name: size}, batch, seq) for name, size in sizes.items()]
    return [
        Case(tuple(_PARTS), {"calls": [list(call)]}, fixed=index % 2 == 1)
        for index, call in enumerate(calls)
    ]


def _call(
    rng: np.random.Generator, n: int, d: int, heads: int, vocab: int, tokens: int
) -> tuple[dict[str, int], int, int]:
    seq = int(rng.choice([8, 16]))
    shape = {
        "n_layers": n,
        "d_model": d,
        "n_heads": heads,
        "vocab": vocab + int(rng.integers(vocab // 20)),
        "context": int(rng.integers(16, 24)),
    }
    return shape, tokens // seq, seq


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    (call,), outcomes = case.inputs["calls"], answer.value
    if not are_outcomes(outcomes, 1):
        return dict.fromkeys(case.parts, Finding(False, "The answers came back garbled."))
    kind, got = outcomes[0][:2]
    if (kind, got) == ("raised", "NotImplementedError"):
        return dict.fromkeys(case.parts, NOT_WRITTEN)
    written = f"For predict_training({dict(call[0])}, {call[1]}, {call[2]})"
    if kind == "changed":
        return dict.fromkeys(
            case.parts, Finding(False, f"{written}: your function changed the shape.")
        )
    if kind == "raised":
        said = f"{written}: {raised_text(outcomes[0])}."
        return dict.fromkeys(case.parts, Finding(False, said))
    if kind != "value" or not _is_prediction(got):
        said = f"{written}: expected a dict of numbers with the keys {', '.join(_KEYS)}, but got "
        return dict.fromkeys(case.parts, Finding(False, f"{said}{show(got)}."))
    if _right_by_the_rules(rule_of_the_lab(*call), got):
        return dict.fromkeys(case.parts, Finding(True))
    from autograder.content.lab02 import (
        measured_step,
    )  # it loads torch, which most answers don't need

    expected = measured_step.measured_training(*call)
    made = {name: mutant(*call) for name, mutant in MUTANTS.items()}
    rules, findings = rule_of_the_lab(*call), {}
    for part in case.parts:
        like = tuple(name for name, sizes in made.items() if _fits(part, sizes, got, rules))
        wrong = _wrong(part, expected, got)
        findings[part] = Finding(False, f"{written}: {wrong}.", like) if wrong else Finding(True)
    return findings


def _is_prediction(got: Any) -> bool:
    return (
        isinstance(got, dict)
        and got.keys() == set(_KEYS)
        and all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in got.values())
        and all(abs(x) < 2**64 for x in got.values())  # refuses NaN, too
    )


def _right_by_the_rules(rules: Sizes, got: Mapping[str, float]) -> bool:
    """Tell whether an answer is so close to the rules that measuring would accept it too.

    Measuring takes a fortieth of a second, and most answers need none.
    """
    return all(rules[key] == got[key] for key in EXACT) and all(
        _near(rules[key], got[key], tolerance - 2 * _RULES_OFF)
        for key, tolerance in (
            ("saved_activations", _SAVED_TOLERANCE),
            ("peak", min(_TOLERANCES.values())),
        )
    )


def _near(expected: float, got: float, tolerance: float) -> bool:
    return abs(got - expected) <= tolerance * expected


def _fits(part: str, sizes: Sizes, got: Mapping[str, float], rules: Sizes) -> bool:
    """Tell whether an answer agrees with a mutant's in this part.

    A mutant with wrong components doesn't explain the peak of an answer with other components.
    """
    alike = _same_components(sizes, got)
    if part in _TOLERANCES:
        return _near(sizes["peak"], got["peak"], 0.01) and (alike or _same_components(sizes, rules))
    return alike


def _same_components(sizes: Sizes, got: Mapping[str, float]) -> bool:
    return all(sizes[key] == got[key] for key in EXACT) and _near(
        sizes["saved_activations"], got["saved_activations"], _SAVED_TOLERANCE
    )


def _wrong(part: str, expected: Sizes, got: Mapping[str, float]) -> str:
    """Return what is wrong with an answer in this part; "" if it is correct."""
    if part in _TOLERANCES:
        if _near(expected["peak"], got["peak"], _TOLERANCES[part]):
            return ""
        return f"expected a peak of {expected['peak']} (measured), but got {show(got['peak'])}"
    for key in (*EXACT, "saved_activations"):
        tolerance = _SAVED_TOLERANCE if key == "saved_activations" else 0.0
        if not _near(expected[key], got[key], tolerance):
            return f"expected {expected[key]} for {key} (measured), but got {show(got[key])}"
    return ""


_NO_RUN = Ban(
    names=frozenset(
        {".backward", ".register_forward_hook", ".register_forward_pre_hook", ".memory_allocated"}
        | {".register_full_backward_hook", ".register_module_forward_hook", ".register_hook"}
        | {".max_memory_allocated", ".training_step", "saved_tensors_hooks", "TorchDispatchMode"}
        | {"__torch_dispatch__", "__torch_function__"}
    ),
    modules=frozenset(
        {"peakmem.nn.training_step", "torch.autograd", "torch.cuda", "torch.export", "torch.fx"}
        | {"torch.func", "torch.optim", "torch.overrides", "torch.profiler"}
        | {"torch.utils.flop_counter"}
    ),
    reason="Compute the bytes from the shape; don't run or measure a model in your function.",
)

predict_training = Task(
    id="lab02-predict_training",
    stretch=True,
    parts=_PARTS,
    defines=("predict_training",),
    probe="predict_training",
    cases=_cases,
    judge=_judge,
    ban=_NO_RUN,
    mistakes={
        # Mistakes in the peak alone come first: they don't explain an answer with wrong components.
        "peak_is_sum": "Your peak is the sum of all components. But gradients and saved "
        "activations are never all live at once, and temporary values come on top.",
        "one_copy_of_logits": "When the logits' gradient is made, three tensors of their size are "
        "live; you count one.",
        "two_copies_of_logits": "When the logits' gradient is made, three tensors of their size "
        "are live; you count two.",
        "no_temporaries": "In the optimizer's step, two temporary tensors of the largest "
        "parameter's size are live in addition to everything that stays; you count none.",
        "one_temporary": "In the optimizer's step, two temporary tensors of the largest "
        "parameter's size are live; you count one.",
        "embedding_is_largest": "With a small vocabulary the token embedding is not the largest "
        "parameter: the MLP's matrices have 4 d_model^2 numbers.",
        "gradients_at_logits": "At the beginning of backward no parameter has a gradient yet: "
        "zero_grad has freed the previous step's gradients.",
        "activations_in_step": "In the optimizer's step no saved activations are left: backward "
        "has freed them.",
        "only_logits": "Your peak is always at the logits' gradient. In a model with many "
        "parameters and few tokens the optimizer's step is higher: take the larger of the two.",
        "only_step": "Your peak is always in the optimizer's step. With many tokens the logits' "
        "gradient is higher: take the larger of the two.",
        "counters_forgotten": "The optimizer keeps a step counter too: one float32 number for each "
        "parameter tensor, of which there are 12 n_layers + 4.",
        "one_moment": "AdamW keeps two moments of 4 bytes per parameter; you count one.",
        "bytes_2": "You count weights and gradients at 2 bytes per parameter. The step is in "
        "float32: 4 bytes.",
        "head_untied": "You count the head as a separate matrix. It is tied: it is the token "
        "embedding, which you already count.",
        "default_context": "Take context from the shape; you use GPT-3's for every model.",
        "biases_forgotten": "You leave out the biases of the linear layers, 9 d_model a layer.",
        "saved_at_2_bytes": "Your saved activations are those of exercise 2.4, at 2 bytes per "
        "element. This step is in float32 and has no dropout masks: use the measured table.",
        "paper_doubled": "Your saved activations are twice those of exercise 2.4, including "
        "masks. There is no dropout here, and after the layers a norm and the head save their "
        "inputs.",
        "final_norm_forgotten": "After the last layer, the final norm and the head save their "
        "inputs too: 2 d_model numbers per token.",
        "one_layer": "Every layer keeps its activations: multiply by n_layers.",
        "logits_among_saved": "The logits have their own key; don't count them among the saved "
        "activations.",
        "logits_three_times": "The loss keeps one copy of the logits. Their gradients are made in "
        "backward; they belong to the peak only.",
    },
)
