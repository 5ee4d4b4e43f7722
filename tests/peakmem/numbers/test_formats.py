"""Formats against libraries (ml_dtypes, gfloat, numpy, struct), exact fractions and the specs."""

import math
import struct
from fractions import Fraction

import gfloat
import ml_dtypes
import numpy as np
import pytest
from gfloat import formats as gformats
from hypothesis import given
from hypothesis import strategies as st

from peakmem.numbers import formats
from peakmem.numbers.formats import (
    BF16,
    FORMATS,
    FP4_E2M1,
    FP8_E4M3,
    FP8_E5M2,
    FP16,
    FP32,
    FP64,
    TF32,
    Fields,
    Limits,
    NumberFormat,
    decode,
    encode,
    fields,
    limits,
    neighbours,
    powers_of_two,
    quantize,
    ulp,
)

DTYPES = {
    FP64: np.float64,
    FP32: np.float32,
    FP16: np.float16,
    BF16: ml_dtypes.bfloat16,
    FP8_E4M3: ml_dtypes.float8_e4m3fn,
    FP8_E5M2: ml_dtypes.float8_e5m2,
    FP4_E2M1: ml_dtypes.float4_e2m1fn,
}
GFLOAT = {
    FP16: gformats.format_info_binary16,
    BF16: gformats.format_info_bfloat16,
    FP8_E4M3: gformats.format_info_ocp_e4m3,
    FP8_E5M2: gformats.format_info_ocp_e5m2,
    FP4_E2M1: gformats.format_info_ocp_e2m1,
}
SMALL = [f for f in FORMATS.values() if f.width <= 16]
TABLED = [*SMALL, TF32]  # few enough patterns to go through all of them


def by_name(format_list):
    return pytest.mark.parametrize("fmt", format_list, ids=lambda f: f.name)


def same(a, b):
    """Whether two arrays hold the same numbers: NaN is NaN, and -0.0 is not 0.0."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    nan = np.isnan(a)
    signs = np.signbit(a) == np.signbit(b)
    return bool(np.all((nan & np.isnan(b)) | ((a == b) & signs)))


def cast(numbers, dtype):
    """`numbers` as another library rounds them to `dtype`, as float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(numbers).astype(dtype).astype(np.float64)


def all_patterns(fmt):
    return np.arange(2**fmt.width, dtype=np.min_scalar_type(2**fmt.width - 1))


def library_values(fmt):
    """Another library's value of every pattern, in the patterns' order."""
    with np.errstate(invalid="ignore"):  # signalling NaN
        if fmt == TF32:  # the upper 19 bits of fp32
            return (all_patterns(fmt) << 13).view(np.float32).astype(np.float64)
        return all_patterns(fmt).view(DTYPES[fmt]).astype(np.float64)


def positive_numbers(fmt):
    """Every finite number from 0 up, in rising order; item i has the pattern i."""
    upper_half = library_values(fmt)[: 2 ** (fmt.width - 1)]
    return upper_half[np.isfinite(upper_half)]


# The specifications' own figures: IEEE 754-2019 table 3.5, OFP8 table 2, MX table 5.


@pytest.mark.parametrize(
    ("fmt", "width", "largest", "min_normal", "min_subnormal", "epsilon"),
    [
        (FP64, 64, 1.7976931348623157e308, 2.2250738585072014e-308, 5e-324, 2**-52),
        (FP32, 32, (2 - 2**-23) * 2.0**127, 2.0**-126, 2.0**-149, 2**-23),
        (TF32, 19, (2 - 2**-10) * 2.0**127, 2.0**-126, 2.0**-136, 2**-10),
        (BF16, 16, (2 - 2**-7) * 2.0**127, 2.0**-126, 2.0**-133, 2**-7),
        (FP16, 16, 65504.0, 2.0**-14, 2.0**-24, 2**-10),
        (FP8_E4M3, 8, 448.0, 2.0**-6, 2.0**-9, 2**-3),
        (FP8_E5M2, 8, 57344.0, 2.0**-14, 2.0**-16, 2**-2),
        (FP4_E2M1, 4, 6.0, 1.0, 0.5, 0.5),
    ],
)
def test_limits_are_the_specifications(fmt, width, largest, min_normal, min_subnormal, epsilon):
    assert fmt.width == width
    assert limits(fmt) == Limits(largest, min_normal, min_subnormal, epsilon)


def test_special_patterns_are_the_specifications():
    assert [encode(fmt, math.inf) for fmt in (FP64, FP32, TF32, BF16, FP16, FP8_E5M2)] == [
        0x7FF0000000000000,
        0x7F800000,
        0x3FC00,
        0x7F80,
        0x7C00,
        0x7C,
    ]
    assert decode(FP8_E4M3, 0x7E) == 448
    nans = [bits for bits in range(256) if math.isnan(decode(FP8_E4M3, bits))]
    assert nans == [0x7F, 0xFF]
    e2m1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert [decode(FP4_E2M1, bits) for bits in range(16)] == e2m1 + [-x for x in e2m1]


# Every pattern.


@by_name(TABLED)
def test_decode_every_pattern_as_the_libraries_do(fmt):
    decoded = decode(fmt, all_patterns(fmt))
    assert same(decoded, library_values(fmt))
    if fmt in GFLOAT:
        assert same(decoded, gfloat.decode_ndarray(GFLOAT[fmt], all_patterns(fmt)))


@by_name(TABLED)
def test_encode_every_number_to_its_own_pattern(fmt):
    patterns, numbers = all_patterns(fmt), library_values(fmt)
    number = ~np.isnan(numbers)
    for rounding in ("nearest_even", "toward_zero"):
        assert np.array_equal(encode(fmt, numbers[number], rounding), patterns[number])
    if fmt.has_nan:
        codes = encode(fmt, numbers[~number])
        assert np.all(np.isnan(decode(fmt, codes)))
        assert np.array_equal(codes >> (fmt.width - 1), patterns[~number] >> (fmt.width - 1))


@by_name(TABLED)
def test_encode_midpoints_and_the_points_beside_them(fmt):
    numbers = positive_numbers(fmt)
    lower = np.arange(len(numbers) - 1)
    middle = (numbers[:-1] + numbers[1:]) / 2  # exact: one bit more than the format has
    sign = 1 << (fmt.width - 1)
    cases = [
        (middle, "nearest_even", lower + lower % 2),
        (np.nextafter(middle, 0), "nearest_even", lower),
        (np.nextafter(middle, np.inf), "nearest_even", lower + 1),
        (np.nextafter(numbers[1:], 0), "nearest_even", lower + 1),
        (np.nextafter(numbers[:-1], np.inf), "nearest_even", lower),
        (middle, "toward_zero", lower),
        (np.nextafter(numbers[1:], 0), "toward_zero", lower),
    ]
    for points, rounding, expected in cases:
        assert np.array_equal(encode(fmt, points, rounding), expected)
        assert np.array_equal(encode(fmt, -points, rounding), expected + sign)


@by_name(SMALL)
def test_quantize_as_the_libraries_do(fmt):
    numbers = positive_numbers(fmt)
    top = 2 * numbers[-1] - numbers[-2]  # where the next number would be
    ends = np.append(numbers, [top, 2 * top, 1e30])
    middle = (ends[:-1] + ends[1:]) / 2
    # Points beside the middles in binary32: ml_dtypes may go through it on its way from binary64.
    narrow = cast(np.concatenate([ends, middle]), np.float32).astype(np.float32)
    beside = [np.nextafter(narrow, np.float32(end)) for end in (0, np.inf)]
    points = np.concatenate([narrow, *beside, [np.inf]]).astype(np.float32)
    points = np.concatenate([points, -points])
    assert same(quantize(fmt, points), cast(points, DTYPES[fmt]))

    finite = points[np.isfinite(points)].astype(np.float64)
    beside = [np.nextafter(finite, end) for end in (-np.inf, np.inf)]
    points = np.concatenate([finite, *beside])
    for rounding, mode in (
        ("nearest_even", gfloat.RoundMode.TiesToEven),
        ("toward_zero", gfloat.RoundMode.TowardZero),
    ):
        expected = gfloat.round_ndarray(GFLOAT[fmt], points, mode, sat=not fmt.has_nan)
        assert same(quantize(fmt, points, rounding), expected)


# Random patterns.


@pytest.mark.parametrize("seed", range(10))  # ten million in all, shared among processes
def test_a_million_fp32_patterns_as_numpy_does(seed):
    patterns = np.random.default_rng(seed).integers(2**32, size=10**6, dtype=np.uint32)
    with np.errstate(invalid="ignore"):  # signalling NaN
        numbers = patterns.view(np.float32).astype(np.float64)
    assert same(decode(FP32, patterns), numbers)
    not_nan = ~np.isnan(numbers)
    assert np.array_equal(encode(FP32, numbers)[not_nan], patterns[not_nan])
    assert same(quantize(FP16, numbers), cast(numbers, np.float16))
    assert same(quantize(BF16, numbers), cast(patterns.view(np.float32), ml_dtypes.bfloat16))


def test_fp64_patterns_to_fp64_and_fp32_as_numpy_does():
    rng = np.random.default_rng(7)
    anywhere = rng.integers(2**64, size=300_000, dtype=np.uint64)
    in_reach = rng.normal(size=300_000) * 2.0 ** rng.integers(-155, 130, size=300_000)
    patterns = np.concatenate([anywhere, in_reach.view(np.uint64)])
    numbers = patterns.view(np.float64)
    not_nan = ~np.isnan(numbers)
    assert same(decode(FP64, patterns), numbers)
    assert np.array_equal(encode(FP64, numbers)[not_nan], patterns[not_nan])
    assert same(quantize(FP32, numbers), cast(numbers, np.float32))


def test_fp32_midpoints_and_the_points_beside_them():
    rng = np.random.default_rng(8)
    edges = [0, 1, 2, 0x7FFFFF, 0x800000, 0x7F7FFFFE]
    lower = np.append(rng.integers(0x7F7FFFFF, size=200_000), edges).astype(np.uint32)
    numbers = [code.view(np.float32).astype(np.float64) for code in (lower, lower + 1)]
    middle = (numbers[0] + numbers[1]) / 2
    assert np.array_equal(encode(FP32, middle), lower + lower % 2)
    assert np.array_equal(encode(FP32, np.nextafter(middle, 0)), lower)
    assert np.array_equal(encode(FP32, np.nextafter(middle, np.inf)), lower + 1)


# Overflow.


@pytest.mark.parametrize(
    ("fmt", "x", "nearest", "toward_zero"),
    [
        (FP16, 65519.999, 65504.0, 65504.0),
        (FP16, 65520.0, math.inf, 65504.0),
        (FP16, 1e300, math.inf, 65504.0),
        (FP16, math.inf, math.inf, math.inf),
        (FP8_E4M3, 464.0, 448.0, 448.0),  # a tie, and 448 has the even pattern
        (FP8_E4M3, 464.001, math.nan, 448.0),
        (FP8_E4M3, math.inf, math.nan, math.nan),
        (FP4_E2M1, 1e300, 6.0, 6.0),
        (FP4_E2M1, math.inf, 6.0, 6.0),
        (FP64, 1.7976931348623157e308, 1.7976931348623157e308, 1.7976931348623157e308),
    ],
)
def test_overflow(fmt, x, nearest, toward_zero):
    assert same(quantize(fmt, x), nearest)
    assert same(quantize(fmt, -x), -nearest)
    assert same(quantize(fmt, x, "toward_zero"), toward_zero)


def test_clipped_first_e4m3_saturates_as_torchs_does():
    import torch  # here, as it takes a second to load

    x = np.array([448, 464, 464.001, 480, 1e9, np.inf, -465, -np.inf, 0.1], np.float32)
    saturated = torch.from_numpy(x).to(torch.float8_e4m3fn).to(torch.float64).numpy()
    assert same(quantize(FP8_E4M3, np.clip(x, -448, 448)), saturated)


# Stochastic rounding.


@pytest.mark.parametrize("part", [0.0, 1 / 16, 0.3, 0.5, 0.99])
@pytest.mark.parametrize(
    ("fmt", "below", "above"),
    [
        (FP16, 32.0, 32.03125),
        (FP16, -1.0, -1 - 2**-10),
        (FP16, 0.0, 2**-24),
        (BF16, 1.9921875, 2.0),
        (FP8_E4M3, 2**-6 - 2**-9, 2**-6),
        (FP32, 1.0, 1 + 2**-23),
        (FP4_E2M1, 4.0, 6.0),
    ],
)
def test_stochastic_is_unbiased(fmt, below, above, part):
    draws = 100_000
    x = below + part * (above - below)
    rounded = quantize(fmt, np.full(draws, x), "stochastic", np.random.default_rng(1))
    part = (x - below) / (above - below)  # as binary64 holds it
    assert set(rounded.tolist()) <= ({below, above} if part else {below})
    went_up = np.mean(rounded == above)
    assert abs(went_up - part) <= 5 * math.sqrt(part * (1 - part) / draws)


def test_stochastic_sum_does_not_stall():
    rng = np.random.default_rng(2)
    nearest = stochastic = 0.0
    for _ in range(5000):
        nearest = quantize(FP16, nearest + 0.01)
        stochastic = quantize(FP16, stochastic + 0.01, "stochastic", rng)
    assert nearest == 32.0
    # Each addition errs by at most one gap (2^-5 up to 64), with mean 0.
    assert abs(stochastic - 50) <= 5 * 2**-5 * math.sqrt(5000) / 2


def test_stochastic_overflows_with_its_probability():
    x = np.full(100_000, 65504.0 + 8)  # a quarter of the way to 65536
    rounded = quantize(FP16, x, "stochastic", np.random.default_rng(3))
    assert abs(np.mean(np.isinf(rounded)) - 0.25) <= 5 * math.sqrt(0.25 * 0.75 / len(x))


def test_stochastic_repeats_with_an_equal_generator():
    x = np.linspace(-10, 10, 1001)
    first, again = (encode(BF16, x, "stochastic", np.random.default_rng(4)) for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, encode(BF16, x, "stochastic", np.random.default_rng(5)))


# Properties.

floats = st.floats(allow_nan=False)
any_format = st.sampled_from(list(FORMATS.values()))
with_inf = st.sampled_from([f for f in FORMATS.values() if f.has_inf])
directed = st.sampled_from(["nearest_even", "toward_zero"])


@given(any_format, st.floats(-448, 448), st.floats(-448, 448), directed)
def test_rounding_is_monotone(fmt, x, y, rounding):
    low, high = sorted([x, y])
    assert quantize(fmt, low, rounding) <= quantize(fmt, high, rounding)


@given(any_format, floats, directed, st.integers(0, 2**32))
def test_rounding_is_idempotent_and_symmetric(fmt, x, rounding, seed):
    once = quantize(fmt, x, rounding)
    assert same(quantize(fmt, -x, rounding), -once)
    if not math.isnan(once):
        for again in ("nearest_even", "toward_zero", "stochastic"):
            assert same(quantize(fmt, once, again, np.random.default_rng(seed)), once)


@given(any_format, st.floats(-448, 448))
def test_decode_of_encode_is_nearest(fmt, x):
    bits = encode(fmt, x)
    distance = abs(Fraction(decode(fmt, bits)) - Fraction(x))
    beside = [Fraction(n) for n in neighbours(fmt, bits) if n is not None and math.isfinite(n)]
    assert all(distance <= abs(n - Fraction(x)) for n in beside)
    assert all(distance < abs(n - Fraction(x)) for n in beside if bits % 2)


@given(any_format, st.floats(-448, 448))
def test_toward_zero_is_the_nearest_that_is_no_larger(fmt, x):
    bits = encode(fmt, x, "toward_zero")
    assert abs(decode(fmt, bits)) <= abs(x)
    outward = neighbours(fmt, bits)[0 if math.copysign(1, x) < 0 else 1]
    assert outward is None or abs(x) < abs(outward)


@given(any_format, st.data())
def test_powers_of_two_add_up_to_the_number(fmt, data):
    bits = data.draw(st.integers(0, 2**fmt.width - 1))
    number = decode(fmt, bits)
    if math.isfinite(number):
        powers = powers_of_two(fmt, bits)
        assert sum(Fraction(2) ** power for power in powers) == abs(Fraction(number))
        assert list(powers) == sorted(set(powers), reverse=True)


@given(
    st.integers(2, 8),
    st.integers(1, 12),
    st.integers(-20, 200),
    st.sampled_from(["ieee", "one_nan", "none"]),
    st.data(),
)
def test_any_format_follows_the_formula(exponent_bits, mantissa_bits, bias, specials, data):
    fmt = NumberFormat("drawn", exponent_bits, mantissa_bits, bias, specials)
    sign = data.draw(st.integers(0, 1))
    e = data.draw(st.integers(0, 2**exponent_bits - 1))
    f = data.draw(st.integers(0, 2**mantissa_bits - 1))
    bits = (sign << exponent_bits | e) << mantissa_bits | f
    number = decode(fmt, bits)
    all_ones = e == 2**exponent_bits - 1
    if specials == "ieee" and all_ones:
        assert same(number, math.nan if f else (-1) ** sign * math.inf)
        kind = "nan" if f else "infinity"
    elif specials == "one_nan" and all_ones and f == 2**mantissa_bits - 1:
        assert math.isnan(number)
        kind = "nan"
    else:
        share = Fraction(f, 2**mantissa_bits)
        exact = Fraction(2) ** (e - bias) * (1 + share) if e else Fraction(2) ** (1 - bias) * share
        assert Fraction(number) == (-1) ** sign * exact
        assert math.copysign(1, number) == (-1) ** sign
        assert encode(fmt, number) == bits
        kind = "normal" if e else "subnormal" if f else "zero"
    assert fields(fmt, bits) == Fields(sign, e, f, kind)


# Fields, gaps, neighbours.


@by_name(list(GFLOAT))
def test_fields_as_gfloat_has_them(fmt):
    kinds = {
        gfloat.FloatClass.ZERO: "zero",
        gfloat.FloatClass.SUBNORMAL: "subnormal",
        gfloat.FloatClass.NORMAL: "normal",
        gfloat.FloatClass.INFINITE: "infinity",
        gfloat.FloatClass.NAN: "nan",
    }
    for bits in range(0, 2**fmt.width, 1 if fmt.width <= 8 else 7):
        one = gfloat.decode_float(GFLOAT[fmt], bits)
        expected = Fields(one.signbit, one.exp, one.significand, kinds[one.fclass])
        assert fields(fmt, bits) == expected


@given(floats)
def test_fp64_gaps_and_neighbours_are_pythons(x):
    below, above = neighbours(FP64, encode(FP64, x))
    assert below == (None if x == -math.inf else math.nextafter(x, -math.inf))
    assert above == (None if x == math.inf else math.nextafter(x, math.inf))
    if math.isfinite(x):
        assert ulp(FP64, x) == math.ulp(x)


@given(st.sampled_from([FP32, FP16]), st.floats(width=16, allow_nan=False, allow_infinity=False))
def test_gaps_and_neighbours_are_numpys(fmt, x):
    number = DTYPES[fmt](x)
    below, above = neighbours(fmt, encode(fmt, x))
    with np.errstate(over="ignore"):
        assert below == np.nextafter(number, DTYPES[fmt](-np.inf))
        assert above == np.nextafter(number, DTYPES[fmt](np.inf))
    if abs(x) < 65504:  # at the largest number numpy's spacing is NaN
        assert ulp(fmt, x) == np.spacing(abs(number))


@by_name(TABLED)
def test_gap_is_the_distance_to_the_next_number(fmt):
    numbers = positive_numbers(fmt)
    step = max(1, len(numbers) // 500)
    for number, following in zip(numbers[:-1:step], numbers[1::step], strict=False):
        assert ulp(fmt, -number) == ulp(fmt, number) == following - number
    assert ulp(fmt, numbers[-1]) == numbers[-1] - numbers[-2]


def test_neighbours_at_zero_and_at_the_ends():
    assert neighbours(FP16, 0) == neighbours(FP16, 0x8000) == (-(2**-24), 2**-24)
    assert neighbours(FP16, 1)[0] == 0
    assert neighbours(FP16, 0x7BFF) == (65472.0, math.inf)
    assert neighbours(FP16, 0x7C00) == (65504.0, None)
    assert neighbours(FP8_E4M3, 0xFE) == (None, -416.0)
    assert neighbours(FP4_E2M1, 0b0111) == (4.0, None)


# Inputs and outputs.


def test_one_number_in_gives_a_python_number():
    for x in (0.1, np.float32(0.1), np.float64(0.1), 1, np.array(0.1)):
        assert type(encode(FP16, x)) is int
        assert type(quantize(FP16, x)) is float
    for bits in (1, np.uint16(1), np.int64(1)):
        assert type(decode(FP16, bits)) is float
    assert encode(FP32, 0.1) == struct.unpack("<I", struct.pack("<f", 0.1))[0]
    assert encode(FP16, 0.1) == struct.unpack("<H", struct.pack("<e", 0.1))[0]


@by_name(list(FORMATS.values()))
def test_arrays_keep_their_shape_and_are_left_alone(fmt):
    x = np.array([[0.0, -0.0, 1.0], [-1.5, 0.5, 3.0]]).T[::2]
    before = x.copy()
    bits = encode(fmt, x)
    assert bits.shape == x.shape
    assert bits.dtype.kind == "u"
    assert bits.dtype.itemsize * 8 == max(8, 2 ** math.ceil(math.log2(fmt.width)))
    assert same(decode(fmt, bits), x)
    assert same(x, before)
    for empty in (np.empty((0, 3)), np.empty((0, 3), np.float32)):
        assert quantize(fmt, empty).shape == (0, 3)


def test_formats_by_name():
    assert FORMATS["bf16"] is BF16
    assert list(FORMATS) == [f.name for f in FORMATS.values()]
    assert len(FORMATS) == 8


def test_what_is_exported():
    assert all(hasattr(formats, name) for name in formats.__all__)
    assert {f.name.upper() for f in FORMATS.values()} <= set(formats.__all__)


# Errors.


@pytest.mark.parametrize(
    "bits", [-1, 2**16, 2**70, 1.0, "1", True, None, np.array([3, -1]), np.array([0, 2**16])]
)
def test_a_bad_pattern_is_refused(bits):
    for function in (decode, fields) if np.ndim(bits) == 0 else (decode,):
        with pytest.raises(ValueError, match=r"not a pattern of fp16: expected .* 0 to 0xffff"):
            function(FP16, bits)


def test_the_bad_pattern_is_named():
    with pytest.raises(ValueError, match="0x12345 is not a pattern"):
        decode(FP16, np.array([1, 0x12345]))
    with pytest.raises(ValueError, match=r"1\.5 of type float is not a pattern"):
        decode(FP16, 1.5)


def test_an_unknown_rounding_is_refused():
    with pytest.raises(ValueError, match=r"'up' is unknown; use 'nearest_even'"):
        encode(FP16, 1.0, "up")


def test_stochastic_without_a_generator_is_refused():
    with pytest.raises(ValueError, match=r"give rng=np\.random\.default_rng"):
        quantize(FP16, 1.0, "stochastic")


def test_nan_is_refused_where_the_format_has_none():
    with pytest.raises(ValueError, match="but fp4_e2m1 has none"):
        encode(FP4_E2M1, np.array([1.0, np.nan]))


@pytest.mark.parametrize("x", [65505.0, -1e9, math.inf, math.nan])
def test_a_gap_beyond_the_largest_number_is_refused(x):
    with pytest.raises(ValueError, match=r"no gap at x=.* from -65504\.0 to 65504\.0"):
        ulp(FP16, x)


def test_nan_has_no_neighbours_and_is_no_sum():
    with pytest.raises(ValueError, match="0x7f is NaN in fp8_e4m3"):
        neighbours(FP8_E4M3, 0x7F)
    for bits in (0x7C00, 0x7E00):
        with pytest.raises(ValueError, match="not a sum of powers of two"):
            powers_of_two(FP16, bits)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ((5, 10, 15, "p3109"), "'p3109' is unknown"),
        ((1, 3, 1, "none"), "at least 2 exponent bits"),
        ((4, 0, 7, "ieee"), "1 to 52 mantissa bits"),
        ((11, 53, 1023, "ieee"), "1 to 52 mantissa bits"),
        ((12, 3, 2047, "ieee"), "binary64 holds only"),
        ((5, 10, -1000, "ieee"), r"to 2\^1030"),
        ((11, 52, 1024, "ieee"), r"from 2\^-1075"),
    ],
)
def test_a_format_that_binary64_does_not_hold_is_refused(parameters, said):
    with pytest.raises(ValueError, match=said):
        NumberFormat("odd", *parameters)
