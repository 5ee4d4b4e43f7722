"""`peakmem estimate` and `peakmem trace`: inference, pictures, files for remedies, scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from peakmem.predict.step_ledger import build_ledger
from peakmem.show.cli import main
from peakmem.specs.models import model, parameter_count
from peakmem.specs.recipes import Parallelism, Recipe
from tests.peakmem.specs.configs import PUBLISHED, SMALL

LLAMA = "estimate --model llama3-8b --precision bf16"


def figures(capsys: pytest.CaptureFixture[str], command: str, status: int = 0) -> dict[str, Any]:
    assert main([*command.split(), "--json"]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_inference_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    command = f"{LLAMA} --inference --context 8192 --batch 2 --gpu rtx4090-24gb"
    found = figures(capsys, command)
    assert found["by_owner"]["kv_cache"] == 2 * found["sequence_bytes"] == 2 * 2**30
    assert found["by_owner"]["weights"] == 2 * 8_030_261_248
    assert found["fits"] is True
    assert found["largest_batch"] >= 2
    most = found["largest_batch"]
    assert figures(capsys, command.replace("--batch 2", f"--batch {most}"))["fits"] is True
    more = figures(capsys, command.replace("--batch 2", f"--batch {most + 1}"), status=1)
    assert more["fits"] is False


def test_inference_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LLAMA.split(), "--inference"]) == 0
    said = capsys.readouterr().out
    assert "1 sequence of 1024 tokens, in bf16" in said
    assert "is the smallest listed board that holds it" in said
    assert main([*LLAMA.split(), "--inference", "--memory", "16.3GB"]) == 1
    assert "It doesn't fit: it needs at least" in capsys.readouterr().out
    assert main([*LLAMA.split(), "--inference", "--memory", "16.6GB"]) == 1
    assert "It may not fit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--zero 3", "--zero belongs to training"),
        ("--data-parallel 2 --pipeline 2", "--data-parallel and --pipeline belong to training"),
        ("--context 0", "expected context to be a whole number"),
        ("--plot peak.bmp", "--plot 'peak.bmp' isn't a picture"),
        ("--plot /nowhere/peak.png", "can't be written"),
    ],
)
def test_inference_refuses_what_it_is_not(
    options: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*LLAMA.split(), "--inference", *options.split()]) == 2
    assert says in capsys.readouterr().err


def test_adapters_and_parts_of_the_loss_reach_the_recipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = "estimate --model gpt2 --memory 80GB --lora-rank 8 --lora-targets c_attn,c_fc"
    recipe = Recipe(
        lora_rank=8, lora_targets=("attention.qkv", "mlp.up"), loss_chunks=4, sequence=512
    )
    found = figures(capsys, f"{command} --loss-chunks 4 --seq 512")
    assert found["peak_bytes"] == build_ledger(model("gpt2"), recipe).peak_bytes


def test_the_largest_batch_fits_and_one_more_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    command = "estimate --model gpt2 --gpu rtx3080-10gb --precision amp_bf16"
    note = figures(capsys, f"{command} --largest-batch")["notes"][-1]
    most = int(note.rpartition(" ")[2].rstrip("."))
    assert figures(capsys, f"{command} --batch {most}")["fits"] is True
    assert figures(capsys, f"{command} --batch {most + 1}", status=1)["fits"] is False


@pytest.mark.parametrize("options", ["--memory 80GB", "--inference", "--batch 2 --json"])
def test_a_picture_is_written(options: str, tmp_path: Path) -> None:
    path = tmp_path / "peak.png"
    assert main(["estimate", "--model", "gpt2", *options.split(), "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_the_exported_file_is_the_remedys(capsys: pytest.CaptureFixture[str]) -> None:
    command = "estimate --model gpt2-xl --precision amp_bf16 --optimizer momentum --seq 256"
    assert main([*command.split(), "--memory", "18GB", "--export", "accelerate"]) == 0
    told = capsys.readouterr()
    assert (
        told.err
        == "The step doesn't fit; the file is for this remedy: ZeRO stage 2 over 2 replicas.\n"
    )
    assert json.loads(told.out)["num_processes"] == 2
    assert json.loads(told.out)["fsdp_config"]["fsdp_reshard_after_forward"] is False
    fits = ["--memory", "80GB", "--data-parallel", "4", "--zero", "3"]
    assert main([*command.split(), *fits, "--export", "fsdp"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert json.loads(told.out)["reshard_after_forward"] is True


def test_a_file_that_cannot_say_the_remedy_is_as_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """Accumulation is the script's, not the file's."""
    command = "estimate --model gpt2 --batch 64 --memory 8GB --export accelerate"
    assert main(command.split()) == 0
    told = capsys.readouterr()
    assert (
        "the file can express none of the cheapest remedies; it is for the step as given"
        in told.err
    )
    assert json.loads(told.out)["distributed_type"] == "NO"


def test_a_config_is_traced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "config.json").write_text(json.dumps(SMALL["bert, untied"]))
    command = f"estimate --config {tmp_path} --trace --seq 12 --gpu t4-16gb"
    found = figures(capsys, command)
    assert sum(found["by_owner"].values()) == found["peak_bytes"] < found["reserved_bytes"]
    assert found["fits"] is True
    assert main(command.split()) == 0
    assert "one step of a bert, traced on t4-16gb" in capsys.readouterr().out
    assert main([*command.split(), "--zero", "3", "--data-parallel", "2"]) == 2
    assert "--trace runs a step on one device" in capsys.readouterr().err


def test_states_are_cut_by_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(PUBLISHED["mixtral-8x7b"]))
    command = f"estimate --config {tmp_path} --precision mixed --zero 3 --data-parallel 16"
    assert figures(capsys, command)["state_bytes"] == 46_702_792_704  # 16 bytes, a 16th of each


SCRIPT = """
import torch
layer = torch.nn.Linear(256, 256, bias=False)
layer(torch.ones(4, 256)).sum().backward()
"""


def test_a_script_is_traced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, picture = tmp_path / "train.py", tmp_path / "peak.svg"
    path.write_text(SCRIPT)
    assert main(["trace", "--plot", str(picture), str(path)]) == 0
    said = capsys.readouterr().out
    assert "traced without memory" in said
    assert "262,144  262.14 KB (256.00 KiB)" in said
    assert "<svg" in picture.read_text()
    assert main(["trace", "--json", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["by_owner"]["parameter"] == 4 * 256 * 256
    assert sum(found["by_owner"].values()) == found["peak_bytes"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import torch; torch.ones(4).nonzero()", "the shape of aten.nonzero.default's result"),
        ("1", "nothing was live on cpu"),
        (
            "def f():\n    return 1 / 0\n\nf()",
            "train.py, line 2: ZeroDivisionError: division",
        ),
        ("import torch\ntorch.ones(2).cuda()", "Keep everything on the CPU"),
    ],
)
def test_a_script_that_cannot_be_traced_gets_one_sentence(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.py"
    path.write_text(text)
    assert main(["trace", str(path)]) == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1


def test_a_picture_that_cannot_be_drawn_runs_no_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.py"
    path.write_text("1 / 0")
    assert main(["trace", "--plot", "x.foo", str(path)]) == 2
    assert "--plot 'x.foo' isn't a picture" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "many", "says"),
    [
        ("--context-parallel 4", {"context": 4}, "Each of the 4 devices has 256 tokens of each"),
        (
            "--context-parallel 2 --context-method ulysses --zero 3",
            {"context": 2, "context_method": "ulysses", "zero": 3},
            "by Ulysses' exchange of heads",
        ),
        (
            "--tensor-parallel 2 --sequence-parallel",
            {"tensor": 2, "sequence": True},
            "one step on 2 x",
        ),
        ("--pipeline 4 --batch 8 --micro-batches 8", {"pipeline": 4}, "of 4 needs the most"),
    ],
)
def test_ways_of_sharing_reach_the_ledger(
    options: str, many: dict[str, Any], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"{LLAMA} --memory 1TB {options}"
    found = figures(capsys, command)
    batch = 8 if "pipeline" in many else 1
    recipe = Recipe("bf16", batch=batch, micro_batches=batch)
    ledger = build_ledger(model("llama3-8b"), recipe, Parallelism(**many), stage=found["stage"])
    assert found["peak_bytes"] == ledger.peak_bytes
    assert main(command.split()) == 0
    assert says in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--context-method rings", "did you mean 'ring'?); use one of 'ring', 'ulysses'"),
        ("--expert-parallel 2", "choose a divisor of data times context"),
        ("--expert-parallel 2 --data-parallel 2", "has no experts that 2 devices could share"),
        ("--pipeline 5", "cannot be cut into 5 equal stages"),
        ("--context-parallel 2 --precision mixed --export deepspeed", "out --context-parallel and"),
        (
            "--context-parallel 2 --zero 3 --data-parallel 2 --export fsdp",
            "describes replicas only",
        ),
    ],
)
def test_ways_of_sharing_that_are_none(
    options: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*LLAMA.split(), *options.split()]) == 2
    assert says in capsys.readouterr().err


def test_devices_that_share_experts_reach_inference(capsys: pytest.CaptureFixture[str]) -> None:
    command = "estimate --config docs/configs/deepseek-v3 --inference --precision bf16"
    one = figures(capsys, f"{command} --memory 9TB")
    shared = figures(capsys, f"{command} --memory 9TB --expert-parallel 32")
    assert shared["devices"] == 32
    assert shared["by_owner"]["weights"] < one["by_owner"]["weights"] / 15
    assert main([*command.split(), "--expert-parallel", "32"]) == 0
    assert "32 devices share the experts" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["gpt2", "llama3-8b"])
def test_modules_have_the_parameters_of_their_component(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Against `parameter_count`, which knows nothing of ledgers."""
    found = figures(capsys, f"estimate --model {name} --memory 1TB --optimizer sgd --seq 16")
    by_component: dict[str, int] = {}
    for modules in found["by_module"].values():
        for module, owners in modules.items():
            n_bytes = owners.get("parameter", 0)
            by_component[module] = by_component.get(module, 0) + n_bytes
    counts = parameter_count(model(name))
    assert {k: n for k, n in by_component.items() if n} == {
        component: 4 * n for component, n in counts.items() if n
    }
    layers = {layer: sum(of.values()) for layer, of in found["by_layer"].items()}
    modules = {
        layer: sum(sum(owners.values()) for owners in of.values())
        for layer, of in found["by_module"].items()
    }
    assert modules == layers


def test_activations_of_modules_are_those_of_their_operators() -> None:
    """A Llama's MLP keeps four tensors of its inner width: gate, its SiLU, up, the product."""
    recipe = Recipe("bf16", sequence=64)
    ledger = build_ledger(model("llama3-8b"), recipe)
    end = next(n for n, event in enumerate(ledger.events) if event.phase == "backward") - 1
    of_mlp = ledger.by_module(end)["blocks.3"]["mlp"]["activation"]
    assert of_mlp == 2 * 64 * 4 * 14336


def test_a_table_by_module(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", "--model", "gpt2", "--memory", "80GB", "--by", "module"]) == 0
    said = capsys.readouterr().out
    assert "the same by module" in said
    assert "blocks.*.attention" in said
    assert "the same by layer" not in said
    assert main(["estimate", "--model", "gpt2", "--by", "modules"]) == 2
    assert "(did you mean 'module'?); use layer or module" in capsys.readouterr().err
