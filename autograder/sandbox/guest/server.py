"""Serves submissions inside the sandbox, from a process prepared once and forked for each.

Its standard input is the control socket, whose first message is the `Setup`. The process then
imports what labs need, and waits. Each further byte carries one end of a socket pair, which a fork
of this process serves: it isolates itself, gives up every privilege, and runs the student's cells
and probes as requested. Nothing in this file is secret, this process knows no expected values, and
once the first student cell has run, nothing here is trusted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from autograder.sandbox.guest.listener import NO_LISTENER
from autograder.sandbox.guest.namespaces import shut_in
from autograder.sandbox.guest.preload import has_gpu, prepare
from autograder.sandbox.guest.room import settle
from autograder.sandbox.guest.seccomp import refuse_links
from autograder.sandbox.guest.wire import WireError, receive, send
from peakmem.core.serialization import PlainError
from peakmem.probes import call_probe, describe, is_refusal

__all__ = ["main"]


class TimeLimit(BaseException):
    """The cell or probe took too long. A student's `except Exception` doesn't catch it."""


@dataclass(frozen=True)
class Setup:
    """The settings of this process, sent once."""

    #: How a fork isolates itself: by its own `namespaces`, by its own `user`, or by
    #: `nothing`.
    way: str
    #: Whether memory is measured, so that the grader decides on changes of memory protection.
    measured: bool
    #: The processor to run on.
    processor: int
    #: The folder with an assignment's files, if it has any.
    files: str | None
    #: Modules to import.
    preload: list[str]


def main() -> None:
    """Prepare, then fork a shell for every socket that arrives, until the control socket closes."""
    control = socket.socket(fileno=os.dup(0))
    setup = Setup(**receive(control))
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # hides the socket from students' code
    os.sched_setaffinity(0, {setup.processor})
    shell, recorder = prepare(setup.preload)
    control.sendall(b"G" if has_gpu() else b"C")
    while True:
        data, fds, _, _ = socket.recv_fds(control, 1, 2)
        if not data:
            return
        pid = os.fork()
        if pid == 0:
            control.close()
            _become_shell(fds, shell, recorder, setup)
        for fd in fds:
            os.close(fd)
        if setup.way != "nothing":
            os.waitpid(pid, 0)  # the isolating fork exits; its child is the shell


def _become_shell(fds: Sequence[int], shell: Any, recorder: Any, setup: Setup) -> None:
    """Serve one submission and never return."""
    connection = socket.socket(fileno=fds[0])
    bare = setup.way == "nothing"
    try:
        if bare:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        elif setup.way == "user":
            from autograder.sandbox.guest.uid import confine  # not in the namespaces' sandbox

            leash = socket.socket(fileno=fds[1])
            confine(receive(connection), connection, leash, overseen=setup.measured)
        else:
            # Returns as process 1 of its own namespace.
            shut_in(receive(connection), connection if setup.measured else None)
        if bare or not setup.measured:
            connection.sendall(NO_LISTENER)
        if setup.files is not None:
            _work_beside(Path(setup.files), bare)
        if not bare:
            refuse_links()  # only now, because `_work_beside` makes links
        _serve(connection, shell, recorder)
    except (WireError, BrokenPipeError):
        pass
    except BaseException as error:
        with contextlib.suppress(BaseException):
            send(connection, {"fault": f"{type(error).__name__}: {error}"})
    os._exit(0)


def _work_beside(folder: Path, bare: bool) -> None:
    """Link the folder's files into the working directory, and allow imports from there."""
    if bare:  # outside the sandbox there is no private working directory yet
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
            reply = settle(request["settle"], shut=request["shut"])
        else:
            reply = _probe(request, shell, states, connection)
        try:
            send(connection, {"id": request["id"], **reply})
        except PlainError as error:
            send(connection, {"id": request["id"], "raised": ("PlainError", str(error), "")})


def _place(path: Path, data: bytes) -> dict[str, Any]:
    """Write one of the student's files; on a name collision, the assignment's file wins."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError), path.open("xb") as file:
        file.write(data)
    return {"placed": True}


def _cell(request: dict[str, Any], shell: Any, recorder: Any) -> dict[str, Any]:
    recorder.clear()
    try:
        with _time_limit(), _compiled_as_asked(shell, request["watched"]):
            outcome = shell.run_cell(request["cell"], store_history=True)
    except TimeLimit as late:  # it arrived after the cell had ended
        recorder.error(TimeLimit.__name__, str(late), [])
        return {"outputs": recorder.outputs()}
    except (RecursionError, MemoryError) as deep:  # from the shell, on code nested too deeply
        recorder.error(type(deep).__name__, str(deep), [])
        return {"outputs": recorder.outputs()}
    error = outcome.error_before_exec or outcome.error_in_exec
    if error is not None and all(o["output_type"] != "error" for o in recorder.outputs()):
        recorder.error(type(error).__name__, str(error), [])  # no failure may pass silently
    return {"outputs": recorder.outputs()}


@contextlib.contextmanager
def _compiled_as_asked(shell: Any, watched: bool) -> Iterator[None]:
    transformers = []
    if watched:
        from peakmem.probes.conversions import Watching  # loads numpy, which few courses need

        transformers = [Watching()]
    shell.ast_transformers.extend(transformers)
    try:
        yield
    finally:
        for transformer in transformers:
            with contextlib.suppress(ValueError):  # the cell removed it
                shell.ast_transformers.remove(transformer)


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
    """Let the grader, which keeps the clock, interrupt the code in this block.

    This is the first, soft limit: it stops honest loops and leaves the process alive.
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
