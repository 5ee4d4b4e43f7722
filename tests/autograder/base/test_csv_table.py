"""Tables that leave the grader are text to every spreadsheet, whatever its delimiters."""

import csv
import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autograder.base.csv_table import cell_text, csv_bytes, no_formula

SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"
SEPARATORS = ",;|\t"
HARMLESS = re.compile(r"[+-](\d[\d.]*(e[+-]?\d+)?|inf)[])}\s.]*")
SPITEFUL = (
    st.text(st.sampled_from(SIGNS + SEPARATORS + "\"' \n\r\t\u00a0\u2028\u200b1ae([{")) | st.text()
)


def cells_of(data: bytes, separator: str) -> list[str]:
    """The possible cells of a spreadsheet, with and without respect for quotes."""
    text = data.decode()
    parsed = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    return [cell for row in parsed for cell in row] + re.split(f"[{separator}\n]", text)


def formulas(cells: list[str]) -> list[str]:
    bare = [cell.strip('" \n\u00a0') for cell in cells]
    found = [c for c in bare if c.startswith(tuple(SIGNS)) and not HARMLESS.fullmatch(c)]
    return [cell for cell in found if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", cell)]


@given(st.lists(SPITEFUL, min_size=1, max_size=4), st.sampled_from(SEPARATORS))
@example(["y;=cmd|' /C calc'!A0"], ";")
@example(['y";"=1+1'], ";")
@example(["[1, -2]; -3e5+cmd|x"], ";")
@example(["a|\u00a0@SUM(1)"], "|")
def test_no_cell_is_a_formula_at_any_separator(texts: list[str], separator: str) -> None:
    assert formulas(cells_of(csv_bytes([texts]), separator)) == []


@pytest.mark.parametrize("text", ["y;=cmd", "=1", 'y";"=1+1'])
def test_without_the_gate_a_formula_would_be_found(text: str) -> None:
    plain = io.StringIO()
    csv.writer(plain, quoting=csv.QUOTE_ALL).writerow([text])
    assert formulas(cells_of(plain.getvalue().encode(), ";"))


@given(st.lists(st.lists(SPITEFUL, min_size=1), min_size=1))
def test_a_row_stays_one_row_of_as_many_cells(rows: list[list[str]]) -> None:
    read = list(csv.reader(io.StringIO(csv_bytes(rows).decode(), newline="")))
    assert [len(row) for row in read] == [len(row) for row in rows]


def test_numbers_and_what_is_the_graders_own_stay_as_they_are() -> None:
    rows = [[-1.5, "-2", " Points", "- x"]]
    assert csv_bytes(rows, as_is=[" Points"]) == b'"-1.5","-2"," Points","\'- x"\n'


@pytest.mark.parametrize("text", ["expected [1, -2, -0.5e-3], got x = -1", "a - b; c", "f(x, y=3)"])
def test_an_honest_sentence_stays_as_it_is(text: str) -> None:
    assert cell_text(text) == no_formula(text) == text


def test_a_line_of_many_lines_is_looked_at_line_by_line() -> None:
    assert no_formula("a\n=1") == "a\n'=1"
