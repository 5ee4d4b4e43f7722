"""A container as Gradescope starts them, in what matters to the grader.

Real root and real other users, Docker's default capabilities and no more, namespaces and mounts
refused by a filter of system calls, no network, its own processes, a writable /tmp and /dev/shm.
What it installs comes from where the tests' own packages lie.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from autograder.authoring.build import build
from autograder.base.course import Course
from tests.grading import REPOSITORY, course_copy

__all__ = ["Container", "course_to_zip", "why_not"]

# The capabilities that Docker leaves root in a container, as its documentation lists them.
_CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID"),
    *("SETFCAP", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"),
)
# mount, umount2, unshare, setns, pivot_root, fsopen, open_tree, move_mount on x86-64.
_NO_MOUNTS = (165, 166, 272, 308, 155, 430, 428, 429)
_CLONE, _CLONE3, _NEW_NAMESPACES = 56, 435, 0x7E020000
_PACKAGES = "/image/site-packages"
# Test tools that a lab hides, and that no course image contains.
_NOT_THERE = ("gfloat", "ml_dtypes", "checkpoint_schedules")


def course_to_zip(folder: Path, lab: str, secret: str) -> Path:
    """A course with this secret and all parts of a zip, its lab freshly built."""
    course = course_copy(folder / "course")
    for name in ("nbgrader_config.py", "constraints.txt", "pyproject.toml", "LICENSE"):
        (course / name).symlink_to(REPOSITORY / name)
    for package in ("autograder", "src"):
        (course / package).symlink_to(REPOSITORY / package)
    build(Course(course), [lab])
    (course / ".course_secret").write_text(secret)
    return course


def why_not() -> str:
    """Why such a container can't run here; empty if it can."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return "the container is one of Linux on x86-64"
    if os.getuid() != 0:
        return "a container of Gradescope has a real root, and this is none"
    return ""


@dataclass
class Container:
    """One built image below `folder`, its own; `run` starts a container of it."""

    folder: Path
    capabilities: tuple[str, ...] = _CAPABILITIES
    privileged: bool = False  # as `docker run --privileged`

    @property
    def autograder(self) -> Path:
        return self.folder / "autograder"

    def build(self, archive: Path) -> subprocess.CompletedProcess[str]:
        """Unpack the zip and run its setup.sh, as Gradescope does when the image is built."""
        for name in ("source", "submission", "results"):
            (self.autograder / name).mkdir(parents=True)
        with ZipFile(archive) as packed:
            packed.extractall(self.autograder / "source")
        offline = {"PIP_NO_INDEX": "1", "PYTHONPATH": _PACKAGES}
        done = self._run(["bash", "/autograder/source/setup.sh"], offline)
        script = self.autograder / "source/run_autograder"
        target = self.autograder / "run_autograder"
        target.write_bytes(script.read_bytes())
        target.chmod(0o755)
        return done

    def run(
        self, files: Mapping[str, bytes], metadata: Mapping[str, Any] | None = None, after: str = ""
    ) -> tuple[dict[str, Any], str]:
        """Start a container on a submission; return its results.json and what it printed.

        `after` is a shell command that runs in the container when run_autograder has ended.
        """
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            fresh = Path(name)
            for place in ("submission", "results"):
                (fresh / place).mkdir()
            for file, data in files.items():
                (fresh / "submission" / file).parent.mkdir(parents=True, exist_ok=True)
                (fresh / "submission" / file).write_bytes(data)
            binds = []
            for place in ("submission", "results"):
                binds += ["--bind", str(fresh / place), f"/autograder/{place}"]
            if metadata is not None:
                (fresh / "metadata.json").write_text(json.dumps(metadata))
                binds += ["--bind", str(fresh / "metadata.json")]
                binds += ["/autograder/submission_metadata.json"]
            command = ["bash", "-c", f"/autograder/run_autograder; {after or 'true'}"]
            done = self._run(command, {}, binds)
            results = fresh / "results/results.json"
            said = done.stdout + done.stderr
            assert results.exists(), said
            return json.loads(results.read_bytes()), said

    def python(self, source: str, *arguments: str, binds: Sequence[str] = ()) -> str:
        """Start a container, run Python code in it as the grader, and return what it printed."""
        command = ["/autograder/venv/bin/python", "-s", "-P", "-c", source, *arguments]
        environment = {"PYTHONPATH": "/autograder/grader", "OMP_NUM_THREADS": "1"}
        done = self._run(command, environment, binds)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        binds: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[str]:
        if self.privileged:  # bubblewrap's own /proc is covered in part, as Docker's then is not
            command = ["bash", "-c", 'mount -t proc proc /proc && exec "$@"', "-", *command]
        with tempfile.TemporaryFile() as filter_:
            filter_.write(_refuse_namespaces())
            filter_.seek(0)
            return subprocess.run(
                [
                    *("bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
                    "--die-with-parent",
                    *self._privileges(filter_.fileno()),
                    *_image(),
                    *("--bind", str(self.autograder), "/autograder", *self._packages(), *binds),
                    *("--chdir", "/autograder", *command),
                ],
                env={"PATH": f"{sys.base_prefix}/bin:/usr/bin:/bin", **environment},
                pass_fds=[filter_.fileno()],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=1200,
                check=False,
            )

    def _packages(self) -> list[str]:
        """The packages in the image, once its virtual environment has been made."""
        found = self.autograder.glob("venv/lib/python3*/site-packages")
        return [word for path in found for word in _shown(f"/{path.relative_to(self.folder)}")]

    def _privileges(self, filter_: int) -> list[str]:
        if self.privileged:
            return ["--cap-add", "ALL"]
        added = (word for name in self.capabilities for word in ("--cap-add", f"CAP_{name}"))
        return ["--seccomp", str(filter_), "--cap-drop", "ALL", *added]


def _image() -> list[str]:
    """Binds that make a file system of /usr, this Python and its packages."""
    words = ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
    for folder in map(Path, ("/bin", "/sbin", "/lib", "/lib64")):
        words += ["--symlink", str(folder.readlink()), str(folder)]
    for place in ("/tmp", "/var/tmp", "/dev/shm"):
        words += ["--perms", "1777", "--tmpfs", place]
    for place in ("/etc/ld.so.cache", "/etc/passwd", "/etc/alternatives"):
        words += ["--ro-bind", place, place]
    base = Path(sys.base_prefix).resolve()
    for parent in reversed(base.parents):
        if str(parent) != "/" and not base.is_relative_to("/usr"):
            words += ["--perms", "0755", "--dir", str(parent)]
    if not base.is_relative_to("/usr"):
        words += ["--ro-bind", str(base), str(base)]
    words += ["--perms", "0755", "--dir", "/image"]
    return [*words, *_shown(_PACKAGES)]


def _shown(place: str) -> list[str]:
    """Binds of the tests' own packages to this place, without those that no image has."""
    packages = Path(sysconfig.get_path("platlib"))
    hidden = [name for name in _NOT_THERE if (packages / name).is_dir()]
    words = ["--ro-bind", str(packages), place]
    return [*words, *(word for name in hidden for word in ("--tmpfs", f"{place}/{name}"))]


def _refuse_namespaces() -> bytes:
    """A filter as Docker's for a container without CAP_SYS_ADMIN: EPERM, and ENOSYS for clone3."""
    load, equal, any_bit, ret = 0x20, 0x15, 0x45, 0x06
    eperm, enosys, allow = 0x00050001, 0x00050026, 0x7FFF0000
    steps = [(load, 0, 0, 0)]
    for number in _NO_MOUNTS:
        steps += [(equal, 0, 1, number), (ret, 0, 0, eperm)]
    steps += [(equal, 0, 1, _CLONE3), (ret, 0, 0, enosys)]
    steps += [(equal, 0, 3, _CLONE), (load, 0, 0, 16)]
    steps += [(any_bit, 0, 1, _NEW_NAMESPACES), (ret, 0, 0, eperm), (ret, 0, 0, allow)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)
