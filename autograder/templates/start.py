#!/usr/bin/env python3
"""Open the labs: python3 start.py [LAB], with an option of JupyterLab's after it, if you like.

It needs nothing but Python, on Linux, macOS and Windows. The first start makes a virtual
environment, .venv, beside this file and installs the course in it; later ones start at once.
Your notebooks are in my-labs, and nothing here ever overwrites one.
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

# JupyterLab would ask each student for news, and offer versions that the course was not tried with.
LAB_SETTINGS = """{
  "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}
}
"""


class Stop(Exception):
    """A sentence that tells the person what is wrong and what to do about it."""


def main(arguments: list[str], folder: Path) -> int:
    """Set up what is missing, copy what is new, open JupyterLab; 2 where the student has to act."""
    try:
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
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        return 130


def require_python(version: tuple[int, ...]) -> None:
    """Stop unless the labs run on this version of Python."""
    if not OLDEST <= version <= NEWEST:
        newest, oldest, this = ("{}.{}".format(*v) for v in (NEWEST, OLDEST, version))
        command = f"py -{newest}" if os.name == "nt" else f"python{newest}"
        raise Stop(
            f"The labs run on Python {oldest} to {newest}, and this is {this}. "
            f"Install Python {newest} and start again with it: {command} start.py"
        )


def set_up(folder: Path) -> Path:
    """Return a Python that has the course: this one, or else that of .venv, made if needed."""
    if all(map(importlib.util.find_spec, ("peakmem", "jupyterlab"))):  # conda's, say
        return Path(sys.executable)
    venv = folder / ".venv"
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp, wanted = venv / "course-setup.txt", fingerprint(folder)
    if python.exists() and stamp.is_file() and stamp.read_text(encoding="ascii") == wanted:
        return python
    print("Setting up .venv: once, for some minutes.", flush=True)
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        package = "python{}.{}-venv".format(*sys.version_info)
        raise Stop(
            "This Python has no venv module. Install it "
            f"(Debian, Ubuntu: sudo apt-get install {package}) or use Python from python.org."
        )
    stamp.unlink(missing_ok=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    steps = [[sys.executable, "-m", "venv", str(venv)]]
    if python.exists():  # pip would keep a library of the same version, however old it is
        steps.append([*pip, "uninstall", "--quiet", "--yes", "peakmem"])
    steps.append([*pip, "install", "-r", REQUIREMENTS])
    for step in steps:
        if subprocess.call(step, cwd=folder) != 0:
            raise Stop(
                "The setup failed; the lines above say why. "
                "The same command tries again and keeps what is already there."
            )
    stamp.write_text(wanted, encoding="ascii")
    return python


def fingerprint(folder: Path) -> str:
    """A hash of all that decides what .venv holds; the folder too, as a venv cannot move."""
    digest = hashlib.sha256(f"{sys.version}\n{folder}".encode())
    for path in [folder / REQUIREMENTS, folder / "constraints.txt", *sorted(folder.glob("*.whl"))]:
        digest.update(b"\0" + path.read_bytes())
    return digest.hexdigest()


def find_lab(folder: Path, name: str) -> str:
    """The lab of this name, or of this beginning (`lab01`); Stop, with the names, for others."""
    labs = sorted(path.name for path in (folder / "released").glob("lab*"))
    found = [lab for lab in labs if name in (lab, lab.partition("_")[0])]
    if not found:
        raise Stop(f"There is no lab named {name}; the labs are {', '.join(labs)}.")
    return found[0]


def open_lab(folder: Path, python: Path, lab: str, options: list[str]) -> int:
    """Open JupyterLab in the student's own folder, at this lab if one is named."""
    released, own = folder / "released", folder / "my-labs"
    copy_new_files(released, own)
    print(f"Your notebooks are in {own}; they are yours, and nothing here overwrites them.")
    for name in sorted(path.name for path in released.glob("lab*")):
        path = Path(name, f"{name}.ipynb")
        if release_of(own / path) != release_of(released / path):
            print(f"{name}: there is a newer release in {released / path}; yours stays as it is.")
    settings = folder / ".jupyter-settings"
    settings.mkdir(exist_ok=True)
    (settings / "overrides.json").write_text(LAB_SETTINGS, encoding="ascii")
    page = f"/lab/tree/{lab}/{lab}.ipynb" if lab else "/lab"
    given = [f"--ServerApp.root_dir={own}", f"--LabApp.default_url={page}"]
    given += [f"--LabApp.app_settings_dir={settings}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        given.append("--ServerApp.allow_root=True")  # containers have no other user
    return run([str(python), "-m", "jupyter", "lab", *given, *options], own)


def copy_new_files(released: Path, own: Path) -> None:
    """Copy what `own` does not have yet from `released`; leave every file that is there alone."""
    for source in sorted(path for path in released.rglob("*") if path.is_file()):
        target = own / source.relative_to(released)
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        # Copied under another name first: a copy cut short is not taken for the student's file.
        partial = target.with_name(target.name + ".part")
        shutil.copyfile(source, partial)
        partial.rename(target)


def release_of(notebook: Path) -> str:
    """The release that a notebook says it comes from, or "" if it says none."""
    try:
        metadata = json.loads(notebook.read_text(encoding="utf-8"))["metadata"]
        return str(metadata["peakmem"]["release"])
    except (ValueError, KeyError, TypeError, OSError):  # cleared by another editor, say
        return ""


def run(command: list[str], folder: Path) -> int:
    """Run a program to its end; return its exit status.

    Ctrl-C goes to the program too, which decides what it means (JupyterLab asks back).
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
