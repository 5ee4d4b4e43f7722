#!/usr/bin/env python3
"""The entry point of the course: python3 course.py COMMAND. Without a command it lists all.

It needs only Python, on Linux, macOS and Windows. The first command makes a virtual
environment, .venv, beside this file and installs the course in it; later ones start immediately.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable, List, NamedTuple

OLDEST, NEWEST = (3, 11), (3, 13)
DECIDES_SETUP = ("pyproject.toml", "autograder/pyproject.toml", "constraints.txt")


class Stop(Exception):
    """An error message for the user: what is wrong, and what to do."""


class SystemPackage(NamedTuple):
    """A program that pip can't install: its possible names, Debian package and purpose."""

    programs: tuple[str, ...]
    package: str
    purpose: str


BUBBLEWRAP = SystemPackage(("bwrap",), "bubblewrap", "runs students' code in a sandbox")
CHROMIUM = SystemPackage(
    ("chromium", "chromium-browser", "google-chrome"), "chromium", "opens labs in the tests"
)

# Otherwise JupyterLab asks each student about news, and offers versions untested with the course.
LAB_SETTINGS = """{
  "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}
}
"""

# nbgrader brings its Validate button and, for instructors, these panels and their menu.
PAGE_SETTINGS = """{
  "disabledExtensions": {
    "@jupyter/nbgrader:assignment-list": true,
    "@jupyter/nbgrader:course-list": true,
    "@jupyter/nbgrader:create-assignment": true,
    "@jupyter/nbgrader:formgrader": true,
    "@jupyter/nbgrader:menu": true
  }
}
"""

# These draw calculators on a page. Other extensions are slow and fail outside JupyterLab.
WIDGET_MANAGERS = ("@voila-dashboards/widgets-manager8", "@jupyter-widgets/jupyterlab-manager")

PATIENCE = 600  # seconds for a lecture's kernel and its outputs

Run = Callable[[List[str], Path], int]  # (arguments, folder) -> exit status


def run_program(arguments: list[str], folder: Path) -> int:
    """Run a program to its end and return its exit status as a shell would.

    The terminal sends Ctrl-C to the program, too, which decides what to do (JupyterLab asks for
    confirmation). If the program ends because of it, or this process gets SIGTERM, exit as well.
    """
    sys.stdout.flush()
    received: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: received.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        program = subprocess.Popen(arguments, cwd=folder)

        def stop(number: int, _: object) -> None:
            received.append(number)
            program.terminate()

        signal.signal(signal.SIGTERM, stop)
        if signal.SIGTERM in received:  # it arrived while the program was starting
            program.terminate()
        status = program.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    status = status if status >= 0 else 128 - status
    if signal.SIGTERM in received or (received and status != 0):
        sys.exit(128 + received[-1])
    return status


class Course:
    """This folder, its virtual environment, and how to run programs in it."""

    def __init__(self, root: Path, run: Run = run_program) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.stamp = self.venv / "course-setup.txt"
        self.log = self.venv / "setup.log"
        self.run = run

    @property
    def python(self) -> Path:
        """The virtual environment's Python."""
        windows = os.name == "nt"
        return self.venv / ("Scripts/python.exe" if windows else "bin/python")

    def module(self, name: str, *arguments: str, folder: Path | None = None) -> int:
        """Run `python -m name arguments` in the virtual environment and return its exit status."""
        # If another one is active in the user's terminal, IPython would warn of it in each kernel.
        os.environ["VIRTUAL_ENV"] = str(self.venv)
        # Many containers set this. Without saved bytecode, each process would compile the course.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        return self.run([str(self.python), "-m", name, *arguments], folder or self.root)

    def set_up(self, *, test_tools: bool = False) -> None:
        """Install the course in .venv unless it is up to date. Raises Stop on failure."""
        if self.is_set_up(test_tools):
            return
        print("Setting up .venv. This takes a few minutes, once.")
        self._require_venv_module()
        self.stamp.unlink(missing_ok=True)
        doing = (
            "creating the environment",
            "installing pip",
            "installing the course's packages",
            "compiling the course",
        )
        for step, arguments in zip(doing, self.setup_steps(test_tools), strict=True):
            print(f"- {step}")
            if self.run(arguments, self.root) != 0:
                raise Stop(
                    f"The setup failed; see the lines above and {self.log}. "
                    "Run the same command to try again; it keeps what is already installed."
                )
        tools = " test" if test_tools else ""
        self.stamp.write_text(self.fingerprint() + tools, encoding="ascii")

    def is_set_up(self, test_tools: bool) -> bool:
        """Whether .venv matches the files in this folder."""
        if not (self.stamp.is_file() and self.python.exists()):
            return False
        fingerprint, *tools = self.stamp.read_text(encoding="ascii").split()
        return fingerprint == self.fingerprint() and (not test_tools or tools == ["test"])

    def fingerprint(self) -> str:
        """A hash of everything .venv depends on, including the folder: a venv can't be moved."""
        import hashlib

        digest = hashlib.sha256(f"{sys.version}\n{self.root}".encode())
        for name in DECIDES_SETUP:
            digest.update(b"\0" + (self.root / name).read_bytes())
        return digest.hexdigest()

    def setup_steps(self, test_tools: bool) -> list[list[str]]:
        """The commands that create .venv and install the course in it."""
        # pip and setuptools come first, so that they too have the versions in constraints.txt.
        # Setuptools warns of every editable installation, and pip repeats it even if quiet.
        pip = [str(self.python), "-W", "ignore::UserWarning", "-m", "pip"]
        install = [*pip, "install", "--disable-pip-version-check"]
        install += ["-c", "constraints.txt", "--quiet", "--log", str(self.log)]
        autograder = "./autograder[test]" if test_tools else "./autograder"
        return [
            [sys.executable, "-m", "venv", *self._clear(), str(self.venv)],
            [*install, "pip", "setuptools"],
            [*install, "--no-build-isolation", "-e", ".[lab,lecture]", "-e", autograder],
            # The sandbox can't write: it would compile these again for each run of the grader.
            [str(self.python), "-m", "compileall", "-q", "src", "autograder"],
        ]

    def _clear(self) -> list[str]:
        """`--clear` if .venv belongs to another version of Python."""
        settings = self.venv / "pyvenv.cfg"
        if not settings.is_file():
            return []
        version = ".".join(map(str, sys.version_info[:2])) + "."
        lines = [line.partition("=") for line in settings.read_text(encoding="utf-8").splitlines()]
        made_with = [value.strip() for key, _, value in lines if key.startswith("version")]
        return [] if any(made.startswith(version) for made in made_with) else ["--clear"]

    def _require_venv_module(self) -> None:
        if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
            return
        package = "python{}.{}-venv".format(*sys.version_info)
        if can_apt_get() and sys.base_prefix == "/usr" and self.apt_get(package):
            return
        raise Stop(
            "This Python has no venv module. Install it "
            f"(Debian, Ubuntu: sudo apt-get install {package}) or use Python from python.org."
        )

    def apt_get(self, package: str) -> bool:
        """Install a Debian package; return whether it succeeded."""
        print(f"- installing {package}")
        # Only errors are shown; apt-get keeps its own logs.
        quietly = ["env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", 'exec "$@" >/dev/null', "-"]
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
        update = ["apt-get", "update", "-qq"]
        return all(self.run([*quietly, *step], self.root) == 0 for step in (update, install))

    def missing(self, wanted: SystemPackage) -> str:
        """Install `wanted` if possible; return "" or a sentence that says how to install it."""
        if any(map(shutil.which, wanted.programs)):
            return ""
        if can_apt_get() and self.apt_get(wanted.package):
            return ""
        if sys.platform != "linux" and wanted is BUBBLEWRAP:
            remedy = "it exists only on Linux: use a Linux machine, a container or WSL"
        else:
            remedy = f"install it (Debian, Ubuntu: sudo apt-get install {wanted.package})"
        return f"{wanted.package}, which {wanted.purpose}, is missing; {remedy}."

    def require(self, wanted: SystemPackage) -> None:
        """Raise Stop if `wanted` is missing and can't be installed."""
        problem = self.missing(wanted)
        if problem:
            raise Stop(problem)

    def released_labs(self) -> list[str]:
        """Names of the released labs, in order."""
        return sorted(path.name for path in (self.root / "labs").glob("lab*") if path.is_dir())


def can_apt_get() -> bool:
    """Whether this is root on Debian, Ubuntu or a derivative."""
    return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get") is not None


def lab(course: Course, arguments: list[str]) -> int:
    """Open a lab in JupyterLab, in a copy that no command overwrites."""
    named = bool(arguments) and not arguments[0].startswith("-")
    chosen = [find_lab(course, arguments[0])] if named else course.released_labs()
    course.set_up()
    work = course.root / "work"
    for name in chosen:
        copy_new_files(course.root / "labs" / name, work / name)
    print(f"Your notebooks are in {work}. No command overwrites them.")
    first = min((work / chosen[0]).glob("*.ipynb"), default=None) if named else None
    page = f"/lab/tree/{first.relative_to(work).as_posix()}" if first else "/lab"
    settings = course.venv / "lab-settings"
    settings.mkdir(exist_ok=True)
    (settings / "overrides.json").write_text(LAB_SETTINGS, encoding="ascii")
    (settings / "page_config.json").write_text(PAGE_SETTINGS, encoding="ascii")
    options = [f"--ServerApp.root_dir={work}", f"--LabApp.default_url={page}"]
    options += [f"--LabApp.app_settings_dir={settings}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--ServerApp.allow_root=True")  # containers have no other user
    return course.module("jupyter", "lab", *options, *arguments[named:], folder=work)


def lecture(course: Course, arguments: list[str]) -> int:
    """Show a lecture in the browser; --html FILE writes a static page."""
    named = bool(arguments) and not arguments[0].startswith("-")
    lectures = sorted((course.root / "lectures").glob("lecture*.ipynb"))
    page = find_lecture(lectures, arguments[0]) if named else lectures[0]
    options = arguments[named:]
    if "--html" in options:
        if not named or len(options) != 2 or options[0] != "--html":
            raise Stop(
                "--html needs a lecture and a file: python3 course.py lecture NAME --html FILE"
            )
        course.set_up()
        return course.module(
            "peakmem.show.widgets.still_page", str(page), str(Path(options[1]).resolve())
        )
    if not named:
        print(f"This is {page.stem}. The lectures are {', '.join(one.stem for one in lectures)}.")
    course.set_up()
    os.environ["JUPYTER_PATH"] = str(page.parent / "share")  # our template
    return course.module("voila", *voila_arguments(page), *options)


def voila_arguments(page: Path) -> list[str]:
    """Voila's arguments for a lecture: without the network, and run before the page opens."""
    settings = [str(page), "--template=lecture", "--preheat_kernel=True", "--pool_size=1"]
    # On a busy machine, a calculator may take longer than the usual 4 s, and would be left out.
    settings += [f"--VoilaExecutor.{wait}_timeout={PATIENCE}" for wait in ("iopub", "startup")]
    return settings + [f"--VoilaConfiguration.extension_allowlist={n}" for n in WIDGET_MANAGERS]


def find_lecture(lectures: list[Path], name: str) -> Path:
    """The lecture with this name or beginning (`lecture1`). Raises Stop if unknown."""
    for path in lectures:
        if name in (path.stem, path.stem.partition("_")[0]):
            return path
    names = ", ".join(path.stem for path in lectures)
    raise Stop(f"There is no lecture named {name}. The lectures are {names}.")


def find_lab(course: Course, name: str) -> str:
    """The lab with this name or beginning (`lab01`). Raises Stop, listing the labs, if unknown."""
    labs = course.released_labs()
    found = [lab for lab in labs if name in (lab, lab.partition("_")[0])]
    if not found:
        raise Stop(f"There is no lab named {name}. The labs are {', '.join(labs)}.")
    return found[0]


def copy_new_files(released: Path, own: Path) -> None:
    """Copy files that `own` lacks from `released`; never overwrite a file."""
    for source in sorted(path for path in released.rglob("*") if path.is_file()):
        target = own / source.relative_to(released)
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        # Copied under another name first, so that an interrupted copy doesn't look complete.
        partial = target.with_name(target.name + ".part")
        shutil.copyfile(source, partial)
        partial.rename(target)


def grade(course: Course, arguments: list[str]) -> int:
    """Grade a class of 24 with known scores in the sandbox, and compare."""
    course.require(BUBBLEWRAP)
    course.set_up()
    out = str(course.root / "graded")
    return course.module("autograder", "demo", "--students", "24", "--out", out, *arguments)


BENCHES = {
    "accuracy": "benchmarks.accuracy",
    "budgets": "benchmarks.budgets",
    "calculators": "benchmarks.calculators",
    "class": "benchmarks.one_class",
    "grader": "benchmarks.grader",
    "hostile": "benchmarks.hostile_class",
    "meter": "benchmarks.meter_cost",
    "mixes": "benchmarks.mixes",
    "modules": "benchmarks.modules",
    "others": "benchmarks.others",
    "quantization": "benchmarks.quantization",
    "shards": "benchmarks.shards",
    "thousand": "benchmarks.thousand",
    "verdicts": "benchmarks.verdicts",
}
GRADING = (
    "budgets",
    "class",
    "grader",
    "hostile",
    "mixes",
    "thousand",
    "verdicts",
)  # these run the sandbox and don't need transformers


def bench(course: Course, arguments: list[str]) -> int:
    """Measure the predictions, the grader, the meter and the calculators."""
    named = bool(arguments) and not arguments[0].startswith("-")
    if named and arguments[0] not in BENCHES:
        raise Stop(f"There is no bench named {arguments[0]}. The benches are {', '.join(BENCHES)}.")
    if arguments and not named:
        raise Stop(f"Name the bench that {arguments[0]} is for: {', '.join(BENCHES)}.")
    chosen = arguments[:1] or list(BENCHES)
    if set(GRADING) & set(chosen):
        course.require(BUBBLEWRAP)
    course.set_up(test_tools=chosen[0] not in GRADING)  # which include transformers
    return max([course.module(BENCHES[name], *arguments[1:]) for name in chosen])


def gpu(course: Course, arguments: list[str]) -> int:
    """Run tests and measurements on a CUDA GPU, with this Python, not .venv."""
    missing = [name for name in GPU_NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        raise Stop(
            f"This Python lacks {', '.join(missing)}. Use a Python that has "
            f"{', '.join(GPU_NEEDS)}: PYTHON course.py gpu"
        )
    paths = [str(course.root / "src"), str(course.root), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return course.run([sys.executable, "-m", "benchmarks.gpu", *arguments], course.root)


GPU_NEEDS = ("torch", "numpy", "matplotlib", "pytest", "transformers")


def build(course: Course, arguments: list[str]) -> int:
    """Build the notebooks in solutions/ and labs/ from their sources."""
    course.set_up()
    return course.module("autograder", "build", *arguments)


def test(course: Course, arguments: list[str]) -> int:
    """Run all checks and the quick tests; --all adds the slow tests."""
    problems = [course.missing(BUBBLEWRAP), course.missing(CHROMIUM)]
    course.set_up(test_tools=True)
    which = [] if "--all" in arguments else ["-m", "not slow"]
    chosen = [argument for argument in arguments if argument != "--all"]
    # One more than the number of processors: many tests wait for their own processes.
    at_once = ["-n", str(1 + min(8, os.cpu_count() or 1)), "--dist", "worksteal"]
    checks = {
        "style": ["ruff", "check", "."],
        "format": ["ruff", "format", "--check", "."],
        "types": ["mypy"],
        "built notebooks": ["autograder", "build", "--check"],
        "tests": ["pytest", *at_once, *which, *chosen],
    }
    failed = []
    for name, check in checks.items():
        print(f"--- {name}: {' '.join(check)}")
        if course.module(*check) != 0:
            failed.append(name)
    for problem in filter(None, problems):
        print(f"Some tests were skipped: {problem}")
    print(f"FAILED: {', '.join(failed)}" if failed else "All passed.")
    return 1 if failed else 0


COMMANDS: dict[str, Callable[[Course, list[str]], int]] = {
    "lab": lab,
    "lecture": lecture,
    "grade": grade,
    "test": test,
    "build": build,
    "bench": bench,
    "gpu": gpu,
}


def usage() -> str:
    """The list of commands, each with its function's docstring."""
    lines = [f"  {name:8}{command.__doc__}" for name, command in COMMANDS.items()]
    return "\n".join(["usage: python3 course.py COMMAND [options]", "", *lines])


def main(arguments: list[str], course: Course) -> int:
    """Run one command and return its exit status; 2 if the user must fix something first."""
    try:
        require_python(sys.version_info[:2])
        if arguments[:1] in (["-h"], ["--help"]):
            print(usage())
            return 0
        if not arguments or arguments[0] not in COMMANDS:
            print(usage(), file=sys.stderr)
            if arguments:
                print(f"There is no command {arguments[0]!r}; see the list above.", file=sys.stderr)
            return 2
        return COMMANDS[arguments[0]](course, arguments[1:])
    except Stop as stop:
        print(stop, file=sys.stderr)
        return 2


def require_python(version: tuple[int, ...]) -> None:
    """Raise Stop unless the course runs on this version of Python."""
    if not OLDEST <= version <= NEWEST:
        newest, oldest, this = ("{}.{}".format(*v) for v in (NEWEST, OLDEST, version))
        command = f"py -{newest}" if os.name == "nt" else f"python{newest}"
        raise Stop(
            f"This is Python {this}, but the course needs Python {oldest} to {newest}. "
            f"Install Python {newest} and run: {command} course.py"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Course(Path(__file__).resolve().parent)))
