"""checkpoint: forward without a graph, then forward again during backward.

Long because an exercise is one thing: its cases, what each compares, and a message for each
mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from autograder.content.lab04.forbidden import NO_TORCH_CHECKPOINT, UNSEEN
from autograder.model.compare import same
from autograder.model.task import Answer, Budget, Case, Finding, Task
from peakmem.probes.lab04 import MANY, MANY_TANHS, TANHS, many_tanhs, run_checkpointed, run_many

__all__ = ["checkpoint", "close", "near"]

_GRADIENTS, _KEPT, _RNG, _SEVERAL = (
    "gradients",
    "kept bytes and calls",
    "random numbers",
    "several tensors",
)
_PARTS_OF = {
    "layers": (_GRADIENTS,),
    "arguments": (_GRADIENTS, _KEPT),
    "used again": (_GRADIENTS, _KEPT),
    "memory": (_KEPT,),
    "many": (_KEPT,),
    "no_grad": (_KEPT,),
    "random": (_RNG,),
    "several": (_SEVERAL,),
    "last of several": (_SEVERAL,),
    "one in a tuple": (_SEVERAL,),
}
_SIDE = 320  # rows and columns of the measured runs: float32 tensors of 400 KiB
_MANY_SIDE = 512
_SIDES = {"memory": _SIDE, "many": _MANY_SIDE}
_MIB = 2**20
_MANY_TENSOR = 4 * _MANY_SIDE**2
# Live at once: the input and its gradient, what one function saves, and six tensors that its
# backward makes. If each checkpoint keeps one tensor too many, ten more are live.
_MANY_TENSORS = 2 + MANY_TANHS + 6
_SLACK_BYTES = 8 * 1024  # the state of a random generator is 5 KiB


def _cases(rng: np.random.Generator) -> list[Case]:
    def case(kind: str) -> Case:
        rows, columns = (int(n) for n in rng.integers(3, 8, 2))
        if kind in _SIDES:
            rows = columns = _SIDES[kind]
        seed = int(rng.integers(2**31))
        inputs = {"kind": kind, "seed": seed, "rows": rows, "columns": columns}
        budget = Budget(_MANY_TENSORS * _MANY_TENSOR + _MIB) if kind == "many" else None
        return Case(_PARTS_OF[kind], inputs, budget=budget)

    return [case(kind) for kind in _PARTS_OF]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    if case.inputs["kind"] == "memory":
        finding = _memory(case.inputs["seed"], answer.value)
    elif case.inputs["kind"] == "many":
        finding = _many(case.inputs, answer)
    else:
        finding = _same(dict(case.inputs), answer.value)
    found = dict.fromkeys(case.parts, finding)
    if case.inputs["kind"] in _CALLED:
        found[_KEPT] = _calls(case.inputs["kind"], answer.value)
    return found


def _plain(fn: Callable[..., Any], *args: Any) -> Any:
    return fn(*args)


def _same(inputs: dict[str, Any], value: Any) -> Finding:
    """Compare a run with the same run without checkpoints."""
    expected = run_checkpointed(_plain, **inputs)
    if not isinstance(value, dict) or value.keys() != expected.keys():
        return Finding(False, "The answers came back garbled.")
    kind = inputs["kind"]
    if not same(expected["is_tuple"], value["is_tuple"]) or not close(
        value["outputs"], expected["outputs"]
    ):
        seeds = ("forward_rewinds",) if kind == "random" else ()
        return Finding(False, _OUTPUTS, (*seeds, "outputs"))
    if value["arguments_same"] is not True:
        return Finding(False, _CHANGED, ("arguments_changed",))
    if not same("", value["failed"]):
        mistakes = _refusals(kind, value["failed"])
        return Finding(False, f"{_REFUSED}{value['failed']!s:.600}", mistakes)
    if not same(expected["requires_grad"], value["requires_grad"]):
        return Finding(False, _NO_GRAPH if kind != "no_grad" else _UNDER_NO_GRAD)
    if kind == "no_grad":
        once = same([1, 1], value["calls"])
        return Finding(True) if once else Finding(False, _UNDER_NO_GRAD, ("calls",))
    if kind == "random" and not close(value["between"], expected["between"]):
        return Finding(False, _BETWEEN, ("forward_rewinds",))
    if not close(value["gradients"], expected["gradients"]):
        return Finding(False, _GRADIENTS_DIFFER, _gradient_mistakes(kind, value, expected))
    if kind == "random" and not close(value["after"], expected["after"]):
        return Finding(False, _AFTER, ("state_not_put_back",))
    return Finding(True)


def _refusals(kind: str, said: Any) -> tuple[str, ...]:
    """The mistakes that may have caused backward's error."""
    if not isinstance(said, str):
        return ()
    several = kind in ("several", "last of several")
    if "does not require grad and does not have a grad_fn" in said:
        return ("results_without_gradient",) if several else ("no_graph_in_backward",)
    if "second time" in said or "after they have already been freed" in said:
        return ("one_backward_each",) if several else ("not_detached",)
    if said.startswith("StopIteration"):  # from an iterator with one gradient for each tensor
        return ("parameters_left_out", "integer_arguments")
    return ("integer_arguments",) if "only Tensors of floating point" in said else ()


# The calls of one checkpoint, and of two in a row: after forward, and after backward.
_CALLED = {"arguments": (1, 2), "used again": (2, 4)}


def _calls(kind: str, value: Any) -> Finding:
    """Each checkpoint calls its function twice."""
    if not isinstance(value, dict) or not isinstance(value.get("calls"), list):
        return Finding(False, "The answers came back garbled.")
    ended = same("", value.get("failed", ""))
    if same(_CALLED[kind], value["calls"]) or not ended:
        return Finding(True)
    mistakes = {
        (1, 1): ("keeps_everything",),
        (2, 2): ("keeps_everything",),
        (2, 5): ("not_detached", "calls"),
    }
    found = [m for calls, m in mistakes.items() if same(calls, value["calls"])]
    said = _CALLS if kind == "arguments" else _TWO_CALLS
    return Finding(False, said, found[0] if found else ("calls",))


def _gradient_mistakes(kind: str, value: Any, expected: Any) -> tuple[str, ...]:
    if not isinstance(value["gradients"], list):
        return ()
    pairs = list(zip(value["gradients"], expected["gradients"], strict=False))
    if pairs and all(got is None for got, _ in pairs):
        return ("no_graph_in_backward",)
    if kind == "used again":  # y has a gradient even without the checkpoints
        no_parameter = all(got is None for got, _ in pairs[2:])
        lost = ("parameters_left_out", "no_graph_in_backward") if no_parameter else ("used_again",)
        return (*lost, "arguments_left_out")
    if all(got is None for got, right in pairs[2:] if right is not None):
        return ("parameters_left_out",)
    if kind == "random":
        return ("other_random_numbers",)
    if any(a is None and b is not None for a, b in pairs):
        return ("arguments_left_out",)
    return ("one_output_only",) if kind in ("several", "last of several") else ()


def close(got: Any, expected: Any) -> bool:
    """Tell whether arrays, Nones, or lists of these are the same up to rounding."""
    if isinstance(expected, list):
        return (
            isinstance(got, list) and len(got) == len(expected) and all(map(close, got, expected))
        )
    if expected is None or got is None:
        return got is expected
    return (
        isinstance(got, np.ndarray)
        and got.shape == expected.shape
        and got.dtype.kind == expected.dtype.kind
        and np.allclose(got, expected, rtol=1e-9, atol=1e-12)
    )


def _many(inputs: Mapping[str, Any], answer: Answer) -> Finding:
    """Many checkpoints before the first backward, under a budget."""
    value = answer.value if isinstance(answer.value, dict) else {}
    calls, rise_bytes = value.get("calls"), answer.metered("rise_bytes")
    if answer.breaks_budget(rise_bytes, (_MANY_TENSORS - 1) * _MANY_TENSOR):
        return Finding(False, _MANY, _why_many(calls, rise_bytes or 0))
    if not same([MANY, 2 * MANY], calls):
        return Finding(False, _CALLS, ("calls",))
    right = _right_of_many(inputs["seed"])
    if not near(value.get("sums"), right["sums"]) or not _is_loss(value.get("loss"), right["loss"]):
        return _measured_call(value)
    return Finding(True)


def _why_many(calls: Any, rise_bytes: int) -> tuple[str, ...]:
    everything = same([MANY, MANY], calls) or rise_bytes > _EVERYTHING * _MANY_TENSOR
    kept = ("keeps_everything",) if everything else ("keeps_something",)
    # What forward keeps also shows after forward. If only this case fails, backward keeps it.
    return ("keeps_second_call", *kept) if same([MANY, 2 * MANY], calls) else kept


def _measured_call(value: Mapping[str, Any]) -> Finding:
    no_gradient = same([], value.get("sums"))
    return Finding(False, _MEASURED_CALL, ("no_graph_in_backward",) if no_gradient else ())


def _is_loss(got: Any, expected: float) -> bool:
    return type(got) is float and bool(np.isclose(got, expected, rtol=1e-3, atol=1.0))


_EVERYTHING = MANY * MANY_TANHS // 2  # in tensors: half of everything that the functions save


@lru_cache(maxsize=64)
def _right_of_many(seed: int) -> dict[str, Any]:
    return run_many(_plain, "many", seed, _MANY_SIDE, _MANY_SIDE, metered=False)


def _memory(seed: int, value: Any) -> Finding:
    sizes = ("kept_bytes", "numpy_bytes", "rise_bytes")
    if not isinstance(value, dict) or any(type(value.get(name)) is not int for name in sizes):
        return Finding(False, "The answers came back garbled.")
    one = 4 * _SIDE**2
    if same([1, 1], value.get("calls")):
        return Finding(False, _CALLS, ("keeps_everything",))
    if not same([1, 2], value.get("calls")):
        return Finding(False, _CALLS, ("calls",))
    if not near(value.get("sums"), _expected_sums(seed)):
        return _measured_call(value)
    if value["kept_bytes"] > _SLACK_BYTES or value["numpy_bytes"] > one // 2:
        everything = value["kept_bytes"] > 8 * one
        return Finding(False, _KEEPS, ("keeps_everything",) if everything else ("keeps_something",))
    # The output and the result before it are live at once, and each call runs all operators.
    seen_all = same([TANHS, TANHS], value.get("operators"))
    if value["kept_bytes"] < 0 or value["rise_bytes"] < 2 * one or not seen_all:
        return Finding(False, doubt=UNSEEN)
    return Finding(True)


@lru_cache(maxsize=64)
def _expected_sums(seed: int) -> list[Any]:
    """The sums that the measured function gives without a checkpoint."""
    torch.manual_seed(seed)
    x = torch.randn(_SIDE, _SIDE, requires_grad=True)
    out = many_tanhs(x)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    return [t.detach().double().sum(dim).numpy() for t in (out, gradient) for dim in (1, 0)]


def near(got: Any, expected: list[Any]) -> bool:
    """Tell whether sums are as expected, up to float32 rounding."""
    return (
        isinstance(got, list)
        and len(got) == len(expected)
        and all(
            isinstance(a, np.ndarray)
            and a.shape == b.shape
            and a.dtype.kind == "f"
            and np.allclose(a, b, rtol=1e-4, atol=1e-4 * float(np.abs(b).max()))
            for a, b in zip(got, expected, strict=True)
        )
    )


_OUTPUTS = (
    "The result differs from the function's. Return the same tensors, and a tuple if the function "
    "returns a tuple."
)
_CHANGED = "An argument changed: its values, or whether it requires a gradient."
_NO_GRAPH = "The result requires no gradient, so backward cannot reach the inputs."
_UNDER_NO_GRAD = (
    "Under torch.no_grad(), call the function once, and return a result without a graph."
)
_BETWEEN = "Random numbers drawn after forward differ from those without a checkpoint."
_AFTER = "Random numbers drawn after backward differ from those without a checkpoint."
_GRADIENTS_DIFFER = "After backward the gradients differ from those without a checkpoint."
_CALLS = "Call the function once in forward and once in backward."
_TWO_CALLS = (
    "With two checkpoints in a row, call each function once in forward and once in backward."
)
_REFUSED = "Backward ended with an error: "
_MEASURED_CALL = (
    "In the memory measurement, the result or the gradient differs from the function's without a "
    "checkpoint."
)
_MANY = (
    f"With {MANY} checkpoints before the first backward, more is live at once than the input and "
    "one function's saved tensors."
)
_KEEPS = (
    "After forward, at most 8 KiB may be live in addition to the inputs and the output, including "
    "numpy's memory. Your checkpoint keeps more."
)

checkpoint = Task(
    id="lab04-checkpoint",
    parts={_GRADIENTS: 2, _KEPT: 2, _RNG: 1, _SEVERAL: 1},
    defines=("checkpoint",),
    probe="checkpoint",
    cases=_cases,
    judge=_judge,
    mistakes={
        "keeps_second_call": "After its backward, your checkpoint still holds tensors of one of "
        "its calls. Keep neither results nor saved tensors, on ctx or elsewhere, and don't retain "
        "the second call's graph.",
        "keeps_everything": "Your checkpoint keeps the activations. In forward, keep none of the "
        "tensors that the function's operations save; call the function again in backward.",
        "keeps_something": "Your checkpoint keeps tensors other than the inputs and the output. "
        "Look for activations in closures, lists and the context.",
        "calls": "You call the function too often or too rarely. Call it once in forward and once "
        "in backward, and only once under torch.no_grad().",
        "other_random_numbers": "In backward the function draws other random numbers than in "
        "forward, so dropout drops other values. In each checkpoint, save torch.get_rng_state() "
        "on its own ctx before the first call, and set it before the second.",
        "state_not_put_back": "Your backward leaves the RNG state changed. Save the current state "
        "before you set the old one, and restore it after the second call.",
        "forward_rewinds": "Your forward leaves the RNG state changed. Forward must only save the "
        "state, not set it.",
        "parameters_left_out": "The layers' parameters get no gradient. In the second call, let "
        "backward reach them: torch.autograd.backward, or gradients for them too.",
        "used_again": "If an argument is used twice, by fn or outside it, its gradient is wrong. "
        "Detach the argument separately in each position for the second call, and return the "
        "gradient that arrives there.",
        "arguments_left_out": "Some tensor argument gets no gradient. Return a gradient for every "
        "tensor argument, whatever its position.",
        "arguments_changed": "You change the caller's argument: its values, or whether it "
        "requires a gradient. Call requires_grad_ on the tensor that detach() returns.",
        "integer_arguments": "Your backward asks for a gradient of integers, which can't have "
        "one. requires_grad_(tensor.requires_grad) avoids this.",
        "no_graph_in_backward": "Your second call builds no graph, so no gradient gets through. "
        "Torch switches gradients off in backward: call fn under torch.enable_grad().",
        "results_without_gradient": "Some results require no gradient, such as integers. Leave "
        "them and their gradients out of torch.autograd.backward.",
        "one_backward_each": "Your results share a graph, and the first backward frees it. Call "
        "torch.autograd.backward once, with the results and their gradients as two lists.",
        "one_output_only": "Your backward goes through only some of the results. Pass each "
        "result's gradient to torch.autograd.backward.",
        "not_detached": "Your second call runs on the arguments themselves, so its backward "
        "continues into the graph that made them, which runs its own backward. Give fn "
        "tensor.detach().requires_grad_(tensor.requires_grad), and return the gradients that "
        "arrive there.",
        "outputs": "The result differs from the function's. Return all of its tensors, including "
        "integer and unused ones, and a tuple if it returns a tuple.",
    },
    ban=NO_TORCH_CHECKPOINT,
    trust="measured",
)
