"""Which folders may import which: the design's order, with a test that shows each rule can fail."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from tests.files import python_files
from tests.imports import face_of, import_graph, imports_of, modules_of

# The folders of both packages, each of which imports only from those to its left. Folders with a
# comma between them import nothing from each other.
ORDERS = {
    "peakmem": (
        "core < numbers < specs < scale < plan < predict, execute, measure < probes < labs < show "
        "< labs/labNN"
    ),
    "autograder": (
        "base < model < notebooks < content < sandbox < authoring < store < grading < rules "
        "< publish < runs < review < trials < platforms < cli"
    ),
}
LIBRARY, GRADER = ([row.split(", ") for row in ORDERS[package].split(" < ")] for package in ORDERS)

# A peakmem folder's imports besides Python's own library and peakmem. IPython is there where a
# notebook is, and torch only names the device in labs and show.
THIRD_PARTY = {
    "core": {"numpy"},
    "numbers": {"numpy", "gfloat", "ml_dtypes"},
    "specs": set(),
    "scale": set(),
    "plan": {"numpy"},
    "predict": set(),
    "execute": {"numpy", "torch"},
    "measure": {"numpy", "torch", "cloudpickle", "transformers"},  # the last for --config alone
    "probes": {"numpy", "torch"},
    "labs": {"numpy", "torch", "IPython", "matplotlib", "google"},  # the last is Colab's
    "show": {"numpy", "torch", "matplotlib", "ipywidgets", "traitlets", "typer", "rich"}
    | {"nbclient", "nbconvert", "nbformat"},  # these are the extra `lecture`
    # One lab's own helpers, which run in a notebook.
    "labs/labNN": {"numpy", "torch", "IPython", "matplotlib", "ipywidgets", "tqdm"},
}
WITHOUT_TORCH = ("core", "numbers", "specs", "scale", "plan", "predict", "labs", "show")
HEAVY = {
    "torch",
    "matplotlib",
    "ipywidgets",
    "typer",
    "rich",
}  # what `import peakmem` must not load
POSIX_ONLY = {"crypt", "curses", "fcntl", "grp", "nis", "posix", "pty", "pwd", "readline"} | {
    *("resource", "spwd", "syslog", "termios", "tty")
}


# A file's imports.


def notebook_source(notebook: Path) -> str:
    """The Python of a notebook, with its magic commands turned into calls."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return "\n".join(TransformerManager().transform_cell(source) for source in sources)


def student_files(root: Path) -> Iterator[Path]:
    """The students' files: the library, the labs, the lectures, start.py and course.py."""
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


def folder_of(*parts: str) -> str:
    """The folder that a file or a module belongs to: each lab's own helpers form one."""
    helper = parts[0] == "labs" and len(parts) > 1 and re.match(r"lab\d\d", parts[1])
    return "labs/labNN" if helper else parts[0]


def against_the_order(package: Path, order: list[list[str]]) -> list[str]:
    """Imports from a folder that is not to the left of one's own, or that has no place."""
    place = {folder: number for number, row in enumerate(order) for folder in row}
    face = face_of(package)
    found = []
    for module, file in modules_of(package):
        if file.parent == package:
            continue
        here = folder_of(*file.relative_to(package).parts)
        for said in sorted(imports_of(file.read_text("utf-8"), module)):
            name = face.get(said, said)
            first, _, rest = name.partition(".")
            there = folder_of(*rest.split("."))
            if first != package.name or not rest or here == there:
                continue
            is_folder = (package / rest.partition(".")[0]).is_dir()
            if not is_folder and rest.count("."):
                found.append(f"{file.relative_to(package)} imports {name}, which is no folder's")
            elif not is_folder:
                continue  # a name of the package itself
            elif {here, there} - set(place) or place[there] >= place[here]:
                found.append(f"{file.relative_to(package)} imports {name}")
    return found


def folders_of(package: Path) -> set[str]:
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    return folders | {"labs/labNN"} if package.name == "peakmem" else folders


@pytest.mark.parametrize(
    ("place", "order"), [("src/peakmem", LIBRARY), ("autograder", GRADER)], ids=list(ORDERS)
)
def test_folders_import_from_left_to_right(
    repository: Path, place: str, order: list[list[str]]
) -> None:
    package = repository / place
    assert against_the_order(package, order) == []
    assert folders_of(package) == {folder for row in order for folder in row}


def test_an_import_against_the_order_is_found(tmp_path: Path) -> None:
    for folder in ("base", "model", "twin", "extra"):
        (tmp_path / "ours" / folder).mkdir(parents=True)
    (tmp_path / "ours/base/a.py").write_text("def f():\n    from ours.model import task\n")
    (tmp_path / "ours/model/b.py").write_text("import json\nfrom ours.base.a import f\n")
    (tmp_path / "ours/twin/c.py").write_text("from ours.model import b\nfrom ours import twin\n")
    (tmp_path / "ours/labs/lab01").mkdir(parents=True)
    (tmp_path / "ours/labs/lab01/e.py").write_text("from ours.twin import c\n")
    (tmp_path / "ours/twin/f.py").write_text("from ours.labs.lab01 import e\n")
    (tmp_path / "ours/extra/d.py").write_text("import ours.base.a\nfrom ours.face import f\n")
    (tmp_path / "ours/base/lazy.py").write_text(
        '_PLACES = {"task": "b"}\n'
        '__getattr__ = loader("ours.model", _PLACES)\n'
        'load = loader(__name__, {"f": "a"})\n'
    )
    (tmp_path / "ours/base/late.py").write_text('b = importlib.import_module("ours.model.b")\n')
    (tmp_path / "ours/base/front.py").write_text("from ours import __version__, lab\n")
    (tmp_path / "ours/base/whole.py").write_text("import ours\n\nours.lab, ours.__file__\n")
    (tmp_path / "ours/__init__.py").write_text(
        '__version__ = "1"\n__getattr__ = loader("ours", {"lab": "model.b"})\n'
    )
    order = [["base"], ["model", "twin"], ["labs/labNN"]]
    assert against_the_order(tmp_path / "ours", order) == [
        "base/a.py imports ours.model.task",
        "base/front.py imports ours.model.b.lab",
        "base/late.py imports ours.model.b",
        "base/lazy.py imports ours.model.b.task",
        "base/whole.py imports ours.model.b.lab",
        "extra/d.py imports ours.base.a",
        "extra/d.py imports ours.face.f, which is no folder's",
        "twin/c.py imports ours.model.b",
        "twin/f.py imports ours.labs.lab01.e",
    ]


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle; empty if there are none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_modules_import_each_other(repository: Path) -> None:
    places = ("src/peakmem", "autograder", "benchmarks")
    graph = import_graph(*(repository / place for place in places))
    assert sum(map(len, graph.values())) > len(graph) > 300
    assert cycle(graph) == []


@pytest.mark.parametrize(
    "back",
    [
        "import ours.plan.a",
        "def f():\n    from ours.plan.a import x",
        "if TYPE_CHECKING:\n    from ours.plan.a import X",
        "from ours.plan import X",
        "from ours import X",
        'importlib.import_module("ours.plan.a")',
    ],
)
def test_a_cycle_is_found(tmp_path: Path, back: str) -> None:
    plan = tmp_path / "ours/plan"
    plan.mkdir(parents=True)
    (tmp_path / "ours/__init__.py").write_text('__getattr__ = loader("ours", {"X": "plan.a"})\n')
    (plan / "__init__.py").write_text('_PLACES = {"X": "a"}\n\nloader(__name__, _PLACES)\n')
    (plan / "a.py").write_text("from ours.plan.b import y\n")
    (plan / "b.py").write_text("from ours.plan import c\n")
    (plan / "c.py").write_text("import json\n")
    assert cycle(import_graph(tmp_path / "ours")) == []
    (plan / "c.py").write_text(back)
    assert {"ours.plan.a", "ours.plan.b", "ours.plan.c"} <= set(
        cycle(import_graph(tmp_path / "ours"))
    )


def other_packages(package: Path) -> list[str]:
    """Imports of other packages that THIRD_PARTY does not allow to the file's folder."""
    found = []
    for file in sorted(package.glob("*/**/*.py")):
        names = {name.partition(".")[0] for name in imports_of(file.read_text("utf-8"))}
        allowed = THIRD_PARTY.get(folder_of(*file.relative_to(package).parts), set())
        for name in sorted(names - {"peakmem"} - sys.stdlib_module_names - allowed):
            found.append(f"{file.relative_to(package)} imports {name}")
    return found


def test_each_folder_imports_the_packages_that_it_may(repository: Path) -> None:
    assert other_packages(repository / "src/peakmem") == []
    assert set(THIRD_PARTY) == folders_of(repository / "src/peakmem")


def test_a_package_in_the_wrong_folder_is_found(tmp_path: Path) -> None:
    for folder in ("specs", "measure"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("import json, torch\nfrom pandas import x\n")
    assert other_packages(tmp_path) == [
        "measure/a.py imports pandas",
        "specs/a.py imports pandas",
        "specs/a.py imports torch",
    ]


@pytest.mark.parametrize("forbidden", [{"autograder"}, POSIX_ONLY], ids=["autograder", "posix"])
def test_students_files_do_not_import(repository: Path, forbidden: set[str]) -> None:
    assert files_that_import(forbidden, student_files(repository)) == []


@pytest.mark.parametrize(
    ("place", "source", "forbidden"),
    [
        ("src/peakmem/core/units.py", "import autograder.model.task", {"autograder"}),
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


# What an installation leaves.


def test_copies_that_an_installation_leaves_are_no_modules(
    repository: Path, tmp_path: Path
) -> None:
    left = "autograder/build/lib/autograder/model/task.py"
    for place in ("autograder/authoring/build.py", left):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).touch()
    (module,) = python_files(tmp_path / "autograder")
    assert module.name == "build.py"
    mypy = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]
    (exclude,) = mypy["exclude"]
    assert re.search(exclude, left)
    assert not re.search(exclude, "autograder/authoring/build.py")


# What is there without the tests.


def that_name_tests(root: Path, *folders: str) -> list[str]:
    """Modules with a path in tests/; benchmarks may have some."""
    return [
        file.name
        for folder in folders
        for file in python_files(root / folder)
        if any(map(_is_in_tests, ast.walk(ast.parse(file.read_text("utf-8")))))
    ]


def _is_in_tests(node: ast.AST) -> bool:
    """Whether an expression is a path such as `"tests/a"` or `root / "tests"`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return any(
            isinstance(part, ast.Constant) and part.value == "tests" for part in ast.walk(node)
        )
    return isinstance(node, ast.Constant) and str(node.value).startswith("tests/")


def test_no_command_reads_a_file_of_the_tests(repository: Path) -> None:
    assert that_name_tests(repository, "src", "autograder") == []


@pytest.mark.parametrize("constant", ['Path("tests") / "mutants"', 'f"tests/mutants/{lab}.toml"'])
def test_a_command_that_reads_one_is_found(tmp_path: Path, constant: str) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours/a.py").write_text(f'"""The tests of a lab."""\npath = {constant}\n')
    assert that_name_tests(tmp_path, "ours") == ["a.py"]


# How long a module may be.

MOST_LINES = 300


def long_without_a_reason(root: Path, *folders: str) -> set[str]:
    """Modules of over 300 lines whose docstring has no sentence `Long because ...`."""
    return {
        file.relative_to(root).as_posix()
        for folder in folders
        for file in python_files(root / folder)
        if (text := file.read_text("utf-8")).count("\n") > MOST_LINES
        and not re.search(r"^Long because \w+ ", ast.get_docstring(ast.parse(text)) or "", re.M)
    }


def test_a_long_module_says_why(repository: Path) -> None:
    found = long_without_a_reason(repository, "src", "autograder", "benchmarks")
    assert found == set()


def test_a_long_module_without_a_reason_is_found(tmp_path: Path) -> None:
    rest = "x = 1\n" * (MOST_LINES - 1)
    for name, source in {
        "short.py": f'"""A."""\n{rest}',
        "long.py": f'"""A."""\n\n{rest}',
        "bare.py": f"# Long because of nothing\n\n{rest}",
        "elsewhere.py": f'"""A."""\n# Long because it is\n{rest}',
        "reason.py": f'"""A.\n\nLong because it is one table.\n"""\n{rest}',
    }.items():
        (tmp_path / "ours" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "ours" / name).write_text(source)
    found = long_without_a_reason(tmp_path, "ours")
    assert found == {"ours/long.py", "ours/bare.py", "ours/elsewhere.py"}


# What a dataclass's fields mean.

# Implementations of the protocol `Backend`, which documents their fields.
DOCUMENTED_ELSEWHERE = {"Namespaces", "Unprotected", "UserIds"}


def fields_without_a_comment(root: Path, *folders: str) -> list[str]:
    """Fields of public dataclasses without a `#:` comment; options of commands have help."""
    found = []
    for file in (file for folder in folders for file in python_files(root / folder)):
        text = file.read_text("utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            fields = [field for field in node.body if isinstance(field, ast.AnnAssign)]
            is_command = any("Annotated" in ast.unparse(field.annotation) for field in fields)
            is_dataclass = any("dataclass" in ast.unparse(made) for made in node.decorator_list)
            if is_command or not is_dataclass or node.name in DOCUMENTED_ELSEWHERE:
                continue
            found += [
                f"{file.name}: {node.name}.{ast.unparse(field.target)}"
                for field in fields
                if not lines[field.lineno - 2].lstrip().startswith("#:")
            ]
    return found


def test_each_field_of_a_public_dataclass_has_a_comment(repository: Path) -> None:
    assert fields_without_a_comment(repository, "src", "autograder") == []


def test_a_field_without_a_comment_is_found(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours/a.py").write_text(
        "@dataclass(frozen=True)\nclass Memory:\n"
        "    #: The usable memory.\n    bytes: int\n    source: str\n    # A tool.\n    tool: str\n"
        "@dataclass\nclass _Private:\n    size: int\n"
        "@dataclass\nclass Options:\n    lab: Lab\n    gpu: Annotated[str, help]\n"
        "class Plain:\n    size: int\n"
    )
    assert fields_without_a_comment(tmp_path, "ours") == [
        "a.py: Memory.source",
        "a.py: Memory.tool",
    ]


# Real imports, each in its own process.


def loaded_by(modules: str, folder: Path) -> set[str]:
    """All names in sys.modules after importing `modules` from `folder`."""
    program = (
        "import json, sys\n"
        f"sys.path.insert(0, {str(folder)!r})\n"
        f"import {modules}\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def light_modules(package: Path) -> list[str]:
    """Modules of `package` that must start without torch, each by its full name."""
    files = [package / "__init__.py"]
    files += [file for folder in WITHOUT_TORCH for file in sorted((package / folder).rglob("*.py"))]
    # A lab's own helpers run what students write on models and tensors.
    files = [file for file in files if not re.search(r"/labs/lab\d\d", file.as_posix())]
    names = [".".join(file.relative_to(package.parent).with_suffix("").parts) for file in files]
    return [name.removesuffix(".__init__") for name in names]


def test_import_peakmem_is_light_and_quick(repository: Path) -> None:
    added = loaded_by("peakmem", repository / "src") - loaded_by("numpy", repository / "src")
    assert not added & HEAVY
    assert len(added) <= 60  # most of them small; torch alone has over 1,000


def test_a_prediction_starts_at_once(repository: Path) -> None:
    modules = "peakmem.numbers.formats, peakmem.predict.step_ledger, peakmem.specs.hardware"
    added = loaded_by(modules, repository / "src") - loaded_by("numpy", repository / "src")
    assert not added & HEAVY
    assert len(added) <= 120


def test_whole_folders_start_without_torch(repository: Path) -> None:
    modules = light_modules(repository / "src/peakmem")
    assert {"peakmem", "peakmem.core.errors", "peakmem.show.widgets.svg"} <= set(modules)
    assert not loaded_by(", ".join(modules), repository / "src") & {"torch", "autograder"}


def test_a_heavy_import_is_found(tmp_path: Path) -> None:
    package = tmp_path / "planted"
    (package / "core").mkdir(parents=True)
    (package / "measure").mkdir()
    (tmp_path / "torch.py").write_text("import autograder\n")
    (tmp_path / "autograder.py").write_text("")
    (package / "__init__.py").write_text("from planted.core import units\n")
    (package / "core/units.py").write_text("import torch\n")
    (package / "measure/meter.py").write_text("")
    assert light_modules(package) == ["planted", "planted.core.units"]
    assert {"torch", "autograder", "planted.core.units"} <= loaded_by("planted", tmp_path)


# The tests that take long.


def listed_and_gone(tests: Path) -> list[str]:
    """The lines of slow_tests.txt that name no test function of this folder."""
    lines = (tests / "slow_tests.txt").read_text("utf-8").splitlines()
    named = [line for line in lines if not line.startswith("#")]
    return [line for line in named if not _is_test(tests.parent, line)]


def _is_test(root: Path, line: str) -> bool:
    path, _, name = line.partition("::")
    file, function = root / path, name.partition("[")[0]
    return file.is_file() and f"\ndef {function}(" in file.read_text("utf-8")


def test_slow_tests_are_listed_by_their_names(repository: Path) -> None:
    assert listed_and_gone(repository / "tests") == []


def test_a_slow_test_that_is_gone_is_found(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text("\ndef test_b(): ...\n")
    lines = [
        "# Why.",
        "tests/test_a.py::test_b[x]",
        "tests/test_a.py::test_c",
        "tests/no.py::test_b",
    ]
    (tmp_path / "tests/slow_tests.txt").write_text("\n".join(lines))
    assert listed_and_gone(tmp_path / "tests") == lines[2:]


# What students can read.


def test_the_guest_stands_alone(repository: Path) -> None:
    """The parts of the grader that students can read need no others."""
    files = sorted((repository / "autograder/sandbox/guest").glob("*.py"))
    assert files
    for file in files:
        ours = {name for name in imports_of(file.read_text("utf-8")) if "autograder" in name}
        assert all(name.startswith("autograder.sandbox.guest.") for name in ours), file.name
