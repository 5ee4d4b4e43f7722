"""Runs cells in an IPython shell without a kernel, and records their outputs within bounds."""

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

MAX_TEXT = 20_000  # characters of one cell's text that are recorded
MAX_END = 2_000  # characters recorded from the end of a cut text, where tests report failures
MAX_OUTPUTS = 200  # outputs of one cell
MAX_DATA = 2**20  # bytes of one cell's figures and rich outputs

_CUT = f"\n[the output is cut after {MAX_TEXT:,} characters or {MAX_OUTPUTS} pieces; it ends:]\n"


_LEFT_OUT = (
    "[A figure or rich output of {:.1f} MB is left out here: those of one cell may take at most "
    "1 MiB together.]"
)


class Recorder:
    """Collects one cell's outputs in nbformat 4's form, and cuts floods with a remark."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._outputs: list[dict[str, Any]] = []
        self._ends: dict[str, str] = {}  # the ends of the streams, by name
        self._cut: set[str] = set()  # the streams that were cut
        self._text_left = MAX_TEXT
        self._data_left = MAX_DATA

    def outputs(self) -> list[dict[str, Any]]:
        """The recorded outputs, followed by the end of each stream that was cut."""
        ends = [
            {"output_type": "stream", "name": name, "text": f"{_CUT}{end}"}
            for name, end in self._ends.items()
            if name in self._cut
        ]
        return self._outputs + ends

    def write(self, name: str, text: str) -> None:
        # The end of the whole stream, so that text across the cut stays readable.
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
        if name == "_IncompleteInputError":  # Python 3.13's private class, for code that ends early
            name = "SyntaxError"
        kept = [line[:2000] for line in trace[:50]]
        self._add(
            {"output_type": "error", "ename": name, "evalue": value[:2000], "traceback": kept},
            always=True,
        )

    def _add(self, output: dict[str, Any], *, always: bool = False) -> bool:
        """Record an output if there is room; return whether it was recorded.

        An output that decides the score replaces the last one if necessary. But an error in the
        last place stays, because the first error decides.
        """
        if len(self._outputs) < MAX_OUTPUTS:
            self._outputs.append(output)
        elif always and self._outputs[-1]["output_type"] != "error":
            self._outputs[-1] = output
        else:
            return False
        return True


class _Stream:
    """Replaces sys.stdout or sys.stderr."""

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
        """Do nothing, since nothing is buffered."""

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        """Return a descriptor for programs that a cell starts; output to it is discarded."""
        return 1 if self._name == "stdout" else 2


class _Shell(InteractiveShell):
    """IPython's shell, with outputs going to `recorder` and no GUI event loop."""

    recorder = Recorder()

    def enable_gui(self, gui: str | None = None) -> None:
        """Do nothing: figures are shown inline, and there is no event loop."""

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
    """The values of a shell's names as they stood at some of its cells, as named states.

    `names` are the shell's own, in which functions defined by its cells look up their globals.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._states: dict[str, dict[str, Any]] = {}

    def keep(self, wanted: Mapping[str, Sequence[str]]) -> None:
        """Add the names' current values to each state; names already in a state stay."""
        for state, names in wanted.items():
            kept = self._states.setdefault(state, {})
            for name in names:
                if name in self._names:
                    kept.setdefault(name, self._names[name])

    @contextmanager
    def at(self, state: str) -> Iterator[None]:
        """Give the shell a state's values for a while; names not in the state keep theirs.

        Names bound meanwhile become part of this state only.
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

    Figures are shown inline. With `draws` the shell loads matplotlib now, which is slow; otherwise
    when a cell first imports it. The recorder replaces sys.stdout and sys.stderr.
    """
    config = Config()
    config.HistoryManager.enabled = False  # no history file, and no thread that writes it
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.automagic = False  # else `time f = g` would run; it isn't Python
    shell: InteractiveShell = _Shell.instance(
        config=config, display_pub_class=_Publisher, displayhook_class=_Hook
    )
    recorder = _Shell.recorder
    if draws:
        shell.run_line_magic("matplotlib", "inline")
    sys.stdout, sys.stderr = _Stream("stdout", recorder), _Stream("stderr", recorder)
    shell.run_cell("1 + 1", store_history=True)  # the first cell is slow, so run one now
    shell.reset(new_session=True)
    recorder.clear()
    return shell, recorder
