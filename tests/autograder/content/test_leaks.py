"""Find the leak: a fixed function passes, and each leak is measured and named."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint

from autograder.content.lab04.find_the_leak import find_the_leak, step_with_log
from autograder.model.judge import judge
from autograder.model.task import Answer
from peakmem.probes import Namespace
from peakmem.probes import lab04 as probes

CASES = find_the_leak.cases(np.random.default_rng(5))


def step(note, *, remove=True, checkpointed=True, values=lambda log, n: log[:n]):
    """The exercise's function, with these ways of noting and of cleaning up."""

    def run(layers, x):
        log = []
        hooks = [
            layer.register_forward_hook(lambda *args: log.append(note(args[2]))) for layer in layers
        ]

        def segment(first, x):
            for layer in layers[first : first + 4]:
                x = layer(x)
            return x

        for first in range(0, len(layers), 4):
            if checkpointed:
                x = checkpoint(segment, first, x, use_reentrant=False)
            else:
                x = segment(first, x)
        x.sum().backward()
        for hook in hooks if remove else ():
            hook.remove()
        return values(log, len(layers))

    return run


def mean_squares(log, n):
    return [output.detach().square().mean().item() for output in log[:n]]


def without_graph(log, n):
    return [value.detach().item() for value in log[:n]]


def number(output):
    return output.detach().square().mean().item()


def verdict(function, memory=""):
    student = Namespace({"step_with_log": function})
    answers = []
    for case in CASES:
        answers.append(Answer(probes.find_the_leak(student, **case.inputs), memory=memory))
        gc.collect()
    return judge(find_the_leak, CASES, answers)


def test_the_mended_function_is_right():
    found = verdict(step(number))
    assert (found.status, found.points) == ("right", find_the_leak.points), found.message
    lazy = step(lambda output: output.detach().square().mean())
    assert verdict(lazy).status == "right"


@pytest.mark.parametrize(
    ("function", "mistake", "points"),
    [
        (step(lambda o: o, remove=False, values=mean_squares), "outputs_of_each_step", 0),
        (step(lambda o: o.detach(), values=mean_squares), "outputs_stay", 1),
        (step(lambda o: o.square().mean(), values=without_graph), "graph_stays", 1),
        (step(number, checkpointed=False), "no_checkpoint", 1),
        (step(number, remove=False), "hooks_stay", 0),
        (step(number, values=lambda log, n: log), "logs_twice", 0),
        (step(lambda o: o.detach().mean().item()), "not_squared", 0),
    ],
)
def test_each_leak_is_named(function, mistake, points):
    found = verdict(function)
    assert (found.mistake, found.points) == (mistake, points), found.message


def test_the_kernels_word_counts_over_the_meters():
    case = CASES[-1]
    value = probes.find_the_leak(Namespace({"step_with_log": step(number)}), **case.inputs)
    part = find_the_leak.parts.keys() & set(case.parts)

    def earned(answer):
        return sum(judge(find_the_leak, [case], [answer]).earned[name] for name in part)

    assert earned(Answer(value, memory="within")) == 1
    assert earned(Answer(value, memory="refused")) == 0
    assert earned(Answer({"peak": 0})) == 0


def test_the_reference_logs_what_its_layers_return():
    layers = [torch.nn.Linear(2, 2), torch.nn.Tanh()]
    x = torch.ones(3, 2)
    logged = step_with_log(layers, x)
    h = layers[0](x).detach()
    assert logged == pytest.approx([float((h**2).mean()), float((h.tanh() ** 2).mean())])
    assert torch.allclose(layers[0].bias.grad, (1 - h.tanh() ** 2).sum(0))
