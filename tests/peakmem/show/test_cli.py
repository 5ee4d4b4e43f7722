"""The command `peakmem`, called by a user or a program."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from peakmem.labs.doctor import Check
from peakmem.predict.step_ledger import build_ledger
from peakmem.show.cli import main
from peakmem.specs.hardware import ACCELERATORS
from peakmem.specs.models import MODELS, model
from peakmem.specs.recipes import Parallelism, Recipe

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
    assert figures["fits"] == (ledger.peak_bytes <= 79.25 * 2**30)
    assert figures["suggestions"] == [] or not figures["fits"]


def test_a_person_reads_that_it_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL.split()) == 0
    said = capsys.readouterr().out
    assert "gpt2: 124,439,808 parameters" in said
    assert "It fits, with" in said


def test_the_processs_memory_is_a_range(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL.split()) == 0
    said = capsys.readouterr().out
    assert "Torch's allocator reserves" in said
    assert "The CUDA context and cuBLAS add 287.05 MB" in said
    assert main([*SMALL.split(), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    low, high = figures["process_bytes"]
    assert low - figures["peak_bytes"] == 287_047_680
    assert high - figures["reserved_bytes"] == 783_876_096 + 66 * 2**20
    assert figures["peak_bytes"] <= figures["allocated_bytes"] <= figures["reserved_bytes"]


@pytest.mark.parametrize(
    ("memory", "says", "status"),
    [
        ("11.6GB", "It doesn't fit: it needs at least", 1),
        ("11.62GB", "It may not fit", 1),
        ("12.89GB", "It may not fit", 1),
        ("12.9GB", "It fits, with", 0),
    ],
)
def test_the_verdict_and_the_status_are_about_the_process(
    memory: str, says: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The peak is 11.32 GB, and the process takes 11.609 to 12.891 GB."""
    asked = ["estimate", "--model", "gpt2", "--batch", "8", "--memory", memory]
    assert main(asked) == status
    assert says in capsys.readouterr().out
    assert main([*asked, "--json"]) == status
    figures = json.loads(capsys.readouterr().out)
    assert figures["fits"] is (status == 0)
    assert figures["fits"] is (figures["process_bytes"][1] <= figures["memory_bytes"])


def test_a_person_reads_which_of_two_cases_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL.split(), "--batch", "64", "--memory", "8GB"]) == 1
    said = capsys.readouterr().out
    assert "Reduce activations" in said
    assert "Cheapest changes that make it fit" in said
    assert main(["estimate", "--model", "gpt3-6.7b", "--gpu", "l4-24gb"]) == 1
    assert "No batch size can fix this" in capsys.readouterr().out


def test_memory_alone_names_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["estimate", "--model", "gpt2", "--batch", "8", "--memory", "8GiB"]
    assert main(arguments) == 1
    said = capsys.readouterr().out
    assert "8,589,934,592  8.59 GB (8.00 GiB)" in said
    assert "memory given" in said
    assert not [name for name in ACCELERATORS if name in said]
    assert main([*arguments, "--json"]) == 1
    figures = json.loads(capsys.readouterr().out)
    assert (figures["gpu"], figures["memory_bytes"]) == (None, 8 * 2**30)
    assert main(["estimate", "--model", "gpt2", "--memory", "80GiB", "--data-parallel", "2"]) == 0
    assert "one step on 2 x device" in capsys.readouterr().out


def test_a_gpus_memory_can_be_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL.split(), "--memory", "40GiB"]) == 0
    said = capsys.readouterr().out
    assert "memory of a100-80gb" not in said
    assert "42,949,672,960" in said


def test_without_a_gpu_the_smallest_that_fits_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The process takes up to 12.74 GB, which is more than a 12 GB board has."""
    assert main(["estimate", "--model", "gpt2", "--batch", "8"]) == 0
    said = capsys.readouterr().out
    assert "11,322,399,756" in said
    assert "t4-16gb is the smallest listed board that holds this step" in said
    assert main(["estimate", "--model", "gpt2-xl", "--precision", "mixed", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    needed, chosen = figures["process_bytes"][1], figures["memory_bytes"]
    others = [d.memory_bytes for d in ACCELERATORS.values() if not d.unified]
    assert needed <= chosen == min(n for n in others if n >= needed)


def test_without_a_gpu_the_largest_is_named_if_none_fits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["estimate", "--model", "gpt3-13b", "--precision", "mixed"]) == 1
    said = capsys.readouterr().out
    assert "No listed board holds this step; mi300x-192gb is the largest." in said
    assert "It doesn't fit" in said


def test_the_list_has_every_model_and_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", "--list"]) == 0
    said = capsys.readouterr().out
    words = said.split()
    assert set(words) >= {*MODELS, *ACCELERATORS}
    assert "124,439,808 parameters" in said
    assert "25.45 GB (23.70 GiB)" in said
    boards = said.partition("GPUs, with")[2].splitlines()[1:]
    assert len(boards) == len(ACCELERATORS)
    assert max(map(len, boards)) <= 60  # one line a board, on any terminal
    marked = {line.split()[0] for line in boards if line.endswith("  estimate")}
    assert marked == {name for name, gpu in ACCELERATORS.items() if not gpu.memory.reported}


def test_the_list_as_json_has_every_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", "--list", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["models"]["gpt2"] == 124_439_808
    assert {
        name: (gpu["memory_bytes"], gpu["memory_source"]) for name, gpu in said["gpus"].items()
    } == {name: (gpu.memory_bytes, gpu.memory.source) for name, gpu in ACCELERATORS.items()}


@pytest.mark.parametrize(("data", "said"), [(1, True), (2, False)])
def test_zero_of_one_replica_is_called_without_effect(
    data: int, said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*SMALL.split(), "--zero", "3", "--data-parallel", str(data)]
    assert main(arguments) == 0
    sentence = "ZeRO stage 3 has no effect with one replica; give --data-parallel 2 or more."
    assert (sentence in capsys.readouterr().out) is said
    assert main([*arguments, "--json"]) == 0
    assert (sentence in json.loads(capsys.readouterr().out)["notes"]) is said


@pytest.mark.parametrize("command", ["estimate --list", SMALL])
def test_a_reader_that_goes_away_gets_no_traceback(command: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    code = "import sys; from peakmem.show.cli import main; sys.exit(main())"
    try:
        run = subprocess.run(
            [sys.executable, "-c", code, *command.split()],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert run.stderr == b""
    assert run.returncode == 141


def test_deepspeeds_file(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*SMALL.split(), "--precision", "mixed", "--zero", "2", "--data-parallel", "4"]
    assert main([*arguments, "--export", "deepspeed"]) == 0
    assert json.loads(capsys.readouterr().out)["zero_optimization"] == {"stage": 2}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            "estimate --model gpt5 --gpu a100-80gb",
            "unknown model 'gpt5' (did you mean 'gpt2'?); known are gpt2",
        ),
        ("estimate --model gpt2 --gpu b100", "unknown accelerator 'b100'"),
        ("estimate --model gpt2 --gpu 4090", "'4090' (did you mean 'rtx4090-24gb'?)"),
        (f"{SMALL} --batch 0", "expected batch to be a whole number of at least 1, but got 0"),
        (f"{SMALL} --batch many", "expected --batch to be a whole number, but got 'many'"),
        (f"{SMALL} --dropout x", "expected --dropout to be a number, but got 'x'"),
        (f"{SMALL} --tensor-parallel 16", "heads"),
        (f"{SMALL} --memory 0GB", "--memory is 0 bytes"),
        (f"{SMALL} --memory 80", "is not an amount of memory"),
        (f"{SMALL} --seq 5000", "positions for 1024 tokens"),
        (f"{SMALL} --zero 4", "zero=4 is unknown"),
        (f"{SMALL} --precision int3", "precision='int3' is unknown"),
        (f"{SMALL} --dropout 1.5", "dropout from 0 to below 1"),
        (f"{SMALL} --export json", "use accelerate, deepspeed, fsdp"),
        (f"{SMALL} --optimizer adamw8bit", "(did you mean 'adam8bit'?)"),
        ("estimate --model gpt2 --gpu m2-24gb --offload", "frees nothing on m2-24gb"),
        ("estimate --gpu a100-80gb", "expected --model"),
        ("estimate --model gpt2 --config gpt2", "--model and --config can't be combined"),
        (f"{SMALL} --json --export deepspeed", "--json and --export can't be combined"),
        (f"{SMALL} --json -q", "--json and --quiet can't be combined"),
        ("estimate --config missing.json", "no such file: missing.json"),
        ("estimat", "there is no command 'estimat' (did you mean 'estimate'?)"),
        ("xyzzy", "there is no command 'xyzzy'; see `peakmem --help`"),
        (f"{SMALL} --bach 1", "there is no option --bach (did you mean '--batch'?)"),
        (f"{SMALL} --batch", "option '--batch' requires an argument"),
        (f"{SMALL} again", "unexpected extra argument(s) (again)"),
    ],
)
def test_bad_input_gets_one_sentence(
    arguments: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments.split()) == 2
    told = capsys.readouterr()
    assert says in told.err
    assert told.err.count("\n") == 1
    assert not told.out


def test_quiet_is_the_verdict_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL.split(), "-q"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("It fits, with")
    assert main(["estimate", "--model", "gpt3-6.7b", "--gpu", "l4-24gb", "--quiet"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("It doesn't fit")


def test_a_quiet_doctor_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["doctor", "-q"]) == 0
    assert capsys.readouterr().out == ""
    found = [Check("Python", True, "3.11"), Check("torch", False, "1.0", "pip install torch")]
    monkeypatch.setattr("peakmem.labs.doctor.check_machine", lambda: found)
    assert main(["doctor", "-q"]) == 1
    said = capsys.readouterr().out
    assert said == "MISSING torch       1.0\n        to fix it: pip install torch\n"


def test_a_snapshots_peak_has_owners(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frames = [{"filename": "/home/you/train.py", "line": 3, "name": "step"}]
    event = {"action": "alloc", "addr": 512, "size": 2**20, "stream": 0, "frames": frames}
    file = tmp_path / "snapshot.pickle"
    file.write_bytes(pickle.dumps({"segments": [], "device_traces": [[event]]}))
    picture = tmp_path / "peak.png"
    assert main(["snapshot", str(file), "--plot", str(picture)]) == 0
    assert "100.0%  1.05 MB (1.00 MiB)         /home/you/train.py:3" in capsys.readouterr().out
    assert picture.exists()
    assert main(["snapshot", str(file), "--device", "1"]) == 2
    assert "the snapshot has no device 1" in capsys.readouterr().err
    assert main(["snapshot", str(tmp_path / "gone")]) == 2
    assert "check the path" in capsys.readouterr().err


def test_doctor_names_every_lab(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "lab01_formats" in said
    assert "lab07_mixed_precision" in said
    assert "MISSING" not in said


def test_estimate_starts_without_torch() -> None:
    code = (
        f"import sys; from peakmem.show.cli import main; main({GPT3.split()!r});"
        "sys.exit(any(n in sys.modules for n in ('torch', 'matplotlib', 'ipywidgets', 'rich')))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()
