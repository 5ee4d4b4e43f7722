"""Lab 9's references beside torchao, torch's own library for low precision.

Its 8-bit Adam is left out: it compiles its step, which takes over a minute and needs a compiler.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

from autograder.content.lab09.affine import affine
from autograder.content.lab09.nf4 import NF4, encoded
from autograder.content.lab09.stored_bytes import weight_bytes
from autograder.content.lab09.symmetric import quantized
from peakmem.numbers.quantization import round_trip

X = torch.randn(64, 1024, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def torchao() -> Any:
    """Return torchao's primitives, imported late: that takes longer than all the tests here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torchao.quantization import quant_primitives
    return quant_primitives


@pytest.fixture(scope="module")
def in_nf4() -> Any:
    """Return X as torchao's tensor in NF4."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torchao.quantization.quantize_.workflows.nf4.nf4_tensor import to_nf4

        return to_nf4(X, 64, 256)


def blocks(axis: int | None) -> tuple[int, int]:
    """Return the shape of what shares a scale, as torchao has it."""
    rows, columns = X.shape
    return {None: (rows, columns), 0: (1, columns), 1: (rows, 1)}[axis]


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_symmetric_codes_are_torchaos_under_the_same_step(
    torchao: Any, bits: int, axis: int | None
) -> None:
    """torchao's own step is wider by half a code, so it gets ours."""
    top = 2 ** (bits - 1) - 1
    found = quantized(X.numpy(), bits, axis)
    scale = torch.from_numpy(np.asarray(found["scale"], np.float32)).flatten()
    zero = torch.zeros(len(scale), dtype=torch.int32)
    codes = torchao.quantize_affine(X, blocks(axis), scale, zero, torch.int8, -top, top)
    off = codes.int() - torch.from_numpy(np.asarray(found["codes"])).int()
    assert off.abs().max() <= 1  # torchao multiplies by 1 / step, so halves may go either way
    assert (off != 0).double().mean() < 1e-3


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_zero_points_and_affine_codes_are_torchaos(
    torchao: Any, bits: int, axis: int | None
) -> None:
    top = 2**bits - 1
    scale, zero = torchao.choose_qparams_affine(
        X, torchao.MappingType.ASYMMETRIC, blocks(axis), torch.uint8, 0, top
    )
    codes = torchao.quantize_affine(X, blocks(axis), scale, zero, torch.uint8, 0, top)
    found = affine(X.numpy(), bits, axis)
    np.testing.assert_allclose(np.asarray(found["scale"]).ravel(), scale.flatten(), rtol=1e-5)
    np.testing.assert_array_equal(np.asarray(found["zero_point"]).ravel(), zero.flatten())
    off = codes.int() - torch.from_numpy(np.asarray(found["codes"])).int()
    assert off.abs().max() <= 1
    assert (off != 0).double().mean() < 1e-3


@pytest.mark.parametrize("block", [32, 64, 128])
def test_blocks_of_int4_are_torchaos(torchao: Any, block: int) -> None:
    size = (1, block)
    parts = X.view(-1, block)
    scale = parts.abs().amax(dim=1).view(len(X), -1) / 7
    zero = torch.zeros_like(scale, dtype=torch.int32)
    codes = torchao.quantize_affine(X, size, scale, zero, torch.int8, -7, 7)
    values = torchao.dequantize_affine(codes, size, scale, zero, torch.int8, -7, 7)
    off = np.abs(round_trip(X.numpy(), "int4", block) - values.numpy())
    step = scale.repeat_interleave(block, dim=1).numpy()
    assert ((off < 1e-5) | (np.abs(off - step) < 1e-5)).all()
    assert (off > 1e-5).mean() < 1e-3


def test_all_16_values_of_nf4_are_torchaos(in_nf4: Any) -> None:
    """torchao's table has four decimals."""
    np.testing.assert_allclose(NF4, in_nf4.nf4, atol=6e-5)


def test_every_value_has_torchaos_code_of_nf4(in_nf4: Any) -> None:
    """torchao quantizes the largest of a block too, so values are compared up to their step."""
    found = encoded(X.flatten().numpy(), 64)["decoded"]
    other = in_nf4.get_original_weight().flatten().numpy()
    largest = np.abs(X.numpy().reshape(-1, 64)).max(axis=1).repeat(64)
    nearest = np.abs(NF4[:, None] - found / largest).argmin(axis=0)
    others = np.abs(NF4[:, None] - other / largest).argmin(axis=0)
    assert (nearest == others).mean() > 0.999


def test_double_quantization_takes_torchaos_bytes(in_nf4: Any) -> None:
    """But for 4 bytes: the mean that torchao takes off the scales."""
    tensor = in_nf4
    parts = (tensor.quantized_scalers, tensor.quantization_factor, tensor.quantized_data)
    assert sum(part.nbytes for part in parts) == weight_bytes(X.numel(), "nf4_double")
