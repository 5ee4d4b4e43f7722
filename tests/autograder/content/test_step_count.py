"""lab03-adam_step: a float32 step count is distinguished from similar mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from autograder.content.lab03.adam import corrections_off, torch_paths
from autograder.content.lab03.adam_step import adam_step, path_cases
from autograder.model.judge import draw, judge
from autograder.sandbox.host.in_process import LocalStudent
from tests.answers import source_of


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 5))]
)
@pytest.mark.parametrize(
    ("answer", "mistake"),
    [
        ("wrong_float32_step_count", "float32_step_count"),
        ("wrong_count_in_a_tensor", "float32_step_count"),
        ("wrong_float32_moments", "float32_moments"),
    ],
)
def test_what_is_of_low_precision_is_named(answer: str, mistake: str, seed: int) -> None:
    names: dict[str, object] = {}
    exec(source_of(adam_step, answer), names)
    cases = draw(adam_step, bytes([seed]), "ada", b"submission")
    answers = [LocalStudent(names).run(adam_step.probe_path, c.inputs, None) for c in cases]
    verdict = judge(adam_step, cases, answers)
    assert (verdict.points, verdict.mistake) == (0, mistake)


@pytest.mark.parametrize("seed", range(5))
def test_only_what_the_corrections_explain_is_explained(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for case in path_cases(rng):
        models, options = case.inputs["models"], case.inputs["options"]
        paths = torch_paths(models, options)
        assert corrections_off(models, options, paths, 1e-10)
        paths[0][-1][0] = paths[0][-1][0] * (1 + 1e-8 * rng.standard_normal(5))
        assert not corrections_off(models, options, paths, 1e-10)
