"""Runs a notebook's self-checks where nbgrader's Validate button is missing, as on Colab."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["check"]

_FIRST_LINE = "# Self-check of "


def check(notebook: str | None = None) -> None:
    """Run the self-checks of the open notebook again, and print which of them pass.

    They see the names defined now, while the Validate button starts from scratch: restart the
    kernel and run all cells first, and both agree. `notebook` is the notebook's path, for editors
    that don't report it. Raises ValueError if the notebook is missing or has no self-check.
    """
    shell = _shell()
    checks = list(_self_checks(_open_notebook(notebook)))
    if not checks:
        raise ValueError("this notebook has no self-checks: open one of the labs, and save it")
    passed = 0
    for title, source in checks:
        problem = _problem(source, shell.user_ns)
        passed += not problem
        print(f"✘ {title}\n    {problem}" if problem else f"✔ {title}", flush=True)
    print(f"{passed} of {len(checks)} self-checks pass. Grading tries many more cases.")


def _shell() -> Any:
    from IPython import get_ipython  # here, so that `import peakmem` stays light

    shell = get_ipython()
    if shell is None:
        raise RuntimeError("peakmem.check() looks at an open notebook; call it in one of its cells")
    return shell


def _self_checks(notebook: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the title and the source of each self-check; Colab keeps no other sign of one."""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and source.startswith(_FIRST_LINE):
            yield source.splitlines()[0].removeprefix(_FIRST_LINE), source


def _problem(source: str, names: dict[str, Any]) -> str:
    """Run a self-check among these names; return what it objects to, "" for nothing."""
    from IPython.utils.capture import capture_output

    try:
        with capture_output():
            exec(compile(source, "<self-check>", "exec"), names)
    except Exception as error:  # student's code may raise anything
        return (
            str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        )
    return ""


def _open_notebook(path: str | None) -> Mapping[str, Any]:
    """The notebook at `path`, or the one that the editor says is open."""
    if path is None:
        notebook = _of_colab()
        if notebook is not None:
            return notebook
        path = os.environ.get("JPY_SESSION_NAME")  # set by Jupyter's server for each kernel
    if path is None:
        raise ValueError('this editor does not report its notebook; name it: check("my.ipynb")')
    if not Path(path).is_file():
        raise ValueError(f"there is no notebook {path}; save it, and give its path: check(...)")
    found: Mapping[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return found


def _of_colab() -> Mapping[str, Any] | None:
    """The notebook that Colab's page shows, which isn't in any file; None elsewhere."""
    try:
        messages = importlib.import_module("google.colab._message")
    except ImportError:
        return None
    answer: Mapping[str, Mapping[str, Any]] = messages.blocking_request("get_ipynb")
    return answer["ipynb"]
