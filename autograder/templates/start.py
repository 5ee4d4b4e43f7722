#!/usr/bin/env python3
"""Open the labs: python3 start.py [LAB] [options for JupyterLab].

Without LAB, JupyterLab opens your folder. `python3 start.py doctor` says what the labs need and
what is missing.

It needs only Python, on Linux, macOS and Windows. The first start makes a virtual
environment, .venv, beside this file and installs the course in it; later ones start immediately.
Your notebooks are in my-labs. This program never overwrites one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST, NEWEST = (3, 11), (3, 13)
REQUIREMENTS = "requirements.txt"
DOCTOR = "from peakmem.show.cli import main; raise SystemExit(main(['doctor']))"

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


class Stop(Exception):
    """An error message for the user: what is wrong, and what to do."""


def main(arguments: list[str], folder: Path) -> int:
    """Install the course, copy new labs and open JupyterLab; return 2 if the student must act."""
    try:
        if arguments in (["-h"], ["--help"]):
            print(__doc__.rstrip())
            return 0
        require_python(sys.version_info[:2])
        if arguments == ["doctor"]:
            return run([str(set_up(folder)), "-c", DOCTOR], folder)
        named = bool(arguments) and not arguments[0].startswith("-")
        lab = find_lab(folder, arguments[0]) if named else ""
        python = set_up(folder)
        return open_lab(folder, python, lab, arguments[named:])
    except Stop as stop:
        print(stop, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to continue.", file=sys.stderr)
        return 130


def require_python(version: tuple[int, ...]) -> None:
    """Raise Stop unless the labs run on this version of Python."""
    if not OLDEST <= version <= NEWEST:
        newest, oldest, this = ("{}.{}".format(*v) for v in (NEWEST, OLDEST, version))
        command = f"py -{newest}" if os.name == "nt" else f"python{newest}"
        raise Stop(
            f"This is Python {this}, but the labs need Python {oldest} to {newest}. "
            f"Install Python {newest} and run: {command} start.py"
        )


def set_up(folder: Path) -> Path:
    """Return a Python that has the course: this one or .venv's, created if needed."""
    if all(map(importlib.util.find_spec, ("peakmem", "jupyterlab"))):  # such as conda's
        return Path(sys.executable)
    venv = folder / ".venv"
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp, wanted = venv / "course-setup.txt", fingerprint(folder)
    if python.exists() and stamp.is_file() and stamp.read_text(encoding="ascii") == wanted:
        return python
    print("Setting up .venv. This takes a few minutes, once.", flush=True)
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        package = "python{}.{}-venv".format(*sys.version_info)
        raise Stop(
            "This Python has no venv module. Install it "
            f"(Debian, Ubuntu: sudo apt-get install {package}) or use Python from python.org."
        )
    stamp.unlink(missing_ok=True)
    log = venv / "setup.log"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    steps = {"creating the environment": [sys.executable, "-m", "venv", str(venv)]}
    if python.exists():  # pip would keep an older build of the same version
        steps["removing the last release"] = [*pip, "uninstall", "--yes", "peakmem"]
    installing = "installing JupyterLab, torch and the course; torch can take gigabytes"
    steps[installing] = [*pip, "install", "--log", str(log), "-r", REQUIREMENTS]
    for what, step in steps.items():
        print(f"- {what}", flush=True)
        if subprocess.call(step, cwd=folder) != 0:
            more = f", and {log}" if log.is_file() else ""
            raise Stop(
                f"The setup failed; see the lines above{more}. "
                "Run the same command to try again; it keeps what is already installed."
            )
    stamp.write_text(wanted, encoding="ascii")
    return python


def fingerprint(folder: Path) -> str:
    """A hash of everything .venv depends on, including the folder: a venv can't be moved."""
    digest = hashlib.sha256(f"{sys.version}\n{folder}".encode())
    for path in [folder / REQUIREMENTS, folder / "constraints.txt", *sorted(folder.glob("*.whl"))]:
        digest.update(b"\0" + path.read_bytes())
    return digest.hexdigest()


def find_lab(folder: Path, name: str) -> str:
    """The lab with this name or beginning (`lab01`). Raises Stop, listing the labs, if unknown."""
    labs = sorted(path.name for path in (folder / "released").glob("lab*"))
    found = [lab for lab in labs if name in (lab, lab.partition("_")[0])]
    if not found:
        raise Stop(f"There is no lab named {name} here; expected {', '.join(labs)}.")
    return found[0]


def open_lab(folder: Path, python: Path, lab: str, options: list[str]) -> int:
    """Open JupyterLab in the student's folder, at this lab if one is given."""
    released, own = folder / "released", folder / "my-labs"
    copy_new_files(released, own)
    print(f"Your notebooks are in {own}. This program never overwrites them.")
    for name in sorted(path.name for path in released.glob("lab*")):
        path = Path(name, f"{name}.ipynb")
        if release_of(own / path) != release_of(released / path):
            print(f"{name}: a newer release is in {released / path}. Your notebook stays as it is.")
    settings = folder / ".jupyter-settings"
    settings.mkdir(exist_ok=True)
    (settings / "overrides.json").write_text(LAB_SETTINGS, encoding="ascii")
    (settings / "page_config.json").write_text(PAGE_SETTINGS, encoding="ascii")
    page = f"/lab/tree/{lab}/{lab}.ipynb" if lab else "/lab"
    given = [f"--ServerApp.root_dir={own}", f"--LabApp.default_url={page}"]
    given += [f"--LabApp.app_settings_dir={settings}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        given.append("--ServerApp.allow_root=True")  # containers have no other user
    return run([str(python), "-m", "jupyter", "lab", *given, *options], own)


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


def release_of(notebook: Path) -> str:
    """The release in a notebook's metadata; "" if there is none."""
    try:
        metadata = json.loads(notebook.read_text(encoding="utf-8"))["metadata"]
        return str(metadata["peakmem"]["release"])
    except (ValueError, KeyError, TypeError, OSError):  # for example, cleared by another editor
        return ""


def run(command: list[str], folder: Path) -> int:
    """Run a program to its end and return its exit status.

    Ctrl-C also reaches the program, which decides what to do (JupyterLab asks for confirmation).
    """
    sys.stdout.flush()
    with subprocess.Popen(command, cwd=folder) as program:
        while True:
            try:
                return program.wait()
            except KeyboardInterrupt:
                continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parent))
