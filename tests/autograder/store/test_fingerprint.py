"""Fingerprints of what a grade depends on."""

from pathlib import Path

import pytest

from autograder.store import fingerprint


def test_copies_that_an_installation_leaves_dont_make_another_grader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "judge.py").write_text("x = 1\n")
    monkeypatch.setattr(fingerprint, "_GRADER", tmp_path)
    before = fingerprint.environment()
    left = tmp_path / "build/lib/autograder/judge.py"
    left.parent.mkdir(parents=True)
    left.write_text("x = 1\n")
    assert fingerprint.environment() == before
    (tmp_path / "judge.py").write_text("x = 2\n")
    assert fingerprint.environment() != before
