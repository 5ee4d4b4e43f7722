"""Who may import whom: the arrows of the design, each with a test that shows the rule can fail."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager

# What each module of peakmem may import beside the standard library, `peakmem.` left out; what an
# allowed module may import is allowed with it. A new module gets a row here.
MAY_IMPORT = {
    "errors": set(),
    "units": set(),
    "plain": {"numpy"},
    "session": {"torch"},  # inside `lab`, which names the device
    "selfcheck": {"IPython"},  # inside `check`, which is called in a notebook only
    "formats": {"units", "numpy", "gfloat", "ml_dtypes"},
    "fates": {"formats"},
    "hardware": {"units"},
    "models": {"units"},
    "recipes": {"units", "formats"},
    "ledger": {"units"},
    "profiles": set(),
    "tape": {"ledger", "profiles", "recipes"},
    "layers": {"models", "profiles", "recipes", "tape"},
    "transformer": {"layers", "tape"},
    "llama": {"layers", "tape"},
    "steps": {"recipes", "tape"},
    "predict": {
        *("ledger", "models", "recipes", "profiles", "tape"),
        *("layers", "llama", "steps", "transformer"),
    },
    "chain": {"units"},
    "simulate": {"chain"},
    "kept": {"chain", "simulate"},
    "rotor": {"chain", "simulate", "kept"},
    "offload": {"chain", "simulate", "rotor"},
    "planners": {"kept", "rotor", "offload"},
    "frames": {"chain", "simulate"},
    "networks": {"chain", "models", "parallel"},
    "parallel": {"models"},
    "pipeline": set(),
    "scaling": set(),
    "roofline": {"hardware", "models", "recipes"},
    "estimate": {"hardware", "ledger", "models", "predict", "recipes"},
    "remedies": {"estimate", "parallel"},
    "deepspeed": {"models", "recipes"},
    "doctor": {"session", "units"},
    "cli": {"deepspeed", "doctor", "estimate", "remedies", "torch"},  # torch to name the device
    "swapping": set(),
    "plots": {"numpy", "matplotlib"},
    "allocations": {"torch", "ledger"},
    "owners": {"allocations", "ledger"},
    "operators": {"torch", "allocations"},
    "timeline": set(),
    "history": {"allocations", "owners", "ledger", "timeline"},
    "meter": {"allocations", "history", "ledger", "operators"},
    "tiers": {"torch"},
    "rehearsal": {"torch", "swapping", "tiers"},
    "stages": {"meter", "chain"},
    "trace": {"allocations", "meter", "ledger", "stages", "unseen"},
    "unseen": {"torch"},
    "movable": {"torch", "tiers"},
    "apply": {"torch", "simulate", "movable"},
    "nn": {"torch"},
}
ANYWHERE = {"errors", "numpy"}  # an error that tells what is wrong, and plain arrays
NEEDS_TORCH = {
    "allocations",
    "owners",
    "operators",
    "history",
    "meter",
    "rehearsal",
    "stages",
    "tiers",
    "trace",
    "unseen",
    "movable",
    "apply",
    "nn",
    "probes",
}  # all others start without it
HEAVY = {"torch", "matplotlib", "ipywidgets"}  # what `import peakmem` must not load
POSIX_ONLY = {"crypt", "curses", "fcntl", "grp", "nis", "posix", "pty", "pwd", "readline"} | {
    *("resource", "spwd", "syslog", "termios", "tty")
}


# What a file says it imports.


def imports_of(source: str) -> set[str]:
    """Dotted names of all modules that a source imports, at the top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def notebook_source(notebook: Path) -> str:
    """The Python of a notebook, with its magic commands turned into calls."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return "\n".join(TransformerManager().transform_cell(source) for source in sources)


def student_files(root: Path) -> Iterator[Path]:
    """What students get: the library, the labs, the lectures, start.py and course.py."""
    yield from sorted((root / "src").rglob("*.py"))
    yield from sorted((root / "labs").rglob("*.py"))
    for folder in ("labs", "lectures"):
        yield from sorted((root / folder).rglob("*.ipynb"))
    yield from sorted((root / "autograder/templates").glob("*.py"))
    yield root / "course.py"


def files_that_import(modules: set[str], files: Iterable[Path]) -> list[str]:
    """Names of the files that import any of these top-level modules."""
    guilty = []
    for file in files:
        source = notebook_source(file) if file.suffix == ".ipynb" else file.read_text("utf-8")
        if {name.partition(".")[0] for name in imports_of(source)} & modules:
            guilty.append(file.name)
    return guilty


def not_allowed(package: Path) -> list[str]:
    """Imports of the modules in `package` (peakmem) that MAY_IMPORT does not allow."""
    found = []
    files = [file for file in package.glob("*.py") if file.stem != "__init__"]
    within = [file for file in package.glob("*/*.py") if file.parent.name in MAY_IMPORT]
    for file in sorted([*files, *within]):
        module = file.parent.name if file in within else file.stem
        if module not in MAY_IMPORT:
            found.append(f"{module} has no row in MAY_IMPORT: say there what it may import")
            continue
        allowed = closure(module) | ({module} if file in within else set())
        for name in sorted(map(short, imports_of(file.read_text("utf-8")))):
            if name not in allowed | set(sys.stdlib_module_names):
                found.append(f"{module} imports {name}")
    return found


def closure(module: str) -> set[str]:
    """All that a module may import: its row, and the rows of what stands in it."""
    allowed = set(MAY_IMPORT.get(module, ())) | ANYWHERE
    for name in MAY_IMPORT.get(module, ()):
        allowed |= closure(name) if name in MAY_IMPORT else set()
    return allowed


def short(name: str) -> str:
    """`ledger` of `peakmem.ledger.Ledger`, `numpy` of `numpy.typing`."""
    parts = name.split(".")
    return parts[1] if parts[0] == "peakmem" and len(parts) > 1 else parts[0]


def test_each_module_imports_what_the_design_allows(repository: Path) -> None:
    assert not_allowed(repository / "src/peakmem") == []


def test_an_arrow_the_wrong_way_is_found(tmp_path: Path) -> None:
    (tmp_path / "units.py").write_text("def late():\n    from peakmem.ledger import Ledger\n")
    (tmp_path / "ledger.py").write_text("import math\nfrom peakmem import units, predict\n")
    (tmp_path / "surprise.py").write_text("")
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots/time.py").write_text(
        "from peakmem import ledger\nimport peakmem.plots.style\n"
    )
    assert not_allowed(tmp_path) == [
        "ledger imports predict",
        "plots imports ledger",
        "surprise has no row in MAY_IMPORT: say there what it may import",
        "units imports ledger",
    ]


@pytest.mark.parametrize("forbidden", [{"autograder"}, POSIX_ONLY], ids=["autograder", "posix"])
def test_students_files_do_not_import(repository: Path, forbidden: set[str]) -> None:
    assert files_that_import(forbidden, student_files(repository)) == []


@pytest.mark.parametrize(
    ("place", "source", "forbidden"),
    [
        ("src/peakmem/units.py", "import autograder.model.task", {"autograder"}),
        ("src/peakmem/probes/lab01.py", "def f():\n    from fcntl import flock", POSIX_ONLY),
        ("course.py", "import pwd, os", POSIX_ONLY),
        ("autograder/templates/start.py", "import termios", POSIX_ONLY),
        ("labs/lab01/lab01.ipynb", "%matplotlib inline\nimport autograder", {"autograder"}),
        ("lectures/memory.ipynb", "!ls\nimport resource as r", POSIX_ONLY),
    ],
)
def test_a_forbidden_import_is_found(
    tmp_path: Path, place: str, source: str, forbidden: set[str]
) -> None:
    (tmp_path / "course.py").write_text("import os\n")
    planted = tmp_path / place
    planted.parent.mkdir(parents=True, exist_ok=True)
    cells = [{"cell_type": "markdown", "source": ["import autograder"]}]
    cells += [{"cell_type": "code", "source": source.splitlines(keepends=True)}]
    planted.write_text(json.dumps({"cells": cells}) if planted.suffix == ".ipynb" else source)
    assert files_that_import(forbidden, student_files(tmp_path)) == [planted.name]


# What really happens: each import runs in a process of its own.


def loaded_by(module: str, folder: Path) -> tuple[set[str], float]:
    """Top-level modules in sys.modules after importing `module` from `folder`; the CPU seconds."""
    program = (
        "import json, sys, time\n"
        f"sys.path.insert(0, {str(folder)!r})\n"
        "start = time.process_time()\n"
        f"import {module}\n"
        "seconds = time.process_time() - start\n"
        "print(json.dumps([sorted({name.partition('.')[0] for name in sys.modules}), seconds]))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    names, seconds = json.loads(done.stdout)
    return set(names), seconds


def light_modules(package: Path) -> list[str]:
    """Modules of `package` that must start without torch, each by its full name."""
    files = sorted(path.relative_to(package) for path in package.rglob("*.py"))
    names = [".".join((package.name, *file.with_suffix("").parts)) for file in files]
    names = [name.removesuffix(".__init__") for name in names]
    return [name for name in names if not {*name.split(".")[1:2]} & NEEDS_TORCH]


def test_import_peakmem_is_light_and_quick(repository: Path) -> None:
    runs = [loaded_by("peakmem", repository / "src") for _ in range(3)]
    assert not runs[0][0] & HEAVY
    assert min(seconds for _, seconds in runs) < 0.25  # torch alone takes over 1 s


def test_a_prediction_starts_at_once(repository: Path) -> None:
    names = ("units", "formats", "hardware", "models", "recipes", "ledger", "predict")
    modules = ", ".join(f"peakmem.{name}" for name in names)
    runs = [loaded_by(modules, repository / "src") for _ in range(5)]
    assert not runs[0][0] & HEAVY
    assert min(seconds for _, seconds in runs) < 0.3


def test_modules_above_meter_start_without_torch(repository: Path) -> None:
    modules = light_modules(repository / "src/peakmem")
    assert {"peakmem", "peakmem.errors", "peakmem.session"} <= set(modules)
    assert not any(name.startswith("peakmem.probes") for name in modules)
    loaded, _ = loaded_by(", ".join(modules), repository / "src")
    assert not loaded & {"torch", "autograder"}


def test_a_heavy_import_is_found(tmp_path: Path) -> None:
    package = tmp_path / "planted"
    package.mkdir()
    (tmp_path / "torch.py").write_text("import autograder\n")
    (tmp_path / "autograder.py").write_text("")
    (package / "__init__.py").write_text("from planted import units\n")
    (package / "units.py").write_text("import torch\n")
    (package / "meter.py").write_text("")
    assert light_modules(package) == ["planted", "planted.units"]
    loaded, seconds = loaded_by("planted", tmp_path)
    assert {"torch", "autograder"} <= loaded
    assert seconds > 0


# The grader: its folders are the pipeline, and imports run one way.

ORDER = (
    "base < model < notebooks < content < sandbox < authoring < store < grading < rules < publish "
    "< runs < review < trials < platforms < cli"
)
GRADER = ORDER.split(" < ")


def against_the_order(package: Path, order: list[str]) -> list[str]:
    """Imports from a folder to the right of one's own, or by or from a folder without a place."""
    found = []
    for file in sorted(package.glob("*/**/*.py")):
        here = file.relative_to(package).parts[0]
        for name in sorted(imports_of(file.read_text("utf-8"))):
            first, _, rest = name.partition(".")
            there = rest.partition(".")[0]
            if first != package.name or not (package / there).is_dir():
                continue
            if {here, there} - set(order) or order.index(there) > order.index(here):
                found.append(f"{file.relative_to(package)} imports {name}")
    return found


def test_the_graders_folders_import_from_left_to_right(repository: Path) -> None:
    package = repository / "autograder"
    assert against_the_order(package, GRADER) == []
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    assert folders == set(GRADER), "each folder has its place"


def test_an_import_against_the_order_is_found(tmp_path: Path) -> None:
    for folder in ("base", "model", "extra"):
        (tmp_path / "grader" / folder).mkdir(parents=True)
    (tmp_path / "grader/base/a.py").write_text("def f():\n    from grader.model import task\n")
    (tmp_path / "grader/model/b.py").write_text("import json\nfrom grader.base.a import f\n")
    (tmp_path / "grader/extra/c.py").write_text("import grader.base.a\n")
    assert against_the_order(tmp_path / "grader", ["base", "model"]) == [
        "base/a.py imports grader.model.task",
        "extra/c.py imports grader.base.a",
    ]


def test_the_guest_stands_alone(repository: Path) -> None:
    """What students can read of the grader needs nothing that they can't."""
    files = sorted((repository / "autograder/sandbox/guest").glob("*.py"))
    assert files
    for file in files:
        ours = {name for name in imports_of(file.read_text("utf-8")) if "autograder" in name}
        assert all(name.startswith("autograder.sandbox.guest.") for name in ours), file.name
