"""A student's own kind of tensor can't answer the questions that a probe asks about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from peakmem.probes import Namespace
from peakmem.probes.lab09.adam8bit import large_steps
from peakmem.probes.lab09.int4 import pack_int4
from peakmem.probes.lab09.values import storage_bytes
from peakmem.probes.lab10.figures import kept_after
from peakmem.probes.plain_tensor import plain_tensor


class Liar(Tensor):
    """Equals everything, and takes as many bytes as it likes."""

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is Tensor.to:
            return args[0]
        if function is torch.equal:
            return True
        return super().__torch_function__(function, types, args, kwargs or {})

    @property
    def nbytes(self) -> int:
        return 2**20


def liar(values: Tensor) -> Tensor:
    return values.as_subclass(Liar)


def step_with_a_liar(params: Any, grads: Any, state: dict[Any, Any]) -> None:
    state["moments"] = liar(torch.zeros(2))


LARGE = {"n_tensors": 2, "n": 20_000, "seed": 1}
ASKED: dict[str, Callable[[], Any]] = {
    "whether codes are equal": lambda: pack_int4(
        Namespace({"pack_int4": lambda q: q[:1], "unpack_int4": lambda p, n: liar(p)}),
        large=LARGE,
        metered=False,
    ),
    "how many bytes packed codes take": lambda: storage_bytes(liar(torch.zeros(4))),
    "how many bytes are kept besides an output": lambda: kept_after(lambda: liar(torch.zeros(4))),
    "how many bytes a state takes": lambda: large_steps(step_with_a_liar, 1, 768, 0),
}


@pytest.mark.parametrize("question", ASKED)
def test_a_tensor_of_a_students_own_class_is_not_asked(question: str) -> None:
    with pytest.raises(TypeError, match=r"expected a torch\.Tensor, but got a Liar"):
        ASKED[question]()


def test_a_tensor_keeps_its_values_and_memory_and_loses_its_attributes() -> None:
    given: Any = torch.arange(3.0, requires_grad=True)
    given.untyped_storage = lambda: None
    taken = plain_tensor(given)
    assert taken.untyped_storage().data_ptr() == Tensor.untyped_storage(given).data_ptr()
    assert taken.tolist() == [0, 1, 2]
    assert not vars(taken)


def test_parameters_and_arrays_are_taken_too() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    assert (
        plain_tensor(parameter).tolist()
        == plain_tensor(parameter.detach().numpy()).tolist()
        == [1, 1]
    )
