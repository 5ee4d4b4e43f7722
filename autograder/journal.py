"""Journal: what was answered and what came of it, on disk before anything else is told of it.

One submission has two files, each written whole or not at all: `<student>.answers.gz`, the cases'
answers, which are all that judging again needs; then `<student>.json`, the Result. Where the second
is there, the submission is done, whatever happens to the machine afterwards.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autograder.files import inside, write_whole
from autograder.result import Result, result_from_dict, result_to_dict
from autograder.task import Answer
from peakmem import plain

__all__ = ["Journal"]

_VERSION = 1


class Journal:
    """The journal under `out/journal`. A result counts only for the very bytes it was made from."""

    def __init__(self, out: Path) -> None:
        self._root = out / "journal"

    def find(self, lab: str, student: str, raw: bytes, *, isolated: bool) -> Result | None:
        """Return the result of exactly this submission, or None where it is still to be graded.

        One that failed by the grader's fault is to be graded again.
        """
        key, result = self._entry(lab, student)
        if result is None or result.end == "failed" or key != _key(raw, isolated=isolated):
            return None
        return result

    def read(self, lab: str, student: str) -> Result | None:
        """Return the result of this student's last graded submission, None where there is none."""
        return self._entry(lab, student)[1]

    def keep(
        self,
        result: Result,
        raw: bytes,
        answers: Mapping[str, Sequence[Answer]],
    ) -> None:
        """Write down a submission's answers and its result, for good once this returns."""
        said = {task: [dataclasses.asdict(a) for a in given] for task, given in answers.items()}
        packed = gzip.compress(plain.encode(said), compresslevel=1, mtime=0)
        write_whole(self._path(result.lab, result.student, "answers.gz"), packed)
        entry = {"key": _key(raw, isolated=result.isolated), "result": result_to_dict(result)}
        text = json.dumps(entry, sort_keys=True)
        write_whole(self._path(result.lab, result.student, "json"), text.encode())

    def answers(self, lab: str, student: str) -> dict[str, list[Answer]]:
        """Return what a graded submission answered, by task."""
        data = gzip.decompress(self._path(lab, student, "answers.gz").read_bytes())
        return {
            task: [Answer(**{**one, "asked": tuple(map(tuple, one["asked"]))}) for one in given]
            for task, given in plain.decode(data).items()
        }

    def _entry(self, lab: str, student: str) -> tuple[Any, Result | None]:
        """An entry's key and result; one that is not whole any more counts as none."""
        path = self._path(lab, student, "json")
        try:
            entry = json.loads(path.read_bytes())
            return entry["key"], result_from_dict(entry["result"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None, None

    def _path(self, lab: str, student: str, ending: str) -> Path:
        return inside(self._root, lab, f"{student}.{ending}")


def _key(raw: bytes, *, isolated: bool) -> dict[str, Any]:
    return {
        "version": _VERSION,
        "submission": hashlib.sha256(raw).hexdigest(),
        "isolated": isolated,
    }
