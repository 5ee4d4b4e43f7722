"""A chain's refusals, and the bytes of its backward passes."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace

import pytest

from peakmem.plan.chain import Chain, Stage

STAGE = Stage(1.0, 2.0, 30, 10, gradient_bytes=10, parameter_gradient_bytes=7)


@pytest.mark.parametrize("name", [f.name for f in fields(Stage)][:-1])
def test_nothing_is_negative_but_what_backward_saves(name: str) -> None:
    figures = {"forward_time": 1, "backward_time": 1, "saved_bytes": 3, "output_bytes": 1}
    with pytest.raises(ValueError, match=name):
        Stage(**{**figures, name: -1})
    Stage(**figures, backward_extra_bytes=-5)


def test_what_is_saved_includes_the_output() -> None:
    with pytest.raises(ValueError, match="count the output"):
        Stage(1, 1, saved_bytes=3, output_bytes=4)


def test_a_chain_has_stages_and_an_input_of_some_size() -> None:
    with pytest.raises(ValueError, match="at least one stage"):
        Chain(())
    with pytest.raises(ValueError, match="input_bytes"):
        Chain((STAGE,), input_bytes=-1)


def test_backward_makes_and_frees() -> None:
    chain = Chain((STAGE, STAGE), input_gradient_bytes=5)
    assert chain.backward_makes(1) == 10 + 10 + 7  # of the output, of the input, of parameters
    assert chain.backward_makes(0) == 5 + 7
    assert chain.backward_frees(0) == 40
    assert chain.backward_takes(0) == 12
    assert chain.work_time == 6.0


def test_a_chain_is_made_of_anything_with_the_labs_attributes() -> None:
    stages = [SimpleNamespace(forward_time=1, saved_bytes=3, output_bytes=1)]
    assert Chain.of(stages) == Chain((Stage(1, 0.0, 3, 1),))
