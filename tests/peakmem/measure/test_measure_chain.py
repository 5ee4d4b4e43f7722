"""Chains measured from modules, against arithmetic."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from peakmem.measure.trace import chain_of


def test_saved_and_made_bytes_are_those_of_the_layers() -> None:
    layers = nn.Sequential(
        nn.Linear(8, 16), nn.Sigmoid(), nn.GELU(), nn.Flatten(), nn.ReLU(inplace=True)
    )
    chain = chain_of(layers, torch.ones(4, 8), repeats=1)
    linear, sigmoid, gelu, flatten, relu = chain.stages
    made = 4 * 4 * 16
    for stage in (linear, sigmoid, gelu):
        assert (stage.saved_bytes, stage.output_bytes) == (made, made)
        assert stage.gradient_bytes == made
    for stage in (flatten, relu):  # a view, and work in place
        assert (stage.saved_bytes, stage.output_bytes) == (0, 0)
    assert linear.parameter_gradient_bytes == 4 * (8 * 16 + 16)
    assert (chain.input_bytes, chain.input_gradient_bytes) == (4 * 4 * 8, 0)
    assert all(stage.forward_time > 0 for stage in chain.stages)
    assert layers[0].weight.grad is None


def test_what_a_stage_keeps_inside_is_saved() -> None:
    inner = nn.Sequential(nn.Linear(8, 32), nn.Sigmoid(), nn.Linear(32, 8))
    (stage,) = chain_of(nn.Sequential(inner), torch.ones(4, 8), repeats=1).stages
    assert stage.output_bytes == 4 * 4 * 8
    assert stage.saved_bytes == 4 * 4 * (32 + 8)  # the sigmoid's output, which both layers keep


def test_a_stage_must_return_one_tensor() -> None:
    lstm = nn.LSTM(8, 8, batch_first=True)
    with pytest.raises(TypeError, match="stage 0 returned tuple"):
        chain_of(nn.Sequential(lstm), torch.ones(4, 3, 8), repeats=1)
