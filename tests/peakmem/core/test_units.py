"""Bytes in decimal and binary units."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmem.core import units
from peakmem.core.units import GB, KB, MB, TB, GiB, KiB, MiB, TiB, both, parse


def test_units_are_powers_of_ten_and_of_two():
    assert [KB, MB, GB, TB] == [10**3, 10**6, 10**9, 10**12]
    assert [KiB, MiB, GiB, TiB] == [2**10, 2**20, 2**30, 2**40]
    assert all(hasattr(units, name) for name in units.__all__)


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 KB (0.98 KiB)"),
        (16 * GB, "16.00 GB (14.90 GiB)"),
        (80 * GiB, "85.90 GB (80.00 GiB)"),
        (143_771 * MiB, "150.75 GB (140.40 GiB)"),  # one H200
        (999_994_999, "999.99 MB (953.67 MiB)"),
        (999_999_999, "1.00 GB (0.93 GiB)"),
        (2_800 * GB, "2.80 TB (2.55 TiB)"),
        (5000 * TB, "5000.00 TB (4547.47 TiB)"),
        (-2 * GB, "-2.00 GB (-1.86 GiB)"),
        (-999_999_999, "-1.00 GB (-0.93 GiB)"),
        (np.int64(512), "512 B"),
    ],
)
def test_both_units_are_shown(n_bytes, text):
    assert both(n_bytes) == text


@given(st.integers(1000, 10**16))
def test_both_are_the_bytes_to_two_digits(n_bytes):
    numbers = re.fullmatch(r"(\d+\.\d\d) ([KMGT])B \((\d+\.\d\d) ([KMGT])iB\)", both(n_bytes))
    decimal, letter, binary, same_letter = numbers.groups()
    power = "KMGT".index(letter) + 1
    assert letter == same_letter
    assert abs(float(decimal) * 1000**power - n_bytes) <= 0.00501 * 1000**power
    assert abs(float(binary) * 1024**power - n_bytes) <= 0.00501 * 1024**power
    assert 1 <= float(decimal) < 1000 or letter == "T"


@pytest.mark.parametrize("value", [1.5, 16e9, "16", None])
def test_bytes_that_are_not_whole_are_refused(value):
    with pytest.raises(ValueError, match=r"whole number of bytes, but got .*math\.ceil"):
        both(value)


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("80GB", 80 * GB),
        ("80 GiB", 80 * GiB),
        (" 1.5 TB ", 1_500 * GB),
        ("512 B", 512),
        ("4kB", 4000),
        ("4KB", 4000),
        ("24 MiB", 24 * MiB),
        ("0.1 GB", 100 * MB),  # exact, where the float 0.1 is not
        ("0.3 GiB", 322_122_547),  # 322,122,547.2
        ("9007199254740993 B", 2**53 + 1),
    ],
)
def test_parse(text, n_bytes):
    assert parse(text) == n_bytes


@given(st.integers(0, 10**6), st.sampled_from(["B", "KB", "MB", "GB", "TB", "KiB", "GiB", "TiB"]))
def test_parse_is_exact_for_whole_numbers(number, unit):
    factors = {"B": 1, "KB": KB, "MB": MB, "GB": GB, "TB": TB, "KiB": KiB, "GiB": GiB, "TiB": TiB}
    assert parse(f"{number} {unit}") == number * factors[unit]


@pytest.mark.parametrize(
    "text", ["", "80", "GB", "80 Gb", "80G", "-1 GB", "1e9 B", "1,5 GB", "٣ GB"]
)
def test_text_that_is_no_amount_is_refused(text):
    with pytest.raises(ValueError, match=re.escape(repr(text)) + r" is not an amount.*'80GB'"):
        parse(text)
