"""The command `peakmem`, as a person or a program calls it."""

import json
import subprocess
import sys

import pytest

from peakmem.cli import main
from peakmem.models import model
from peakmem.predict import build_ledger
from peakmem.recipes import Parallelism, Recipe

GPT3 = (
    "estimate --model gpt3-175b --gpu a100-80gb --precision amp_fp16 --optimizer adam --batch 1 "
    "--seq 2048 --checkpointing full --zero 3 --data-parallel 64"
)
SMALL = "estimate --model gpt2 --gpu a100-80gb"


def test_json_is_the_librarys_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GPT3.split(), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    recipe = Recipe("amp_fp16", "adam", batch=1, sequence=2048, checkpointing="full")
    ledger = build_ledger(model("gpt3-175b"), recipe, Parallelism(data=64, zero=3))
    assert figures["parameters"] == 174_604_259_328
    assert figures["peak_bytes"] == ledger.peak_bytes
    assert figures["peak_phase"] == ledger.peak_phase
    assert figures["by_owner"] == ledger.by_owner()
    assert figures["fits"] == (ledger.peak_bytes <= 80 * 10**9)
    assert figures["remedies"] == [] or not figures["fits"]


def test_a_person_reads_that_it_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL.split()) == 0
    said = capsys.readouterr().out
    assert "gpt2: 124,439,808 parameters" in said
    assert "It fits, with" in said


def test_a_person_reads_which_of_two_cases_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL.split(), "--batch", "64", "--memory", "8GB"]) == 0
    said = capsys.readouterr().out
    assert "Reduce activations" in said
    assert "Cheapest changes that would fit" in said
    assert main(["estimate", "--model", "gpt3-6.7b", "--gpu", "l4-24gb"]) == 0
    assert "No batch size can fix this" in capsys.readouterr().out


def test_deepspeeds_file(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*SMALL.split(), "--precision", "mixed", "--zero", "2", "--data-parallel", "4"]
    assert main([*arguments, "--export", "deepspeed"]) == 0
    assert json.loads(capsys.readouterr().out)["zero_optimization"] == {"stage": 2}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("estimate --model gpt5 --gpu a100-80gb", "unknown model 'gpt5'; known are gpt2"),
        ("estimate --model gpt2 --gpu b100", "unknown accelerator 'b100'; known are v100-16gb"),
        (f"{SMALL} --batch 0", "expected batch to be a whole number of at least 1, but got 0"),
        (f"{SMALL} --batch many", "argument --batch: invalid int value: 'many'"),
        (f"{SMALL} --tensor-parallel 16", "heads"),
        (f"{SMALL} --memory 0GB", "--memory is 0 bytes"),
        (f"{SMALL} --memory 80", "is no amount of memory"),
        (f"{SMALL} --seq 5000", "positions for 1024 tokens"),
        (f"{SMALL} --zero 4", "zero=4 is unknown"),
        (f"{SMALL} --precision int3", "precision='int3' is unknown"),
        (f"{SMALL} --dropout 1.5", "dropout from 0 to below 1"),
        (f"{SMALL} --export json", "use deepspeed"),
        ("estimate --gpu a100-80gb", "--model"),
        ("", "command"),
    ],
)
def test_bad_input_gets_one_sentence(
    arguments: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(arguments.split())
    except SystemExit as stop:
        status = stop.code
    told = capsys.readouterr()
    assert status == 2
    assert says in told.err
    assert told.err.count("\n") == 1
    assert not told.out


def test_doctor_names_every_lab(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "lab01_formats" in said
    assert "lab07_mixed_precision" in said
    assert "MISSING" not in said


def test_estimate_starts_without_torch() -> None:
    code = (
        f"import sys; from peakmem.cli import main; main({GPT3.split()!r});"
        "sys.exit(any(name in sys.modules for name in ('torch', 'matplotlib', 'ipywidgets')))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()
