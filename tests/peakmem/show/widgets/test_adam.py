"""The calculator of Adam's state beside the table of bytes per parameter."""

from __future__ import annotations

import pytest

from peakmem.show.widgets import adam_state

BYTES = {  # weights, gradients, masters and moments of the recipes
    ("fp32", "adam"): 16,
    ("mixed", "adamw"): 16,
    ("bf16", "adam"): 8,
    ("fp32", "sgd"): 8,
    ("fp32", "momentum"): 12,
}


@pytest.mark.parametrize(("precision", "optimizer"), BYTES)
def test_bytes_a_parameter(precision: str, optimizer: str) -> None:
    calculator = adam_state()
    calculator.set(precision=precision, optimizer=optimizer)
    expected = BYTES[precision, optimizer]
    assert calculator.answer().figure == (pytest.approx(expected, rel=1e-4), "bytes per parameter")
    assert f"{expected}.000" in calculator._text.value


def test_adam_has_three_curves_and_sgd_one() -> None:
    calculator = adam_state()
    assert calculator._curves.value.count(": peak in ") == 3
    calculator.optimizer = "sgd"
    assert calculator._curves.value.count(": peak in ") == 1
