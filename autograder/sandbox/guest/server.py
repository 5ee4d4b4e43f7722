"""The process inside the sandbox: prepared once, then forked for each submission.

Started as `python -m autograder.sandbox.guest.server FD [--processor=N] [--bare] [--files=DIR]`. It
imports what labs need, and waits on the control socket FD. Each message there carries one end of a
socket pair; a fork of this process serves it: it shuts itself in namespaces of its own, or confines
itself to a user id of its own where a second descriptor comes along (`confine`), gives up every
privilege, and then runs the student's cells and probes as the messages ask. Nothing in this file is
secret, nothing in this process knows an expected value, and from the first student cell on nothing
here is trusted.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import pkgutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import peakmem
import peakmem.plots
import peakmem.probes
from autograder.sandbox.guest.namespaces import shut_in
from autograder.sandbox.guest.seccomp import refuse_links
from autograder.sandbox.guest.wire import WireError, receive, send
from peakmem.plain import PlainError
from peakmem.probes import call_probe, describe, is_refusal

__all__ = ["main"]


_libc = ctypes.CDLL(None)
_SMALL = 512  # bytes of the largest objects that Python packs together
_EACH = 2**18  # one object in each such piece keeps Python's arenas of 1 MiB from being given back
_ROOM = 4 * 2**20
_IDLE = 16 * 2**20  # bytes of the least mapping that is shut while memory is measured
_LEFT_OPEN = 8 * 2**20  # of each: numpy's products with 12,000 columns need no more
_NO_ACCESS, _READ_AND_WRITE = 0, 3


class TimeLimit(BaseException):
    """The cell or probe took too long. No `except Exception` of the student's stops it."""


def main() -> None:
    """Prepare, then fork a shell for every socket that arrives, until the control socket closes."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for word in sys.argv:
        if word.startswith("--processor="):
            os.sched_setaffinity(0, {int(word.removeprefix("--processor="))})
    bare = "--bare" in sys.argv
    shell, recorder = _prepare()
    gc.collect()
    gc.freeze()
    control.sendall(b"G" if _has_gpu() else b"C")
    while True:
        data, fds, _, _ = socket.recv_fds(control, 1, 2)
        if not data:
            return
        pid = os.fork()
        if pid == 0:
            control.close()
            _become_shell(fds, shell, recorder, bare)
        for fd in fds:
            os.close(fd)
        if not bare:
            os.waitpid(pid, 0)  # the fork that shut itself in; the shell is its child


def _prepare() -> tuple[Any, Any]:
    """Import and try out whatever every submission would otherwise wait for."""
    import matplotlib
    import torch

    from autograder.sandbox.guest.shell import make_shell

    matplotlib.use("module://matplotlib_inline.backend_inline")
    import matplotlib.pyplot

    # The first optimizer that steps makes torch import its compiler, which takes a second.
    parameter = torch.zeros(1, requires_grad=True)
    parameter.grad = torch.zeros(1)
    torch.optim.SGD([parameter], lr=0.1).step()
    # The matrix library keeps buffers from its first large product on, which no budget should pay.
    torch.mm(torch.ones(512, 512), torch.ones(512, 512))
    _import_library()
    _let_databases_do_without_locks()
    _idle[:] = _idle_mappings()
    return make_shell()


def _let_databases_do_without_locks() -> None:
    """Make SQLite's system without file locks, which the filter refuses, the one that it takes."""
    import _sqlite3

    sqlite = ctypes.CDLL(_sqlite3.__file__)  # finds the names of the library below it too
    with contextlib.suppress(AttributeError):  # one that Python was built with hides its names
        sqlite.sqlite3_vfs_find.restype = ctypes.c_void_p
        found = sqlite.sqlite3_vfs_find(b"unix-none")
        sqlite.sqlite3_vfs_register(ctypes.c_void_p(found), 1)


def _import_library() -> None:
    """Import what the first cells and the probes will; what holds a lab's answers refuses."""
    for package in (peakmem, peakmem.plots, peakmem.probes):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not module.ispkg:
                with contextlib.suppress(ImportError):
                    importlib.import_module(module.name)
    with contextlib.suppress(ImportError):
        importlib.import_module("tqdm.auto")  # the labs' bars of progress


def _has_gpu() -> bool:
    import torch

    # is_available() would start CUDA here, and no fork of this process could use it any more.
    return bool(torch.cuda.device_count())


def _become_shell(fds: Sequence[int], shell: Any, recorder: Any, bare: bool) -> None:
    """Serve one submission and never return."""
    connection = socket.socket(fileno=fds[0])
    try:
        if bare:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        elif len(fds) > 1:
            from autograder.sandbox.guest.uid import confine  # not in the sandbox of namespaces

            confine(receive(connection), connection, socket.socket(fileno=fds[1]))
        else:
            limits = receive(connection)
            shut_in(limits)  # returns in a process that is process 1 of its own namespace
        for word in sys.argv:
            if word.startswith("--files="):
                _work_beside(Path(word.removeprefix("--files=")), bare)
        if not bare:
            refuse_links()  # `_work_beside` makes some
        _serve(connection, shell, recorder)
    except (WireError, BrokenPipeError):
        pass
    except BaseException as error:
        with contextlib.suppress(BaseException):
            send(connection, {"fault": f"{type(error).__name__}: {error}"})
    os._exit(0)


def _work_beside(folder: Path, bare: bool) -> None:
    """Show the folder's files in the working directory, where modules are imported from too."""
    if bare:  # outside the sandbox there is no working directory of one's own yet
        os.chdir(tempfile.mkdtemp(dir=folder.parent))
    for path in sorted(folder.rglob("*")):
        here = path.relative_to(folder)
        if path.is_dir():
            here.mkdir()
        else:
            here.symlink_to(path)
    sys.path.insert(0, "")  # as in a notebook's kernel


def _serve(connection: socket.socket, shell: Any, recorder: Any) -> None:
    from autograder.sandbox.guest.shell import States

    states = States(shell.user_ns)
    send(connection, {"ready": True})
    while True:
        request = receive(connection)
        if "file" in request:
            reply = _place(Path(request["file"]), request["data"])
        elif "cell" in request:
            reply = _cell(request, shell, recorder)
            states.keep(request["keep"])
        elif "settle" in request:
            reply = _settle(request["settle"], shut=request["shut"])
        else:
            reply = _probe(request, shell, states, connection)
        try:
            send(connection, {"id": request["id"], **reply})
        except PlainError as error:
            send(connection, {"id": request["id"], "raised": ("PlainError", str(error), "")})


def _place(path: Path, data: bytes) -> dict[str, Any]:
    """Write one of the student's own files; the assignment's stay where names meet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError), path.open("xb") as file:
        file.write(data)
    return {"placed": True}


_anchors: list[bytes] = []  # what keeps the room for small objects
_idle: list[tuple[int, int]] = []  # address and size of memory that libraries hold and don't use


def _idle_mappings() -> Iterator[tuple[int, int]]:
    """Where libraries mapped memory that nothing was ever written to, but for its beginning."""
    start = size = 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        word, *rest = line.split()
        if not word.endswith(":"):
            first, _, end = word.partition("-")
            private = rest[0] == "rw-p" and rest[3] == "0"
            start = int(first, 16)
            size = int(end, 16) - start if private else 0
        elif word == "Rss:" and rest[0] == "0" and size >= _IDLE:
            yield start + _LEFT_OPEN, size - _LEFT_OPEN


def _settle(try_bytes: int, *, shut: bool) -> dict[str, Any]:
    """Get this process ready for a budget of memory; tell whether `try_bytes` are to be had.

    Garbage goes, and freed memory goes back. Python maps memory for small objects by the MiB, and
    lets go of a MiB as soon as it is empty: room is made for some here, so that none of it counts
    against a budget for data. Idle memory of libraries is `shut`, so that to open it costs budget.
    """
    gc.collect()
    objects = [bytes(_SMALL - sys.getsizeof(b"")) for _ in range(_ROOM // _SMALL)]
    _anchors[:] = objects[:: _EACH // _SMALL]
    del objects
    _libc.malloc_trim(0)
    for start, size in _idle:
        rights = _NO_ACCESS if shut else _READ_AND_WRITE
        _libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(size), rights)
    try:
        return {"had": len(bytearray(try_bytes)) == try_bytes}
    except MemoryError:
        return {"had": False}


def _cell(request: dict[str, Any], shell: Any, recorder: Any) -> dict[str, Any]:
    recorder.clear()
    try:
        with _time_limit():
            outcome = shell.run_cell(request["cell"], store_history=True)
    except TimeLimit as late:  # it came when the cell had just ended, and the shell was at work
        recorder.error(TimeLimit.__name__, str(late), [])
        return {"outputs": recorder.outputs()}
    error = outcome.error_before_exec or outcome.error_in_exec
    if error is not None and all(o["output_type"] != "error" for o in recorder.outputs()):
        recorder.error(type(error).__name__, str(error), [])  # no failure goes by in silence
    return {"outputs": recorder.outputs()}


def _probe(
    request: dict[str, Any], shell: Any, states: Any, connection: socket.socket
) -> dict[str, Any]:
    def ask(question: Any) -> Any:
        send(connection, {"id": request["id"], "ask": question})
        return receive(connection)["reply"]

    try:
        with states.at(request["state"]), _time_limit():
            value = call_probe(request["probe"], shell.user_ns, request["inputs"], ask)
    except WireError:
        raise
    except TimeLimit:
        return {"raised": ("TimeLimit", f"it ran for over {request['seconds']:g} s", "")}
    except BaseException as error:
        return {"raised": describe(error), "refused": is_refusal(error)}
    return {"value": value}


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    """Let the grader, who has the clock, interrupt what runs in here, and nothing else.

    This is the first, kind limit: it stops honest loops and leaves the process alive.
    """
    signal.signal(signal.SIGALRM, _raise_time_limit)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)


def _raise_time_limit(_number: int, _frame: FrameType | None) -> None:
    raise TimeLimit("this took too long and was stopped")


if __name__ == "__main__":
    main()
