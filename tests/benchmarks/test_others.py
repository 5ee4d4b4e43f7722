"""Others' estimates on measured steps: by their own code if it is installed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.grid import configurations
from benchmarks.held_out import FAMILIES
from benchmarks.others import (
    Comparison,
    compare,
    eleuther_bytes,
    llm_analysis_bytes,
    main,
    table,
)
from benchmarks.peaks import Row
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
    cases = [adam("GPT 4x64 amp_bf16 standard"), adam("ViT fp32 sdpa")]
    assert main(["--grid"], cases=lambda: cases) == 0
    assert "smallest in 2 of 2" in capsys.readouterr().out


def test_llm_analysis_formula_by_its_parts() -> None:
    """Of one layer of GPT-2's sizes in 16 bits: 10 sbh of attention's, MLP's and norms' 34."""
    step = Recipe("bf16", batch=2, sequence=1024)
    shape = replace(model("gpt2"), n_layers=1)
    tokens, h, vocab = 2 * 1024, 768, 50257
    n_parameters = 4 * h * h + 8 * h * h + 2 * h + vocab * h + h
    kept = tokens * (2 * 5 * h + h) + 2 * tokens * (2 * h + 4 * 12) + 2 * tokens * 9 * h
    norms = 3 * 4 * tokens * h
    assert llm_analysis_bytes(shape, step) == 18 * n_parameters + kept + norms + 2 * tokens * vocab


def test_a_held_out_family_is_within_one_percent(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    family = next(one for one in FAMILIES if one.name.startswith("falcon"))
    assert main(["--out", str(tmp_path)], families=[family]) == 0
    (row,) = json.loads((tmp_path / "others.json").read_text())["families"]
    assert row["predicted"]["peakmem"] == pytest.approx(row["measured_bytes"], rel=0.001)


def test_a_held_out_family_that_is_off_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    off = Comparison("falcon", 1000, {"peakmem": 985, "16 N": 900})
    monkeypatch.setattr("benchmarks.others.compare_held_out", lambda family: off)
    assert main(["--out", str(tmp_path)], families=FAMILIES[:1]) == 1


def test_no_test_names_a_held_out_family(repository: Path) -> None:
    names = {str(one.values["model_type"]) for one in FAMILIES}
    assert len(names) >= 10
    texts = [
        path.read_text("utf-8")
        for folder in ("tests/peakmem", "src/peakmem")
        for path in (repository / folder).rglob("*.py")
    ]
    assert not [name for name in names if any(f'"{name}"' in text for text in texts)]


def test_the_page_has_what_was_measured(repository: Path) -> None:
    recorded = json.loads((repository / "docs/measurements/others.json").read_text("utf-8"))
    page = (repository / "docs/library.md").read_text("utf-8")
    for row in recorded["families"]:
        errors = [n / row["measured_bytes"] - 1 for n in row["predicted"].values()]
        cells = " | ".join(f"{error:+.1%}".replace("-0.0%", "+0.0%") for error in errors)
        assert f"| {row['name']} | {row['measured_bytes']:,} | {cells} |" in page
