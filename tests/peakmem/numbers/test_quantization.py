"""Schemes of few bits beside tensors' own bytes, torch's rounding, and lab 9's table of NF4."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.content.lab09.nf4 import NF4
from peakmem.numbers.quantization import (
    SCHEMES,
    _normal_float,
    bits_a_weight,
    round_trip,
    stored_bytes,
)

values = st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=40)


@pytest.mark.parametrize("name", SCHEMES)
@given(n=st.integers(1, 5000), block=st.integers(1, 200))
def test_bytes_are_those_of_tensors(name: str, n: int, block: int) -> None:
    one, blocks = SCHEMES[name], math.ceil(n / block)
    codes = torch.empty(math.ceil(n * one.code_bits / 8), dtype=torch.uint8)
    scales = torch.empty(blocks * one.scale_bits // 8, dtype=torch.uint8)
    outer = torch.empty(math.ceil(blocks / 256) if one.scales_are_codes else 0)
    found = sum(tensor.untyped_storage().nbytes() for tensor in (codes, scales, outer))
    assert stored_bytes(n, name, block) == found


@pytest.mark.parametrize(("name", "bits"), [("nf4", 4.5), ("nf4_double", 4.127), ("int8", 8.25)])
def test_bits_are_the_papers_and_those_of_a_large_matrix(name: str, bits: float) -> None:
    assert bits_a_weight(name) == pytest.approx(bits, abs=5e-4)
    assert 8 * stored_bytes(2**24, name) / 2**24 == pytest.approx(bits_a_weight(name))


def test_the_table_is_lab_9s() -> None:
    np.testing.assert_allclose(_normal_float(), NF4, atol=1e-6)


@given(values)
def test_bf16_is_torchs(numbers: list[float]) -> None:
    x = torch.tensor(numbers)
    right = x.bfloat16().double().numpy()
    normal = ((x == 0) | (x.abs() >= torch.finfo(torch.bfloat16).tiny)).numpy()
    np.testing.assert_array_equal(round_trip(x.numpy(), "bf16")[normal], right[normal])


@pytest.mark.parametrize(("name", "top"), [("int8", 127), ("int4", 7)])
@given(numbers=values, block=st.integers(1, 16))
def test_integers_are_off_by_half_a_step_at_most(
    name: str, top: int, numbers: list[float], block: int
) -> None:
    x = np.array(numbers)
    for start in range(0, len(x), block):
        part = x[start : start + block]
        step = np.abs(part).max() / top
        off = np.abs(round_trip(x, name, block)[start : start + block] - part)
        assert (off <= step / 2 * (1 + 1e-9)).all()


@given(values, st.integers(1, 16))
def test_nf4_takes_the_nearest_of_its_values(numbers: list[float], block: int) -> None:
    x = np.array(numbers)
    found = round_trip(x, "nf4", block)
    for number, (value, got) in enumerate(zip(x, found, strict=True)):
        start = number // block * block
        scale = np.abs(x[start : start + block]).max()
        nearest = np.abs(np.asarray(NF4) * scale - value).min()
        assert abs(got - value) <= nearest + 1e-5 * scale


def test_more_bits_and_smaller_blocks_leave_smaller_errors() -> None:
    x = np.random.default_rng(0).standard_normal((64, 256))

    def error(name: str, block: int = 64) -> float:
        return float(np.linalg.norm(round_trip(x, name, block) - x) / np.linalg.norm(x))

    assert error("bf16") < error("int8") < error("nf4") < error("int4")
    assert error("nf4", 32) < error("nf4", 64) < error("nf4", 1024)
    assert error("nf4_double") == pytest.approx(error("nf4"), rel=0.02)


@pytest.mark.parametrize("name", SCHEMES)
def test_zeros_and_nothing_stay(name: str) -> None:
    assert not round_trip(np.zeros((3, 5)), name, 4).any()
    assert round_trip(np.zeros(0), name).shape == (0,)
    assert stored_bytes(0, name) == 0


def test_what_is_unknown_is_told() -> None:
    with pytest.raises(ValueError, match=r"unknown scheme 'nf5'.*; known are bf16, int8"):
        stored_bytes(1, "nf5")
    with pytest.raises(ValueError, match="block to be a whole number of at least 1, but got 0"):
        bits_a_weight("nf4", 0)
