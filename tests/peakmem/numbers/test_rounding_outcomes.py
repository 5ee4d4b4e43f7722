"""The fate of numbers in a format: against ml_dtypes' own rounding."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from peakmem.numbers.formats import FORMATS, FP4_E2M1, FP16
from peakmem.numbers.rounding_outcomes import rounding_outcomes

DTYPES: dict[str, Any] = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp8_e4m3": ml_dtypes.float8_e4m3fn,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
}


@given(
    st.sampled_from(list(DTYPES)),
    arrays(np.float32, st.integers(0, 30), elements=st.floats(width=32, allow_nan=False)),
)
def test_as_ml_dtypes_rounds(name: str, values: np.ndarray[Any, Any]) -> None:
    found = rounding_outcomes(FORMATS[name], values)
    dtype = DTYPES[name]
    with np.errstate(over="ignore"):
        rounded = np.abs(values[values != 0].astype(dtype).astype(np.float64))
    assert found.total == len(rounded)
    assert found.zero == np.sum(rounded == 0)
    assert found.overflow == np.sum(~np.isfinite(rounded))
    least = float(ml_dtypes.finfo(dtype).smallest_normal)
    assert found.subnormal == np.sum((rounded > 0) & (rounded < least))


def test_a_scale_of_a_power_of_two_moves_the_numbers() -> None:
    values = np.geomspace(1e-12, 1e3, 200)
    assert rounding_outcomes(FP16, values, scale=1024) == rounding_outcomes(FP16, values * 1024)


def test_a_format_without_infinity_overflows_too() -> None:
    assert rounding_outcomes(FP4_E2M1, np.array([6.0, 100.0])).overflow == 1


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        rounding_outcomes(FP16, np.array([1.0, np.nan]))
