"""What a worker imports before it grades: none of what takes a second to import."""

import subprocess
import sys

import pytest

HEAVY = ["nbformat", "nbgrader", "torch", "IPython", "matplotlib", "jupytext"]
WORKER = "autograder.runs.classroom, autograder.content.lab01"


def heavy_after(imports: str) -> list[str]:
    code = f"import sys, {imports}; print(*(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_a_worker_of_a_lab_without_torch_starts_light() -> None:
    assert heavy_after(WORKER) == []


@pytest.mark.parametrize("heavy", ["nbformat", "autograder.store.database"])
def test_a_heavy_import_would_show(heavy: str) -> None:
    assert "nbformat" in heavy_after(f"{WORKER}, {heavy}")
