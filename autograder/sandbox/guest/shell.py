"""An IPython shell without a kernel: runs cells and keeps what they show, within bounds."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

__all__ = ["Recorder", "States", "make_shell"]

MAX_TEXT = 20_000  # characters of one cell's text that are kept
MAX_END = 2_000  # characters of the end of what was cut: a test says there what failed
MAX_OUTPUTS = 200  # outputs of one cell
MAX_DATA = 2**20  # bytes of one cell's figures and rich outputs

_CUT = f"\n[the output is cut after {MAX_TEXT:,} characters or {MAX_OUTPUTS} pieces; it ends:]\n"


_LEFT_OUT = (
    "[A figure or rich output of {:.1f} MB is left out here: those of one cell may take 1 MiB "
    "together.]"
)


class Recorder:
    """Collects one cell's outputs in nbformat 4's form; a flood is cut, and says so."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._outputs: list[dict[str, Any]] = []
        self._ends: dict[str, str] = {}  # of the streams, by name
        self._cut: set[str] = set()  # the streams of which something is left out
        self._text_left = MAX_TEXT
        self._data_left = MAX_DATA

    def outputs(self) -> list[dict[str, Any]]:
        """What was kept, and how each stream ended of which something is left out."""
        ends = [
            {"output_type": "stream", "name": name, "text": f"{_CUT}{end}"}
            for name, end in self._ends.items()
            if name in self._cut
        ]
        return self._outputs + ends

    def write(self, name: str, text: str) -> None:
        # Of the whole stream: what stands across the place of the cut is to be read as well.
        self._ends[name] = (self._ends.get(name, "") + text[-MAX_END:])[-MAX_END:]
        kept = text[: max(self._text_left, 0)]
        self._text_left -= len(text)
        last = self._outputs[-1] if self._outputs else {}
        if last.get("output_type") == "stream" and last["name"] == name:
            last["text"] += kept
        elif kept and not self._add({"output_type": "stream", "name": name, "text": kept}):
            kept = ""
        if len(kept) < len(text):
            self._cut.add(name)

    def show(self, kind: str, data: dict[str, Any], **more: Any) -> None:
        kept = {mime: body for mime, body in data.items() if isinstance(body, str)}
        size = sum(map(len, kept.values()))
        if size <= self._data_left:
            self._data_left -= size
        else:
            kept = {"text/plain": _LEFT_OUT.format(size / 1e6)}
        output = {"output_type": kind, "data": kept, "metadata": {}, **more}
        self._add(output, always=kind == "execute_result")

    def error(self, name: str, value: str, trace: list[str]) -> None:
        kept = [line[:2000] for line in trace[:50]]
        self._add(
            {"output_type": "error", "ename": name, "evalue": value[:2000], "traceback": kept},
            always=True,
        )

    def _add(self, output: dict[str, Any], *, always: bool = False) -> bool:
        """Keep an output, or say that there is no room for it.

        One that decides what a cell earns takes the last one's place if need be. The first error
        stays: where it is the last that there is room for, nothing replaces it.
        """
        if len(self._outputs) < MAX_OUTPUTS:
            self._outputs.append(output)
        elif always and self._outputs[-1]["output_type"] != "error":
            self._outputs[-1] = output
        else:
            return False
        return True


class _Stream:
    """Stands in for sys.stdout or sys.stderr."""

    encoding = "utf-8"

    def __init__(self, name: str, recorder: Recorder) -> None:
        self._name = name
        self._recorder = recorder

    def write(self, text: str) -> int:
        self._recorder.write(self._name, str(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        """What programs that a cell starts may write to; that leads nowhere."""
        return 1 if self._name == "stdout" else 2


class _Shell(InteractiveShell):
    """IPython's shell, with its outputs going to `recorder` and no window system to serve."""

    recorder = Recorder()

    def enable_gui(self, gui: str | None = None) -> None:
        """Figures are shown inline; there is no event loop."""

    def _showtraceback(self, etype: type, evalue: BaseException, stb: Any) -> None:
        lines = stb if isinstance(stb, list) else [str(stb)]
        self.recorder.error(etype.__name__, str(evalue), [str(line) for line in lines])


class _Publisher(DisplayPublisher):
    def publish(self, data: dict[str, Any], *_: Any, **__: Any) -> None:
        _Shell.recorder.show("display_data", data)


class _Hook(DisplayHook):
    def __call__(self, result: Any = None) -> None:
        if result is None or self.quiet():  # type: ignore[no-untyped-call]
            return
        data, _ = self.compute_format_data(result)  # type: ignore[no-untyped-call]
        self.update_user_ns(result)  # type: ignore[no-untyped-call]
        _Shell.recorder.show("execute_result", data, execution_count=None)


class States:
    """The names of a shell as they stood at some of its cells, each state by a name of its own.

    `names` are the shell's own: functions that its cells define look their globals up in there.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._states: dict[str, dict[str, Any]] = {}

    def keep(self, wanted: Mapping[str, Sequence[str]]) -> None:
        """Add what these names are now to each state; a name that a state has stays as it is."""
        for state, names in wanted.items():
            kept = self._states.setdefault(state, {})
            for name in names:
                if name in self._names:
                    kept.setdefault(name, self._names[name])

    @contextmanager
    def at(self, state: str) -> Iterator[None]:
        """Give the shell's names a state's values for a while; names that it has not kept stay.

        What is bound meanwhile is part of the state from then on, and of no other.
        """
        kept = self._states.setdefault(state, {})
        before = dict(self._names)
        self._names.update(kept)
        try:
            yield
        finally:
            for name, value in list(self._names.items()):
                if name not in before or value is not before[name]:
                    kept[name] = value
            self._names.update(before)
            for name in self._names.keys() - before.keys():
                del self._names[name]


def make_shell(*, draws: bool) -> tuple[InteractiveShell, Recorder]:
    """Return a shell for notebook cells and the recorder of its outputs.

    Figures are shown inline. One that `draws` gets ready for that now, another when its first cell
    imports matplotlib, which takes long. sys.stdout and sys.stderr are the recorder's from here on.
    """
    config = Config()
    config.HistoryManager.enabled = False  # no history file, and no thread that writes it
    config.InteractiveShell.colors = "NoColor"
    shell: InteractiveShell = _Shell.instance(
        config=config, display_pub_class=_Publisher, displayhook_class=_Hook
    )
    recorder = _Shell.recorder
    if draws:
        shell.run_line_magic("matplotlib", "inline")
    sys.stdout, sys.stderr = _Stream("stdout", recorder), _Stream("stderr", recorder)
    shell.run_cell("1 + 1", store_history=True)  # the first cell is slow; let it be this one
    shell.reset(new_session=True)
    recorder.clear()
    return shell, recorder
