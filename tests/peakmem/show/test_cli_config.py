"""`peakmem estimate --config`, called by a user or a program."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from peakmem.predict.step_ledger import build_ledger
from peakmem.show.cli import main
from peakmem.specs.models import model
from peakmem.specs.recipes import Recipe
from tests.peakmem.specs.configs import PUBLISHED, SMALL

MAMBA = {"model_type": "mamba", "hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 90}
Write = Callable[[dict[str, Any]], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a config, and return the folder that it lies in."""

    def written(values: dict[str, Any]) -> str:
        (tmp_path / "config.json").write_text(json.dumps(values))
        return str(tmp_path)

    return written


def figures(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> dict[str, Any]:
    assert main(["estimate", *arguments, "--json"]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_person_reads_parameters_and_states(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(PUBLISHED["mixtral-8x7b"])
    assert main(["estimate", "--config", folder, "--precision", "mixed"]) == 0
    said = capsys.readouterr().out
    assert "read from the config as a MixtralForCausalLM." in said
    assert "46,702,792,704" in said
    assert f"{'active for one token':<26}{12_879_925_248:>20,}   27.6%" in said
    assert f"{16 * 46_702_792_704:,}" in said  # 16 bytes per parameter
    assert "Activations and temporaries are not predicted for this mixtral" in said
    assert "fit" not in said


def test_a_dense_model_has_no_line_for_one_token(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estimate", "--config", write(PUBLISHED["bert-base"])]) == 0
    assert "one token" not in capsys.readouterr().out


def test_json_has_the_same(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(PUBLISHED["mixtral-8x7b"])
    found = figures(capsys, "--config", folder, "--optimizer", "sgd", "--precision", "bf16")
    assert found["model"] == folder
    assert found["counted_by"] == "config"
    assert sum(found["by_group"].values()) == found["parameters"] == 46_702_792_704
    assert found["active_parameters"] == 12_879_925_248
    assert found["by_owner"] == dict.fromkeys(("parameter", "gradient"), 2 * 46_702_792_704)
    assert (found["fits"], found["memory_bytes"], found["peak_bytes"]) == (None, None, None)
    assert found["notes"][-1].startswith("Activations and temporaries are not predicted")


def test_states_that_are_too_large_do_not_fit(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """BERT's 109,514,298 parameters take 16 bytes each under Adam, 1.75 GB."""
    arguments = ["--config", write(PUBLISHED["bert-base"]), "--memory"]
    assert figures(capsys, *arguments, "1752228768B")["fits"] is None
    assert figures(capsys, *arguments, "1752228767B", status=1)["fits"] is False
    assert main(["estimate", *arguments, "1GB"]) == 1
    assert "It doesn't fit: even without activations it needs 752.23 MB" in capsys.readouterr().out
    assert main(["estimate", *arguments, "2GB"]) == 0
    said = capsys.readouterr().out
    assert "This leaves 247.77 MB (236.29 MiB) for activations" in said


def test_a_llama_is_predicted_as_the_model_of_that_name(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(PUBLISHED["llama3-8b"])
    step = ["--gpu", "h200-141gb", "--precision", "bf16", "--batch", "2", "--seq", "512"]
    found = figures(capsys, "--config", folder, *step)
    ledger = build_ledger(model("llama3-8b"), Recipe("bf16", batch=2, sequence=512))
    assert found["peak_bytes"] == ledger.peak_bytes
    assert found["fits"] is True
    assert found["by_owner"] == ledger.by_owner()
    assert found["by_group"]["head"] == 128256 * 4096
    assert main(["estimate", "--config", folder, *step]) == 0
    said = capsys.readouterr().out
    assert "read from the config as a LlamaForCausalLM." in said
    assert "It fits, with" in said
    assert "not predicted" not in said


def test_a_gpt2_is_predicted_with_the_dropout_that_is_given(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(PUBLISHED["gpt2"])
    found = figures(capsys, "--config", folder, "--memory", "80GiB")
    assert found["peak_bytes"] > build_ledger(model("gpt2"), Recipe()).peak_bytes
    assert found["notes"] == ["Dropout is 0, from --dropout; the config's value is ignored."]


def test_another_class_is_built(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    folder = write(MAMBA)
    found = figures(capsys, "--config", folder)
    assert found["counted_by"] == "transformers"
    assert found["parameters"] == found["active_parameters"] == sum(found["by_group"].values())
    assert main(["estimate", "--config", folder]) == 0
    assert "built by transformers on the meta device as a MambaForCausalLM." in (
        capsys.readouterr().out
    )


@pytest.mark.filterwarnings("ignore")
def test_a_mixture_that_is_built_says_that_experts_are_not_known(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("transformers")
    folder = write(SMALL["mixtral, tied"] | {"architectures": ["MixtralModel"]})
    assert figures(capsys, "--config", folder)["active_parameters"] is None
    assert main(["estimate", "--config", folder]) == 0
    assert "How many parameters one token uses is unknown" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        ({"model_type": None}, "", "has no model_type"),
        ({"n_layer": 0}, "", "expected n_layer to be a whole number of at least 1, but got 0"),
        ({"model_type": "gpt-2"}, "", "doesn't know model_type 'gpt-2'"),
        ({"activation_function": "relu"}, "--tensor-parallel 2", "leave out --tensor-parallel"),
        ({"activation_function": "relu"}, "--lora-rank 8", "use attention, mlp, all-linear"),
        ({"activation_function": "relu"}, "--export deepspeed", "with a predicted step"),
        ({}, "--gpu b100", "unknown accelerator 'b100'"),
    ],
)
def test_bad_input_gets_one_sentence(
    change: dict[str, Any],
    options: str,
    says: str,
    write: Write,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if change.get("model_type"):
        pytest.importorskip("transformers")
    folder = write(PUBLISHED["gpt2"] | change)
    assert main(["estimate", "--config", folder, *options.split()]) == 2
    told = capsys.readouterr()
    assert says in told.err
    assert told.err.count("\n") == 1
    assert not told.out


def test_a_family_that_is_read_needs_neither_torch_nor_transformers(write: Write) -> None:
    arguments = ["estimate", "--config", write(PUBLISHED["deepseek-v3"])]
    code = (
        f"import sys; from peakmem.show.cli import main; assert main({arguments!r}) == 0;"
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers')))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()


def test_the_pages_example_is_what_is_printed(
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (repository / "docs/library.md").read_text("utf-8")
    shown = re.search(r"```\n\$ peakmem (estimate --config[^\n]+)\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    cached = tmp_path / "models--Qwen--Qwen3-30B-A3B"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs/main").write_text("commit")
    (cached / "snapshots/commit").mkdir(parents=True)
    values = json.dumps(PUBLISHED["qwen3-30b-a3b"])
    (cached / "snapshots/commit/config.json").write_text(values)
    assert main(shown[1].split()) == 0
    assert capsys.readouterr().out == shown[2]
