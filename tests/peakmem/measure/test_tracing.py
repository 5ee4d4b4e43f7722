"""A block and a script that are traced, against what a meter reads of the same code."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import peakmem
from peakmem.measure.meter import MemoryMeter
from peakmem.measure.tracing import trace_script

SCRIPT = """
import sys
import torch
width = int(sys.argv[1])
layer = torch.nn.Linear(width, width)
adam = torch.optim.AdamW(layer.parameters(), foreach=False)
for _ in range(2):
    adam.zero_grad()
    layer(torch.ones(4, width)).relu().sum().backward()
    adam.step()
"""


def test_a_block_is_what_a_meter_reads() -> None:
    def run() -> None:
        layer = torch.nn.Linear(64, 64)
        layer(torch.ones(8, 64)).relu().sum().backward()

    with MemoryMeter("cpu") as meter:
        run()
    with peakmem.trace("torch-cpu") as found:
        run()
    assert found.ledger.peak_bytes == meter.peak_bytes
    assert found.ledger.by_owner()["parameter"] == 4 * 65 * 64
    assert str(found).startswith("Peak: ")


def test_a_block_has_a_ledger_when_it_has_ended() -> None:
    with peakmem.trace() as found:
        torch.zeros(8)
        with pytest.raises(RuntimeError, match="still running"):
            _ = found.ledger
    with pytest.raises(RuntimeError, match="nothing was live"), peakmem.trace():
        pass
    with pytest.raises(ValueError, match="device_profile='tpu' is unknown"), peakmem.trace("tpu"):
        pass


def test_a_script_is_what_a_meter_reads(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    traced = trace_script(str(path), ["48"], "torch-cpu")
    with MemoryMeter("cpu") as meter:
        exec(SCRIPT.replace("int(sys.argv[1])", "48"), {})
    assert traced.peak_bytes == meter.peak_bytes
    assert traced.peak_phase == "optimizer"


def test_a_script_takes_no_memory(tmp_path: Path) -> None:
    """A layer of 40 GB, with its gradient and both moments."""
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    ledger = trace_script(str(path), ["100000"])
    assert ledger.by_owner()["optimizer_state"] == 2 * 4 * 100_001 * 100_000


@pytest.mark.parametrize(
    ("text", "says"),
    [("import sys; sys.exit('no data')", "exited with 'no data'"), ("1 + 1", "nothing was live")],
)
def test_a_script_that_trains_nothing_is_refused(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(text)
    with pytest.raises((ValueError, RuntimeError), match=says):
        trace_script(str(path))
    with pytest.raises(ValueError, match=r"no such script: nowhere\.py"):
        trace_script("nowhere.py")


def test_importing_peakmem_loads_no_torch() -> None:
    import subprocess
    import sys

    code = "import sys, peakmem; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
