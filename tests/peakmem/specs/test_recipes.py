"""Recipes: bytes per parameter as papers count them, sizes of real tensors, and refused values."""

from math import ceil, prod

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from peakmem.specs import recipes
from peakmem.specs.recipes import (
    OPTIMIZERS,
    PRECISIONS,
    Parallelism,
    Recipe,
    state_shapes,
    storage_bytes,
)

DTYPES = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8_e4m3": torch.float8_e4m3fn,
    "int64": torch.int64,
    "uint8": torch.uint8,
    "bool": torch.bool,
}


def bytes_per_parameter(precision: str, optimizer: str) -> dict[str, int]:
    formats = PRECISIONS[precision]
    states = len(OPTIMIZERS[optimizer]) * storage_bytes(1, formats.states)
    return {
        "weights": storage_bytes(1, formats.weights),
        "gradients": storage_bytes(1, formats.gradients),
        "master": storage_bytes(1, formats.master) if formats.master else 0,
        "states": states,
    }


@pytest.mark.parametrize(
    ("precision", "optimizer", "expected"),
    [
        ("fp32", "adam", (4, 4, 0, 8)),
        ("mixed", "adam", (2, 2, 4, 8)),  # the 16 bytes of ZeRO's K = 12
        ("mixed_fp32_grads", "adamw", (2, 4, 4, 8)),
        ("bf16", "adam", (2, 2, 0, 4)),
        ("amp_fp16", "adam", (4, 4, 0, 8)),
        ("amp_bf16", "adam", (4, 4, 0, 8)),
        ("fp32", "sgd", (4, 4, 0, 0)),
        ("fp32", "momentum", (4, 4, 0, 4)),
    ],
)
def test_bytes_per_parameter(precision, optimizer, expected):
    assert tuple(bytes_per_parameter(precision, optimizer).values()) == expected


def test_every_precision_has_formats_that_can_be_stored():
    for precision in PRECISIONS.values():
        for dtype in (precision.weights, precision.gradients, precision.states, precision.compute):
            assert storage_bytes(1, dtype) in (2, 4)
    assert all(hasattr(recipes, name) for name in recipes.__all__)


@given(st.sampled_from(sorted(DTYPES)), st.integers(0, 1000))
def test_bytes_are_those_of_torch(dtype, elements):
    tensor = torch.empty(elements, dtype=DTYPES[dtype])
    assert storage_bytes(elements, dtype) == tensor.untyped_storage().nbytes()


def test_small_formats_are_rounded_up_to_whole_bytes():
    assert [storage_bytes(n, "int4") for n in (0, 1, 2, 3)] == [0, 1, 1, 2]
    assert storage_bytes(10, "tf32") == 40  # in memory an fp32
    with pytest.raises(ValueError, match=r"dtype='float32' is unknown"):
        storage_bytes(1, "float32")


@given(st.lists(st.integers(1, 50), min_size=1, max_size=3).map(tuple))
def test_adafactor_and_8_bit_adam_by_their_formulas(shape):
    def state_bytes(optimizer):
        states = state_shapes(optimizer, shape, "fp32").values()
        return sum(storage_bytes(prod(part), dtype) for part, dtype in states)

    n = prod(shape)
    factored = 4 * (n // shape[-1] + n // shape[-2]) if len(shape) > 1 else 4 * n
    assert state_bytes("adafactor") == factored
    assert state_bytes("adam8bit") == 2 * (n + 4 * ceil(n / 256))
    assert state_bytes("adam") == 8 * n


def test_adam_states_are_those_of_torch():
    parameter = torch.nn.Parameter(torch.zeros(3, 5, dtype=torch.bfloat16))
    parameter.grad = torch.ones_like(parameter)
    adam = torch.optim.Adam([parameter])
    adam.step()
    real = [x for x in adam.state[parameter].values() if x.ndim]
    expected = state_shapes("adam", (3, 5), "bf16").values()
    assert [(tuple(x.shape), x.dtype) for x in real] == [
        (part, DTYPES[dtype]) for part, dtype in expected
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"precision": "fp12"}, "precision='fp12' is unknown.*; use one of 'fp32', 'amp_fp16'"),
        ({"optimizer": "sophia"}, "optimizer='sophia' is unknown; use one of 'sgd'"),
        ({"optimizer": "adamw8bit"}, r"is unknown \(did you mean 'adam8bit'\?\)"),
        ({"implementation": "loop"}, "use one of None, 'for-loop', 'foreach', 'fused'"),
        ({"attention": "sdpa"}, "use one of 'standard', 'flash'"),
        ({"checkpointing": "all"}, "use one of 'none', 'selective', 'every_k', 'full'"),
        ({"batch": 0}, "batch to be a whole number of at least 1, but got 0"),
        ({"sequence": 1.5}, "sequence to be a whole number"),
        ({"batch": 3, "micro_batches": 2}, "a batch of 3 can.t be cut into 2 equal parts"),
        ({"batch": 10**14}, "batch=100000000000000, .* too large to play; give at most"),
        ({"batch": 10**6, "micro_batches": 10**6}, "and 1024 micro-batches"),
        ({"dropout": 1.0}, "dropout from 0 to below 1"),
        ({"checkpointing": "full", "checkpoint_every": 2}, "use 'every_k'"),
        ({"lora_rank": -1}, "lora_rank of 0 or more, but got -1"),
        ({"quantized_base": "int2", "lora_rank": 4}, "use one of None, 'int8', 'nf4'"),
        ({"quantized_base": "nf4"}, "can.t be trained itself; give it adapters"),
    ],
)
def test_recipes_that_cannot_be_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**change)


def test_a_recipe_says_its_segments():
    assert Recipe().segment == Recipe(checkpointing="selective").segment == 0
    assert Recipe(checkpointing="full").segment == 1
    assert Recipe(checkpointing="every_k", checkpoint_every=3).segment == 3


def test_devices_that_share_the_work():
    assert Parallelism(data=4, tensor=2, pipeline=3).devices == 24
    with pytest.raises(ValueError, match="zero=4 is unknown; use one of 0, 1, 2, 3"):
        Parallelism(zero=4)
    with pytest.raises(ValueError, match="tensor to be a whole number"):
        Parallelism(tensor=0)
