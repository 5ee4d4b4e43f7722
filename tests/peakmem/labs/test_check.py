"""peakmem.check: the self-checks of the open notebook, and which of them pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import peakmem
from peakmem.labs import check

LAB = "lab05_accumulation"


def cell(source: str, kind: str = "code") -> dict[str, Any]:
    return {"cell_type": kind, "source": source.splitlines(keepends=True), "metadata": {}}


CELLS = [
    cell("# Self-check of nothing: this is prose", "markdown"),
    cell("def double(x):\n    raise AssertionError('this cell is not run again')"),
    cell(
        "# Self-check of 1.1, doubling\nprint('a picture')\nassert double(2) == 4, 'twice 2 is 4'"
    ),
    cell("# Self-check of 1.2, halving\nassert half(4) == 2"),
]


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stands for the notebook's shell, with the names that its cells defined."""
    found = SimpleNamespace(user_ns={"double": lambda x: 2 * x})
    monkeypatch.setattr(check, "_shell", lambda: found)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    return found


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    path = tmp_path / "lab.ipynb"
    path.write_text(json.dumps({"cells": CELLS}), "utf-8")
    return path


def test_it_says_which_self_checks_pass(
    shell: SimpleNamespace, notebook: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peakmem.check(str(notebook))
    assert capsys.readouterr().out.splitlines() == [
        "✔ 1.1, doubling",
        "✘ 1.2, halving",
        "    NameError: name 'half' is not defined",
        "1 of 2 self-checks pass. Grading tries many more cases.",
    ]
    shell.user_ns |= {"double": lambda x: x, "half": lambda x: x // 2}
    peakmem.check(str(notebook))
    assert "✘ 1.1, doubling\n    twice 2 is 4\n✔ 1.2" in capsys.readouterr().out
    shell.user_ns["double"] = lambda x: 2 * x
    peakmem.check(str(notebook))
    assert "2 of 2 self-checks pass" in capsys.readouterr().out


@pytest.mark.usefixtures("shell")
def test_jupyter_tells_which_notebook_is_open(
    notebook: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", str(notebook))
    peakmem.check()
    assert "1 of 2 self-checks pass" in capsys.readouterr().out


@pytest.mark.usefixtures("shell")
def test_on_colab_the_page_itself_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ModuleType("google.colab._message")
    page.blocking_request = lambda name: {"get_ipynb": {"ipynb": {"cells": CELLS}}}[name]  # type: ignore[attr-defined]
    for name in ("google", "google.colab"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "google.colab._message", page)
    peakmem.check()
    assert "1 of 2 self-checks pass" in capsys.readouterr().out


@pytest.mark.usefixtures("shell")
def test_what_is_no_lab_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"does not report its notebook; name it: check\("):
        peakmem.check()
    with pytest.raises(ValueError, match=r"there is no notebook .*away\.ipynb; save it"):
        peakmem.check(str(tmp_path / "away.ipynb"))
    (tmp_path / "empty.ipynb").write_text('{"cells": []}')
    with pytest.raises(ValueError, match="no self-checks: open one of the labs"):
        peakmem.check(str(tmp_path / "empty.ipynb"))


def test_outside_a_notebook_it_says_where_to_call_it() -> None:
    assert not InteractiveShell.initialized()
    with pytest.raises(RuntimeError, match="call it in one of its cells"):
        peakmem.check()


def solved_notebook(repository: Path, tmp_path: Path, spoiled: str = "") -> Path:
    """The lab with its solutions, but for the exercise `spoiled`."""
    notebook = json.loads((repository / "solutions" / LAB / f"{LAB}.ipynb").read_text("utf-8"))
    kept = []
    for entry in notebook["cells"]:
        about = entry["metadata"].get("nbgrader", {})
        if about.get("grade_id") == f"{spoiled}-solution":
            entry["source"] = "def largest_micro_batch(*arguments):\n    return -1\n"
        if entry["cell_type"] == "code" and about.get("points", 0) == 0:
            kept.append(entry)
    path = tmp_path / f"{LAB}.ipynb"
    path.write_text(json.dumps({**notebook, "cells": kept}), "utf-8")
    return path


_RUN_AND_CHECK = """
import json, sys
import matplotlib
matplotlib.use("agg")
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    shell.run_cell("".join(cell["source"]), store_history=False)
print("=====")
shell.run_cell("import peakmem; peakmem.check()")
"""


@pytest.mark.slow
@pytest.mark.parametrize("spoiled", ["", "lab05-largest_micro_batch"])
def test_it_agrees_with_validate_on_a_real_lab(
    repository: Path, tmp_path: Path, spoiled: str
) -> None:
    from nbgrader.validator import Validator

    path = solved_notebook(repository, tmp_path, spoiled)
    environment = {**os.environ, "JPY_SESSION_NAME": str(path), "IPYTHONDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", _RUN_AND_CHECK, path],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    ours = done.stdout.partition("=====\n")[2]
    found = Validator().validate(str(path))
    failed = [c["source"].splitlines()[0] for c in found.get("failed", [])]
    assert [f"# Self-check of {line[2:]}" for line in ours.splitlines() if line[0] == "✘"] == failed
    assert bool(failed) == bool(spoiled)
