"""The threat model names attacks and tests that exist, and is short enough to be read."""

from __future__ import annotations

import re

from tests.grading import REPOSITORY
from tests.hostile.kinds import KINDS
from tests.hostile.measured import MEASURED_ATTACKS

PAGE = (REPOSITORY / "docs" / "threat_model.md").read_text(encoding="utf-8")
TABLES = PAGE.partition("\n## Attacks and defences\n")[2].partition("\n## ")[0]
WORDS_A_MINUTE = 238  # of adults who read silently: Brysbaert 2019
_ROW = re.compile(r"^\|.*\| ([^|]*) \|$", re.MULTILINE)
_NAME = re.compile(r"`([^`]+)`")


def rows() -> list[list[str]]:
    """The names in the last column of each row of the tables of attacks."""
    return [_NAME.findall(cell) for cell in _ROW.findall(TABLES) if cell != "shown by"]


def known() -> set[str]:
    tests = (REPOSITORY / "tests").rglob("*.py")
    functions = re.compile(r"^def (test_\w+)", re.MULTILINE)
    found = {name for path in tests for name in functions.findall(path.read_text(encoding="utf-8"))}
    attacks = {name for names in KINDS.values() for name in names}
    attacks |= {attack.name for attack in MEASURED_ATTACKS}
    return found | attacks | {"FILES", "LINKS", "STRUCTURES"}


def test_each_defence_is_shown_by_something_that_is_there():
    assert len(rows()) > 40
    assert all(rows())
    assert {name for names in rows() for name in names} <= known()


def test_tests_that_the_page_names_elsewhere_are_there():
    assert set(re.findall(r"`(test_\w+)`", PAGE)) <= known()


def test_a_name_that_is_not_there_would_be_found():
    assert "no-such-attack" not in known()


def test_the_page_is_read_in_eleven_minutes():
    assert len(PAGE.split()) < 11 * WORDS_A_MINUTE
