"""Installed packages: students get the library alone, and everyone the tested versions."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from email import message_from_string
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import peakmem
from tests.files import python_files

OURS = {"peakmem", "peakmem-autograder"}


def project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]


def requirements(folder: Path) -> list[Requirement]:
    """All that a distribution asks for itself, its extras included."""
    table = project(folder)
    extras = [line for lines in table["optional-dependencies"].values() for line in lines]
    return [Requirement(line) for line in [*table["dependencies"], *extras]]


def pins(constraints: Path) -> dict[str, Requirement]:
    lines = constraints.read_text("utf-8").splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(pin.name): pin for pin in found}


# The wheels


def build_wheel(source: Path, out: Path) -> set[str]:
    """Names of the files in the wheel that pip builds from the distribution in `source`."""
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--quiet", "--wheel-dir", out, source], check=True)
    (wheel,) = out.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="session")
def copy(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's tracked kind of files, copied: building leaves files in its source."""
    target = tmp_path_factory.mktemp("packaging") / "course"
    made = (".*", "work", "graded", "build", "*.egg-info", "__pycache__")
    shutil.copytree(repository, target, ignore=shutil.ignore_patterns(*made))
    return target


def files_of(folder: Path, package: str) -> set[str]:
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {
        f"{package}/{file.as_posix()}"
        for file in files
        if file.name not in ("pyproject.toml", "LICENSE")
    }


def without_metadata(wheel: set[str]) -> set[str]:
    return {name for name in wheel if ".dist-info/" not in name}


def test_students_wheel_holds_the_library_alone(copy: Path, tmp_path: Path) -> None:
    library = files_of(copy / "src/peakmem", "peakmem")
    assert without_metadata(build_wheel(copy, tmp_path)) == library


def test_a_package_put_into_the_students_wheel_is_found(copy: Path, tmp_path: Path) -> None:
    source = shutil.copytree(copy, tmp_path / "course")
    (source / "src/autograder").mkdir()
    (source / "src/autograder/__init__.py").touch()
    out = tmp_path / "out"
    assert "autograder/__init__.py" in build_wheel(source, out)


def test_instructors_wheel_holds_all_of_autograder(copy: Path, tmp_path: Path) -> None:
    files = files_of(copy / "autograder", "autograder")
    remedy = "autograder/pyproject.toml has to name each folder, as a package or as data"
    assert without_metadata(build_wheel(copy / "autograder", tmp_path)) == files, remedy


@pytest.mark.parametrize("place", [".", "autograder"])
def test_a_wheel_says_what_it_is(place: str, copy: Path, tmp_path: Path) -> None:
    names = build_wheel(copy / place, tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as opened:
        found = message_from_string(opened.read(metadata).decode())
        (license_file,) = (name for name in names if name.endswith("licenses/LICENSE"))
        assert opened.read(license_file) == (copy / "LICENSE").read_bytes()
    assert found["License-Expression"] == "MIT"
    assert found["License-File"] == "LICENSE"
    assert found["Author"] == "The authors of peakmem"
    assert found["Description-Content-Type"] == "text/markdown"
    for minor in (11, 12, 13):
        assert f"Programming Language :: Python :: 3.{minor}" in found.get_all("Classifier")
    readme = str(found.get_payload())
    assert readme.strip().startswith("# ")
    assert relative_links(readme) == []


def relative_links(text: str) -> list[str]:
    """Links and pictures that lead nowhere once the text stands on a page by itself."""
    found = re.findall(r"\]\(([^)]+)\)", text)
    return [link for link in found if not re.match(r"https://|#", link)]


def test_a_relative_link_is_found(repository: Path) -> None:
    assert "docs/students.md" in relative_links((repository / "README.md").read_text("utf-8"))


def test_the_citation_has_the_version(repository: Path) -> None:
    readme = (repository / "README.md").read_text("utf-8")
    assert re.findall(r"^  version = \{(.*)\},$", readme, re.MULTILINE) == [peakmem.__version__]


def test_both_distributions_have_one_version(repository: Path) -> None:
    assert project(repository / "autograder")["version"] == peakmem.__version__
    assert (
        project(repository / "autograder")["requires-python"]
        == (project(repository)["requires-python"])
    )


# The dependencies


def imported(folder: Path) -> set[str]:
    """Top-level modules that the sources in `folder` import, the standard library's left out."""
    names = set()
    for file in python_files(folder):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or "").partition(".")[0])
    return names - sys.stdlib_module_names


def undeclared(modules: set[str], declared: list[str]) -> set[str]:
    """Those of `modules` that no declared requirement installs."""
    distributions = importlib.metadata.packages_distributions()
    names = {canonicalize_name(Requirement(line).name) for line in declared}
    return {
        module
        for module in modules
        if names.isdisjoint(map(canonicalize_name, distributions.get(module, [])))
    }


def test_what_is_imported_is_declared(repository: Path) -> None:
    library, tools = project(repository), project(repository / "autograder")
    ours = {"peakmem", "autograder"}
    # Packages for still pages, clusters or benchmarks alone belong to an extra.
    pages = library["optional-dependencies"]["lecture"]
    known = [*library["dependencies"], *pages]
    assert undeclared(imported(repository / "src") - ours, known) == set()
    extras = [line for lines in tools["optional-dependencies"].values() for line in lines]
    known = [*tools["dependencies"], *extras]
    assert undeclared(imported(repository / "autograder") - ours, known) == set()


def test_an_undeclared_import_is_found(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("import numpy.typing, os\ndef f():\n    import yaml\n")
    assert undeclared(imported(tmp_path), ["numpy>=2"]) == {"yaml"}
    assert undeclared(imported(tmp_path), ["numpy>=2", "PyYAML"]) == set()


# The versions


def unmet(pinned: Iterable[Requirement]) -> list[str]:
    """Pins whose distribution is installed in another version."""
    found = []
    # Only what is installed: setuptools brings copies of its own onto the path.
    places = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    for pin in pinned:
        for there in importlib.metadata.distributions(name=pin.name, path=places):
            if Version(there.version) not in pin.specifier:
                found.append(f"{pin} but {there.version} is installed")
    return found


def needed(roots: list[Requirement]) -> Iterator[Requirement]:
    """The requirements of `roots` on this system, and theirs in turn."""
    seen: set[str] = set()
    waiting = [(root, "") for root in roots]
    while waiting:
        requirement, extra = waiting.pop()
        key = f"{canonicalize_name(requirement.name)}{sorted(requirement.extras)}"
        if key in seen or (
            requirement.marker and not requirement.marker.evaluate({"extra": extra})
        ):
            continue
        seen.add(key)
        yield requirement
        for line in importlib.metadata.requires(requirement.name) or []:
            waiting += [(Requirement(line), extra) for extra in ("", *requirement.extras)]


def not_pinned(roots: list[Requirement], pinned: dict[str, Requirement]) -> set[str]:
    # A requirement for one exact version is a pin. CUDA's libraries come with torch's build for
    # GPUs, which says which ones it works with.
    open_to_choice = {
        canonicalize_name(r.name) for r in needed(roots) if not str(r.specifier).startswith("==")
    }
    cuda = {name for name in open_to_choice if name.startswith(("nvidia-", "cuda-"))}
    return open_to_choice - cuda - pinned.keys() - OURS


def test_installed_versions_are_the_pinned_ones(repository: Path) -> None:
    assert unmet(pins(repository / "constraints.txt").values()) == []


def test_another_version_is_found() -> None:
    here = importlib.metadata.version("pytest")
    pinned = [Requirement("pytest==1.0"), Requirement(f"pytest=={here}"), Requirement("absent==1")]
    assert unmet(pinned) == [f"pytest==1.0 but {here} is installed"]


def test_direct_dependencies_are_pinned_within_their_ranges(repository: Path) -> None:
    pinned = pins(repository / "constraints.txt")
    direct = [*requirements(repository), *requirements(repository / "autograder")]
    for requirement in (r for r in direct if r.name not in OURS):
        ((comparison, version),) = (
            (clause.operator, clause.version)
            for clause in pinned[canonicalize_name(requirement.name)].specifier
        )
        assert comparison == "=="
        assert version in requirement.specifier, f"{requirement} but {version} is pinned"


@pytest.mark.skipif(sys.platform != "linux", reason="the pins are those of Linux")
def test_all_that_comes_with_them_is_pinned(repository: Path) -> None:
    direct = [*requirements(repository), *requirements(repository / "autograder")]
    roots = [requirement for requirement in direct if requirement.name not in OURS]
    pinned = pins(repository / "constraints.txt")
    assert not_pinned(roots, pinned) == set()
    del pinned["tornado"]  # comes with JupyterLab, several steps down
    assert not_pinned(roots, pinned) == {"tornado"}


def test_no_package_host_is_named(repository: Path) -> None:
    installs = ["constraints.txt", "pyproject.toml", "autograder/pyproject.toml", "course.py"]
    for path in [*map(repository.joinpath, installs), *repository.rglob("autograder/**/*.sh")]:
        text = path.read_text("utf-8")
        assert not re.search(r"https?://|index-url|find-links|ppa:", text), path.name


# conda


CONDA_NAMES = {"torch": "pytorch"}  # where conda-forge's differs from PyPI's


def test_environment_yml_has_the_ranges_of_pyproject(repository: Path) -> None:
    environment = yaml.safe_load((repository / "environment.yml").read_text("utf-8"))
    *conda, last = environment["dependencies"]
    table = project(repository)
    wanted = [*table["dependencies"], *table["optional-dependencies"]["lab"]]
    wanted.append(f"python{table['requires-python']}")
    expected = {
        CONDA_NAMES.get(requirement.name, requirement.name): requirement.specifier
        for requirement in map(Requirement, wanted)
    }
    *from_pip, itself = last["pip"]
    named = [Requirement(line) for line in [*conda, *from_pip] if line != "pip"]
    assert {requirement.name: requirement.specifier for requirement in named} == expected
    assert itself == "-e .[lab]"
    assert "pip" in conda
    assert environment["channels"][0] == "conda-forge"


# The command


def test_autograder_is_a_command_and_a_module(repository: Path) -> None:
    scripts = project(repository / "autograder")["scripts"]
    assert scripts == {"autograder": "autograder.cli.app:main"}
    done = subprocess.run(
        [sys.executable, "-m", "autograder", "--help"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "grade" in done.stdout


# What ruff checks


@pytest.mark.parametrize(("option", "is_checked"), [("", False), ("--no-force-exclude", True)])
def test_ruff_leaves_an_answer_alone_even_if_it_is_named(
    repository: Path, option: str, is_checked: bool
) -> None:
    """As pre-commit names each changed file."""
    command = [sys.executable, "-m", "ruff", "check", "--show-files", *option.split()]
    named = repository / "bank/lab01_formats/careful_sum.py"
    done = subprocess.run(
        [*command, named], cwd=repository, capture_output=True, text=True, check=True
    )
    assert (str(named) in done.stdout) == is_checked
