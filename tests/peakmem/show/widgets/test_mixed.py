"""The loss-scale calculator beside numpy's own float16."""

from __future__ import annotations

import numpy as np
import pytest

from peakmem.show.widgets import mixed_precision


@pytest.mark.parametrize("log_scale", [0, 10, 16, 30])
def test_shares_are_those_of_numpys_float16(log_scale: int) -> None:
    calculator = mixed_precision()
    calculator.set(log_scale=log_scale)
    normal = np.random.default_rng(0).standard_normal(10_000)
    with np.errstate(over="ignore"):
        rounded = (np.exp2(-22 + 4 * normal) * 2.0**log_scale).astype(np.float16)
    lost, over = int(np.sum(rounded == 0)), int(np.sum(np.isinf(rounded)))
    assert f">{lost:,}<" in calculator._text.value
    assert f">{over:,}<" in calculator._text.value
    assert calculator.answer().figure == (pytest.approx(lost / 100), "percent")
    assert ("skips this step" in calculator._text.value) == (over > 0)


def test_the_numbers_are_said_to_be_drawn() -> None:
    assert "not measured" in mixed_precision()._text.value
