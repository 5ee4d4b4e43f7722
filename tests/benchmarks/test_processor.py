"""The processor time of programs, which counts orphans too."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands over orphans")

_BURN = "import time\nwhile time.process_time() < 0.4: pass"
_LEAVES_AN_ORPHAN = "import os\nif os.fork() == 0:\n    import time\n    " + _BURN.replace(
    "\n", "\n    "
)
_COUNT = """
import subprocess, sys
from benchmarks.processor import processor_time
with processor_time() as counted:
    subprocess.run([sys.executable, "-c", {program!r}], check=True)
print(counted.seconds)
"""


@pytest.mark.parametrize("program", [_BURN, _LEAVES_AN_ORPHAN])
def test_the_time_of_a_program_and_of_its_orphans_counts(program: str) -> None:
    code = _COUNT.format(program=program)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0.4 <= float(run.stdout) < 4
