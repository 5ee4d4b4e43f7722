"""Networks as chains: against torch's own layers, traced, and the paper's sum."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from peakmem.measure.trace import chain_of
from peakmem.plan.networks import gpt_chain, vgg16_chain
from peakmem.specs.models import model

GROUPS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


def vgg16() -> nn.Sequential:
    """VGG-16 of torch's layers, a stage each as `vgg16_chain` cuts it."""
    stages: list[nn.Module] = []
    channels = 3
    for group in GROUPS:
        for place, wider in enumerate(group):
            layers: list[nn.Module] = [nn.Conv2d(channels, wider, 3, padding=1), nn.ReLU(True)]
            layers += [nn.MaxPool2d(2)] if place == len(group) - 1 else []
            stages.append(nn.Sequential(*layers))
            channels = wider
    stages.append(nn.Sequential(nn.Flatten(), nn.Linear(512, 4096), nn.ReLU(True)))
    stages.append(nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(True)))
    stages.append(nn.Linear(4096, 1000))
    return nn.Sequential(*stages)


def test_vgg16_saves_what_torch_saves() -> None:
    traced = chain_of(vgg16(), torch.zeros(2, 3, 32, 32))
    paper = vgg16_chain(batch=2, image=32)
    assert [s.output_bytes for s in paper.stages] == [s.output_bytes for s in traced.stages]
    assert [s.saved_bytes for s in paper.stages] == [s.saved_bytes for s in traced.stages]


def test_vgg16_does_as_many_operations_as_published() -> None:
    operations = sum(stage.forward_time for stage in vgg16_chain(batch=1).stages)
    assert operations == pytest.approx(2 * 15.5, rel=0.01)  # 15.5 billion multiply-adds


def test_gpt_adds_up_to_the_papers_sum() -> None:
    shape, batch, s = model("gpt2"), 4, 512
    chain = gpt_chain(shape, batch, s)
    sbh = s * batch * shape.d_model
    layers = shape.n_layers * sbh * (34 + 5 * shape.n_heads * s / shape.d_model)
    ends = 2 * sbh + 2 * sbh + 4 * s * batch * shape.vocab
    assert sum(stage.saved_bytes for stage in chain.stages) == layers + ends


@pytest.mark.parametrize(("batch", "image"), [(0, 224), (1, 0), (1, 100)])
def test_what_cannot_be_is_refused(batch: int, image: int) -> None:
    with pytest.raises(ValueError, match="expected a batch"):
        vgg16_chain(batch, image)
