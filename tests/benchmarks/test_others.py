"""Other people's estimates on measured steps: their own code where it is installed."""

import pytest

from benchmarks.accuracy import Row
from benchmarks.grid import configurations
from benchmarks.others import Comparison, compare, eleuther_bytes, main, table
from peakmem.specs.models import model
from peakmem.specs.recipes import Recipe

pytestmark = pytest.mark.filterwarnings("ignore")  # the libraries' own, as they are imported


def adam(name: str):
    return next(case for case in configurations() if case.name.startswith(name))


def test_others_say_what_their_own_code_says() -> None:
    case = adam("GPT 4x64 fp32 flash")
    n_parameters = sum(p.numel() for p in case.build(torch_cpu()).module.parameters())
    found = compare(case, Row(case.name, 10**7, 9_999_999, 10_000_001)).predicted
    assert found["peakmem"] == 9_999_999  # build_ledger's, where it has rules
    assert found["16 N"] == found["accelerate"] == 16 * n_parameters
    assert found["DeepSpeed"] == 20 * n_parameters
    assert found["EleutherAI"] > 16 * n_parameters


def torch_cpu():
    import torch

    return torch.device("cpu")


def test_where_there_are_no_rules_the_trace_is_ours_and_the_formula_is_silent() -> None:
    case = adam("BERT fp32")
    found = compare(case, Row(case.name, 10**7, None, 10_000_001)).predicted
    assert found["peakmem"] == 10_000_001
    assert "EleutherAI" not in found


def test_eleuthers_formula_unties_gpt2s_head() -> None:
    step = Recipe(batch=1, sequence=1024, checkpointing="full")
    activations = 1024 * 768 * 12 * 34
    states = eleuther_bytes(model("gpt2"), step) - activations
    assert states / 16 == pytest.approx(163.0e6, rel=0.001)  # for 124.4 million


def test_somebody_nearer_would_be_seen() -> None:
    worse = Comparison("step", 100, {"peakmem": 90, "16 N": 105})
    assert not worse.ours_is_best
    assert "smallest in 0 of 1" in table([worse])


def test_ours_is_nearest_on_measured_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(cases=lambda: [adam("GPT 4x64 amp_bf16 standard"), adam("ViT fp32 sdpa")]) == 0
    assert "smallest in 2 of 2" in capsys.readouterr().out
