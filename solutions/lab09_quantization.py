# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: nbgrader,tags,slideshow,jupyter,-all
#     notebook_metadata_filter: kernelspec,-jupytext.text_representation.jupytext_version
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 9: fewer bits for weights
#
# Llama 2 7B has 6.74 billion weights: 27 GB in float32, 13.5 GB in 16 bits. *Quantization* stores each weight as a
# whole number, a code of 8 or 4 bits. Many codes share one float, the *step* from one code to the next. In 4
# bits, the model takes under 4 GB. The price is precision, and this lab is about which weights should share a
# step to keep that price low.
#
# **You will be able to**
# - quantize weights with one step for all, one per row and one per block, and say which error each leaves;
# - store two codes in a byte, and predict the bytes of every scheme exactly;
# - multiply in int8 although some activations are huge, and encode in NF4, as QLoRA does;
# - find what keeps float copies of quantized weights alive;
# - (stretch) train through rounding, train adapters next to a frozen model, and keep Adam's state in 8 bits.
#
# | exercise | part | minutes | points |
# |---|---|---|---|
# | 9.1 Codes and a step | core | 14 | 3 |
# | 9.2 A zero point | core | 8 | 2 |
# | 9.3 Two codes in a byte | core | 8 | 2 |
# | 9.4 Multiply in int8 | core | 15 | 4 |
# | 9.5 Codes where weights are | core | 12 | 3 |
# | 9.6 Bytes, all of them | core | 6 | 2 |
# | 9.7 Find the leak | core | 8 | 2 |
# | 9.8 In your own words | core | 4 | 2 |
# | 9.9 Train through rounding | stretch | 8 | 2 |
# | 9.10 Adapters | stretch | 17 | 4 |
# | 9.11 Three weights | stretch | 6 | 2 |
# | 9.12 Adam in 8 bits | stretch | 14 | 3 |
# | **core** | | **75** | **20** |
# | **stretch** | | **45** | **11** |

# %% nbgrader={"grade": false, "grade_id": "lab09-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import statistics

import torch
import torch.utils.checkpoint
from torch import nn

import peakmem
from peakmem.hardware import accelerator
from peakmem.labs import Case, close, predicted, self_check, show_figure, whole
from peakmem.labs.lab09 import (
    metered_qlora_step,
    outlier_inputs,
    qlora_gpt,
    rounding_losses,
    weight_matrix,
)
from peakmem.meter import MemoryMeter
from peakmem.models import ModelShape
from peakmem.predict.qlora import qlora_peak
from peakmem.probes import lab09
from peakmem.show.plots.lab09 import draw_codes, draw_errors, draw_model_bytes

peakmem.lab("lab09_quantization")
torch.set_num_threads(1)  # for matrices as small as these, threads cost more time than they save
MIB = 2**20
WEIGHT = weight_matrix()  # (256, 512), like a trained layer's: unequal rows, some large values
INPUTS = torch.randn(64, 512, generator=torch.Generator().manual_seed(2))
print("Everything here runs on the CPU, in seconds. A GPU changes nothing.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-quantize_symmetric-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 9.1 Codes and a step (core, 3 points, 14 minutes)
#
# A *symmetric* code of $b$ bits is a whole number $q$ from $-t$ to $t$, with $t = 2^{b-1} - 1$, and stands for $q \cdot s$. The
# step $s$ is chosen so that the largest weight just fits: $s = \max|x| / t$. Every other weight is rounded to the
# nearest code, so its error is at most $s / 2$. One large weight makes the step large for all weights that share it.
# So each *channel*, such as a row of the matrix, may have its own step.
#
# Write `quantize_symmetric(x, bits, axis=None)`, which returns `(q, scale)`: int8 codes with the shape of
# `x`, and the step. Write `dequantize(q, scale)`, which returns floats.
#
# **Convention:** with `axis=0` each row has a step, with `axis=1` each column. Then `scale` is `(rows, 1)` or
# `(1, columns)`, so that it multiplies `q`. Without an axis there's one step for all, a tensor of one value. Ties go to
# the even code, as in `torch.round`. A channel of zeros has a step of 1. `bits` is 2 to 8.
#
# *Example:* for 127, 2.5 and -1.5 in 8 bits, the step is 1 and the codes are 127, 2 and -2.
#
# **Predict first.** `WEIGHT` is quantized to 4 bits with one step. What share of its codes is 0?

# %%
predicted_zeros = None  # your prediction, from 0 to 1


# %% nbgrader={"grade": false, "grade_id": "lab09-quantize_symmetric-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def quantize_symmetric(
    x: torch.Tensor, bits: int, axis: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return int8 codes of x, and the step of the tensor or of each channel."""
    ### BEGIN SOLUTION
    top = 2 ** (bits - 1) - 1
    across = [dim for dim in range(x.ndim) if dim != axis]
    largest = x.abs().amax(dim=across, keepdim=axis is not None)
    scale = torch.where(largest == 0, 1.0, largest / top)
    return (x / scale).round().clamp(-top, top).to(torch.int8), scale
    ### END SOLUTION


def dequantize(q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the floats that codes stand for."""
    ### BEGIN SOLUTION
    return q * scale
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab09-quantize_symmetric-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 9.1, codes and a step
def codes_of(*given):
    q, _ = quantize_symmetric(*given)
    return q


def steps_of(x, bits, *axis):
    _, scale = quantize_symmetric(x, bits, *axis)
    scale = torch.as_tensor(scale)
    return scale if axis else scale.flatten()


def is_above_0(x, bits):
    return bool((steps_of(x, bits) > 0).all())


def type_of(x, bits):
    return str(codes_of(x, bits).dtype)


def there_and_back(*given):
    return dequantize(*quantize_symmetric(*given))


def decoded_again(x, *given):
    """Decode twice, with other codes made in between."""
    coded = quantize_symmetric(x, *given)
    dequantize(*coded)
    quantize_symmetric(1 - x, *given)
    return dequantize(*coded)


ROWS = torch.tensor([[1.0, -4.0], [0.0, 0.0], [14.0, 2.2]])
TINY = 2.0**-40 * torch.tensor([1.0, 0.6, -0.2])
TIES = torch.tensor([127.0, 2.5, -1.5, 1.5, 126.5])
self_check(
    codes_of,
    [
        Case(
            (TIES, 8),
            [127, 2, -2, 2, 126],
            "the largest code is 127; halfway between two codes, take the even one",
            label="8 bits, ties",
        ),
        Case(
            (TINY, 2),
            [1, 1, 0],
            "the codes are -1, 0 and 1, however small x is",
            label="2 bits, tiny",
        ),
        Case(
            (TIES, 8),
            "torch.int8",
            "convert to torch.int8",
            label="type of codes",
            function=type_of,
        ),
        Case(
            (ROWS, 4),
            [[0, -2], [0, 0], [7, 1]],
            "the step is 14 / 7 for all values",
            label="one step",
        ),
        Case(
            (-ROWS, 4),
            [[0, 2], [0, 0], [-7, -1]],
            "the value with the largest size may be negative",
        ),
        Case((2 * ROWS, 4), [[0, -2], [0, 0], [7, 1]], "28 / 7: this x has its own step"),
        Case((ROWS, 4, 0), [[2, -7], [0, 0], [7, 1]], "a step for each row", label="axis=0"),
        Case((ROWS, 4, 1), [[0, -7], [0, 0], [7, 4]], "a step for each column", label="axis=1"),
        Case((ROWS, 3, 0), [[1, -3], [0, 0], [3, 0]], "codes from -3 to 3", label="3 bits, axis=0"),
        Case(
            (ROWS, 4, 0),
            [[4 / 7], [1], [2]],
            "a row of zeros has a step of 1; the shape is (rows, 1)",
            label="steps of rows",
            function=steps_of,
        ),
        Case(
            (ROWS, 4, 1),
            [[2, 4 / 7]],
            "the shape is (1, columns)",
            label="steps of columns",
            function=steps_of,
        ),
        Case(
            (ROWS[:2], 4, 1),
            [[1 / 7, 4 / 7]],
            "the shape is (1, columns) for a square, too",
            label="steps of a square",
            function=steps_of,
        ),
        Case(
            (ROWS.T, 4, 1),
            [[4 / 7, 1, 2]],
            "a column of zeros has a step of 1",
            label="a column of zeros",
            function=steps_of,
        ),
        Case((0 * TIES, 8), True, "0 / 0 is NaN", label="a step of zeros", function=is_above_0),
        Case(
            (ROWS, 4, 0),
            [[8 / 7, -4], [0, 0], [14, 2]],
            "codes times step, in floats",
            label="dequantize",
            function=there_and_back,
        ),
        Case(
            (ROWS, 4, 0),
            [[8 / 7, -4], [0, 0], [14, 2]],
            "in dequantize, use only the arguments, and don't write into them",
            label="dequantize again",
            function=decoded_again,
        ),
    ],
    equal=close(1e-5),
)
if predicted(predicted_zeros, question="what share of the 4-bit codes is 0?"):
    for name, axis in (("one step", None), ("one step per row", 0)):
        print(
            f"{name:16} {(codes_of(WEIGHT, 4, axis) == 0).double().mean():.1%} of the codes are 0"
        )
    print(f"You predicted {predicted_zeros} for one step.")

# %% nbgrader={"grade": true, "grade_id": "lab09-quantize_symmetric", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 9.1, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab09-quantize_symmetric", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-errors-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Whose step?
#
# A *block* is 64 neighbours in a row of the matrix: in `WEIGHT.view(-1, 64)` each block is a row. The error is
# the layer's output error: the norm of the difference over the norm of the exact output.


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab09-errors", "locked": true, "schema_version": 3, "solution": false, "task": false}
def output_error(weight, x=INPUTS):
    """Return the error of x @ weight.T relative to the output of WEIGHT."""
    exact = x @ WEIGHT.T
    return ((x @ weight.T - exact).norm() / exact.norm()).item()


bits = range(2, 9)
kinds = {
    "one step": lambda b: there_and_back(WEIGHT, b),
    "one step per row": lambda b: there_and_back(WEIGHT, b, 0),
    "one step per block": lambda b: there_and_back(WEIGHT.view(-1, 64), b, 0).view(WEIGHT.shape),
}
errors = {name: [output_error(make(b)) for b in bits] for name, make in kinds.items()}
show_figure(
    draw_errors(bits, errors),
    "Error of the output over bits, on a log scale. After the first few bits, each bit halves it. "
    "One step is several times worse than one per row, and blocks are twice as good as rows.",
)
print("With 4 bits:", ", ".join(f"{name} {found[2]:.0%}" for name, found in errors.items()))

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-errors-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* Each bit halves the error. One step per row is worth more than two bits, and one per block
# another bit. A float32 step for 64 codes costs half a bit per weight.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-quantize_affine-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 9.2 A zero point (core, 2 points, 8 minutes)
#
# After a ReLU nothing is negative, so half of the symmetric codes are unused. *Affine* codes are unsigned,
# from 0 to $2^b - 1$, and stand for $(q - z) \cdot s$. The *zero point* $z$ is a whole number, the code of
# 0.0, so that 0.0 is exact. It has to be: zeros are common (padding, ReLU, dropout), and their equal errors
# would add up.
#
# Write `quantize_affine(x, bits, axis=None)`, which returns `(q, scale, zero_point)`, with uint8 codes.
# 1. The range goes from $\mathrm{low}$, the smallest value, to $\mathrm{high}$, the largest; stretch it to
#    include 0.
# 2. The step is $s = (\mathrm{high} - \mathrm{low}) / (2^b - 1)$, or 1 if that is 0. The zero point is
#    $-\mathrm{low} / s$, rounded.
# 3. The code is $x / s$, rounded, plus the zero point, clipped to 0 and $2^b - 1$.
#
# `axis`, and the shapes of `scale` and `zero_point`, are as in 9.1. Keep `zero_point` a float tensor: in uint8,
# `q - zero_point` would wrap around.
#
# *Example:* for 0.0, 1.0 and 5.1 in 8 bits, the step is 0.02, the zero point 0, and the codes 0, 50 and 255.
#
# **Predict first.** By what factor is the error of `relu(WEIGHT)` smaller than with symmetric 8-bit codes?

# %%
predicted_gain = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab09-quantize_affine-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def quantize_affine(
    x: torch.Tensor, bits: int, axis: int | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return uint8 codes of x, steps, and the codes of 0.0."""
    ### BEGIN SOLUTION
    top = 2**bits - 1
    across = [dim for dim in range(x.ndim) if dim != axis]
    low = x.amin(dim=across, keepdim=axis is not None).clamp(max=0)
    high = x.amax(dim=across, keepdim=axis is not None).clamp(min=0)
    scale = torch.where(high == low, 1.0, (high - low) / top)
    zero_point = (-low / scale).round()
    q = ((x / scale).round() + zero_point).clamp(0, top)
    return q.to(torch.uint8), scale, zero_point
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab09-quantize_affine-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 9.2, a zero point
def all_three(x, bits, *axis):
    q, scale, zero_point = quantize_affine(x, bits, *axis)
    parts = [torch.as_tensor(part) for part in (scale, zero_point)]
    if parts[1].dtype in (torch.uint8, torch.int8):
        return f"zero_point is {parts[1].dtype}: keep it a float tensor"
    scale, zero_point = (part if axis else part.flatten() for part in parts)
    return {"q": q, "scale": scale, "zero_point": zero_point, "type": str(q.dtype)}


def three(q, scale, zero_point):
    return {"q": q, "scale": scale, "zero_point": zero_point, "type": "torch.uint8"}


SIDES = torch.tensor([[0.0, 1.0, 3.0], [-3.0, -1.0, 0.0], [0.0, 0.0, 0.0], [-1.5, 0.0, 1.5]])
FOUR = torch.tensor([[0.0, 3.0], [6.0, 9.0]])
CODES_OF_SIDES = torch.tensor([[0, 1, 3], [0, 2, 3], [0, 0, 0], [0, 2, 3]])
self_check(
    all_three,
    [
        Case(
            (torch.tensor([0.0, 1.0, 5.1]), 8),
            three([0, 50, 255], [0.02], [0]),
            "the step is range / 255",
            label="the example",
        ),
        Case(
            (torch.tensor([0.0, 1.017, 5.1]), 8),
            three([0, 51, 255], [0.02], [0]),
            "50.85 is rounded to 51",
            label="rounded",
        ),
        Case(
            (torch.tensor([-1.0, 0.0, 0.35, 1.6]), 2),
            three([0, 1, 1, 3], [2.6 / 3], [1]),
            "1.15 is rounded to 1, the code of 0.0; 0.35 / s is rounded to 0, then 1 is added",
            label="both sides",
        ),
        Case(
            (torch.tensor([6.0, 15.0]), 4),
            three([6, 15], [1], [0]),
            "stretch the range down to 0",
            label="above 0",
        ),
        Case(
            (torch.tensor([-6.0, -15.0]), 4),
            three([9, 0], [1], [15]),
            "stretch the range up to 0",
            label="below 0",
        ),
        Case(
            (SIDES, 2, 0),
            three(CODES_OF_SIDES, [[1]] * 4, [[0], [3], [0], [2]]),
            "each row has its own range; 1.5 is rounded to 2, and 2 + 2 is clipped to 3",
            label="axis=0",
        ),
        Case(
            (torch.tensor([0.0, 1.0, 5.1]), 4),
            three([0, 3, 15], [0.34], [0]),
            "the step is range / 15",
            label="4 bits",
        ),
        Case(
            (FOUR, 2, 0),
            three([[0, 3], [2, 3]], [[1], [3]], [[0], [0]]),
            "each row has its own range",
            label="rows of 2 x 2",
        ),
        Case(
            (FOUR, 2, 1),
            three([[0, 1], [3, 3]], [[2, 3]], [[0, 0]]),
            "each column has its own range",
            label="columns of 2 x 2",
        ),
        Case(
            (SIDES.T.contiguous(), 2, 1),
            three(CODES_OF_SIDES.T, [[1] * 4], [[0, 3, 0, 2]]),
            "each column has its own range",
            label="axis=1",
        ),
        Case(
            (-FOUR, 2, 1),
            three([[3, 2], [0, 0]], [[2, 3]], [[3, 3]]),
            "stretch the range of each column up to 0",
            label="columns below 0",
        ),
        Case(
            (2.0**-40 * torch.tensor([0.0, 1.0, 5.0, 15.0]), 4),
            three([0, 1, 5, 15], [2.0**-40], [0]),
            "the step is 1 only if the range is empty, however small x is",
            label="tiny",
        ),
        Case(
            (torch.full((2,), 6.0), 4),
            three([15, 15], [0.4], [0]),
            "from 0 to 6: the range isn't empty",
            label="equal values",
        ),
        Case(
            (torch.zeros(2), 4),
            three([0, 0], [1], [0]),
            "an empty range has a step of 1",
            label="zeros",
        ),
    ],
    equal=close(1e-5),
)
if predicted(predicted_gain, question="by what factor is the error smaller?"):
    x = WEIGHT.relu()
    q, scale, zero_point = quantize_affine(x, 8)
    gain = (there_and_back(x, 8) - x).norm() / ((q - zero_point) * scale - x).norm()
    print(f"The error is {gain:.2f} times smaller; you predicted {predicted_gain}.")

# %% nbgrader={"grade": true, "grade_id": "lab09-quantize_affine", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 9.2, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab09-quantize_affine", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-pack_int4-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 9.3 Two codes in a byte (core, 2 points, 8 minutes)
#
# torch has no 4-bit dtype to compute with. So you store 4-bit codes in pairs in a uint8 tensor: one in a
# byte's low four bits, one in the high four. In 4-bit two's complement, a negative code is stored as itself
# plus 16: -1 as 15, -8 as 8.
#
# Write `pack_int4(q)`. `q` is a vector of $n$ int8 codes from -8 to 7; the result is a uint8 vector of
# $\lceil n / 2 \rceil$ bytes that keeps no other tensor alive. Write `unpack_int4(packed, n)`, which returns
# the $n$ codes as int8. You choose which codes form a pair, and which goes where.
#
# *Useful:* `a & 15`, `a << 4`, `a >> 4`, `q[0::2]`. Shift uint8 tensors: on int8, `>>` copies the sign. The grader
# packs 42 million codes, too many for a Python loop over values.
#
# *Example:* 3 and -1 make $3 + 16 \cdot 15 = 243$ if the first is in the low bits.
#
# **Predict first.** How many bytes do 1,000,001 codes take?

# %%
predicted_bytes = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab09-pack_int4-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pack_int4(q: torch.Tensor) -> torch.Tensor:
    """Return codes from -8 to 7 as bytes, two in each."""
    ### BEGIN SOLUTION
    codes = torch.zeros(len(q) + len(q) % 2, dtype=torch.uint8)
    codes[: len(q)] = (q & 15).to(torch.uint8)
    return codes[0::2] | codes[1::2] << 4
    ### END SOLUTION


def unpack_int4(packed: torch.Tensor, n: int) -> torch.Tensor:
    """Return the n codes that were packed, as int8."""
    ### BEGIN SOLUTION
    codes = torch.stack([packed & 15, packed >> 4], dim=1).flatten()[:n].to(torch.int8)
    return torch.where(codes > 7, codes - 16, codes)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab09-pack_int4-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 9.3, two codes in a byte
def packed_and_back(q):
    return unpack_int4(pack_int4(q).clone(), len(q))


def unpacked_again(q):
    """Unpack twice, with other codes packed in between."""
    packed = pack_int4(q)
    unpack_int4(packed, len(q))
    pack_int4(~q[2:])
    return unpack_int4(packed, len(q))


def packed_form(q):
    packed = pack_int4(q)
    return packed.untyped_storage().nbytes(), str(packed.dtype), packed.ndim


def unpacked_type(q):
    return str(unpack_int4(pack_int4(q), len(q)).dtype)


def held_bytes(n):
    """Return the bytes that stay live after packing n codes."""
    with MemoryMeter("cpu") as meter:
        packed = pack_int4((torch.arange(n) % 15 - 7).to(torch.int8))
    return max(meter.live_bytes, packed.untyped_storage().nbytes())


EACH = torch.arange(-8, 8, dtype=torch.int8)
self_check(
    packed_and_back,
    [
        Case(
            (EACH,),
            EACH,
            "pack q & 15, the low four bits; when you unpack, subtract 16 from codes above 7",
            label="all 16 codes",
        ),
        Case((EACH[:5],), EACH[:5], "the last byte is half empty", label="5 codes"),
        Case((EACH[7:8],), [-1], "the last byte is half empty", label="one code"),
        Case((EACH[:0],), EACH[:0], "no codes take no bytes", label="no code"),
        Case(
            (EACH,),
            "torch.int8",
            "convert to torch.int8",
            label="type of codes",
            function=unpacked_type,
        ),
        Case(
            (EACH,),
            EACH,
            "in unpack_int4, use only the arguments, and don't write into them",
            label="unpacked again",
            function=unpacked_again,
        ),
        Case(
            (EACH,),
            (8, "torch.uint8", 1),
            "put two codes in a byte, and the bytes in a vector",
            label="bytes of 16 codes",
            function=packed_form,
        ),
        Case(
            (EACH[:5],),
            (3, "torch.uint8", 1),
            "round up",
            label="bytes of 5 codes",
            function=packed_form,
        ),
        Case(
            (2**20,),
            2**19,
            "the result keeps something else alive",
            label="live bytes",
            function=held_bytes,
        ),
    ],
)
if predicted(predicted_bytes, question="how many bytes do 1,000,001 codes take?"):
    print(f"{held_bytes(1_000_001):,} bytes are live; you predicted {predicted_bytes}.")

# %% nbgrader={"grade": true, "grade_id": "lab09-pack_int4", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 9.3, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab09-pack_int4", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-int8_linear-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 9.4 Multiply in int8 (core, 4 points, 15 minutes)
#
# Many GPUs multiply int8 matrices twice as fast as 16-bit ones. A product of two codes takes 15 bits, so sum
# them in int32, which is exact. At the end, multiply by both steps:
# $$y_{ij} = s_i \, w_j \sum_k p_{ik} \, q_{jk}$$
# Row $i$ of $x$ has codes $p_{ik}$ and the step $s_i = \max_k |x_{ik}| / 127$, computed in each call. Row $j$ of the
# weight has codes $q_{jk}$ and the step $w_j$, its `scale`.
#
# In language models with about 6.7 billion weights or more, a few columns of $x$ hold values up to 20 times
# as large as the others (Dettmers and others, 2022). They ruin every row's step. **LLM.int8** keeps these
# columns in float, and quantizes the rest.
#
# Write `int8_linear(x, q, scale, threshold)`. `x` is $(b, k)$ in float32; `q` and `scale` are a weight $(n, k)$ in int8 and its
# steps $(n, 1)$. Return $(b, n)$ in float32.
# 1. Columns of `x` with any $|x|$ above `threshold` are *outliers*. Multiply them in float32 by the decoded weight.
# 2. Quantize the other columns to 8 bits, one step per row (9.1, *Convention*), and multiply them as integers.
#
# The result is the sum of both. There may be no outliers, or only outliers. torch multiplies int8 in int8 and
# wraps around: convert to int32 first.
#
# *Points:* without outliers 2, with outliers 2.
#
# *Example:* without outliers, $x = (1.21, 2)$ has codes 77 and 127. With $q = (3, 4)$ and a scale of 0.5, it
# gives $(77 \cdot 3 + 127 \cdot 4) \cdot 0.5 \cdot 2/127 \approx 5.819$. In floats it's 5.815.
#
# **Predict first.** Two of 512 columns are 40 times as large as the others. How many times larger is the
# error if you quantize these two as well?

# %%
predicted_ratio = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab09-int8_linear-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def int8_linear(
    x: torch.Tensor, q: torch.Tensor, scale: torch.Tensor, threshold: float
) -> torch.Tensor:
    """Return x times the decoded weight, transposed, in int8 except for outlier columns."""
    ### BEGIN SOLUTION
    apart = (x.abs() > threshold).any(dim=0)
    codes, step = quantize_symmetric(x.masked_fill(apart, 0), 8, axis=0)
    sums = codes.int() @ q.int().T
    in_float = x[:, apart] @ dequantize(q[:, apart], scale).T
    return sums * step * scale.T + in_float
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab09-int8_linear-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 9.4, multiply in int8
def type_of_product(*given):
    return str(int8_linear(*given).dtype)


def after_another(x, q, *given):
    """Return the second of two products, the first with both matrices reversed."""
    int8_linear(x.flip(1), q.flip(1), *given)
    return int8_linear(x, q, *given)


CODES = torch.tensor([[3, 4], [-127, 127]], dtype=torch.int8)
HALF = torch.tensor([[0.5], [0.01]])
BIG = torch.tensor([[1.0, 50.0], [-0.5, 0.3]])
LONG = torch.ones(1, 300), torch.full((1, 300), 127, dtype=torch.int8), torch.ones(1, 1)
self_check(
    int8_linear,
    [
        Case(
            (torch.tensor([[1.21, 2.0]]), CODES, HALF, 9.0),
            [[739 / 127, 1.0]],
            "codes 77 and 127, and both steps; floats would give 5.815 and 1.003",
            label="the example",
            wrong={((-0.228346, -0.007874),): "int8 products wrap around: convert to int32 first"},
        ),
        Case(
            (torch.tensor([[1.21, 2.0]]), -CODES, HALF, 9.0),
            [[-739 / 127, -1.0]],
            "use this weight's codes",
            label="other codes",
        ),
        Case(
            (torch.tensor([[1.21, 2.0]]), CODES, 2 * HALF, 9.0),
            [[2 * 739 / 127, 2.0]],
            "use this weight's steps",
            label="other steps",
        ),
        Case(
            (*LONG, 9.0), [[300 * 127]], "sums wrap around unless they are int32", label="300 ones"
        ),
        Case(
            (*LONG, 9.0),
            "torch.float32",
            "return float32, like x",
            label="type of the result",
            function=type_of_product,
        ),
        Case(
            (torch.tensor([[127.0, 1.0], [1.27, 0.01]]), CODES[:1], HALF[:1], 999.0),
            [[192.5], [1.925]],
            "each row of x has its own step",
            label="two rows",
        ),
        Case(
            (BIG, CODES, HALF, 40.0),
            [[101.5, 62.23], [-0.15, 1.016]],
            "50 alone makes the whole second column an outlier",
            label="an outlier",
        ),
        Case(
            (-BIG, CODES, HALF, 9.0),
            [[-101.5, -62.23], [0.15, -1.016]],
            "compare sizes, without the sign",
            label="-50 is one too",
        ),
        Case(
            (BIG, CODES, HALF, 0.1),
            [[101.5, 62.23], [-0.15, 1.016]],
            "all columns are outliers: no column is left to quantize",
            label="threshold 0.1",
        ),
        Case(
            (BIG, CODES, HALF, 50.0),
            [[517 * 25 / 127, 62], [-77 / 508, 1.015]],
            "50 isn't above 50, so nothing is an outlier",
            label="at the threshold",
        ),
        Case(
            (0 * BIG, CODES, HALF, 9.0),
            [[0, 0], [0, 0]],
            "a row of zeros has a step of 1, as in 9.1",
            label="rows of zeros",
        ),
        Case(
            (
                torch.tensor([[1.0, 0.3, 50.0]]),
                torch.tensor([[3, 4, 5]]).to(torch.int8),
                HALF[:1],
                9.0,
            ),
            [[533 / 254 + 125]],
            "find outliers and decode the weight in each call",
            label="after another call",
            function=after_another,
        ),
    ],
    equal=close(1e-4),
)
if predicted(predicted_ratio, question="how many times larger is the error?"):
    q, scale = quantize_symmetric(WEIGHT, 8, 0)
    x = outlier_inputs()
    exact = x @ dequantize(q, scale).T
    apart, together = ((int8_linear(x, q, scale, t) - exact).norm() for t in (6.0, 1e9))
    print(f"{together / apart:.0f} times larger; you predicted {predicted_ratio}.")

# %% nbgrader={"grade": true, "grade_id": "lab09-int8_linear", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 9.4, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab09-int8_linear", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-nf4-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 9.5 Codes where weights are (core, 3 points, 12 minutes)
#
# int4's codes are evenly spaced, but weights aren't: most are near 0. **NF4** (Dettmers and others, 2023)
# divides each block of 64 by its largest absolute value, its *absmax*. A code is then an index into a table
# of 16 values, placed so that about equally many normally distributed weights are nearest to each. They are
# quantiles of the normal distribution. With $\Phi^{-1}$ as `statistics.NormalDist().inv_cdf` and $o =
# 0.9677083$:
# - 8 above 0: take 9 evenly spaced numbers from $o$ to 0.5, drop 0.5, and take $\Phi^{-1}$ of each;
# - 7 below 0: take 8 evenly spaced numbers from $o$ to 0.5, drop 0.5, and take minus $\Phi^{-1}$ of each;
# - and 0 itself, so that zeros are exact.
#
# `nf4_table()` returns them all, divided by the largest and sorted.
#
# Write `nf4_encode(x, block=64)`. `x` is a vector of $n$ float32 values. It returns `(packed, absmax)`: the index of
# the nearest value in the table (0 to 15), two in a byte, and one float32 for each block. Write
# `nf4_decode(packed, absmax, n, block=64)`, which returns the $n$ floats. The last block may be short, a
# block may be all zeros, and $n$ may be odd. On a tie, either value is correct. Pack with `pack_int4`, which
# takes the index minus 8.
#
# *Example:* the values 2 and -1 make one block with `absmax` 2. Divided by it, they are 1 and -0.5; the
# nearest values are 1 and -0.5251, so -1 becomes -1.0501.
#
# **Predict first.** By what factor is NF4's mean squared error smaller than int4's, with blocks of 64 for both?

# %%
predicted_nf4 = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab09-nf4-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def nf4_table() -> torch.Tensor:
    """Return NF4's 16 values from -1 to 1, sorted."""
    ### BEGIN SOLUTION
    quantile, o = statistics.NormalDist().inv_cdf, 0.9677083
    above = [quantile(o + i / 8 * (0.5 - o)) for i in range(8)]
    below = [-quantile(o + i / 7 * (0.5 - o)) for i in range(7)]
    return torch.tensor(sorted([*below, 0.0, *above])) / max(above)
    ### END SOLUTION


def nf4_encode(x: torch.Tensor, block: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    """Return NF4 codes of x, two in a byte, and the largest |x| of each block."""
    ### BEGIN SOLUTION
    blocks = torch.nn.functional.pad(x, (0, -len(x) % block)).view(-1, block)
    absmax = blocks.abs().amax(dim=1, keepdim=True)
    scaled = blocks / torch.where(absmax == 0, 1.0, absmax)
    codes = (scaled[..., None] - nf4_table()).abs().argmin(dim=-1)
    return pack_int4((codes.flatten()[: len(x)] - 8).to(torch.int8)), absmax.flatten()
    ### END SOLUTION


def nf4_decode(packed: torch.Tensor, absmax: torch.Tensor, n: int, block: int = 64) -> torch.Tensor:
    """Return the n floats that NF4 codes stand for."""
    ### BEGIN SOLUTION
    codes = unpack_int4(packed, n).long() + 8
    return nf4_table()[codes] * absmax.repeat_interleave(block)[:n]
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab09-nf4-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 9.5, codes where weights are
def nf4_and_back(x, *block):
    packed, absmax = nf4_encode(x, *block)
    return nf4_decode(packed, absmax, len(x), *block)


def nf4_again(x, block):
    """Decode twice, with other codes made in between."""
    packed, absmax = nf4_encode(x, block)
    nf4_decode(packed, absmax, len(x), block)
    nf4_encode(1 - x.repeat(2), 2 * block)
    return nf4_decode(packed, absmax, len(x), block)


def table_of():
    """Return your nf4_table(), unless your code doesn't need one."""
    return nf4_table() if "nf4_table" in globals() else PRINTED


def nf4_form(x, *block):
    packed, absmax = nf4_encode(x, *block)
    absmax = torch.as_tensor(absmax).flatten()
    return packed.untyped_storage().nbytes(), str(packed.dtype), str(absmax.dtype), absmax


PRINTED = [-1, -0.69619, -0.52507, -0.39492, -0.28444, -0.18477, -0.09105, 0]
PRINTED += [0.07958, 0.16093, 0.24611, 0.33792, 0.44071, 0.56262, 0.72296, 1]
RAGGED = torch.tensor([2.0, -1.0, 0.0, 0.0, -0.3])
self_check(
    nf4_and_back,
    [
        Case(
            (),
            PRINTED,
            "the table of QLoRA's appendix, sorted",
            label="the table",
            function=table_of,
        ),
        Case(
            (torch.tensor([2.0, -1.0]),),
            [2, -1.0501460],
            "the value nearest to -0.5 is -0.5251",
            label="the example",
        ),
        Case(
            (torch.tensor(4 * PRINTED + [2 * value for value in PRINTED]),),
            4 * PRINTED + [2 * value for value in PRINTED],
            "these are exact; a block has 64 values by default, in nf4_decode too",
            label="all 16 values, 5 times",
        ),
        Case(
            (RAGGED, 2),
            [2, -1.0501460, 0, 0, -0.3],
            "handle zeros and a short block",
            label="blocks of 2",
        ),
        Case(
            (RAGGED, 2),
            [2, -1.0501460, 0, 0, -0.3],
            "in nf4_decode, use only the arguments, and don't write into them",
            label="decoded again",
            function=nf4_again,
        ),
        Case(
            (RAGGED.flip(0), 2),
            (3, "torch.uint8", "torch.float32", [0.3, 1, 2]),
            "return 3 bytes and 3 absmax in float32",
            label="stored",
            function=nf4_form,
        ),
        Case(
            (torch.ones(9), 3),
            (5, "torch.uint8", "torch.float32", [1, 1, 1]),
            "pack all codes together: a byte may hold codes of two blocks",
            label="blocks of 3",
            function=nf4_form,
        ),
        Case(
            (torch.ones(65),),
            (33, "torch.uint8", "torch.float32", [1, 1]),
            "by default a block has 64 values",
            label="the default",
            function=nf4_form,
        ),
        Case(
            (torch.ones(8), 4),
            (4, "torch.uint8", "torch.float32", [1, 1]),
            "there are two blocks, not three",
            label="whole blocks",
            function=nf4_form,
        ),
    ],
    equal=close(1e-4, 1e-5),
)
if predicted(predicted_nf4, question="by what factor is NF4's error smaller?"):
    x = WEIGHT.flatten()
    in_int4 = there_and_back(x.view(-1, 64), 4, 0).flatten()
    squares = [(made - x).square().mean() for made in (in_int4, nf4_and_back(x))]
    print(f"{squares[0] / squares[1]:.2f} times smaller; you predicted {predicted_nf4}.")
    blocks = WEIGHT.view(-1, 64)
    scaled = blocks / blocks.abs().amax(dim=1, keepdim=True)
    figure = draw_codes(
        scaled.flatten().numpy(), {"int4": torch.arange(-7, 8) / 7, "NF4": torch.tensor(PRINTED)}
    )
    show_figure(
        figure,
        "A histogram of weights over the largest of their block: a bell around 0, with bars at -1 "
        "and 1. Below it, int4's 15 even values, and NF4's 16, which are denser around 0.",
    )

# %% nbgrader={"grade": true, "grade_id": "lab09-nf4", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 9.5, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab09-nf4", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-stored_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 9.6 Bytes, all of them (core, 2 points, 6 minutes)
#
# NF4 with a float32 absmax for 64 weights takes $4 + 32/64 = 4.5$ bits per weight. For 7 billion weights, the
# half bit adds 0.4 GB. *Double quantization* quantizes each absmax too, to 8 bits.
#
# Write `stored_bytes(n, scheme)`: the bytes that $n$ weights take, as an `int`.
#
# | scheme | codes | steps |
# |---|---|---|
# | `"int8"` | a byte each | one float32 |
# | `"int4_grouped"` | two in a byte | one float16 for each group of 128 |
# | `"nf4"` | two in a byte | one float32 for each block of 64 |
# | `"nf4_double"` | two in a byte | one byte for each block of 64, and one float32 for each 256 blocks |
#
# Round bytes, groups and blocks up. Raise `ValueError` for any other scheme.
#
# *Example:* 129 weights in `"int4_grouped"` take 65 bytes of codes and 4 of steps: 69.
#
# **Predict first.** How many bits per weight does `"nf4_double"` take?

# %%
predicted_bits = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab09-stored_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stored_bytes(n: int, scheme: str) -> int:
    """Return the bytes of n weights, codes and steps."""
    ### BEGIN SOLUTION
    halves, groups, blocks = -(-n // 2), -(-n // 128), -(-n // 64)
    if scheme == "int8":
        return n + 4
    if scheme == "int4_grouped":
        return halves + 2 * groups
    if scheme == "nf4":
        return halves + 4 * blocks
    if scheme == "nf4_double":
        return halves + blocks + 4 * -(-blocks // 256)
    raise ValueError(f"no scheme {scheme!r}")
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab09-stored_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 9.6, bytes, all of them
self_check(
    stored_bytes,
    [
        Case((1000, "int8"), 1004, "one byte each, and one float32"),
        Case((129, "int4_grouped"), 69, "the example"),
        Case((129, "nf4"), 77, "65 bytes, and three blocks"),
        Case((65, "nf4"), 41, "33 bytes, and two blocks", wrong={40: "Round half bytes up."}),
        Case((1, "nf4"), 5, "a byte, and a block"),
        Case((64 * 256, "nf4_double"), 8192 + 256 + 4, "256 blocks share one float32"),
        Case((64 * 256 + 1, "nf4_double"), 8193 + 257 + 8, "the 257th block needs another one"),
        Case(
            (10**10 + 1, "nf4"),
            5 * 10**9 + 1 + 4 * 156_250_001,
            "compute exactly, in whole numbers",
        ),
        Case(
            (10**13 + 1, "nf4_double"),
            5 * 10**12 + 1 + 156_250_000_001 + 4 * 610_351_563,
            "compute exactly here too: a float has 53 bits",
        ),
        Case((0, "int8"), 4, "the step is there even without weights"),
        *(
            Case((8, name), raises=ValueError, hint="raise ValueError for an unknown scheme")
            for name in ("int4", "NF4", "nf4_triple", "uint8", "int4_double", "nf4 ", "nf4-double")
        ),
    ],
    equal=whole(),
)
if predicted(predicted_bits, question="how many bits per weight with double quantization?"):
    n = 6_738_415_616  # of Llama 2 7B
    print(f"{8 * stored_bytes(n, 'nf4_double') / n:.3f} bits; you predicted {predicted_bits}.")
    schemes = ("int8", "int4_grouped", "nf4", "nf4_double")
    sizes = {"float32": 4 * n / 1e9, "bfloat16": 2 * n / 1e9}
    sizes |= {scheme: stored_bytes(n, scheme) / 1e9 for scheme in schemes}
    boards = ("rtx3080-10gb", "t4-16gb", "rtx4090-24gb")
    cards = {name: accelerator(name).memory_bytes / 1e9 for name in boards}
    show_figure(
        draw_model_bytes(sizes, cards),
        "Bars of the weights of a 7B model: float32 27 GB, more than a 24 GB board holds; bfloat16 13.5, "
        "int8 6.7, and the three 4-bit schemes between 3.5 and 3.8. Lines mark 10, 16 and 25 GB.",
    )

# %% nbgrader={"grade": true, "grade_id": "lab09-stored_bytes", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 9.6, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab09-stored_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-stored-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Does it hold?
#
# The meter counts your own tensors of `WEIGHT`, next to your formula. The absmax of a block is never
# negative, so it's stored in your unsigned codes.


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab09-stored", "locked": true, "schema_version": 3, "solution": false, "task": false}
def in_nf4_double():
    packed, absmax = nf4_encode(WEIGHT.flatten())
    return packed, *quantize_affine(absmax.view(-1, 256), 8, 0)[:2]


def in_int4_grouped():
    q, scale = quantize_symmetric(WEIGHT.view(-1, 128), 4, 0)
    return pack_int4(q.flatten()), scale.half()


ways = {
    "int8": lambda: quantize_symmetric(WEIGHT, 8),
    "int4_grouped": in_int4_grouped,
    "nf4": lambda: nf4_encode(WEIGHT.flatten()),
    "nf4_double": in_nf4_double,
}
for scheme, make in ways.items():
    with MemoryMeter("cpu") as meter:
        held = make()
        meter.track(held)  # tensors made from numpy's arrays, too
    print(
        f"{scheme:12} {meter.live_bytes:7,} bytes live, {stored_bytes(WEIGHT.numel(), scheme):7,} by formula"
    )
    del held

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-find_the_leak-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 9.7 Find the leak (core, 2 points, 8 minutes)
#
# If you train something *in front of* a quantized model, such as a prompt, the model's layers need no
# gradient, but `x` does. This step makes one float copy at a time and deletes it. Its results are correct.
# Run the next cell: why are all copies alive at the peak?
#
# Write `quantized_step(layers, x)`, a fixed copy of `leaky_step`. It returns the same loss and leaves the
# same `x.grad`, in float32. With 16 layers, its peak must not exceed the codes plus **four** float32 weight
# matrices, including `x`. You may use `torch.utils.checkpoint.checkpoint` with `use_reentrant=False`; write
# its full name.
#
# *Points:* same results 1, peak 1.
#
# *Example:* 16 layers of width 512 have 4 MiB of codes; four copies add 4 MiB.


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab09-leak", "locked": true, "schema_version": 3, "solution": false, "task": false}
def leaky_step(layers, x):
    """Return the loss of x through int8 layers, and leave its gradient in x.grad."""
    output = x
    for codes, scale in layers:
        weight = codes.float() * scale
        output = torch.relu(output @ weight.T)
        del weight
    loss = output.square().mean()
    loss.backward()
    return loss.item()


def step_results(step, width=8):
    torch.manual_seed(0)
    layers = [
        (torch.randint(-127, 128, (width, width)).to(torch.int8), torch.rand(width, 1) / width)
        for _ in range(3)
    ]
    x = torch.randn(4, width, requires_grad=True)
    loss = step(layers, x)
    return loss.item() if isinstance(loss, torch.Tensor) else loss, x.grad


def peak_mib(step, n_layers, width=512):
    """Return a step's peak, including its int8 layers."""
    codes = torch.ones(n_layers, width, width, dtype=torch.int8)
    layers = [(part, torch.full((width, 1), 1 / width)) for part in codes]
    x = torch.randn(4, width, requires_grad=True)
    with MemoryMeter("cpu").track(codes, x) as meter:
        step(layers, x)
    return meter.peak_bytes / MIB


for n in (4, 8, 16):
    print(f"{n:2} layers: {n / 4:.0f} MiB of codes, a peak of {peak_mib(leaky_step, n):.1f} MiB")


# %% nbgrader={"grade": false, "grade_id": "lab09-find_the_leak-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def quantized_step(layers, x: torch.Tensor) -> float:
    """Return the loss of x through int8 layers, and leave its gradient in x.grad."""

    ### BEGIN SOLUTION
    def layer(x, codes, scale):
        return torch.relu(x @ (codes.float() * scale).T)

    output = x
    for codes, scale in layers:
        output = torch.utils.checkpoint.checkpoint(layer, output, codes, scale, use_reentrant=False)
    loss = output.square().mean()
    loss.backward()
    return loss.item()
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab09-find_the_leak-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 9.7, find the leak
def peak_of(n_layers):
    """Return a step's peak, or that it's at most its codes and four float32 weights."""
    peak, most = peak_mib(quantized_step, n_layers), n_layers / 4 + 4
    return f"at most {most:.0f} MiB" if peak <= most else f"{peak:.1f} MiB"


SAME = (
    "keep the loss and x.grad; backward calls a checkpointed function again: pass it its own codes"
)
KEPT = "the graph saves each copy, for x's gradient: recompute one layer at a time in backward"
self_check(
    step_results,
    [
        Case((quantized_step,), step_results(leaky_step), SAME, label="results"),
        Case((4,), "at most 5 MiB", KEPT, label="peak of 4 layers", function=peak_of),
        Case((16,), "at most 8 MiB", KEPT, label="peak of 16 layers", function=peak_of),
    ],
    equal=close(1e-4),
)
print(
    "What leaked: output @ weight.T saves the weight, for x's gradient. `del` only removes a name."
)

# %% nbgrader={"grade": true, "grade_id": "lab09-find_the_leak", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 9.7, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab09-find_the_leak", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 9.8 In your own words (core, 2 points, 4 minutes)
#
# A friend quantizes a model to int8 with one step for each matrix, and its answers are nonsense. With 4 bits
# in blocks of 64, they're good. In three or four sentences: how can fewer bits be better, and what would you
# look at first?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab09-explain", "locked": false, "schema_version": 3, "solution": true, "task": false, "points": 2}
# ### BEGIN SOLUTION
# The error is up to half a step, and the step depends on the largest value that shares it, not on bits alone. One
# value that is a hundred times as large as the others leaves them a few codes out of 255, while in blocks
# it spoils 63 neighbours only. I would compare the largest size in each row and block with the typical one:
# look for outliers, in weights and in activations.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-core-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **The core ends here.** You should now be able to say:
#
# - The error of a code is up to half a step, and the largest value that shares a step sets the step.
# - A scheme's bytes are codes plus steps: 8, 4.5 or 4.127 bits per weight.
# - A few columns of activations are too large for int8. They stay in float.
# - Codes needn't be evenly spaced: NF4 puts them where weights are.
# - If you decode weights on the fly, make sure that autograd doesn't save the copies.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-fake_quant-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 9.9 Train through rounding (stretch, 2 points, 8 minutes)
#
# Rounding a trained network to 3 bits spoils it. A network that is rounded in every forward pass *of training* learns
# weights that survive it. But the derivative of rounding is 0 almost everywhere. The *straight-through* trick pretends
# that it's 1: forward rounds, backward doesn't.
#
# Write `fake_quant(x, bits)`: clip values to $[-1, 1]$ and round to the nearest multiple of $1 / (2^{b-1} -
# 1)$. The gradient passes unchanged where $|x| < 1$, and is 0 where $x$ was clipped.
#
# *Useful:* where `b` is computed from `a`, `a + (b - a).detach()` has the value of `b` and the gradient of `a`.
#
# *Example:* 3 bits have multiples of 1/3: 0.6 becomes 0.6667 with a gradient of 1, and 1.2 becomes 1 with a gradient of 0.
#
# **Predict first.** Rounded to 3 bits after training, a network has a loss of 0.54. What is its loss if it's
# also rounded in training?

# %%
predicted_loss = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab09-fake_quant-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fake_quant(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Return x clipped to [-1, 1] and rounded, with a straight-through gradient."""
    ### BEGIN SOLUTION
    top = 2 ** (bits - 1) - 1
    inside = x.clamp(-1, 1)
    return inside + ((inside * top).round() / top - inside).detach()
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab09-fake_quant-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 9.9, train through rounding
def with_gradient(function, *tensors):
    """Return the function's value, and the gradients under an upstream of 1, 2, 3, ...

    Between forward and backward there's another call. "changed" is returned if one wrote into x.
    """
    leaves = [a.clone().requires_grad_() if torch.is_tensor(a) else a for a in tensors]
    value = function(*leaves)
    function(*(1 - a if torch.is_tensor(a) else a for a in tensors))
    value.backward(torch.arange(1.0, value.numel() + 1).view_as(value))
    found = [(a, leaf) for a, leaf in zip(tensors, leaves, strict=True) if torch.is_tensor(a)]
    if not all(torch.equal(a, leaf) for a, leaf in found):
        return "changed"
    return value.detach(), *(leaf.grad for _, leaf in found)


X = torch.tensor([0.6, 1.2, -0.1, -3.0])
self_check(
    with_gradient,
    [
        Case(
            (fake_quant, X, 3),
            ([2 / 3, 1, 0, -1], [1, 0, 3, 0]),
            "pass the incoming gradient on where x was only rounded; 0 where it was clipped",
            label="3 bits",
        ),
        Case(
            (fake_quant, 1.5 * X, 2),
            ([1, 1, 0, -1], [1, 0, 3, 0]),
            "the values are -1, 0 and 1",
            label="2 bits",
        ),
        Case(
            (fake_quant, X, 4),
            ([4 / 7, 1, -1 / 7, -1], [1, 0, 3, 0]),
            "the step is 1 / 7",
            label="4 bits",
        ),
        Case(
            (fake_quant, -X, 3),
            ([-2 / 3, -1, 0, 1], [1, 0, 3, 0]),
            "this x",
            label="3 bits, other signs",
        ),
        Case(
            (fake_quant, X / 4, 8),
            (X.div(4).mul(127).round() / 127, [1, 2, 3, 4]),
            "the step is 1 / 127",
            label="8 bits",
        ),
    ],
    equal=close(1e-5, 1e-6),
)
if predicted(predicted_loss, question="what is the loss if trained with rounding?"):
    for name, loss in rounding_losses(fake_quant, 3).items():
        print(f"{name:24} {loss:.3f}")
    print(f"You predicted {predicted_loss}.")

# %% nbgrader={"grade": true, "grade_id": "lab09-fake_quant", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 9.9, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab09-fake_quant", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-lora-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 9.10 Adapters (stretch, 4 points, 17 minutes)
#
# Training a model takes 16 bytes per weight (lab 3). **LoRA** (Hu and others, 2021) freezes the model and
# trains two thin matrices next to a layer: $y = W x + \frac{\alpha}{r} B A x$, with $A$ of shape $(r,
# \mathrm{in})$, $B$ of shape $(\mathrm{out}, r)$, the rank $r$ and a factor $\alpha$. Only $A$ and $B$ have
# gradients and moments. If the frozen weight has 4 bits, that is QLoRA.
#
# Write the module `Lora(linear, rank, alpha)`:
# - Freeze `linear`, an `nn.Linear`, including its bias. Only $A$ and $B$ are trainable, without biases.
# - At the start, the output is the layer's: $B = 0$, and $A$ is random.
# - Multiply `x` by $A$, then by $B$. Forward never computes $BA$, which is as large as the weight.
# - `merge()` returns one `nn.Linear` that does what the module does now, new or made of the frozen one.
#
# *Points:* equal at the start 1, trained and merged 2, optimizer and gradient bytes 1.
#
# *Example:* for a layer of 1024 x 1024, rank 4 trains 8,192 values instead of 1,049,600.
#
# **Predict first.** That frozen layer takes 4 MiB. How many KiB do a rank-4 adapter's gradients and Adam
# state take?

# %%
predicted_kib = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab09-lora-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Lora(nn.Module):
    """A frozen linear layer plus a trainable product of two thin matrices."""

    def __init__(self, linear: nn.Linear, rank: int, alpha: float):
        super().__init__()
        ### BEGIN SOLUTION
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output plus the adapter's."""
        ### BEGIN SOLUTION
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)
        ### END SOLUTION

    def merge(self) -> nn.Linear:
        """Return one linear layer that does the same."""
        ### BEGIN SOLUTION
        has_bias = self.linear.bias is not None
        merged = nn.Linear(self.linear.in_features, self.linear.out_features, bias=has_bias)
        merged.load_state_dict(self.linear.state_dict())
        with torch.no_grad():
            merged.weight += self.scale * self.b @ self.a
        return merged
        ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab09-lora-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 9.10, adapters
def lora_report(what, bias=True):
    """Return one of the probe's findings about your Lora: rank 2, alpha 8, three steps of Adam."""
    found = lab09.adapted(Lora, n_in=5, n_out=7, rank=2, alpha=8.0, bias=bias, seed=0)
    x, weight = torch.from_numpy(found["x"]), torch.from_numpy(found["weight"])
    plain = nn.functional.linear(x, weight, torch.from_numpy(found["bias"]) if bias else None)
    shapes = sorted(tuple(sorted(array.shape)) for array in found["trainable"])
    gap = {
        "start": abs(found["start"] - plain.numpy()).max(),
        "merged": abs(found["merged"] - found["trained"]).max(),
    }
    learned = abs(found["trained"] - plain.numpy()).max() > 0.01
    pairs = zip(found["trainable"], found["zero_at_start"], strict=True)
    zeros = sorted(tuple(sorted(array.shape)) for array, zero in pairs if zero)
    arrays = map(torch.from_numpy, found["trainable"])
    ranks = [torch.linalg.matrix_rank(a, atol=1e-6).item() for a in arrays if a.ndim == 2]
    flags = {"frozen": not found["base_changed"], "returned": found["returned"]}
    more = {"zeros": zeros, "learned": learned, "ranks": ranks}
    return {"shapes": shapes, **flags, **more}.get(what, gap.get(what))


def scale_of(alpha):
    """Return the output of an adapter of ones on a layer of zeros."""
    return with_ones(nn.init.zeros_, 2, alpha)(torch.ones(1, 3)).detach().flatten()


def with_ones(fill, rank, alpha):
    """Return an adapter of ones on a layer of 3 x 4 whose weight is filled."""
    layer = nn.Linear(3, 4, bias=False)
    fill(layer.weight)
    adapter = Lora(layer, rank, alpha)
    for parameter in adapter.parameters():
        if parameter.requires_grad:
            nn.init.ones_(parameter)
    return adapter


def slope_of():
    """Return the gradient of x through an adapter of ones on a layer of ones."""
    x = torch.ones(1, 3, requires_grad=True)
    with_ones(nn.init.ones_, 1, 2.0)(x).sum().backward()
    return None if x.grad is None else x.grad.flatten()


def beside_kib(width=1024):
    """Return the KiB of gradients and Adam's state, and whether nothing was as large as the layer."""
    layer = nn.Linear(width, width)
    with MemoryMeter("cpu").track(layer) as meter:
        adapter = Lora(layer, 4, 8.0)
        trainable = [p for p in adapter.parameters() if p.requires_grad]
        own = sum(p.nbytes for p in trainable)
        optimizer = torch.optim.Adam(trainable, foreach=False)
        adapter(torch.randn(2, width)).sum().backward()
        optimizer.step()
    more = [meter.live_bytes - meter.baseline_bytes - own, meter.peak_bytes - meter.baseline_bytes]
    return round(more[0] / 1024), more[1] < MIB


self_check(
    lora_report,
    [
        Case(
            ("shapes",),
            [(2, 5), (2, 7)],
            "train only A and B: freeze the bias too",
            label="parameters",
        ),
        Case(("start",), 0, "B is 0 at the start", label="equal at the start"),
        Case(("zeros",), [(2, 7)], "B is 0, and A is random", label="zeros at the start"),
        Case(("learned",), True, "if both are 0, neither gets a gradient", label="learns"),
        Case(("ranks",), [2, 2], "draw A at random: equal rows stay equal", label="ranks"),
        Case(("frozen",), True, "freeze weight and bias", label="frozen"),
        Case((5.0,), [15] * 4, "alpha / rank = 2.5", label="scale", function=scale_of),
        Case((), [12.0] * 3, "x also needs a gradient", label="gradient of x", function=slope_of),
        Case(("returned",), True, "merge() returns an nn.Linear", label="returned"),
        Case(("merged",), 0, "merge() adds alpha / rank times B A to the weight", label="merged"),
        Case(("merged", False), 0, "a layer may have no bias", label="merged, no bias"),
        Case((), (96, True), "multiply x by A, then by B", label="bytes", function=beside_kib),
    ],
    equal=close(1e-4, 1e-4),
)
if predicted(predicted_kib, question="how many KiB do gradients and Adam's state take?"):
    print(
        f"{beside_kib()[0]} KiB; you predicted {predicted_kib}. Training the layer itself: 12,300."
    )

# %% nbgrader={"grade": true, "grade_id": "lab09-lora", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 9.10, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab09-lora", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-qlora-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### QLoRA, predicted and metered
#
# A GPT of two layers, with its matrices in your NF4 and your adapters, takes a step on 8 sequences of 128
# tokens. `qlora_peak` predicts its peak, and the meter measures it.
#
# **Predict first.** How many MiB is that? In float32, its weights take 2 MiB.

# %%
predicted_mib = None  # your prediction, a number

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab09-qlora", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_mib, question="how many MiB does a step take?"):
    small = ModelShape("small", n_layers=2, d_model=128, n_heads=4, vocab=1000, context=128)
    on_paper = qlora_peak(small, 8, 8, 128, precision="fp32", profile="torch-cpu")
    metered = metered_qlora_step(
        qlora_gpt(small, 8, Lora, nf4_encode, nf4_decode), batch=8, seq=128
    )
    print(
        f"{on_paper / MIB:.1f} MiB by qlora_peak, {metered / MIB:.1f} by the meter; you predicted {predicted_mib}."
    )
    codes = stored_bytes(12 * small.n_layers * small.d_model**2, "nf4")
    print(f"Codes and absmax are {codes / MIB:.1f} MiB of that; most is activations and logits.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-ternary_linear-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 9.11 Three weights (stretch, 2 points, 6 minutes)
#
# BitNet b1.58 (Ma and others, 2024) trains with weights of $-1$, $0$ and $1$: $\log_2 3 \approx 1.58$ bits.
# If $\gamma$ is the *mean* of $|W|$ over the matrix, a code is $W / \gamma$, rounded and clipped to $[-1,
# 1]$; the weight used is the code times $\gamma$.
#
# Write `ternary_linear(x, weight)`: a matrix $x$ times that weight, transposed. The gradient of `weight` is
# straight-through *everywhere*, as if the weight itself had been used; none flows through $\gamma$. The
# gradient of `x` comes from the weight used.
#
# *Example:* the weights 0.1, -0.5 and 0.6 have $\gamma = 0.4$, and become 0, -0.4 and 0.4.
#
# **Predict first.** What share of normally distributed weights becomes 0?

# %%
predicted_share = None  # your prediction, from 0 to 1


# %% nbgrader={"grade": false, "grade_id": "lab09-ternary_linear-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ternary_linear(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return x times the ternary weight, transposed, with a straight-through gradient."""
    ### BEGIN SOLUTION
    gamma = weight.detach().abs().mean()
    rounded = (weight / gamma).round().clamp(-1, 1) * gamma
    return x @ (weight + (rounded - weight).detach()).T
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab09-ternary_linear-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 9.11, three weights
THREE = torch.tensor([[0.1, -0.5, 0.6]])
SIX = torch.tensor([[-0.1, -0.5, 0.3], [0.2, 1.6, 0.3]])  # gamma is 0.5
self_check(
    with_gradient,
    [
        Case(
            (ternary_linear, torch.eye(3), THREE),
            (
                [[0], [-0.4], [0.4]],
                [[0, -0.4, 0.4], [0, -0.8, 0.8], [0, -1.2, 1.2]],
                [[1, 2, 3]],
            ),
            "return the value; check the gradients of x and of the weight",
            label="the example",
        ),
        Case(
            (ternary_linear, torch.tensor([[1.0, 2.0, 3.0]]), 100 * SIX),
            ([[50, 250]], [[0, 50, 150]], [[1, 2, 3], [2, 4, 6]]),
            "one gamma for the matrix, and it multiplies the codes",
            label="two rows, times 100",
        ),
        Case(
            (ternary_linear, torch.tensor([[1.0, 2.0, 3.0]]), SIX),
            ([[0.5, 2.5]], [[0, 0.5, 1.5]], [[1, 2, 3], [2, 4, 6]]),
            "this weight has its own gamma",
            label="two rows",
        ),
        Case(
            (ternary_linear, torch.tensor([[2.0, 0.0, 1.0]]), SIX),
            ([[0.5, 0.5]], [[0, 0.5, 1.5]], [[2, 0, 1], [4, 0, 2]]),
            "this x",
            label="two rows, another x",
        ),
    ],
    equal=close(1e-5, 1e-6),
)
if predicted(predicted_share, question="what share becomes 0?"):
    normal = torch.randn(1, 100_000)
    used = ternary_linear(torch.eye(1), normal.T)
    print(f"{(used == 0).double().mean():.0%} become 0; you predicted {predicted_share}.")

# %% nbgrader={"grade": true, "grade_id": "lab09-ternary_linear", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 9.11, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab09-ternary_linear", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-adam8bit-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 9.12 Adam in 8 bits (stretch, 3 points, 14 minutes)
#
# Adam's two moments take 8 bytes per parameter. In 8-bit codes with a float32 step for each block of 256,
# they take 2.03. The idea comes from Dettmers and others (2021), whose blocks have 2,048 values and whose
# codes aren't evenly spaced.
#
# Write `adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8)`: lab 3's Adam step, in
# place. It is called under `torch.no_grad()`, with the same parameters in the same order each time. Between
# calls `state`, a dict, holds two codes per value, two float32 per block, and at most 64 bytes more per
# tensor; Python numbers, such as $t$, don't count. Nothing else may keep a moment alive. Decode one
# parameter's moments at a time. Don't change the gradients.
#
# For every parameter: decode the moments; update them, $m \leftarrow \beta_1 m + (1 - \beta_1) g$ and $v \leftarrow \beta_2 v +
# (1 - \beta_2) g^2$; encode them; and step by $\mathrm{lr} \cdot \hat m / (\sqrt{\hat v} + \epsilon)$, with $\hat m = m / (1 - \beta_1^t)$ and $\hat v = v / (1 -
# \beta_2^t)$.
#
# **Take care with $v$.** Adam divides by its root: a $v$ rounded to 0 makes an enormous step. Values of $v$ in a
# block differ by factors of 10,000 and more; their *roots* differ by 100. So store codes of $\sqrt v$, unsigned.
#
# *Points:* the state's bytes, and losses within 2% of Adam's over 25 steps.
#
# **Predict first.** By what percentage does the loss differ from Adam's after 25 steps?

# %%
predicted_percent = None  # your prediction, in percent


# %% nbgrader={"grade": false, "grade_id": "lab09-adam8bit-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def encode_blocks(x: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return codes up to `top` of a tensor's values, and a step for each 256 of them."""
    ### BEGIN SOLUTION
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = blocks.abs().amax(dim=1, keepdim=True)
    step = torch.where(largest == 0, 1.0, largest / top)
    dtype = torch.int8 if top == 127 else torch.uint8
    return (blocks / step).round().flatten()[: x.numel()].to(dtype), step.flatten()
    ### END SOLUTION


def decode_blocks(codes: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """Return the values of codes, flat."""
    ### BEGIN SOLUTION
    return codes * step.repeat_interleave(256)[: len(codes)]
    ### END SOLUTION


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8) -> None:
    """Take one step of Adam in place, with its moments kept as 8-bit codes."""
    ### BEGIN SOLUTION
    t = state["t"] = state.get("t", 0) + 1
    for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
        m = v = torch.zeros_like(param)
        if i in state:
            m, root = (decode_blocks(*kept).view(param.shape) for kept in state[i])
            v = root**2
        m = betas[0] * m + (1 - betas[0]) * grad
        v = betas[1] * v + (1 - betas[1]) * grad**2
        state[i] = encode_blocks(m, 127), encode_blocks(v.sqrt(), 255)
        m, v = m / (1 - betas[0] ** t), v / (1 - betas[1] ** t)
        param -= lr * m / (v.sqrt() + eps)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab09-adam8bit-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 9.12, Adam in 8 bits
def adams(params, grads, state, lr=1e-3, **options):
    """torch's Adam, called like yours."""
    if "adam" not in state:
        state["adam"] = torch.optim.Adam(params, lr=lr, foreach=False, **options)
    for param, grad in zip(params, grads, strict=True):
        param.grad = grad.clone()
    state["adam"].step()


def of_adam(step, what, **options):
    """Return whether 25 losses are within 2% of Adam's, or whether the state is small enough."""
    sizes = {"width": 16, "rows": 100, "seed": 0, "steps": 25, "options": options}
    found, torchs = lab09.trained(step, **sizes), lab09.trained(adams, **sizes)
    pairs = zip(found["losses"], torchs["losses"], strict=True)
    worst = max(abs(own / other - 1) for own, other in pairs)
    most = sum(2 * n + 8 * -(-n // 256) + 64 for n in found["n_values"])
    print(
        f"up to {worst:.2%} off Adam's losses; {found['state_bytes']:,} bytes of {most:,} allowed"
    )
    in_codes = 2 * sum(found["n_values"]) <= found["state_bytes"] <= most
    passed = {"losses": worst <= 0.02, "bytes": in_codes}
    return {**passed, "gradients": not found["changed"]}[what]


def moves_like_adam(step):
    """Return whether three steps on 20 blocks are within 2% of Adam's, and the state is small."""
    found, torchs = (lab09.large_steps(each, 2, 5000, 0) for each in (step, adams))
    pairs = zip(found["moved"], torchs["moved"], strict=True)
    near = all(abs(own / other - 1) <= 0.02 for own, other in pairs)
    return near and found["state_bytes"] <= 2 * (2 * 5000 + 8 * 20 + 64)


def peak_of_steps(step):
    """Return the peak of three steps on 64 vectors of 64 KiB, or that it's small enough."""
    with MemoryMeter("cpu") as meter:
        lab09.large_steps(step, 64, 2**14, 0)
    peak = (meter.peak_bytes - meter.baseline_bytes) / MIB
    return "at most 13 MiB" if peak <= 13 else f"{peak:.1f} MiB"


self_check(
    of_adam,
    [
        Case(
            (adam8bit_step, "losses"),
            True,
            "did you store codes of v's root, and correct the bias?",
            label="losses",
        ),
        Case((adam8bit_step, "gradients"), True, "don't change the gradients", label="gradients"),
        Case(
            (adam8bit_step, "bytes"),
            True,
            "keep everything in `state`: unpadded codes, and steps",
            label="bytes",
        ),
        Case(
            (adam8bit_step,),
            True,
            "use a float32 step for each 256 values; lr is 1e-3 by default",
            label="blocks",
            function=moves_like_adam,
        ),
        Case(
            (adam8bit_step,),
            "at most 13 MiB",
            "8 MiB are parameters and gradients: decode one parameter's moments at a time",
            label="peak",
            function=peak_of_steps,
        ),
        Case(
            (adam8bit_step, "losses"),
            True,
            "use betas and eps; eps is added to the root",
            kwargs={"betas": (0.5, 0.8), "eps": 0.01},
            label="other betas and eps",
        ),
    ],
)
if predicted(predicted_percent, question="by how many percent does the loss differ?"):
    print(f"You predicted {predicted_percent}%.")

# %% nbgrader={"grade": true, "grade_id": "lab09-adam8bit", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 9.12, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab09-adam8bit", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab09-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - Training needs floats that move by less than a step: adapters, or master weights.
