"""Tells whether a file that publishing can rewrite is intact, by its place in a results folder."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from autograder.base.files import is_between
from autograder.store.out_folder import EXPORTS, GRADED_NOTEBOOKS, PAGES, SOURCE_NOTEBOOKS

__all__ = ["WHOLE", "is_page", "is_text"]


def is_page(path: Path) -> bool:
    """Tell whether a file is a complete page, from its start to its end."""
    return is_between(path, b"<!DOCTYPE html>", b"</html>\n")


def _is_page_of_text(path: Path) -> bool:
    return is_page(path) and is_text(path.read_bytes())


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
    """Tell whether these bytes are text, without the zeros with which a disk fills gaps."""
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


WHOLE: Mapping[str, Callable[[Path], bool]] = {
    PAGES: _is_page_of_text,
    GRADED_NOTEBOOKS: _is_notebook,
    SOURCE_NOTEBOOKS: _is_notebook,
    "*.csv": _is_table,
    f"{EXPORTS}.csv": _is_table,
    f"{EXPORTS}.zip": _is_zip,
}
