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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 2: where the memory goes
#
# Does GPT-3 fit on this machine? Training fits if its **peak memory is below the available memory**, and you
# can work out each term of that peak with pencil and paper.
#
# **You will be able to**
# - count a GPT's parameters, what its layers keep for backward, and the largest batch that fits;
# - say how long each tensor lives, and find the peak, even of a real step.
#
# | exercise | part | minutes | points |
# |---|---|---|---|
# | 2.1 Bytes of the weights | core | 6 | 1 |
# | 2.2 Where the parameters are | core | 13 | 4 |
# | 2.3 Rows that do not add up | core | 5 | 1 |
# | 2.4 What a layer keeps | core | 12 | 3 |
# | 2.5 The largest batch that fits | core | 10 | 2 |
# | 2.6 How long a tensor lives | core | 15 | 3 |
# | 2.7 The live bytes, step by step | core | 7 | 2 |
# | 2.8 In your own words | core | 6 | 2 |
# | 2.9 What an operation outputs | stretch | 4 | 1 |
# | 2.10 One tensor per layer | stretch | 3 | 1 |
# | 2.11 Find the leak | stretch | 7 | 2 |
# | 2.12 A real step, predicted | stretch | 29 | 4 |
# | **core** | | **74** | **18** |
# | **stretch** | | **43** | **8** |
#
# The core stands alone; 2.1 includes two minutes for this page. In each exercise you **predict** (not
# graded), **write** a function, **measure**, and **explain** the difference to yourself. Measurements wait
# for your prediction. Click a collapsed self-check to open it.
#
# All functions return whole **bytes**, never GB. 1 GB is $10^9$ bytes; 1 GiB is $2^{30}$, 7.4% more. If
# there is a GPU, this machine's memory means the GPU's.

# %% nbgrader={"grade": false, "grade_id": "lab02-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
from types import SimpleNamespace

import torch
from torch.nn import functional as F

import peakmem
from peakmem.labs import Case, close, lab02, predicted, self_check, whole
from peakmem.units import GB, both

peakmem.lab("lab02_sizing")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-weight_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.1 Bytes of the weights (core, 1 point, 6 minutes)
#
# To *use* a model, you need at least its weights. The format says how many bits each weight takes:
#
# | fp64 | fp32 | fp16, bf16 | fp8, int8 | int4 |
# |---|---|---|---|---|
# | 64 | 32 | 16 | 8 | 4 |
#
# Write `weight_bytes(n_params, dtype)`: return the bytes, rounded up to a whole number. Use `//`: a float has
# 53 bits, and a byte count may need more.
#
# *Points:* all or nothing.
#
# *Example:* 3 int4 weights are 12 bits, which take 2 bytes.
#
# **Predict first.** How many GB do GPT-3's 175 billion weights take in fp16? How many machines like this one
# hold them?

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-machine", "locked": true, "schema_version": 3, "solution": false, "task": false}
print(f"This machine has {both(lab02.machine_bytes())} of memory.")

# %%
predicted_weights_gb = None  # your prediction, in GB
predicted_machines = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab02-weight_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def weight_bytes(n_params: int, dtype: str) -> int:
    """Return the bytes that this many numbers take; ValueError for an unknown dtype."""
    bits = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}
    if dtype not in bits:
        raise ValueError(f"unknown dtype {dtype!r}: expected one of {', '.join(bits)}")
    ### BEGIN SOLUTION
    return -(-n_params * bits[dtype] // 8)  # rounded up
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-weight_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.1, bytes of the weights
self_check(
    weight_bytes,
    [
        Case((3, "bf16"), 6, "16 bits are 2 bytes"),
        Case((3, "int4"), 2, "12 bits are a byte and a half: round up"),
        Case((4, "int4"), 2, "two numbers share a byte"),
        Case((10, "fp8"), 10, "8 bits are 1 byte"),
        Case((10, "int8"), 10, "8 bits are 1 byte"),
        Case((0, "int4"), 0, "no weights take no bytes"),
        Case((10, "fp64"), 80, "64 bits are 8 bytes"),
        Case((10**17 + 1, "fp16"), 2 * 10**17 + 2, "use integers throughout: no float holds this"),
        Case((2**54 + 1, "int4"), 2**53 + 1, "use integers throughout: n / 2 is a float"),
        *(
            Case((1, name), raises=ValueError, hint=f"{name!r} isn't one of the seven names")
            for name in ("FP32", "float32", "fp32 ", "mxfp8")
        ),
    ],
    equal=whole(),
)
if predicted(predicted_weights_gb, predicted_machines, question="how many GB, how many machines?"):
    here = lab02.machine_bytes()
    for dtype in ("fp32", "fp16", "int4"):
        size = weight_bytes(175_000_000_000, dtype)
        print(
            f"GPT-3 in {dtype}: {both(size)}, {size / here:.1f} times this machine's {both(here)}"
        )
    print(f"you predicted {predicted_weights_gb} GB in fp16, on {predicted_machines} machines")

# %% nbgrader={"grade": true, "grade_id": "lab02-weight_bytes", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.1, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-weight_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-gpt_parameters-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.2 Where the parameters are (core, 4 points, 13 minutes)
#
# "175 billion" is rounded. The exact number follows from the model's shape:
#
# | component | what it consists of |
# |---|---|
# | `token_embedding` | a vector of `d_model` numbers for each of `vocab` tokens |
# | `position_embedding` | the same for each of `context` positions |
# | `attention`, per layer | four linear layers from d_model to d_model: queries, keys, values, output |
# | `mlp`, per layer | a linear layer from d_model to 4 d_model, and one back |
# | `layer_norms`, per layer | two norms; each has a weight and a bias of d_model numbers |
# | `final_norm` | one norm after the last layer |
# | `head` | from d_model to vocab, without a bias. If **tied**, it *is* the token embedding: 0 |
#
# A linear layer from $n$ to $p$ has $np$ weights and $p$ biases.
#
# Write `gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True)`: return a dict of parameter
# counts over **all** layers, with exactly these seven keys.
#
# *Points:* embeddings and head 1, attention 1, mlp 1, norms 1.
#
# *Example:* one layer of width 2. Attention has 4 matrices of $2 \times 2$ and 4 biases of 2: 24. The MLP has
# $2 \cdot 8$ weights and 8 biases, then $8 \cdot 2$ weights and 2 biases: 42.
#
# **Predict first.** What share of GPT-3's parameters is in the MLPs? And of GPT-3 Small's (12 layers of width
# 768)?

# %%
predicted_mlp_share_gpt3 = None  # your prediction, between 0 and 1
predicted_mlp_share_small = None  # your prediction, between 0 and 1


# %% nbgrader={"grade": false, "grade_id": "lab02-gpt_parameters-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gpt_parameters(
    n_layers: int, d_model: int, vocab: int = 50257, context: int = 2048, tied: bool = True
) -> dict[str, int]:
    """Return the number of parameters of a GPT by component, over all layers."""
    ### BEGIN SOLUTION
    square = d_model * d_model + d_model  # a linear layer with its bias
    return {
        "token_embedding": vocab * d_model,
        "position_embedding": context * d_model,
        "attention": n_layers * 4 * square,
        "mlp": n_layers * (8 * d_model * d_model + 5 * d_model),
        "layer_norms": n_layers * 2 * 2 * d_model,
        "final_norm": 2 * d_model,
        "head": 0 if tied else vocab * d_model,
    }
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-gpt_parameters-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.2, where the parameters are
def component_of(key, *sizes, **options):
    """Return one component, or the sum of all seven."""
    counted = gpt_parameters(*sizes, **options)
    return counted[key] if key else sum(counted.values())


tiny_sizes = {"vocab": 10, "context": 5}
self_check(
    component_of,
    [
        Case((key, 1, 2), value, hint, kwargs=tiny_sizes)
        for key, value, hint in [
            ("token_embedding", 20, "10 vectors of 2"),
            ("position_embedding", 10, "5 vectors of 2"),
            ("attention", 24, "four linear layers, each with a bias"),
            ("mlp", 42, "both linear layers have a bias: 8 and 2"),
            ("layer_norms", 8, "two norms with 2 weights and 2 biases each"),
            ("final_norm", 4, "2 weights and 2 biases"),
            ("head", 0, "tied: counted as the token embedding"),
            ("", 108, "the sum of all seven"),
        ]
    ]
    + [
        Case(("mlp", 3, 2), 126, "count all three layers"),
        *(
            Case(("", n, d), total, "use the layers and the width you are given", kwargs=tiny_sizes)
            for n, d, total in [(2, 2, 182), (1, 3, 198)]
        ),
        *(
            Case(("", 1, 2), 110, "a vector of 2 more", kwargs={**tiny_sizes, name: size})
            for name, size in [("vocab", 11), ("context", 6)]
        ),
        Case(
            ("mlp", 2, 700_000_003), 7_840_000_074_200_000_174, "use integers: no float holds this"
        ),
        Case(("", 1, 2), 128, "untied: 10 x 2 more, no bias", kwargs={**tiny_sizes, "tied": False}),
        Case(
            ("", 12, 768),
            lab02.parameters_by_torch(12, 768, 12),
            "the count in torch's own modules",
        ),
        Case(
            ("", 96, 12288),
            lab02.parameters_by_torch(96, 12288, 96),
            "the count in torch's own modules",
        ),
    ],
    equal=whole(),
)
if predicted(
    predicted_mlp_share_gpt3, predicted_mlp_share_small, question="what share is in the MLPs?"
):
    for name, n_layers, width in [("GPT-3", 96, 12288), ("GPT-3 Small", 12, 768)]:
        share = component_of("mlp", n_layers, width) / component_of("", n_layers, width)
        print(f"{name}: {component_of('', n_layers, width):,} parameters, {share:.1%} in the MLPs")
    print(f"you predicted {predicted_mlp_share_gpt3} and {predicted_mlp_share_small}")

# %% nbgrader={"grade": true, "grade_id": "lab02-gpt_parameters", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.2, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-gpt_parameters", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-gpt_parameters-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the numbers.** The embeddings grow with the width, the layers with its square: about
# $12\,d_\text{model}^2$ per layer, 8 of the 12 in the MLP. So embeddings are a third of the small model, but
# 0.4% of the large one. "175B" means 174.6 billion, and 350 GB means 349.2.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-inconsistent_rows-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.3 Rows that do not add up (core, 1 point, 5 minutes)
#
# Attention divides a token's `d_model` numbers among `n_heads` heads of `d_head` numbers each, so `n_heads *
# d_head` should equal `d_model`. This is table 2.1 of the GPT-3 paper (Brown et al. 2020):

# %% nbgrader={"grade": false, "grade_id": "lab02-gpt3_table", "locked": true, "schema_version": 3, "solution": false, "task": false}
KEYS = ("name", "n_layers", "d_model", "n_heads", "d_head")
GPT3_TABLE = [
    dict(zip(KEYS, row, strict=True))
    for row in [
        ("GPT-3 Small", 12, 768, 12, 64),
        ("GPT-3 Medium", 24, 1024, 16, 64),
        ("GPT-3 Large", 24, 1536, 16, 96),
        ("GPT-3 XL", 24, 2048, 24, 128),
        ("GPT-3 2.7B", 32, 2560, 32, 80),
        ("GPT-3 6.7B", 32, 4096, 32, 128),
        ("GPT-3 13B", 40, 5140, 40, 128),
        ("GPT-3 175B", 96, 12288, 96, 128),
    ]
]

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-inconsistent_rows-rules", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Write `inconsistent_rows(table)`: return the set of **names** of the rows where it doesn't.
#
# *Points:* all or nothing.
#
# *Example:* 12 heads of 64 are 768 wide, so a row with d_model 770 is inconsistent.
#
# **Predict first.** How many of the eight rows do not add up?

# %%
predicted_inconsistent_rows = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab02-inconsistent_rows-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def inconsistent_rows(table: list[dict]) -> set[str]:
    """Return the names of the rows whose heads are not as wide as the model."""
    ### BEGIN SOLUTION
    return {row["name"] for row in table if row["n_heads"] * row["d_head"] != row["d_model"]}
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-inconsistent_rows-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.3, rows that do not add up
sample_rows = [
    dict(zip(KEYS, (name, 10, d, 12, 64), strict=True))
    for name, d in [("good", 768), ("Wide", 769), ("slim", 767), ("narrow", 384), ("double", 1536)]
]
few_heads = {**sample_rows[0], "name": "few", "n_heads": 6}


def names_found(table):
    """Return the names in any collection, sorted."""
    found = inconsistent_rows(table)
    return found if isinstance(found, str) else sorted(found, key=str)


self_check(
    names_found,
    [
        Case(
            (sample_rows,),
            ["Wide", "double", "narrow", "slim"],
            "the names of rows where 12 x 64 = 768 isn't d_model: 769, 767, 384 and 1536",
            label="five rows",
        ),
        Case((sample_rows[:1],), [], "12 x 64 is 768: nothing to report", label="one good row"),
        Case(
            ([few_heads, sample_rows[0], {**sample_rows[0], "name": "fine"}, sample_rows[1]],),
            ["Wide", "few"],
            "look at each row: changing a list while you loop over it skips some, and two rows may "
            "have the same width",
            label="two good rows, and two that aren't",
        ),
    ],
)
if predicted(predicted_inconsistent_rows, question="how many rows do not add up?"):
    for row in GPT3_TABLE:
        if row["name"] in inconsistent_rows(GPT3_TABLE):
            heads = row["n_heads"] * row["d_head"]
            for width in (row["d_model"], heads):
                total = sum(gpt_parameters(row["n_layers"], width).values())
                print(f"{row['name']}, {width} wide: {total:,} parameters")
    print(f"you predicted {predicted_inconsistent_rows} rows")

# %% nbgrader={"grade": true, "grade_id": "lab02-inconsistent_rows", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.3, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-inconsistent_rows", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-inconsistent_rows-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the numbers.** The paper calls these models 1.3B and 13.0B. For XL, only d_model gives that size,
# so the slip is in its heads. For 13B, both widths do. But 5140 doesn't divide by 40, so 5120 is likely.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-layer_activation_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.4 What a layer keeps (core, 3 points, 12 minutes)
#
# Each operation keeps what its own backward needs: a linear layer its input, for its weight's gradient; a
# softmax its output; dropout a *mask*, one byte per element. Korthikanti et al. (2022) added this up for one
# layer, at 2 bytes per element except in masks. There are $b$ sequences of $s$ tokens and $a$ heads; $h$ is
# d_model.
#
# | part | what is kept | bytes |
# |---|---|---|
# | attention | input of queries, keys, values (one tensor) | $2sbh$ |
# | | queries, keys, values | $6sbh$ |
# | | input of the output layer | $2sbh$ |
# | | dropout mask after it | $sbh$ |
# | | softmax's output (the *probabilities*), $s \times s$ per head | $2as^2b$ |
# | | its dropout: mask and output | $as^2b + 2as^2b$ |
# | mlp | input of the first layer | $2sbh$ |
# | | input of GELU (the activation function), $4h$ wide | ? |
# | | input of the second layer, $4h$ wide | ? |
# | | dropout mask after it | $sbh$ |
# | norms | input of each of the two | ? |
#
# **Flash attention** computes the probabilities in pieces and never stores them: only the $s^2$ terms
# disappear.
#
# Write `layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard")`: return a dict of one
# layer's bytes, with exactly the keys `attention`, `mlp`, and `layer_norms`. Raise `ValueError` if
# `attention` is neither `"standard"` nor `"flash"`.
#
# *Points:* one point per key.
#
# *Example:* for $s = 2, b = 1, h = 4, a = 2$ (so $sbh = as^2b = 8$), attention keeps $11 \cdot 8 + 5 \cdot 8
# = 128$ bytes, or 88 with flash.
#
# **Predict first.** In GPT-3 (12288 wide, 96 heads) with sequences of 2048 tokens, what share of a layer's
# bytes is in the $s^2$ terms?

# %%
predicted_share_of_square = None  # your prediction, between 0 and 1


# %% nbgrader={"grade": false, "grade_id": "lab02-layer_activation_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def layer_activation_bytes(
    seq: int, batch: int, d_model: int, n_heads: int, attention: str = "standard"
) -> dict[str, int]:
    """Return the bytes that one layer keeps for the backward pass, by part."""
    ### BEGIN SOLUTION
    if attention not in ("standard", "flash"):
        raise ValueError(f"unknown attention {attention!r}: expected standard or flash")
    sbh = seq * batch * d_model
    squares = n_heads * seq * seq * batch if attention == "standard" else 0
    return {
        "attention": (2 + 6 + 2 + 1) * sbh + (2 + 1 + 2) * squares,
        "mlp": (2 + 8 + 8 + 1) * sbh,
        "layer_norms": (2 + 2) * sbh,
    }
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-layer_activation_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.4, what a layer keeps
def part_of(part, *sizes, **options):
    """Return what one part keeps, or the whole layer."""
    layer = layer_activation_bytes(*sizes, **options)
    return layer[part] if part else sum(layer.values())


self_check(
    part_of,
    [
        Case(("attention", 2, 1, 4, 2), 128, "11sbh + 5as^2b"),
        Case(("mlp", 2, 1, 4, 2), 152, "two inputs of 4h numbers at 2 bytes: 8sbh each"),
        Case(("layer_norms", 2, 1, 4, 2), 32, "two inputs of 2 bytes per element"),
        Case(("", 2, 1, 4, 2), 312, "the sum of all three"),
        Case(("attention", 2, 3, 4, 2), 384, "both terms grow with the batch"),
        Case(("attention", 3, 1, 4, 2), 222, "probabilities grow with the square of s"),
        Case(("attention", 2, 1, 6, 2), 172, "11sbh grows with the width"),
        Case(("attention", 2, 1, 4, 4), 168, "5as^2b grows with the heads"),
        Case(("attention", 3, 2, 5, 2), 510, "2 heads for a width of 5: use n_heads, not d_head"),
        Case(("attention", 7, 2, 3, 1), 952, "add whole numbers: 5as/h is a rounded float"),
        Case(("", 2048, 1, 12288, 96), 2_868_903_936, "use Python's integers: 32 bits overflow"),
        Case(("attention", 2, 1, 4, 2), 88, "11sbh", kwargs={"attention": "flash"}),
    ]
    + [
        Case(
            ("", 2, 1, 4, 2),
            raises=ValueError,
            hint="this is neither standard nor flash",
            kwargs={"attention": attention},
        )
        for attention in ("sdpa", "Flash", "flash2", "no-flash", "flash ", "")
    ],
    equal=whole(),
)
if predicted(predicted_share_of_square, question="what share are the s^2 terms?"):
    standard, flash = (part_of("", 2048, 1, 12288, 96, attention=a) for a in ("standard", "flash"))
    print(f"one layer: {both(standard)}, flash {both(flash)}; 96 layers {both(96 * standard)}")
    print(f"s^2 terms: {1 - flash / standard:.0%}; you predicted {predicted_share_of_square}")

# %% nbgrader={"grade": true, "grade_id": "lab02-layer_activation_bytes", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.4, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-layer_activation_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-layer_activation_bytes-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the numbers.** A single sequence keeps 275 GB, on top of 350 GB of weights. Counted in tensors of
# $2sbh$ bytes, a layer keeps 57, or 17 with flash.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-largest_batch-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.5 The largest batch that fits (core, 2 points, 10 minutes)
#
# Training with Adam in **mixed precision** (compute in 2 bytes, update in fp32) takes **16 bytes per
# parameter** before the first activation: 2 for weights, 2 for gradients, and in fp32 4 for a copy of the
# weights and 4 + 4 for Adam's two moments. The rest is activations.
#
# Write `largest_batch(seq, shape, budget_bytes)`:
# - `shape` has `n_layers`, `d_model`, `n_heads`, `vocab`, and `context`.
# - Count only 16 bytes per parameter (2.2, tied head) and the activations of all layers (2.4, standard
#   attention).
# - Return the largest number of sequences that **fits** (needed <= budget), or 0 if none does. `seq`
#   may exceed `context`.
#
# *Points:* all or nothing.
#
# *Example:* 1000 bytes are left after the parameters, and a sequence keeps 300: the answer is 3. With 900
# left, it is still 3.
#
# **Predict first.** How many sequences of 1024 tokens fit when you train GPT-2 (12 layers of width 768, 12
# heads) on a 16 GB V100? And of 2048: half as many, fewer, or more?

# %%
predicted_batch_1024 = None  # your prediction, a number
predicted_batch_2048 = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab02-largest_batch-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def largest_batch(seq: int, shape: SimpleNamespace, budget_bytes: int) -> int:
    """Return the largest batch whose training step fits the budget; 0 if none does."""
    ### BEGIN SOLUTION
    counted = gpt_parameters(shape.n_layers, shape.d_model, shape.vocab, shape.context)
    left = budget_bytes - 16 * sum(counted.values())
    layer = layer_activation_bytes(seq, 1, shape.d_model, shape.n_heads)
    return max(left // (shape.n_layers * sum(layer.values())), 0)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-largest_batch-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.5, the largest batch that fits
one_layer, two_layers = (
    SimpleNamespace(n_layers=n, d_model=2, n_heads=1, vocab=10, context=5) for n in (1, 2)
)
others = {"d_model": 3, "n_heads": 2, "vocab": 11, "context": 6}


def case_of(seq, shape, budget):
    """Name a case by what differs from one layer."""
    usual = vars(one_layer)
    differs = [f"{name} {size}" for name, size in vars(shape).items() if size != usual[name]]
    return ", ".join([f"{seq} tokens", f"{budget} bytes", *differs])


# 108 parameters take 1728 bytes; a sequence of 3 tokens keeps 34 * 3 * 2 + 5 * 3 * 3 = 249
self_check(
    largest_batch,
    [
        Case(
            (seq, shape, budget), expected, hint, label=f"{case_of(seq, shape, budget)}: {expected}"
        )
        for seq, shape, budget, expected, hint in [
            (
                3,
                one_layer,
                1728 + 1000 * 249,
                1000,
                "16 bytes for each of 108 parameters, 249 per sequence; an exact fit is allowed",
            ),
            (
                3,
                one_layer,
                1728 + 1000 * 249 - 1,
                999,
                "one byte too small for the last sequence; count context positions, not seq",
            ),
            (3, one_layer, 1728 + 248, 0, "one byte too small for the first sequence"),
            (3, one_layer, 1000, 0, "the parameters alone do not fit; a batch is never below 0"),
            (7, one_layer, 1728 + 721, 1, "seq may exceed context: 34 * 7 * 2 + 5 * 7 * 7 = 721"),
            (3, one_layer, 1728 + 721, 2, "a shorter sequence keeps 249 bytes"),
            (3, two_layers, 1728 + 1000 * 249, 497, "the same budget for two layers"),
            *(
                (3, two_layers, budget, 1, "two layers have 182 parameters, and keep twice as much")
                for budget in (2912 + 2 * 249, 2912 + 4 * 249 - 1)
            ),
            (3, one_layer, 1728 + 2 * 249, 2, "an exact fit"),
            *(
                (
                    3,
                    SimpleNamespace(**{**vars(one_layer), name: size}),
                    1728 + 2 * 249,
                    fit,
                    f"{name} matters, and is {size} here",
                )
                for (name, size), fit in zip(others.items(), [0, 1, 1, 1], strict=True)
            ),
            (
                3,
                SimpleNamespace(n_layers=1, d_model=2, n_heads=2, vocab=11, context=6),
                1792 + 2 * 294 - 1,
                1,
                "use its heads, vocab and context: 112 parameters, and 34 * 3 * 2 + 5 * 2 * 3 * 3 = 294",
            ),
            (
                10**9,
                one_layer,
                1728 + 34 * 2 * 10**9 + 5 * 10**18 - 1,
                0,
                "one byte too small; divide with //: a float has 53 bits",
            ),
        ]
    ],
    equal=whole(),
)
if predicted(predicted_batch_1024, predicted_batch_2048, question="how many sequences fit?"):
    gpt2 = SimpleNamespace(n_layers=12, d_model=768, n_heads=12, vocab=50257, context=1024)
    for seq in (512, 1024, 2048, 4096):
        batch = largest_batch(seq, gpt2, 16 * GB)
        print(f"GPT-2, sequences of {seq}: {batch}, which is {batch * seq} tokens")
    print(f"you predicted {predicted_batch_1024} of 1024 and {predicted_batch_2048} of 2048 tokens")

# %% nbgrader={"grade": true, "grade_id": "lab02-largest_batch", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.5, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-largest_batch", globals())
### END HIDDEN TESTS

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-memory_over_length", "locked": true, "schema_version": 3, "solution": false, "task": false}
lab02.show_memory_over_length(gpt_parameters, layer_activation_bytes)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-sliders-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Play with it.** When the sequence doubles, does half the batch fit?

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-sliders", "locked": true, "schema_version": 3, "solution": false, "task": false}
lab02.memory_sliders(gpt_parameters, layer_activation_bytes)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-eight-models-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Predict first.** Which is the largest of the eight GPT-3 models that an 80 GB H100 can train, with
# one sequence of 2048 tokens?

# %%
predicted_largest_trainable = None  # your prediction, a name such as "GPT-3 Small"

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-eight-models", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_largest_trainable, question="which is the largest that can be trained?"):
    lab02.show_models(GPT3_TABLE, gpt_parameters, layer_activation_bytes)
    print(f"you predicted {predicted_largest_trainable}")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-eight-models-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the picture.** The weights are the first, short piece of each bar: the 6.7B model takes 13 GB to
# *use* and over 100 GB to *train*.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-lifetimes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.6 How long a tensor lives (core, 3 points, 15 minutes)
#
# Training needs so much more than inference because of *when* it can free things. With $n$ operations,
# operation $i$ (from 0) runs at step $i$. Backward goes in reverse: operation $i$'s backward runs at step
# $2n - 1 - i$.
#
# Write `lifetimes(graph, training)`:
# - `graph` is a list of operations in order, each a dict with `name` (of the operation and its output),
#   `inputs` (names), `output_bytes`, and `saves` (names of outputs that its backward needs, possibly its
#   own).
# - Return a tuple (name, first step, last step) per operation, in order. An output lives from step $i$ to
#   the latest of: $i$; the steps of operations that list it in `inputs`; in training, also the backward
#   steps of operations that list it in `saves`. Leave out names that no operation makes.
# - The stub keeps each output's last step so far in `last`. Raise it when something needs the output later.
#
# *Points:* inference 1, training 2.
#
# *Example:* a residual connection reads `h` twice:
#
# | step | operation | inputs | saves | inference | training | backward at |
# |---|---|---|---|---|---|---|
# | 0 | h | x | x | 0-2 | 0-6 | 7 |
# | 1 | a | h | h | 1-2 | 1-2 | 6 |
# | 2 | r | h, a | nothing | 2-3 | 2-4 | 5 |
# | 3 | y | r | r | 3-3 | 3-3 | 4 |
#
# **Predict first.** In a chain of 50 linear layers, each layer saves its input. At most how many outputs are
# live at once in inference? In training?

# %%
predicted_live_inference = None  # your prediction, a number
predicted_live_training = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab02-lifetimes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def lifetimes(graph: list[dict], training: bool) -> list[tuple[str, int, int]]:
    """Return (name, first step, last step) of each operation's output."""
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}  # its own step, until something needs it
    ### BEGIN SOLUTION
    for i, op in enumerate(graph):
        reads = [(name, i) for name in op["inputs"]]
        if training:
            reads += [(name, 2 * n - 1 - i) for name in op["saves"]]
        for name, step in reads:
            if name in last:  # no operation makes the network's input
                last[name] = max(last[name], step)
    ### END SOLUTION
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-lifetimes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.6, how long a tensor lives
def operation_of(name, inputs, saves):
    return {"name": name, "inputs": inputs, "output_bytes": 10**6, "saves": saves}


residual = [
    operation_of("h", ["x"], ["x"]),
    operation_of("a", ["h"], ["h"]),
    operation_of("r", ["h", "a"], []),
    operation_of("y", ["r"], ["r"]),
]
relu = [operation_of("y", ["x"], ["y"])]
made = [
    operation_of("h", [], []),
    operation_of("h2", ["x"], []),
    operation_of("r", ["x", "h", "h2"], []),
    operation_of("y", ["r", "h2", "x"], ["r", "x", "h22"]),
]
shared = [
    operation_of("h", ["tokens"], ["tokens"]),
    operation_of("a", ["h", "mask"], []),
    operation_of("b", ["a"], ["h", "a"]),
    operation_of("c", ["h", "a", "b"], ["h", "a", "b"]),
]
chain_graph = [operation_of(f"t{i}", [f"t{i - 1}"], [f"t{i - 1}"]) for i in range(50)]
in_inference = [("h", 0, 2), ("a", 1, 2), ("r", 2, 3), ("y", 3, 3)]
in_training = [("h", 0, 6), ("a", 1, 2), ("r", 2, 4), ("y", 3, 3)]
self_check(
    lifetimes,
    [
        Case(
            (relu, False),
            [("y", 0, 0)],
            "no operation makes x: leave it out",
            label="one operation",
        ),
        Case(
            (residual, False),
            in_inference,
            "only the last reader counts; saves don't",
            label="inference",
        ),
        Case(
            (residual, True),
            in_training,
            "h waits for a's backward, at step 6, though r reads it at 2; nothing saves a",
            label="training",
        ),
        Case(
            (made, False),
            [("h", 0, 2), ("h2", 1, 3), ("r", 2, 3), ("y", 3, 3)],
            "an operation may have any number of inputs: count each, by its whole name",
            label="no inputs, and three inputs",
        ),
        Case((relu, True), [("y", 0, 1)], "an operation may save its own output", label="relu"),
        Case(
            (shared, True),
            [("h", 0, 5), ("a", 1, 5), ("b", 2, 4), ("c", 3, 3)],
            "the latest of all steps counts: b's backward, at 5, needs h, which b doesn't read",
            label="saved by two operations",
        ),
    ],
)
if predicted(predicted_live_inference, predicted_live_training, question="how many are live?"):
    for trains, guess in [(False, predicted_live_inference), (True, predicted_live_training)]:
        lives = lifetimes(chain_graph, trains)
        most = max(sum(first <= step <= last for _, first, last in lives) for step in range(100))
        print(f"training={trains}: {most} outputs live at once; you predicted {guess}")

# %% nbgrader={"grade": true, "grade_id": "lab02-lifetimes", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.6, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-lifetimes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-live_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.7 The live bytes, step by step (core, 2 points, 7 minutes)
#
# At each step, add up the bytes of the tensors that are live. The largest sum is the **peak**, which has to
# fit.
#
# Write `live_bytes(tensors, n_steps)`: `tensors` is a list of (bytes, first step, last step). Return a list
# of `n_steps` whole numbers. The last step is inclusive; ignore steps before 0 or after the end.
#
# *Points:* all or nothing.
#
# *Example:* `live_bytes([(10, 0, 1), (5, 1, 3)], 3)` is [10, 15, 5].
#
# **Predict first.** Below, a meter watches 24 linear layers with a GELU after each; every output takes 1 MiB.
# How far does memory rise in inference, and how far in training?

# %%
predicted_inference_mib = None  # your prediction, a number
predicted_training_mib = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab02-live_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def live_bytes(tensors: list[tuple[int, int, int]], n_steps: int) -> list[int]:
    """Return the bytes alive at each step."""
    ### BEGIN SOLUTION
    live = [0] * n_steps
    for size, first, last in tensors:
        for step in range(max(first, 0), min(last, n_steps - 1) + 1):
            live[step] += size
    return live
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-live_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.7, the live bytes, step by step
self_check(
    live_bytes,
    [
        Case(
            ([(10, 0, 1), (5, 1, 3)], 3),
            [10, 15, 5],
            "both are live at step 1; ignore steps from n_steps on",
        ),
        Case(([(10, 0, 1), (5, 1, 3)], 5), [10, 15, 5, 5, 0], "return as many numbers as steps"),
        Case(([(10, -2, 0), (5, 2, 9)], 3), [10, 0, 5], "ignore the steps outside"),
        Case(([(10, -5, -3), (5, 7, 9), (2, 0, 0)], 3), [2, 0, 0], "two tensors lie outside"),
        Case(
            ([(2**40, 0, 1), (2**40, 0, 1)], 2),
            [2**41, 2**41],
            "two tensors may have equal entries",
        ),
        Case(([], 2), [0, 0], "nothing is live"),
        Case(([(5, 0, 1)], 0), [], "no steps"),
    ],
    equal=whole(),
)

# %% nbgrader={"grade": true, "grade_id": "lab02-live_bytes", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.7, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-live_bytes", globals())
### END HIDDEN TESTS

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-real-lives", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_inference_mib, predicted_training_mib, question="how many MiB at most?"):
    lab02.show_lives()
    chain = [operation_of(f"t{i}", [f"t{i - 1}"], [f"t{i - 1}"]) for i in range(48)]
    for trains in (False, True):
        tensors = [(2**20, first, last) for _, first, last in lifetimes(chain, trains)]
        print(
            f"by your functions, training={trains}: {max(live_bytes(tensors, 96)) / 2**20:.2f} MiB"
        )
    print(f"you predicted {predicted_inference_mib} and {predicted_training_mib}")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-real-lives-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the picture.** Inference needs two buffers at any depth. Training climbs with each layer and comes
# down in reverse: every step is such a mountain. Each layer adds 2 MiB, since the linear layer's output is
# kept as GELU's input. In the end, 24 gradients of 0.25 MiB are left; the meter sees the first on top of your
# 48 MiB. Lab 4 flattens this mountain by computing twice.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.8 In your own words (core, 2 points, 6 minutes)
#
# A colleague reads "175B parameters, fp16, 350 GB" and plans to train on eight 80 GB GPUs, 640 GB in total.
# In two or three sentences: what do the 350 GB hold, what else must be in memory during training, and which
# part of that can't you derive from the number of parameters alone?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab02-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# The 350 GB are the weights, enough to use the model. Training needs gradients (another 350 GB), Adam's
# two moments in fp32 (1400 GB), and usually an fp32 copy of the weights: far over 640 GB. Activations come
# on top; they grow with batch and sequence length, which the number of parameters does not tell.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-core-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - GPT-3's weights take 350 GB; training needs 16 bytes per parameter, plus activations.
# - A layer's parameters grow with the square of its width; stored attention probabilities, with the square of
#   the sequence length.
# - In inference a tensor dies with its last reader; in training it waits for the backward pass.
#
# The core ends here. The stretch predicts real steps.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-activation_elements-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.9 What an operation outputs (stretch, 1 point, 4 minutes)
#
# | op | output |
# |---|---|
# | `"conv2d"` | `nc` channels of `wo` x `ho` for each of the `bs` pictures |
# | `"linear"` | `bs` matrices of `m` x `n`, each times a weight of `n` x `p` |
# | `"transformer"` | `bs` sequences of `seq_len` tokens, with `h` numbers each |
#
# Write `activation_elements(op, **dims)`: return the number of elements in the **output** alone. Dimensions
# come by name, in any order. Raise `ValueError` for any other op.
#
# *Points:* all or nothing.
#
# *Example:* `activation_elements("conv2d", bs=2, nc=64, wo=112, ho=112)` is 1,605,632.
#
# **Predict first.** A picture of $224 \times 224$ with 3 channels becomes 64 channels of $112 \times 112$.
# How many times larger is the output?

# %%
predicted_growth = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab02-activation_elements-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def activation_elements(op: str, **dims: int) -> int:
    """Return the number of elements of an operation's output; ValueError for an unknown op."""
    ### BEGIN SOLUTION
    output = {
        "conv2d": ("bs", "nc", "wo", "ho"),
        "linear": ("bs", "m", "p"),
        "transformer": ("bs", "seq_len", "h"),
    }
    if op not in output:
        raise ValueError(f"unknown op {op!r}: expected one of {', '.join(output)}")
    return math.prod(dims[name] for name in output[op])
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-activation_elements-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.9, what an operation outputs
torch_conv, torch_linear = torch.nn.Conv2d(3, 64, 7, stride=2, padding=3), torch.nn.Linear(30, 7)


def sizes_in_turn(op, *dims):
    """Return the size with all dimensions 1, then with each in turn set to 2."""
    ones = dict.fromkeys(dims, 1)
    return [activation_elements(op, **ones | more) for more in [{}, *({d: 2} for d in dims)]]


self_check(
    activation_elements,
    [
        Case(
            ("conv2d",),
            torch_conv(torch.zeros(2, 3, 224, 200)).numel(),
            "torch's own convolution",
            kwargs={"bs": 2, "nc": 64, "wo": 112, "ho": 100},
        ),
        Case(
            ("linear",),
            torch_linear(torch.zeros(2, 5, 30)).numel(),
            "the sum runs over n; dimensions come by name, in any order",
            kwargs={"p": 7, "n": 30, "m": 5, "bs": 2},
        ),
        Case(
            ("transformer",),
            3 * (10**8 + 7) ** 2,
            "the output is as large as the input; multiply integers",
            kwargs={"bs": 3, "seq_len": 10**8 + 7, "h": 10**8 + 7},
        ),
    ]
    + [
        Case(
            (op, *dims),
            sizes,
            "multiply every dimension of the output",
            label=f"{op}: all dimensions 1, then one of them 2",
            function=sizes_in_turn,
        )
        for op, dims, sizes in [
            ("conv2d", ("bs", "nc", "wo", "ho"), [1, 2, 2, 2, 2]),
            ("linear", ("bs", "m", "p", "n"), [1, 2, 2, 2, 1]),
            ("transformer", ("bs", "seq_len", "h"), [1, 2, 2, 2]),
        ]
    ]
    + [
        Case((op,), raises=ValueError, hint="this is none of the three", kwargs=dims)
        for op, dims in [
            ("conv1d", {"bs": 2, "nc": 64, "wo": 112, "ho": 100}),
            ("Linear", {"bs": 2, "m": 5, "n": 30, "p": 7}),
            ("attention", {"bs": 2, "seq_len": 5, "h": 16}),
            ("", {"bs": 2, "seq_len": 5, "h": 16}),
            ("bilinear", {"bs": 2, "m": 5, "n": 30, "p": 7}),
            ("conv2d_transpose", {"bs": 2, "nc": 64, "wo": 112, "ho": 100}),
            ("transformer ", {"bs": 2, "seq_len": 5, "h": 16}),
        ]
    ],
    equal=whole(),
)
if predicted(predicted_growth, question="how many times larger is the output?"):
    growth = activation_elements("conv2d", bs=1, nc=64, wo=112, ho=112) / (3 * 224 * 224)
    print(f"{growth:.2f} times; you predicted {predicted_growth}")

# %% nbgrader={"grade": true, "grade_id": "lab02-activation_elements", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.9, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-activation_elements", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-boundary_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.10 One tensor per layer (stretch, 1 point, 3 minutes)
#
# GPT-3 was trained on batches of 3.2 million tokens. Suppose you keep one tensor per layer, at the
# **boundary** to the next: d_model numbers per token.
#
# Write `boundary_bytes(n_layers, tokens, d_model, bytes_per_element)`: return the exact bytes of `n_layers`
# boundaries.
#
# *Points:* all or nothing.
#
# *Example:* 3 layers, 10 tokens, 4 numbers each in fp16: $3 \cdot 10 \cdot 4 \cdot 2 = 240$.
#
# **Predict first.** For GPT-3 (96 layers of width 12288) at 2 bytes, how many times the weights' 350 GB is
# that?

# %%
predicted_factor = None  # your prediction: bytes of boundaries / bytes of weights


# %% nbgrader={"grade": false, "grade_id": "lab02-boundary_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def boundary_bytes(n_layers: int, tokens: int, d_model: int, bytes_per_element: int) -> int:
    """Return the bytes of one boundary tensor per layer."""
    ### BEGIN SOLUTION
    return n_layers * tokens * d_model * bytes_per_element
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-boundary_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.10, one tensor per layer
self_check(
    boundary_bytes,
    [
        Case((3, 10, 4, 2), 240, "the product of all four"),
        Case((1, 10, 4, 4), 160, "the product of all four"),
        Case((6, 10, 4, 2), 480, "twice the layers"),
        Case((3, 20, 4, 2), 480, "twice the tokens"),
        Case((3, 10, 8, 2), 480, "twice the width"),
        Case((3, 10, 4, 4), 480, "twice the bytes"),
        Case((96, 3_200_000, 12288, 1), 3_774_873_600_000, "bytes, not GB"),
        Case((3, 10**12 + 1, 12289, 1), 36867 * (10**12 + 1), "use integers: no float holds this"),
    ],
    equal=whole(),
)
if predicted(predicted_factor, question="how many times the weights?"):
    exact = boundary_bytes(96, 3_200_000, 12288, 2)
    one = boundary_bytes(1, 3_200_000, 12288, 2)
    print(f"{exact / 1e9:.1f} GB, {exact / 350e9:.1f} times; you predicted {predicted_factor}")
    print(
        f"one layer: {one / 1e9:.2f} GB; rounded down to {one // GB}, 96 layers: {96 * (one // GB)} GB"
    )

# %% nbgrader={"grade": true, "grade_id": "lab02-boundary_bytes", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.10, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-boundary_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-boundary_bytes-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the numbers.** Round one layer's 78.64 GB down to 78, and 96 layers lose 62 GB: round last. No GPU
# holds 7.5 TB; you'd need 95 H100s of 80 GB. So real training cuts the batch into micro-batches (lab
# 5), keeps less (lab 4), and spreads the rest over many devices.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-find_the_leak-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.11 Find the leak (stretch, 2 points, 7 minutes)
#
# This function evaluates a model batch by batch. Its losses are correct, but its memory grows.
#
# **Predict first.** There are 28 batches, each with 1.5 MiB of activations that autograd keeps. At most how
# many MiB should evaluation need?

# %%
predicted_evaluation_mib = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab02-wasteful_evaluate", "locked": true, "schema_version": 3, "solution": false, "task": false}
def wasteful_evaluate(model, batches):
    """Return the loss of each batch."""
    losses = []
    for x, targets in batches:
        losses.append(F.cross_entropy(model(x), targets))
    return losses


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-leak_measured", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_evaluation_mib, question="how many MiB should evaluation need?"):
    print(f"you predicted {predicted_evaluation_mib} MiB")
    print(f"it takes {lab02.evaluation_rise(wasteful_evaluate) / 2**20:.1f} MiB at its peak")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-find_the_leak-rules", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Write `evaluate(model, batches)`, which returns the same losses, as numbers or tensors:
# - `batches` is an iterator: it makes each batch when you ask for it, once.
# - At its peak, your function may hold the model and two batches with all their activations: 6.3 MiB here.
# - Leave the model as it was: no gradients, the same mode, its parameters still trainable.
#
# *Hint:* after `losses = wasteful_evaluate(torch.nn.Linear(2, 2), [(torch.ones(1, 2), torch.tensor([0]))])`,
# what does `losses[0].grad_fn` hold on to?
#
# *Points:* all or nothing.

# %% nbgrader={"grade": false, "grade_id": "lab02-find_the_leak-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
from collections.abc import Iterable


def evaluate(
    model: torch.nn.Module, batches: Iterable[tuple[torch.Tensor, torch.Tensor]]
) -> list[float]:
    """Return the loss of each batch, and keep nothing else alive."""
    ### BEGIN SOLUTION
    with torch.no_grad():
        return [F.cross_entropy(model(x), targets).item() for x, targets in batches]
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-find_the_leak-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.11, find the leak
self_check(
    lab02.evaluation_losses,
    [
        Case(
            (evaluate,),
            lab02.evaluation_losses(wasteful_evaluate),
            "return the same losses, in order, and leave the model as it was",
            label="three small batches give the same losses",
        ),
        Case(
            (evaluate,),
            "within the 6.3 MiB allowed",
            "something still keeps old batches alive: does a loss have a grad_fn?",
            label="the peak of 28 batches",
            function=lab02.evaluation_peak,
        ),
    ],
    equal=close(1e-5),
)

# %% nbgrader={"grade": true, "grade_id": "lab02-find_the_leak", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.11, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-find_the_leak", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-predict_training-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.12 A real step, predicted (stretch, 4 points, 29 minutes)
#
# Predict a whole real step: `peakmem.nn.GPT` in float32 with flash attention, no dropout, and a tied
# head, under `AdamW(foreach=False)`, which updates one parameter tensor after another. This is the *third*
# step, so the moments exist, and `zero_grad(set_to_none=True)` has freed the second step's gradients.
#
# **1. What is kept.** This is everything that autograd saves in a step of a model with one layer, each
# tensor once:

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-real-block", "locked": true, "schema_version": 3, "solution": false, "task": false}
lab02.show_kept()

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-real-variants-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Per token, how many times d numbers does a layer keep? How many come after the layers? Count only rows given
# in d. The small rows are token numbers, each norm's mean and inverse deviation, and (8, 4, 64), one per
# token and head.
#
# Some models write GELU out in simple operators: `0.5 * x * (1 + tanh(...))`. The paper's layer (2.4, flash)
# keeps 34 bytes per $sbh$.
#
# **Predict first.** In float32, how many bytes per $sbh$ does a layer keep if GELU is written out?

# %%
predicted_written_out = None  # your prediction, in bytes per sbh

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-real-variants", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_written_out, question="how many bytes per sbh?"):
    lab02.show_variants()
    print(f"you predicted {predicted_written_out} bytes per sbh with GELU written out in float32")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-two-steps-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Writing GELU out costs a factor of 1.75. *Ask which implementation a formula counts.*
#
# **2. When it peaks.** Two real steps follow: one with many tokens, one with many parameters.
#
# **Predict first.** In which phase is the peak of each?

# %%
predicted_where_tokens = None  # your prediction: "forward", "backward" or "optimizer"
predicted_where_parameters = None  # your prediction, one of the three

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-two-steps", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_where_tokens, predicted_where_parameters, question="in which phase?"):
    lab02.show_two_steps()
    print(f"you predicted {predicted_where_tokens} and {predicted_where_parameters}")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-predict_training-rules", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **3. What is live there.** Each list shows a peak. At which two points in time? At each, which components
# are live, how many tensors of the logits' size, and how many temporaries of which parameter's size? (The end
# of backward never needs more.)
#
# Write `predict_training(shape, batch, seq)`. The stub makes a dict of these, in bytes:
#
# | key | what counts |
# |---|---|
# | `parameters` | as in 2.2, with this shape's vocab and context |
# | `gradients` | at the end of backward |
# | `optimizer` | Adam's two moments, and a 4-byte counter per parameter tensor: 12 in a layer, 4 others |
# | `saved_activations` | at the end of forward, without logits |
# | `logits` | what the loss keeps of them: one tensor |
# | `peak` | the larger of the two points you found, for any shape |
#
# Leave `at_first_point` and `at_second_point` at 0 until the others pass. Each is a sum of components and a
# few equal tensors. Don't run the model. Which parameter tensor is the largest if the vocabulary is small?
#
# *Points:* components 2 (`saved_activations` within 1%, the others exact); peak within 5% of the meter 1,
# within 1% another 1.
#
# *Example:* 1 layer of width 2, vocab 10, context 5 has 108 parameters in 16 tensors: the optimizer takes
# $2 \cdot 432 + 16 \cdot 4 = 928$ bytes.


# %% nbgrader={"grade": false, "grade_id": "lab02-predict_training-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def predict_training(shape: SimpleNamespace, batch: int, seq: int) -> dict[str, int]:
    """Return the bytes of one training step by component, and its peak."""
    d, tokens = shape.d_model, batch * seq
    counted = gpt_parameters(shape.n_layers, d, shape.vocab, shape.context)
    parameters = gradients = optimizer = saved = logits = 0
    at_first_point = at_second_point = 0  # the two points in time
    ### BEGIN SOLUTION
    parameters = gradients = 4 * sum(counted.values())
    optimizer = 2 * parameters + 4 * (12 * shape.n_layers + 4)
    saved = 4 * tokens * (16 * d * shape.n_layers + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, shape.context, 4 * d)
    at_first_point = parameters + optimizer + saved + 3 * logits
    at_second_point = parameters + gradients + optimizer + 2 * largest
    ### END SOLUTION
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_first_point, at_second_point),
    }


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-predict_training-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.12, a real step, predicted
def number_of(key, shape, batch, seq):
    """Return one of the six numbers; raise an error if that runs a model."""
    with lab02.no_model_runs():
        return predict_training(shape, batch, seq)[key]


def error_of(key, measured, shape, batch, seq):
    """Say how far one of the numbers is from a measured one."""
    off = 100 * (number_of(key, shape, batch, seq) / measured(shape, batch, seq) - 1)
    if abs(off) < 1:
        return "off by less than 1%"
    return f"{abs(off):.1f}% too {'high' if off > 0 else 'low'}"


def shape_of(n_layers, d_model, vocab, context):
    return SimpleNamespace(
        n_layers=n_layers, d_model=d_model, n_heads=2, vocab=vocab, context=context
    )


self_check(
    number_of,
    [
        Case((key, shape_of(1, 2, 10, 5), 1, 3), value, hint, label=f"{key}: {value}")
        for key, value, hint in [
            ("parameters", 432, "108 parameters of 4 bytes"),
            ("gradients", 432, "one number per parameter"),
            ("optimizer", 928, "Adam's two moments, and 16 counters of 4 bytes"),
            ("logits", 120, "one tensor: 3 tokens with 10 numbers each"),
        ]
    ]
    + [
        Case(
            ("optimizer", shape_of(2, 2, 10, 5), 1, 3),
            1568,
            "182 parameters in 12 tensors per layer, and 4 others",
            label="optimizer, two layers: 1568",
        ),
        *(
            Case(
                ("logits", shape_of(1, 2, 10, 5), batch, seq),
                4 * batch * seq * 10,
                "batch * seq tokens",
                label=f"logits, {batch} x {seq} tokens",
            )
            for batch, seq in [(2, 3), (1, 4)]
        ),
        Case(
            ("parameters", shape_of(1, 2, 10, 9), 1, 3),
            464,
            "use this shape's context",
            label="context",
        ),
        Case(
            ("logits", shape_of(1, 2, 11, 5), 1, 3),
            132,
            "use this shape's vocabulary",
            label="logits: another vocabulary",
        ),
    ]
    + [
        Case(
            (key, measured, shape_of(*sizes), batch, 32),
            "off by less than 1%",
            hint,
            label=f"{key}, {name}",
            function=error_of,
        )
        for key, measured, sizes, batch, name, hint in [
            (
                "saved_activations",
                lab02.measured_saved,
                (3, 128, 1000, 64),
                8,
                "measured",
                "count what is kept per layer and after the layers: read the list under 1",
            ),
            (
                "peak",
                lab02.measured_peak,
                (2, 128, 1000, 64),
                8,
                "many tokens",
                "what is live at the logits' gradient?",
            ),
            (
                "peak",
                lab02.measured_peak,
                (2, 128, 4000, 64),
                1,
                "many parameters",
                "what is live during the optimizer's step?",
            ),
            (
                "peak",
                lab02.measured_peak,
                (3, 128, 100, 64),
                1,
                "small vocabulary",
                "which parameter tensor is the largest?",
            ),
        ]
    ],
)

# %% nbgrader={"grade": true, "grade_id": "lab02-predict_training", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.12, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-predict_training", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-real-step-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## Does it fit? A prediction, and the meter
#
# Choose a step and guess its peak.

# %%
my_shape = SimpleNamespace(n_layers=6, d_model=384, n_heads=6, vocab=50257, context=1024)
my_batch, my_seq = 1, 256
my_guess_gb = None  # your guess of the peak, in GB

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-real-step", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(my_guess_gb, question="how many GB at the peak?"):
    lab02.show_real_step(predict_training, my_shape, my_batch, my_seq)
    print(f"you guessed {my_guess_gb} GB")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What the stretch adds
#
# - Predicted over measured should be 1.00. On a GPU, neither figure counts CUDA's own memory or the
#   allocator's rounding.
# - A step peaks at the logits' gradient with many tokens, in the optimizer's step with many parameters.
# - A formula holds for one implementation: 34 bytes per $sbh$ on paper, 32 to 112 in reality.
# - A tensor with a graph keeps everything its graph has saved.
