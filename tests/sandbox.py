"""Leaves tests out on machines that can't isolate students' code."""

from __future__ import annotations

from functools import cache

import pytest

from autograder.sandbox.host import isolation


def require_sandbox() -> None:
    """Skip the test that runs, or asks for a fixture, if nothing can be isolated here."""
    if missing := _missing():
        pytest.skip(f"the sandbox cannot run here: {missing[0]}")


@cache
def _missing() -> list[str]:
    return isolation.missing_layers()
