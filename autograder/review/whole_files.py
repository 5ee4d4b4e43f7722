"""Tells whether a file that publishing can rewrite is intact, by its place in a results folder."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["WHOLE", "is_text"]


def _is_page(path: Path) -> bool:
    data = path.read_bytes()
    return data.endswith(b"</html>\n") and is_text(data)


def _is_notebook(path: Path) -> bool:
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and isinstance(data.get("cells"), list)


def _is_table(path: Path) -> bool:
    data = path.read_bytes()
    return data.endswith(b"\n") and is_text(data)


def _is_zip(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError):
        return False


def is_text(data: bytes) -> bool:
    """Tell whether these bytes are text, free of the zeros with which a disk fills gaps."""
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


WHOLE: Mapping[str, Callable[[Path], bool]] = {
    "feedback/*/*.html": _is_page,
    "autograded/*/*/*.ipynb": _is_notebook,
    "source/*/*.ipynb": _is_notebook,
    "*.csv": _is_table,
    "export/*.csv": _is_table,
    "export/*.zip": _is_zip,
}
