"""Text for a terminal is visible there, and moves no cursor."""

import io
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autograder.base.terminal import say, shown
from autograder.cli.report import Report, show

ACTIVE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
CLIPBOARD = "\x1b]52;c;bHM=\x07"


@given(st.text(st.characters(codec=None, exclude_categories=[])))
@example(CLIPBOARD)
@example("\x9b2J\x9d52;c;bHM=\x9c")
@example("\u202eevil\u2066\u200b\ud800\x7f\r")
def test_nothing_that_a_terminal_acts_on_is_left(text: str) -> None:
    left = {unicodedata.category(c) for c in shown(text) if c not in "\n\t"}
    assert not left & ACTIVE
    shown(text).encode()


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs", "M"]) | st.sampled_from("\n\t")))
def test_what_can_be_read_stays_as_it_is(text: str) -> None:
    assert shown(text) == text


def test_said_is_what_is_shown() -> None:
    stream = io.StringIO()
    say("a", CLIPBOARD, to=stream)
    assert stream.getvalue() == "a\n\\x1b]52;c;bHM=\\x07\n"


@pytest.mark.parametrize("as_json", [False, True])
def test_no_report_holds_codes(capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    report = Report(text=CLIPBOARD, remarks=[CLIPBOARD], problems=["\x9b2J"], data={"x": CLIPBOARD})
    show(report, "explain", as_json=as_json)
    out, err = capsys.readouterr()
    assert not {"\x1b", "\x07", "\x9b"} & set(out + err)
    assert "bHM" in out
    assert "bHM" in err
