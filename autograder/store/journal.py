"""Stores each submission's answers and result on disk before anything else is reported.

Each submission has one file, written atomically: if `<student>.entry` exists, the submission is
done, whatever happens to the machine afterwards. The first line is JSON: what the result was made
from, the result without its notebook, and a digest of the rest. The rest is the notebook as JSON
and the cases' answers, which suffice to judge again. The answers' line of JSON is compressed; the
arrays' bytes after it aren't, because numbers hardly compress.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autograder.base.damage import Damaged
from autograder.base.files import write_whole
from autograder.model.result import Result, result_from_dict, result_to_dict
from autograder.model.submission import SubmissionKey
from autograder.model.task import Answer
from autograder.store.out_folder import OutFolder
from peakmem.core import serialization

__all__ = ["Journal"]

_VERSION = 4
_HEAD = {"asked", "digest", "key", "notebook_bytes", "result"}
_MAX_HEAD = 2**24  # bytes of a first line, a hundred times the size of verdicts
# Nesting levels that an entry adds around an answer, so that any answer the wire allowed fits.
_AROUND = 8

Terms = Mapping[str, Any]


class Journal:
    """The journal of a results folder.

    A result is valid only for the exact bytes that it was made from, and only under the same
    `terms`: JSON-ready data on everything else that it depends on, such as limits and the tasks'
    version.
    """

    def __init__(self, out: OutFolder) -> None:
        self._out = out

    def find(self, key: SubmissionKey, raw: bytes, terms: Terms) -> Result | None:
        """Return the result of exactly this submission; None if it still has to be graded.

        A submission whose grading failed has to be graded again.
        """
        entry = self._entry(key)
        if entry is None or entry[0]["key"] != _key(raw, terms):
            return None
        result = _whole(*entry)
        return None if result.end == "failed" else result

    def read(self, key: SubmissionKey) -> Result | None:
        """Return the result of this student's last graded submission; None if there is none."""
        entry = self._entry(key)
        return None if entry is None else _whole(*entry)

    def verdicts(self, key: SubmissionKey) -> Result | None:
        """Return the result that `read` returns, without its notebook, which is slow to read."""
        head = self._head(key)
        return None if head is None else result_from_dict({**head["result"], "notebook": None})

    def terms(self, key: SubmissionKey) -> dict[str, Any] | None:
        """Return the terms of this student's last graded submission; None if there is none."""
        head = self._head(key)
        return None if head is None else dict(head["key"]["terms"])

    def keep(
        self,
        result: Result,
        raw: bytes,
        answers: Mapping[str, Sequence[Answer]],
        terms: Terms,
        asked: Mapping[str, str] | None = None,
    ) -> None:
        """Store a submission's answers and result; they are on disk once this returns.

        `asked` has, by task, the digest of the questions that the answers belong to. Without it
        they can't be judged again.
        """
        said = {task: [vars(answer) for answer in given] for task, given in answers.items()}
        notebook = json.dumps(result.notebook).encode()
        rest = notebook + _packed(serialization.encode(said, around=_AROUND))
        light = result_to_dict(dataclasses.replace(result, notebook=None))
        head = {
            "key": _key(raw, terms),
            "asked": dict(asked or {}),
            "result": light,
            "notebook_bytes": len(notebook),
            "digest": _digest(rest),
        }
        write_whole(self._out.entry(result.key), _sealed(head) + b"\n" + rest)

    def amend(self, result: Result, terms: Terms) -> None:
        """Replace a submission's result and terms, and keep its answers."""
        read = self._read(result.key)
        if read is None:
            raise KeyError(f"the journal has no entry for {result.key}")
        head, rest = read
        light = result_to_dict(dataclasses.replace(result, notebook=None))
        head |= {"key": head["key"] | {"terms": dict(terms)}, "result": light}
        write_whole(self._out.entry(result.key), _sealed(head) + b"\n" + rest)

    def copy(self, key: SubmissionKey, other: Journal) -> bool:
        """Copy this submission's entry from another journal; return whether it changed."""
        data = other._out.entry(key).read_bytes()
        path = self._out.entry(key)
        if path.is_file() and path.read_bytes() == data:
            return False
        write_whole(path, data)
        return True

    def asked(self, key: SubmissionKey) -> dict[str, str]:
        """Return, by task, the digest of the questions that the answers belong to."""
        head = self._head(key)
        return {} if head is None else dict(head["asked"])

    def submission(self, key: SubmissionKey) -> str | None:
        """Return the SHA-256 digest of the submission's bytes; None if there is no entry."""
        head = self._head(key)
        return None if head is None else str(head["key"]["submission"])

    def whole(self, key: SubmissionKey) -> bool:
        """Tell whether a submission's entry is complete and readable."""
        return self._entry(key) is not None

    def answers(self, key: SubmissionKey) -> dict[str, list[Answer]]:
        """Return a graded submission's answers, by task.

        Empty if the entry is missing or damaged, or was written by an older version of the journal.
        """
        entry = self._entry(key)
        if entry is None or entry[0]["key"].get("version") != _VERSION:
            return {}
        head, rest = entry
        data = serialization.decode(_unpacked(rest[head["notebook_bytes"] :]), around=_AROUND)
        return {
            task: [Answer(**{**one, "asked": tuple(map(tuple, one["asked"]))}) for one in given]
            for task, given in data.items()
        }

    def _entry(self, key: SubmissionKey) -> tuple[dict[str, Any], bytes] | None:
        """An entry's first line and the rest; None if the entry is missing or damaged."""
        read = self._read(key)
        return read if read is not None and _digest(read[1]) == read[0]["digest"] else None

    def _read(self, key: SubmissionKey) -> tuple[dict[str, Any], bytes] | None:
        """The same, even if the rest is damaged."""
        path = self._out.entry(key)
        try:
            first, _, rest = path.read_bytes().partition(b"\n")
            return _parsed(first), rest
        except (FileNotFoundError, ValueError):
            return None
        except OSError as error:
            raise _unreadable(path, error) from error

    def _head(self, key: SubmissionKey) -> dict[str, Any] | None:
        """Only an entry's first line; None if it is missing or damaged."""
        path = self._out.entry(key)
        try:
            with path.open("rb") as file:
                return _parsed(file.readline(_MAX_HEAD))
        except (FileNotFoundError, ValueError):
            return None
        except OSError as error:
            raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> Damaged:
    return Damaged(path, f"can't be read ({error.strerror})", "a submission's entry")


def _sealed(head: Mapping[str, Any]) -> bytes:
    """An entry's first line with its own digest, because damaged JSON may still be readable."""
    return json.dumps({**head, "seal": _seal(head)}, sort_keys=True).encode()


def _seal(head: Mapping[str, Any]) -> str:
    return _digest(json.dumps(head, sort_keys=True).encode())


def _parsed(first: bytes) -> dict[str, Any]:
    """Parse an entry's first line. Raises ValueError if it isn't one."""
    try:
        head: dict[str, Any] = json.loads(first)
        seal = head.pop("seal", None)  # entries of older versions have none
        sealed = seal in (None, _seal(head)) and head.keys() == _HEAD
        result_from_dict(head["result"])
        is_head = isinstance(head["key"]["terms"], dict) and isinstance(head["digest"], str)
        is_head = is_head and isinstance(head["asked"], dict)
        whole = sealed and is_head and isinstance(head["notebook_bytes"], int)
    except (KeyError, TypeError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise ValueError("not an entry's first line")
    return head


def _whole(head: Mapping[str, Any], rest: bytes) -> Result:
    notebook = json.loads(rest[: head["notebook_bytes"]])
    return result_from_dict({**head["result"], "notebook": notebook})


def _packed(answers: bytes) -> bytes:
    """The encoded answers, with their line of JSON compressed."""
    end = answers.find(b"\n") + 1 or len(answers)
    return zlib.compress(answers[:end], level=1) + answers[end:]


def _unpacked(packed: bytes) -> bytes:
    line = zlib.decompressobj()
    return line.decompress(packed) + line.unused_data


def _key(raw: bytes, terms: Terms) -> dict[str, Any]:
    return {"version": _VERSION, "submission": _digest(raw), "terms": dict(terms)}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
