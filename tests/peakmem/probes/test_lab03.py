"""Lab 3's probes: a torch optimizer without an import of dynamo, and hooks that live on."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from peakmem.labs.lab03.checks import from_backward_to_step
from peakmem.labs.lab03.metered import metered_backward
from peakmem.probes import Namespace
from peakmem.probes.lab03 import measured_state_bytes, step_in_backward

STATE = {
    "parameters": [3, 4],
    "sizes": [5, 3],
    "dtypes": ["float32", "float32"],
    "trees": [
        {"m": {"storage": 0, "start": 0, "stop": 2}, "v": [{"storage": 1, "start": 0, "stop": 3}]}
    ],
}


def seen_by(look: Any) -> Any:
    """The student's function's result for the given optimizer."""
    ((kind, value),) = measured_state_bytes(Namespace({"measured_state_bytes": look}), [[STATE]])
    assert kind == "value", value
    return value


def test_its_methods_are_those_of_an_optimizer() -> None:
    def look(optimizer: torch.optim.Optimizer) -> list[Any]:
        state = optimizer.state_dict()
        assert isinstance(optimizer, torch.optim.Optimizer)
        assert repr(optimizer).startswith("_StateOnly")
        assert state["param_groups"] == [{"params": [0]}, {"params": [1]}]
        if optimizer.state:  # at last it is emptied
            assert list(state["state"]) == [0]
            assert state["state"][0]["m"].untyped_storage().nbytes() == 20
        optimizer.zero_grad()
        return [p.numel() for group in optimizer.param_groups for p in group["params"]]

    assert seen_by(look) == [3, 4]


@pytest.mark.parametrize(
    "change",
    [
        lambda optimizer: optimizer.state[optimizer.param_groups[1]["params"][0]],
        lambda optimizer: optimizer.load_state_dict(optimizer.state_dict()),
        lambda optimizer: next(iter(optimizer.state.values()))["m"].add_(1),
    ],
    ids=["an entry", "a loaded state", "a value"],
)
def test_a_change_is_seen(change: Any) -> None:
    assert seen_by(lambda optimizer: [change(optimizer), 0][1]) == "changed"


def test_no_method_imports_dynamo() -> None:
    code = (
        "import sys; from peakmem.probes.lab03.state import _StateOnly\n"
        f"optimizer = _StateOnly({STATE!r})\n"
        "optimizer.load_state_dict(optimizer.state_dict()); optimizer.zero_grad()\n"
        "optimizer.add_param_group({'params': []}); repr(optimizer)\n"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_hooks_may_live_as_long_as_the_object_they_came_with() -> None:
    class Stepping:
        def __init__(self, params: list[torch.Tensor], lr: float = 1e-3) -> None:
            @torch.no_grad()
            def step(param: torch.Tensor) -> None:
                param -= lr * param.grad  # type: ignore[operator]
                param.grad = None

            self.hooks = [p.register_post_accumulate_grad_hook(step) for p in params]  # type: ignore[no-untyped-call]

        def remove(self) -> None:
            for hook in self.hooks:
                hook.remove()

        __del__ = remove

    weights = [np.ones(shape) for shape in ((2, 3), (3, 3), (3, 1))]
    said = step_in_backward(Namespace({"step_in_backward": Stepping}), lr=None, weights=weights)
    assert said["other"] == 0.5
    assert from_backward_to_step(Stepping)() == (0.7, 0.7, False, 0.7, 0.7, True, 0.994)
    assert metered_backward(Stepping) < 2.06 * 2**20
