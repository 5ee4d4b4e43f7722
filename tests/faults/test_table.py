"""The table in README.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent


def test_every_test_that_the_table_names_exists() -> None:
    named = set(re.findall(r"`((?:test|hand)_\w+)`", (HERE / "README.md").read_text()))
    sources = "".join(path.read_text() for path in HERE.glob("*.py"))
    assert len(named) > 20
    assert {name for name in named if f"def {name}(" not in sources} == set()
