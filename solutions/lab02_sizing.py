# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: nbgrader,tags,slideshow,-all
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
# Does GPT-3 fit on this machine? The answer is a sum. A training fits if its **peak memory is below
# the available memory**, and each term of that peak can be worked out with pencil and paper before
# anything is run. In this lab you work the terms out, one function each.
#
# **You will be able to**
# - say what a model's weights take in any format, in GB and in GiB;
# - count the parameters of a GPT exactly, component by component;
# - find a row of a paper's table that contradicts itself;
# - say how large the output of an operation is;
# - tell what a slide's rounded product leaves out;
# - work out what a transformer layer keeps for the backward pass;
# - say from when to when a tensor has to live, in inference and in training;
# - add the tensors that live at each step, and so find the peak;
# - find the largest batch that fits a budget;
# - predict every byte of a real training step, and check the prediction with a meter.
#
# | exercise | minutes | points |
# |---|---|---|
# | 2.1 Bytes of the weights | 5 | 1 |
# | 2.2 Where the parameters are | 20 | 4 |
# | 2.3 Rows that do not add up | 5 | 1 |
# | 2.4 What an operation puts out | 5 | 1 |
# | 2.5 One tensor a layer | 5 | 1 |
# | 2.6 What a layer keeps | 15 | 3 |
# | 2.7 How long a tensor lives | 25 | 3 |
# | 2.8 The live bytes, step by step | 10 | 2 |
# | 2.9 The largest batch that fits | 15 | 2 |
# | 2.10 A real step, predicted | 40 | 4 |
# | 2.11 In your own words | 5 | 2 |
# | **total** | **150** | **24** |
#
# Each exercise has the same rhythm. You **predict** a number (a plain variable; it is not graded),
# you **write** a function, the cell below **measures** and shows your prediction beside the result,
# and you **explain** the difference to yourself before you go on. That cell also checks your
# function with a few cases; when it passes, you are probably done. Grading tries many more.
#
# All functions return whole **bytes** (or whole numbers of things), never GB. 1 GB is 10^9 bytes,
# 1 GiB is 2^30 bytes, 7.4 % more. Papers and shops say GB for either one, so this lab prints both.
#
# This lab needs no GPU. Where there is one, the question about "this machine" is about its memory, and
# the last measurement is made on it.

# %% nbgrader={"grade": false, "grade_id": "lab02-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import os
from collections import OrderedDict
from types import SimpleNamespace

import matplotlib.pyplot as plt
import torch
from IPython.display import display
from tqdm.auto import tqdm

import peakmem
from peakmem import plots
from peakmem.hardware import accelerator
from peakmem.meter import MemoryMeter
from peakmem.nn import GPT, training_step
from peakmem.units import GB, both

peakmem.lab("lab02_sizing")


def show_figure(figure, alt):
    """Show a figure with a text for those who cannot see it."""
    display(figure, metadata={"image/png": {"alt": alt}})
    plt.close(figure)


def machine_bytes():
    """Return the GPU's memory, or the computer's where there is no GPU."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_properties(0).total_memory
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 16 * GB  # Windows does not say: write your computer's memory here


# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-opening", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## Does GPT-3 fit on this machine?
#
# GPT-3 has 175 billion parameters, as its paper says. To *use* it, you need at least its weights. To
# *train* it, you need more: a gradient for each weight, what the optimizer remembers, and what the
# forward pass keeps for the backward pass.
#
# **Predict first**, before you compute anything: how much memory do the weights take at 2 bytes each,
# and how many machines like this one would be needed to hold them?

# %%
predicted_weights_gb = None  # your prediction, in GB
predicted_machines = None  # your prediction, a number

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-weight_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.1 Bytes of the weights (1 point, 5 minutes)
#
# Weights are stored in some format, and the format says how many bits a number takes. Training uses
# the wide formats, and inference goes down to 4 bits. So the first thing to ask of any model is how
# many parameters there are, and in which format.
#
# | dtype | fp64 | fp32 | fp16, bf16 | fp8, int8 | int4 |
# |---|---|---|---|---|---|
# | bits a number | 64 | 32 | 16 | 8 | 4 |
#
# Write `weight_bytes(n_params, dtype)`:
# - `n_params` is a whole number, `dtype` one of the seven names above. Any other raises `ValueError`.
# - *Convention:* the result is in bytes (not GB, not GiB), an `int`, rounded up to whole bytes.
# - Use whole numbers all the way: `//` instead of `/`. A float has 53 bits, and a byte count may have
#   more.
#
# *Example:* 3 weights of int4 are 12 bits, which take 2 bytes. 3 weights of bf16 take 6.


# %% nbgrader={"grade": false, "grade_id": "lab02-weight_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def weight_bytes(n_params: int, dtype: str) -> int:
    """Return the bytes that this many numbers take; ValueError for an unknown dtype."""
    ### BEGIN SOLUTION
    bits = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}
    if dtype not in bits:
        raise ValueError(f"no dtype {dtype!r}: expected one of {', '.join(bits)}")
    return -(-n_params * bits[dtype] // 8)  # rounded up
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-weight_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.1, bytes of the weights
for n_params, dtype, expected, hint in [
    (3, "bf16", 6, "16 bits are 2 bytes"),
    (3, "int4", 2, "12 bits are a byte and a half: round up"),
    (4, "int4", 2, "two numbers share a byte"),
    (10, "fp8", 10, "8 bits are 1 byte"),
    (10, "fp64", 80, "64 bits are 8 bytes"),
    (175_000_000_000, "fp16", 350_000_000_000, "bytes, not GB"),
]:
    got = weight_bytes(n_params, dtype)
    assert got == expected, f"{n_params} of {dtype} take {expected} bytes, not {got}; {hint}"
    assert not torch.as_tensor(got).is_floating_point(), (
        f"bytes are whole numbers, but you return {got}"
    )
try:
    weight_bytes(1, "float32")
except ValueError:
    pass
else:
    raise AssertionError("'float32' is none of the seven names: raise ValueError")
here = machine_bytes()
for dtype in ("fp32", "fp16", "int8", "int4"):
    weights = weight_bytes(175_000_000_000, dtype)
    print(f"GPT-3 in {dtype}: {both(weights)}, {weights / here:.1f} times this machine's memory")
print(f"this machine has {both(here)}")
print(f"you predicted {predicted_weights_gb} GB for 2 bytes, on {predicted_machines} machines")

# %% nbgrader={"grade": true, "grade_id": "lab02-weight_bytes", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.1, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-weight_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-weight_bytes-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the numbers.** The slides' "175B * 2 / 4 = 350G / 700G" is right, in GB of 10^9 bytes: 350
# at 2 bytes a parameter, 700 at 4. In GiB, which most tools print, it is 326 and 652. And these are the
# *weights alone*: enough to use the model, not to train it.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-gpt_parameters-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.2 Where the parameters are (4 points, 20 minutes)
#
# "175 billion" is a rounded number. The exact one follows from the shape of the model, and the
# components tell you more than the sum: which part grows with the vocabulary, which with the square of
# the width.
#
# A GPT turns each token into a vector of `d_model` numbers, sends it through `n_layers` equal layers,
# and compares the result with every token of the vocabulary:
#
# | component | what it consists of |
# |---|---|
# | `token_embedding` | a vector for each of `vocab` tokens |
# | `position_embedding` | a vector for each of `context` positions |
# | `attention`, in each layer | four linear layers from d_model to d_model: queries, keys, values, output |
# | `mlp`, in each layer | a linear layer from d_model to 4 d_model, and one back |
# | `layer_norms`, in each layer | two norms; a norm has a weight and a bias, d_model numbers each |
# | `final_norm` | one norm after the last layer |
# | `head` | from d_model to vocab. Where it is **tied**, it *is* the token embedding: one tensor with two uses, counted there |
#
# A linear layer from *n* to *p* numbers is a matrix of *n p* weights and a bias of *p* numbers, one for
# each output.
#
# Write `gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True)`:
# - Return a dict with exactly the seven keys above.
# - *Convention:* numbers of parameters (not bytes); `attention`, `mlp` and `layer_norms` over **all**
#   layers; all biases count, but the head has none; `head` is 0 when tied.
#
# *Points:* embeddings and head 1, attention 1, mlp 1, norms 1.
#
# *Example:* one layer of width 2. Attention is 4 matrices of 2 x 2 and 4 biases of 2, so 24. The MLP
# is 2 * 8 weights and 8 biases, then 8 * 2 weights and 2 biases, so 42.
#
# **Predict first.** Which share of GPT-3's parameters is in the MLPs? And of GPT-3 Small's, with 12
# layers of width 768?

# %%
predicted_mlp_share_gpt3 = None  # your prediction, between 0 and 1
predicted_mlp_share_small = None  # your prediction, between 0 and 1


# %% nbgrader={"grade": false, "grade_id": "lab02-gpt_parameters-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gpt_parameters(
    n_layers: int, d_model: int, vocab: int = 50257, context: int = 2048, tied: bool = True
) -> dict[str, int]:
    """Return the number of parameters of a GPT by component, over all layers."""

    ### BEGIN SOLUTION
    def linear(n: int, p: int) -> int:
        return n * p + p

    return {
        "token_embedding": vocab * d_model,
        "position_embedding": context * d_model,
        "attention": n_layers * 4 * linear(d_model, d_model),
        "mlp": n_layers * (linear(d_model, 4 * d_model) + linear(4 * d_model, d_model)),
        "layer_norms": n_layers * 2 * 2 * d_model,
        "final_norm": 2 * d_model,
        "head": 0 if tied else vocab * d_model,
    }
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-gpt_parameters-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.2, where the parameters are
tiny = gpt_parameters(1, 2, vocab=10, context=5)
expected = {
    "token_embedding": 20,
    "position_embedding": 10,
    "attention": 24,
    "mlp": 42,
    "layer_norms": 8,
    "final_norm": 4,
    "head": 0,
}
assert set(tiny) == set(expected), f"the keys are {', '.join(expected)}; yours: {', '.join(tiny)}"
for name, value in expected.items():
    assert tiny[name] == value, f"one layer of width 2: {name} is {value}, not {tiny[name]}"
got = gpt_parameters(3, 2)["mlp"]
assert got == 3 * 42, f"three layers of width 2: mlp is {3 * 42}, not {got}; count all layers"
got = gpt_parameters(1, 2, vocab=10, tied=False)["head"]
assert got == 20, f"an untied head is a matrix of 10 x 2 numbers without a bias: 20, not {got}"

# The same count by torch. On the device "meta" tensors have shapes, but no memory.
for name, n_layers, d_model, n_heads in [
    ("GPT-3 Small", 12, 768, 12),
    ("GPT-3 175B", 96, 12288, 96),
]:
    shape = SimpleNamespace(
        n_layers=n_layers, d_model=d_model, n_heads=n_heads, vocab=50257, context=2048
    )
    with torch.device("meta"):
        by_torch = sum(p.numel() for p in GPT(shape).parameters())
    counted = gpt_parameters(n_layers, d_model)
    total = sum(counted.values())
    assert total == by_torch, (
        f"{name}: torch's modules have {by_torch:,} parameters, yours {total:,}"
    )
    share = counted["mlp"] / total
    print(f"{name}: {total:,} parameters, as in torch's modules; {share:.1%} are in the MLPs")
    print(f"  weights in fp16: {both(weight_bytes(total, 'fp16'))}")
print(f"you predicted {predicted_mlp_share_gpt3} (GPT-3) and {predicted_mlp_share_small} (Small)")

# %% nbgrader={"grade": true, "grade_id": "lab02-gpt_parameters", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.2, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-gpt_parameters", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-gpt_parameters-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the numbers.** GPT-3 has 174,604,259,328 parameters; 175 billion is rounded, so 350 GB
# is exactly 349.2. In the small model a third of all parameters are embeddings; in the large one they
# are nothing, for they grow with the width and the layers with its square. There, two thirds of
# everything are MLPs: the 8 d_model^2 of 12 d_model^2 a layer.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-inconsistent_rows-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.3 Rows that do not add up (1 point, 5 minutes)
#
# Before you compute from a table, check it against itself. In attention, the `d_model` numbers of a
# token are shared out among `n_heads` heads of `d_head` numbers each. So `n_heads * d_head` should be
# `d_model`. Below is the table of GPT-3's paper (Brown et al. 2020, table 2.1), as it is printed there
# and copied on many slides. `torch` refuses to build some of these models, since their heads do not
# divide the width equally.
#
# Write `inconsistent_rows(table)`:
# - `table` is a list of dicts with the keys `name`, `n_layers`, `d_model`, `n_heads`, `d_head`.
# - *Convention:* return the set of the **names** of all rows where n_heads * d_head is not d_model.
#
# *Example:* 12 heads of 64 are 768 wide. A row with d_model 770 and these heads is inconsistent.
#
# **Predict first.** How many of the eight rows do not add up? Guess before you calculate.

# %%
predicted_inconsistent_rows = None  # your prediction, a number

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


# %% nbgrader={"grade": false, "grade_id": "lab02-inconsistent_rows-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def inconsistent_rows(table: list[dict]) -> set[str]:
    """Return the names of the rows whose heads are not as wide as the model."""
    ### BEGIN SOLUTION
    return {row["name"] for row in table if row["n_heads"] * row["d_head"] != row["d_model"]}
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-inconsistent_rows-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.3, rows that do not add up
good = {"name": "good", "n_layers": 12, "d_model": 768, "n_heads": 12, "d_head": 64}
wide = {"name": "wide", "n_layers": 12, "d_model": 770, "n_heads": 12, "d_head": 64}
narrow = {"name": "narrow", "n_layers": 12, "d_model": 720, "n_heads": 12, "d_head": 64}
got = set(inconsistent_rows([good, wide, narrow]))
assert got == {"wide", "narrow"}, (
    f"12 heads of 64 make 768, neither 770 nor 720, but you return {got}"
)
got = set(inconsistent_rows([good]))
assert got == set(), f"12 heads of 64 make 768: nothing to report, but you return {got}"
for row in GPT3_TABLE:
    if row["name"] in inconsistent_rows(GPT3_TABLE):
        wide = row["n_heads"] * row["d_head"]
        heads = f"{row['n_heads']} x {row['d_head']} = {wide}"
        print(f"{row['name']}: {heads}, but d_model is {row['d_model']}")
        for width in (row["d_model"], wide):
            total = sum(gpt_parameters(row["n_layers"], width).values())
            print(f"  {total:,} parameters, if the model is {width} wide")
print(f"you predicted {predicted_inconsistent_rows} rows")

# %% nbgrader={"grade": true, "grade_id": "lab02-inconsistent_rows", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.3, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-inconsistent_rows", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-inconsistent_rows-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the numbers.** The paper calls the two models 1.3B and 13.0B. For XL only d_model gives that,
# so the heads are the slip (16 heads of 128 would make 2048). For 13B both readings round to 13 billion;
# 5140 is no multiple of 40, so it is taken for a slip of 5120.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-activation_elements-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.4 What an operation puts out (1 point, 5 minutes)
#
# Weights are stored once. What flows through the network is made anew for every example: these numbers
# are the **activations**. Training keeps many of them until the backward pass has used them, so we count
# them next. An operation's output is a block of numbers; its size is the product of its dimensions.
#
# | op | takes | puts out |
# |---|---|---|
# | `"conv2d"` | pictures with channels | for each of `bs` pictures, `nc` channels of `wo` x `ho` |
# | `"linear"` | `bs` matrices of `m` x `n` | each times a weight of `n` x `p` |
# | `"transformer"` (a layer) | `bs` sequences of `seq_len` tokens, `h` numbers each | the same again |
#
# Write `activation_elements(op, **dims)`:
# - `op` is one of the three; any other raises `ValueError`. The dimensions come by name, as in the
#   table: `dims` is a dict of them.
# - *Convention:* the number of elements of the **output** alone, an `int` (not bytes).
#
# *Example:* `activation_elements("conv2d", bs=2, nc=64, wo=112, ho=112)` is 2 * 64 * 112 * 112 =
# 1,605,632.
#
# **Predict first.** A picture of 224 x 224 with 3 channels goes through a convolution that gives
# 64 channels of 112 x 112. How many times larger is the output than the input?

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
        raise ValueError(f"no op {op!r}: expected one of {', '.join(output)}")
    elements = 1
    for name in output[op]:
        elements *= dims[name]
    return elements
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-activation_elements-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.4, what an operation puts out
modules = {
    "conv2d": torch.nn.Conv2d(3, 64, 7, stride=2, padding=3),
    "linear": torch.nn.Linear(30, 7),
    "transformer": torch.nn.TransformerEncoderLayer(16, 2, batch_first=True),
}
for op, size, dims in [
    ("conv2d", (2, 3, 224, 224), {"bs": 2, "nc": 64, "wo": 112, "ho": 112}),
    ("linear", (2, 5, 30), {"bs": 2, "m": 5, "n": 30, "p": 7}),
    ("transformer", (2, 5, 16), {"bs": 2, "seq_len": 5, "h": 16}),
]:
    output = modules[op](torch.zeros(size))
    got = activation_elements(op, **dims)
    assert got == output.numel(), (
        f"torch's {op} of {size} puts out {tuple(output.shape)}, {output.numel()} elements, not {got}"
    )
    assert not torch.as_tensor(got).is_floating_point(), (
        f"a number of elements is whole, but you return {got}"
    )
try:
    activation_elements("attention", bs=1, seq_len=1, h=1)
except ValueError:
    pass
else:
    raise AssertionError("'attention' is none of the three ops: raise ValueError")
growth = activation_elements("conv2d", bs=1, nc=64, wo=112, ho=112) / (3 * 224 * 224)
print(f"the first convolution's output is {growth:.2f} times its input")
print(f"you predicted {predicted_growth}")

# %% nbgrader={"grade": true, "grade_id": "lab02-activation_elements", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.4, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-activation_elements", globals())
### END HIDDEN TESTS


# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-boundary_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.5 One tensor a layer (1 point, 5 minutes)
#
# GPT-3 was trained on batches of 3.2 million tokens. Suppose that of all activations we keep one tensor
# a layer, the one at the **boundary** to the next: d_model numbers for each token. That is the least a
# plain training could keep, and a first estimate.
#
# Write `boundary_bytes(n_layers, tokens, d_model, bytes_per_element)`:
# - *Convention:* one boundary a layer, so `n_layers` of them; bytes, exact, not rounded on the way.
#
# *Example:* 3 layers, 10 tokens, 4 numbers each in fp16: 3 * 10 * 4 * 2 = 240 bytes.
#
# **Predict first.** For GPT-3 with 96 layers of width 12288 and 2 bytes an element: is it more or less
# than the weights' 350 GB, and by what factor?

# %%
predicted_factor = None  # your prediction: boundaries / weights


# %% nbgrader={"grade": false, "grade_id": "lab02-boundary_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def boundary_bytes(n_layers: int, tokens: int, d_model: int, bytes_per_element: int) -> int:
    """Return the bytes of one boundary tensor a layer."""
    ### BEGIN SOLUTION
    return n_layers * tokens * d_model * bytes_per_element
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-boundary_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.5, one tensor a layer
for sizes, expected in [
    ((3, 10, 4, 2), 240),
    ((1, 10, 4, 4), 160),
    ((96, 3_200_000, 12288, 1), 3_774_873_600_000),
]:
    got = boundary_bytes(*sizes)
    assert got == expected, f"boundary_bytes{sizes} is the product, {expected} bytes, not {got}"
    assert not torch.as_tensor(got).is_floating_point(), (
        f"bytes are whole numbers, but you return {got}"
    )
print(f"elements of one boundary: {boundary_bytes(1, 3_200_000, 12288, 1) / 1e9:.2f} billion")
for size in (2, 4):
    one = boundary_bytes(1, 3_200_000, 12288, size)
    every = boundary_bytes(96, 3_200_000, 12288, size)
    cut = one // GB if size == 2 else 2 * (one // 2 // GB)  # the slides' 78, and twice that
    print(f"{size} bytes: one layer {one / 1e9:.2f} GB, the slides' {cut}")
    print(f"  96 layers {every / 1e9:.1f} GB, the slides' 96 x {cut} = {96 * cut}")
factor = boundary_bytes(96, 3_200_000, 12288, 2) / weight_bytes(175_000_000_000, "fp16")
print(f"boundaries / weights: {factor:.1f}; you predicted {predicted_factor}")

# %% nbgrader={"grade": true, "grade_id": "lab02-boundary_bytes", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.5, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-boundary_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-boundary_bytes-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the numbers.** *If you compare with the lecture's slides:* they print 78 / 156 GB a layer, and
# 7488 / 14976 GB in all. The exact values are 78.64 / 157.29 and 7549.7 / 15099.5. The slides cut 78.64
# to 78 first and multiplied then, so the error was multiplied by 96 as well. Round last.
#
# No machine holds 7.5 TB. So a real training cuts the batch into micro-batches (lab 5), keeps less than
# all (lab 4), and spreads the rest over many devices.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-layer_activation_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.6 What a layer keeps (3 points, 15 minutes)
#
# One tensor a layer is far too little. Each operation keeps what its own backward needs: a linear layer
# needs its input, to get its weight's gradient. A softmax needs its output. Dropout needs to know which
# elements it let through, one byte each: the *mask*. Korthikanti et al. (2022) added this up for one
# layer. With *s* tokens a sequence, *b* sequences, *h* = d_model and *a* heads, everything but masks at
# 2 bytes:
#
# | part | what is kept | bytes |
# |---|---|---|
# | attention | input of queries, keys, values (one tensor for all three) | 2sbh |
# | | queries and keys | 4sbh |
# | | values | 2sbh |
# | | input of the output layer | 2sbh |
# | | dropout mask after the output layer | 1sbh |
# | | softmax's output, *s* x *s* in each head | 2as^2b |
# | | its dropout: mask and output | as^2b + 2as^2b |
# | mlp | input of the first layer | 2sbh |
# | | input of GELU, 4h wide | ? |
# | | input of the second layer, 4h wide | ? |
# | | dropout mask after it | 1sbh |
# | norms | input of each of the two | ? |
#
# **Flash attention** computes the scores in pieces and never stores them. With it, the three terms
# with *s*^2 are not there. All else stays.
#
# Write `layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard")`:
# - Return a dict with exactly the keys `attention`, `mlp` and `layer_norms`, for one layer.
# - *Convention:* bytes, by the table above: 2 an element, 1 an element of a mask.
# - `attention` is `"standard"` or `"flash"`; any other raises `ValueError`.
#
# *Points:* attention 1, mlp 1, layer_norms 1.
#
# *Example:* for s = 2, b = 1, h = 4, a = 2 (sbh = 8, as^2b = 8) attention is 11 * 8 + 5 * 8 = 128, and
# with flash 88.
#
# **Predict first.** GPT-3, sequences of 2048 tokens: from which part comes most of what a layer keeps,
# and which share of it are the scores?

# %%
predicted_largest_part = None  # your prediction: "attention", "mlp" or "layer_norms"
predicted_share_of_scores = None  # your prediction, between 0 and 1


# %% nbgrader={"grade": false, "grade_id": "lab02-layer_activation_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def layer_activation_bytes(
    seq: int, batch: int, d_model: int, n_heads: int, attention: str = "standard"
) -> dict[str, int]:
    """Return the bytes that one layer keeps for the backward pass, by part."""
    ### BEGIN SOLUTION
    if attention not in ("standard", "flash"):
        raise ValueError(f"no attention {attention!r}: expected standard or flash")
    sbh = seq * batch * d_model
    scores = n_heads * seq * seq * batch if attention == "standard" else 0
    return {
        "attention": (2 + 4 + 2 + 2 + 1) * sbh + (2 + 1 + 2) * scores,
        "mlp": (2 + 8 + 8 + 1) * sbh,
        "layer_norms": (2 + 2) * sbh,
    }
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-layer_activation_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.6, what a layer keeps
got = layer_activation_bytes(2, 1, 4, 2)
for part, value, hint in [
    ("attention", 128, "11sbh + 5as^2b"),
    ("mlp", 152, "GELU and the second layer keep inputs of 4h numbers at 2 bytes"),
    ("layer_norms", 32, "two inputs of 2 bytes an element"),
]:
    assert part in got, f"the key {part} is missing: you return {got}"
    assert got[part] == value, f"s=2, b=1, h=4, a=2: {part} is {value}, not {got[part]}; {hint}"
assert len(got) == 3, f"three keys are expected, but you return {got}"
got = layer_activation_bytes(2, 1, 4, 2, attention="flash")["attention"]
assert got == 88, f"flash keeps no scores, so attention is 11sbh = 88, not {got}"
try:
    layer_activation_bytes(2, 1, 4, 2, attention="sdpa")
except ValueError:
    pass
else:
    raise AssertionError("'sdpa' is neither standard nor flash: raise ValueError")
seq = 2048
for kind in ("standard", "flash"):
    layer = layer_activation_bytes(seq, 1, 12288, 96, kind)
    total = sum(layer.values())
    print(f"GPT-3, a layer, one sequence of {seq}, {kind}: {both(total)}")
    print("  " + ", ".join(f"{part} {size / total:.0%}" for part, size in layer.items()))
    print(f"  that is {total / (seq * 12288):.0f} sbh; 96 layers {both(96 * total)}")
scores = 1 - 34 * seq * 12288 / sum(layer_activation_bytes(seq, 1, 12288, 96).values())
print(f"share of the scores: {scores:.0%}; you predicted {predicted_share_of_scores}")
print(f"you predicted that most is kept by {predicted_largest_part}")

# %% nbgrader={"grade": true, "grade_id": "lab02-layer_activation_bytes", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.6, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-layer_activation_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-layer_activation_bytes-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the numbers.** Where the slides say "roughly 5 x" the boundary, the count is 17 tensors of
# 2sbh with flash attention, and 57 with standard attention at 2048 tokens. The term with *s*^2 grows
# with the square of the sequence length; that is why long sequences came with flash attention.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-lifetimes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.7 How long a tensor lives (3 points, 25 minutes)
#
# Why does training need so much more than inference, with the same activations? Because of *when* they
# can be freed. Number the steps of a program: with n operations, operation i (from 0) runs at step i. In
# training its backward runs at step 2n-1-i: the backward pass goes through the operations in reverse, so
# the last operation (n-1) comes first, at step n.
#
# A value is needed from the step that makes it until the last step that reads it. Readers are the
# operations that take it as input, and, in training, the *backward* of every operation that saved it.
#
# Write `lifetimes(graph, training)`:
# - `graph` is a list of operations in order, each a dict with `name` (of the operation and of its
#   output), `inputs` (names), `output_bytes`, and `saves` (names of the values that its backward needs;
#   its own output may be among them).
# - Return a list of tuples (name, first_step, last_step), one an operation, in the order of the graph.
# - *Convention:* an output lives from step i to the latest of: i; the steps of operations that list it
#   in `inputs`; in training, also the backward steps of operations that list it in `saves`. Names that no
#   operation makes (the network's input) are not listed. `last_step` is inclusive.
#
# *Points:* inference 1, training 2.
#
# *Example:* a residual connection, where `h` is read twice:
#
# | step | operation | inputs | saves | inference | training | backward at |
# |---|---|---|---|---|---|---|
# | 0 | h | x | x | 0-2 | 0-6 | 7 |
# | 1 | a | h | h | 1-2 | 1-2 | 6 |
# | 2 | r | h, a | nothing | 2-3 | 2-4 | 5 |
# | 3 | y | r | r | 3-3 | 3-3 | 4 |
#
# **Predict first.** A chain of 50 linear layers, where each saves its input: how many outputs are live at
# once, at most, in inference? And in training?

# %%
predicted_live_inference = None  # your prediction, a number
predicted_live_training = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab02-lifetimes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def lifetimes(graph: list[dict], training: bool) -> list[tuple[str, int, int]]:
    """Return (name, first step, last step) of each operation's output."""
    ### BEGIN SOLUTION
    n = len(graph)
    last = {op["name"]: i for i, op in enumerate(graph)}
    for i, op in enumerate(graph):
        reads = [(name, i) for name in op["inputs"]]
        if training:
            reads += [(name, 2 * n - 1 - i) for name in op["saves"]]
        for name, step in reads:
            if name in last:  # the network's input is made by no operation
                last[name] = max(last[name], step)
    return [(op["name"], i, last[op["name"]]) for i, op in enumerate(graph)]
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-lifetimes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.7, how long a tensor lives
residual = [
    {"name": "h", "inputs": ["x"], "output_bytes": 4, "saves": ["x"]},
    {"name": "a", "inputs": ["h"], "output_bytes": 4, "saves": ["h"]},
    {"name": "r", "inputs": ["h", "a"], "output_bytes": 4, "saves": []},
    {"name": "y", "inputs": ["r"], "output_bytes": 4, "saves": ["r"]},
]
chain = [
    {"name": f"t{i}", "inputs": [f"t{i - 1}"], "output_bytes": 4, "saves": [f"t{i - 1}"]}
    for i in range(50)
]
for training, values in [
    (False, [("h", 0, 2), ("a", 1, 2), ("r", 2, 3), ("y", 3, 3)]),
    (True, [("h", 0, 6), ("a", 1, 2), ("r", 2, 4), ("y", 3, 3)]),
]:
    got = [tuple(life) for life in lifetimes(residual, training)]
    assert got == values, f"training={training}: expected {values}, but you return {got}"
relu = [{"name": "y", "inputs": ["x"], "output_bytes": 4, "saves": ["y"]}]
got = [tuple(life) for life in lifetimes(relu, True)]
assert got == [("y", 0, 1)], f"an output may be saved by its own operation: 0-1, not {got}"
for training, predicted in [(False, predicted_live_inference), (True, predicted_live_training)]:
    lives = lifetimes(chain, training)
    most = max(sum(first <= step <= last for _, first, last in lives) for step in range(100))
    print(f"50 layers, training={training}: {most} outputs live at once; you predicted {predicted}")

# %% nbgrader={"grade": true, "grade_id": "lab02-lifetimes", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.7, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-lifetimes", globals())
### END HIDDEN TESTS


# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-live_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.8 The live bytes, step by step (2 points, 10 minutes)
#
# From lifetimes to memory is one sum: at each step, the bytes of all tensors that live then. The largest
# of these sums is the **peak**, which has to fit. Neither the sum of all tensors nor the largest one
# says how much memory you need.
#
# Write `live_bytes(tensors, n_steps)`:
# - `tensors` is a list of (bytes, first_step, last_step).
# - Return a list of `n_steps` whole numbers: the bytes that live at step 0, 1, ..., n_steps - 1.
# - *Convention:* `last_step` is inclusive. What lies before step 0 or after the last step is cut off.
#
# *Example:* `live_bytes([(10, 0, 1), (5, 1, 3)], 3)` is [10, 15, 5]. Step 3 is beyond the range.
#
# **Predict first.** A chain of 50 layers with outputs of 1 MB each: what is the peak of training divided
# by that of inference?

# %%
predicted_ratio_of_peaks = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab02-live_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def live_bytes(tensors: list[tuple[int, int, int]], n_steps: int) -> list[int]:
    """Return the bytes that live at each step."""
    ### BEGIN SOLUTION
    live = [0] * n_steps
    for size, first, last in tensors:
        for step in range(max(first, 0), min(last, n_steps - 1) + 1):
            live[step] += size
    return live
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-live_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.8, the live bytes, step by step
for tensors, n_steps, expected, hint in [
    ([(10, 0, 1), (5, 1, 3)], 3, [10, 15, 5], "both live at step 1"),
    ([(10, -2, 0), (5, 2, 9)], 3, [10, 0, 5], "cut off what lies outside"),
    ([(10, -5, -3), (5, 7, 9)], 3, [0, 0, 0], "both lie outside"),
    ([], 2, [0, 0], "nothing lives"),
]:
    got = list(live_bytes(tensors, n_steps))
    assert got == expected, f"live_bytes({tensors}, {n_steps}) is {expected}, not {got}; {hint}"
chain = [
    {"name": f"t{i}", "inputs": [f"t{i - 1}"], "output_bytes": 10**6, "saves": [f"t{i - 1}"]}
    for i in range(50)
]
peaks = {}
for training in (False, True):
    sizes = [op["output_bytes"] for op in chain]
    lives = lifetimes(chain, training)
    tensors = [(size, first, last) for size, (_, first, last) in zip(sizes, lives, strict=True)]
    peaks[training] = max(live_bytes(tensors, 2 * len(chain)))
    print(f"training={training}: peak {both(peaks[training])}")
print(f"ratio {peaks[True] / peaks[False]:.0f}; you predicted {predicted_ratio_of_peaks}")

# %% nbgrader={"grade": true, "grade_id": "lab02-live_bytes", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.8, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-live_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-live_bytes-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the numbers.** Inference needs two buffers, however deep the network is: one to read from
# and one to write to. Training keeps all outputs until the backward pass comes back to them, so its peak
# grows with the depth. That is the gap which lab 4 closes a good part of, by computing again.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-real-lives-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### And a real network?
#
# The graph was drawn; now the same is measured. `MemoryMeter` counts the bytes of all tensors that are
# live, after each operator that torch runs. Below, it watches a chain of 24 linear layers with a GELU
# after each, once under `torch.no_grad()` (inference) and once with a backward pass. What is there all
# along, the weights and the input, is taken off, so that you see what comes and goes.
#
# **Predict first.** An output of one layer takes 1 MiB here. How high does the curve of inference get, and
# how high that of training?

# %%
predicted_inference_mib = None  # your prediction, a number
predicted_training_mib = None  # your prediction, a number

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-real-lives", "locked": true, "schema_version": 3, "solution": false, "task": false}
torch.manual_seed(0)
chain_of_layers = torch.nn.Sequential(
    *(module for _ in range(24) for module in (torch.nn.Linear(256, 256), torch.nn.GELU()))
)
inputs = torch.randn(1024, 256)  # 1024 x 256 float32 numbers are 1 MiB


def live_mib(program):
    """Return the MiB live after each operator, above what was there before."""
    meter = MemoryMeter("cpu").track(chain_of_layers, inputs)
    with meter:
        program()
    return [(live - meter.baseline_bytes) / 2**20 for _, live in meter.timeline]


def infer():
    with torch.no_grad():
        chain_of_layers(inputs)


def train():
    chain_of_layers(inputs).sum().backward()
    chain_of_layers.zero_grad()


curves = {"inference": live_mib(infer), "training (forward, then backward)": live_mib(train)}
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
plots.live_timelines(ax, curves, unit="MiB")
show_figure(
    figure,
    "Live memory over the operators that ran. Inference stays flat at 2 MiB. Training rises in a "
    "straight line to 48 MiB in the forward pass, and falls in the backward pass to the 6 MiB "
    "of the gradients.",
)
for name, mib in curves.items():
    print(f"{name}: at most {max(mib):.2f} MiB")
print(f"you predicted {predicted_inference_mib} and {predicted_training_mib}")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-real-lives-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the picture.** Inference holds two tensors, whatever the depth. Training climbs with each layer
# and comes down again in reverse order: the mountain of every training step. Both an output and the input
# of its GELU are kept, so each layer adds 2 MiB, not 1. And it does not come down to zero: gradients of the
# weights (24 times 0.25 MiB) have taken the place of activations. On the way down there is no new peak, for
# each layer frees more than its gradient takes.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-largest_batch-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.9 The largest batch that fits (2 points, 15 minutes)
#
# Now the terms come together. Training with Adam in mixed precision takes **16 bytes a parameter** before
# the first activation: weights 2, gradients 2, and in fp32 a copy of the weights 4 and Adam's two moments
# 4 + 4. What remains of the budget is for activations, and those grow with the batch.
#
# Write `largest_batch(seq, shape, budget_bytes)`:
# - `shape` is an object with the attributes `n_layers`, `d_model`, `n_heads`, `vocab`, `context`.
# - *Convention:* 16 bytes a parameter (all of 2.2, tied head) plus the activations of all layers as in
#   2.6, with standard attention. Nothing else counts:
#   no logits, and nothing that the embeddings keep.
# - Return the largest whole number of sequences that **fits**: needed <= budget. Return 0 where not even
#   one fits. `seq` may be longer than `context`; take it as given.
#
# *Example:* 1000 bytes are left after the parameters, and one sequence keeps 300: the answer is 3. With
# exactly 900 left it is 3 as well.
#
# **Predict first.** GPT-2 has 12 layers of width 768 with 12 heads. How many sequences of 1024 tokens
# fit on a GPU of 16 GB, a V100? And when sequences are twice as long: half as many, fewer, or more?

# %%
predicted_batch_1024 = None  # your prediction, a number
predicted_batch_2048 = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab02-largest_batch-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def largest_batch(seq: int, shape: SimpleNamespace, budget_bytes: int) -> int:
    """Return the largest batch whose training step fits the budget; 0 where none does."""
    ### BEGIN SOLUTION
    counted = gpt_parameters(shape.n_layers, shape.d_model, shape.vocab, shape.context)
    left = budget_bytes - 16 * sum(counted.values())
    layer = layer_activation_bytes(seq, 1, shape.d_model, shape.n_heads)
    return max(left // (shape.n_layers * sum(layer.values())), 0)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-largest_batch-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.9, the largest batch that fits
tiny = SimpleNamespace(n_layers=1, d_model=2, n_heads=1, vocab=10, context=5)
# 108 parameters, so 1728 bytes; one sequence of 3 tokens keeps 34 * 3 * 2 + 5 * 3 * 3 = 249 bytes
for budget, expected, hint in [
    (1728 + 3 * 249, 3, "a budget that is met exactly fits"),
    (1728 + 3 * 249 - 1, 2, "one byte is missing for the third"),
    (1728 + 248, 0, "one byte is missing for the first"),
    (1000, 0, "the parameters alone do not fit, and a batch is never below 0"),
]:
    got = largest_batch(3, tiny, budget)
    assert got == expected, (
        f"with {budget} bytes the largest batch is {expected}, not {got}; {hint}"
    )
    assert not torch.as_tensor(got).is_floating_point(), (
        f"a batch is a whole number, but you return {got}"
    )
got = largest_batch(7, tiny, 1728 + 721)
assert got == 1, f"7 tokens keep 34 * 7 * 2 + 5 * 7 * 7 = 721 bytes, so 1 fits, not {got}"
gpt2 = SimpleNamespace(n_layers=12, d_model=768, n_heads=12, vocab=50257, context=1024)
for seq in (256, 512, 1024, 2048, 4096, 8192):
    batch = largest_batch(seq, gpt2, 16 * GB)
    print(f"GPT-2 on 16 GB, sequences of {seq}: {batch}, which is {batch * seq} tokens")
print(f"you predicted {predicted_batch_1024} of 1024 tokens and {predicted_batch_2048} of 2048")

# %% nbgrader={"grade": true, "grade_id": "lab02-largest_batch", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.9, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-largest_batch", globals())
### END HIDDEN TESTS

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-memory_over_length", "locked": true, "schema_version": 3, "solution": false, "task": false}
lengths = list(range(128, 8193, 128))
state = 16 * sum(gpt_parameters(12, 768, 50257, 1024).values())
curves = {}
for kind in ("standard", "flash"):
    layers = [layer_activation_bytes(seq, 1, 768, 12, kind) for seq in lengths]
    curves[f"{kind} attention"] = [(state + 12 * sum(layer.values())) / GB for layer in layers]
v100 = accelerator("v100-16gb").memory_bytes / GB
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
plots.memory_over_length(ax, lengths, curves, limit_gb=v100, limit_name="V100-16GB")
alt = (
    "Memory of training GPT-2 on one sequence, over its length. Both curves begin at 2 GB. With flash "
    "attention the line is straight and stays below 5 GB at 8192 tokens; with standard attention it "
    "bends upward and crosses the V100's 16 GB at about 4200 tokens."
)
show_figure(figure, alt)
over = next(seq for seq, gb in zip(lengths, curves["standard attention"], strict=True) if gb > v100)
print(f"16 bytes a parameter: {both(state)}; standard attention breaks 16 GB at {over} tokens")
print(f"at {lengths[-1]} tokens: " + ", ".join(f"{k} {gb[-1]:.1f} GB" for k, gb in curves.items()))

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-largest_batch-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the numbers.** The tokens in a batch fall as the sequences get longer, since each token now
# keeps scores for more others. A GB for a GPU's memory is the careful reading: a "16 GB" card may have
# 16 GiB, but the driver takes some of it. And the formula leaves things out. A real step keeps the logits
# as well, which for GPT-2 are 50257 numbers a token. In exercise 2.10 you count those too, and a meter tells
# what a step really took.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-eight-models-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### All eight GPT-3 models against one GPU
#
# Your functions are now enough to draw what the paper's table means in memory. Each bar is the training
# of one model: 16 bytes a parameter, and the activations of a single sequence of 2048 tokens with standard
# attention. The dotted line is the memory of an H100, 80 GB.
#
# **Predict first.** Which is the largest of the eight that can be trained on it?

# %%
predicted_largest_trainable = None  # your prediction, a name such as "GPT-3 Small"

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-eight-models", "locked": true, "schema_version": 3, "solution": false, "task": false}
h100 = accelerator("h100-80gb").memory_bytes / GB
bars = {}
for row in GPT3_TABLE:
    parameters = sum(gpt_parameters(row["n_layers"], row["d_model"]).values())
    layer = layer_activation_bytes(2048, 1, row["d_model"], row["n_heads"])
    bars[row["name"]] = {
        "weights": 2 * parameters / GB,
        "gradients": 2 * parameters / GB,
        "fp32 weights": 4 * parameters / GB,
        "two moments": 8 * parameters / GB,
        "activations": row["n_layers"] * sum(layer.values()) / GB,
    }
figure, (ax, below) = plt.subplots(
    2, figsize=(8, 6), layout="constrained", gridspec_kw={"height_ratios": [7, 1.6]}
)
largest = {"GPT-3 175B": bars["GPT-3 175B"]}
others = {name: bar for name, bar in bars.items() if name not in largest}
plots.stacked_bars(ax, others, label="", limit=h100, limit_name="H100, 80 GB")
plots.stacked_bars(below, largest, label="memory (GB)", limit=h100)
below.get_legend().remove()
show_figure(
    figure,
    "Stacked bars of training memory for the eight GPT-3 models. The five smaller ones end before "
    "the line of 80 GB, 6.7B and 13B lie beyond it. A second picture on another scale has GPT-3 175B "
    "with over 3000 GB, where the 80 GB are a thin strip at the left.",
)
for name, bar in bars.items():
    total = sum(bar.values())
    print(
        f"{name:13} {total:7.1f} GB, weights alone {bar['weights']:6.1f} GB, {total / h100:5.1f} H100"
    )
print(f"you predicted {predicted_largest_trainable}")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-eight-models-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the picture.** Weights are the first, short piece of each bar. A model that can be *used* on a
# GPU is often far too large to be *trained* on it: 6.7B is 13 GB of weights and over 100 GB of training.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-real-block-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## From the paper's layer to a real one
#
# Before you predict a real step, look at a real layer. The paper counts 34sbh (2.6, flash). But its table
# is of one implementation. Which tensors are kept is decided by the operators that really run, and in which
# format they run. torch tells: `saved_tensors_hooks` calls a function of ours with every tensor that
# autograd puts away for backward.
#
# Below is one layer of `peakmem.nn.GPT`, the model of these labs: in **float32**, with flash attention and
# **without dropout**. Parameters are left out (they are there anyway), and a tensor that two operators keep
# is counted once, where it is kept first.


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-real-block", "locked": true, "schema_version": 3, "solution": false, "task": false}
def kept_tensors(module, x):
    """Run `module(x)`; return (where, shape, dtype, bytes) of what autograd keeps, each once."""
    parameters = {p.untyped_storage().data_ptr() for p in module.parameters()}
    names, storages, found = [""], {}, []

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters | storages.keys():
            storages[storage.data_ptr()] = storage
            found.append((names[-1], tuple(tensor.shape), tensor.dtype, storage.nbytes()))
        return tensor

    hooks = []
    for name, part in module.named_modules():
        hooks.append(part.register_forward_pre_hook(lambda *_, name=name: names.append(name)))
        hooks.append(part.register_forward_hook(lambda *_: names.pop() and None))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        module(x)
    for hook in hooks:
        hook.remove()
    return found


SEQ, BATCH, D_MODEL, HEADS = 1024, 2, 768, 12
SBH = SEQ * BATCH * D_MODEL
layer_shape = SimpleNamespace(n_layers=1, d_model=D_MODEL, n_heads=HEADS, vocab=2, context=SEQ)
x = torch.randn(BATCH, SEQ, D_MODEL, requires_grad=True)
real = kept_tensors(GPT(layer_shape).blocks[0], x)
print("kept by         shape of what it keeps      bytes in sbh")
for where, size, _, nbytes in real:
    print(f"{where:15} {size!s:25} {nbytes / SBH:8.3f}")
total = sum(nbytes for *_, nbytes in real)
print(f"one layer keeps {total / SBH:.2f} sbh in float32; the paper's 34 are at 2 bytes")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-real-block-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Read the table, one line after the other.** `norm1` keeps its input, 4sbh: d_model numbers a token at
# 4 bytes. It also keeps a mean and a deviation for each token, which is next to nothing. `attention.qkv` is
# a linear layer and keeps its input. `attention` keeps queries, keys and values, which lie in one piece of
# 12sbh (the line shows the shape of one of the three, and the bytes of the whole piece); then one number a
# head and token; then its output, which `attention.out` needs as its input too, so it is there once.
# `mlp.up`, `mlp` (the GELU) and `mlp.down` keep their inputs, of which the last two are 4 d_model wide.
#
# In *numbers a token*, all that matters is
#
# | kept by | numbers a token |
# |---|---|
# | norm1, qkv | d + d |
# | attention | 3d + d |
# | norm2, up | d + d |
# | GELU, down | 4d + 4d |
# | **a layer** | **16d** |
#
# At 4 bytes, 16d is 64sbh. At 2 bytes it would be 32sbh, and the paper's 34 are these and two dropout
# masks of 1sbh. So far, theory and torch agree. But the model you download may not be written like that.
#
# **Predict first.** Some models write GELU out in simple operators, as
# `0.5 * x * (1 + tanh(0.8 * (x + 0.045 * x**3)))`. In float32, how many sbh does a layer keep then?

# %%
predicted_written_out = None  # your prediction, in sbh


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-real-variants", "locked": true, "schema_version": 3, "solution": false, "task": false}
class WrittenOutGELU(torch.nn.Module):
    """GELU's tanh formula operator by operator, as several published models have it."""

    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3.0))))


def real_layer(gelu, dtype=torch.float32, dropout=0.0):
    """Return a layer of the labs' GPT with another GELU, in another format."""
    layer = GPT(layer_shape, dropout=dropout).blocks[0]
    parts = [("up", layer.mlp.up), ("gelu", gelu), ("down", layer.mlp.down)]
    layer.mlp = torch.nn.Sequential(OrderedDict([*parts, ("dropout", layer.mlp.dropout)]))
    return layer.to(dtype)


def part_of(where, size):
    """Say which piece of the bar a kept tensor belongs to."""
    if size[0] not in (BATCH, BATCH * SEQ):
        return "copies of weights"
    if where.endswith("dropout"):
        return "dropout masks"
    if where.startswith("mlp.gelu"):
        return "GELU"
    return "norms" if where.startswith("norm") else where.partition(".")[0]


def in_sbh(layer, dtype=torch.float32, autocast=False):
    """Return what a layer keeps, in sbh, by part."""
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        kept = kept_tensors(layer, x.detach().to(dtype).requires_grad_())
    sizes = dict.fromkeys(("norms", "attention", "mlp", "GELU"), 0.0)
    for where, size, _, nbytes in kept:
        part = part_of(where, size)
        sizes[part] = sizes.get(part, 0.0) + nbytes / SBH
    return sizes


fused, half = torch.nn.GELU(approximate="tanh"), torch.bfloat16
bars = {
    "paper, 2 bytes": {"norms": 4, "attention": 10, "mlp": 10, "GELU": 8, "dropout masks": 2},
    "bfloat16": in_sbh(real_layer(fused, half), half),
    "bfloat16, GELU written out": in_sbh(real_layer(WrittenOutGELU(), half), half),
    "autocast, GELU written out": in_sbh(real_layer(WrittenOutGELU()), autocast=True),
    "float32": in_sbh(real_layer(fused)),
    "float32, GELU written out": in_sbh(real_layer(WrittenOutGELU())),
}
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
plots.stacked_bars(ax, bars, label="kept by one layer (bytes / sbh)")
show_figure(
    figure,
    "Stacked bars of what one layer keeps, in sbh: 34 by the paper, 32.1 in bfloat16, 56.1 with GELU "
    "written out, 69.1 under autocast, 64.1 in float32, and 112.1 in float32 with GELU written out. "
    "The piece of GELU grows most.",
)
for name, bar in bars.items():
    print(
        f"{name:27} {sum(bar.values()):6.1f} sbh: "
        + ", ".join(f"{k} {v:.1f}" for k, v in bar.items())
    )
print(f"you predicted {predicted_written_out} sbh for float32 with GELU written out")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-real-variants-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the picture.** Between 34 and 112 lies a factor of more than three, for the same mathematics.
# Two things make it. The format: 4 bytes instead of 2. And GELU: one fused operator keeps its input; written
# out, each multiplication keeps both its factors, which makes three more tensors of 4 d_model numbers a
# token. Autocast computes in 16 bits, but it keeps the norms' inputs in 32, and a 16-bit copy of every
# weight matrix besides. *So ask of any formula which implementation it counted.* In the paper's row, the
# 5as^2b of standard attention is left out, as everywhere here.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-two-steps-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Where is the peak?
#
# What a layer keeps is one term. The peak needs another question: *when* is most memory live? Here are two
# real steps of the labs' GPT with AdamW. One model has few parameters and many tokens in its batch, the
# other one many parameters and few tokens. Each step clears the old gradients, then runs forward, backward
# and the optimizer.
#
# **Predict first.** In which of the three is the peak of each step?

# %%
predicted_where_tokens = None  # your prediction: "forward", "backward" or "optimizer"
predicted_where_parameters = None  # your prediction, one of the three


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-two-steps", "locked": true, "schema_version": 3, "solution": false, "task": false}
def measured_step(shape, batch, seq, device="cpu"):
    """Run three steps of a real model; return the peak of the third in bytes, and its timeline in MiB."""
    torch.manual_seed(0)
    model = GPT(shape).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    tokens, targets = torch.randint(shape.vocab, (2, batch, seq), device=device)
    for _ in tqdm(range(2), desc="two steps unmeasured", leave=False, delay=2):
        training_step(model, optimizer, [(tokens, targets)])
    meter = MemoryMeter(device).track(model, optimizer, tokens, targets)
    with meter:
        training_step(model, optimizer, [(tokens, targets)])
    return meter.peak_bytes, [live / 2**20 for _, live in meter.timeline]


many_tokens = SimpleNamespace(n_layers=2, d_model=128, n_heads=4, vocab=1000, context=64)
many_parameters = SimpleNamespace(n_layers=2, d_model=128, n_heads=4, vocab=4000, context=64)
steps, timelines = {}, {}
for name, shape, batch in [
    ("many tokens", many_tokens, 8),
    ("many parameters", many_parameters, 1),
]:
    peak, timelines[name] = measured_step(shape, batch, 32)
    steps[name] = (shape, batch, peak)
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
plots.live_timelines(ax, timelines, unit="MiB")
show_figure(
    figure,
    "Live memory of two real steps, over their operators. With many tokens it rises in the forward "
    "pass to a sharp peak at its end and then falls. With many parameters it rises all the way "
    "through backward, and has two spikes of equal height, at its end and in the optimizer's step.",
)
print(f"you predicted {predicted_where_tokens} and {predicted_where_parameters}")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-two-steps-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the picture.** With many tokens there is the mountain of 2.8 again, on a base of parameters and
# moments. Its summit is at the first thing backward does: the gradient of the logits. With many parameters
# there is hardly a mountain: backward *adds* memory, since gradients take more than the activations that it
# frees. There are two spikes of the same height. The first one is the end of backward, the second one the
# optimizer at its first tensor, the embedding. What stands in them, you work out next.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-predict_training-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.10 A real step, predicted (4 points, 40 minutes)
#
# Now all terms come together, for a real model and a real optimizer. The step is
# one of `peakmem.nn.GPT` in float32: flash attention, no dropout, tied head. The optimizer is
# `AdamW(foreach=False)`, which updates one parameter tensor after the other. It is the *third* step, so the
# optimizer's state is there already, and the step begins with `zero_grad(set_to_none=True)`, which frees
# the gradients of the step before.
#
# **What is kept** in a step, each in bytes:
#
# | key | what counts |
# |---|---|
# | `parameters` | as in 2.2 with a tied head and *this* shape's vocabulary and context; 4 bytes each |
# | `gradients` | one number for each parameter, as they are at the end of backward |
# | `optimizer` | two moments, each as large as the parameters; and for each parameter **tensor** one step counter of 4 bytes. There are 12 such tensors in a layer (two norms and four linear layers, each with a weight and a bias; here one linear layer, qkv, makes queries, keys and values together) and 4 outside: two embeddings, and the final norm's weight and bias |
# | `saved_activations` | at the end of forward: 16d numbers a token in each layer, as in the table above; and after the last layer, the input of the final norm and the input of the head, d each |
# | `logits` | vocab numbers a token. The loss keeps **one** tensor of that size, the logarithms of the probabilities |
#
# **The peak** is at one of two moments, which you saw in the picture:
#
# 1. *At the logits' gradient*, the first thing that backward makes. Parameters, optimizer and saved
#    activations are all there; gradients are not yet. Of the logits' size there are **three** tensors: what
#    the loss kept, the gradient of that, and the gradient of the logits.
# 2. *In the optimizer's step*. Activations are gone. Parameters, gradients and optimizer are there, and
#    AdamW makes two temporary tensors (a root and a quotient) as large as the parameter tensor it is at. It
#    matters for the **largest** parameter tensor: the token embedding, vocab x d, or if the vocabulary is
#    small, a matrix of the MLP, d x 4d.
#
# (A tied embedding gets a gradient from each of its two uses. At the end of backward both of them and their
# sum are live at once: again two tensors of the embedding's size above what is kept. So that moment is
# never higher than the second one. Lab 3 looks into the step itself.)
#
# Write `predict_training(shape, batch, seq)`:
# - `shape` has the attributes `n_layers`, `d_model`, `n_heads`, `vocab` and `context`; seq <= context.
# - Return a dict with exactly the keys `parameters`, `gradients`, `optimizer`, `saved_activations`,
#   `logits` and `peak`.
# - *Convention:* bytes; float32 everywhere; a tied head is no parameter of its own; all biases count.
# - Work it out; do not run the model in your function.
#
# *Points:* 2 for the five components, all exact but `saved_activations`, which may be off by 1 % (statistics
# and token numbers are less than that); 1 if every peak is within 5 % of what the meter measures; 1 if
# within 1 %. The hidden shapes peak clearly at one of the two moments, some at each.
#
# *Example:* 1 layer of width 2 with vocab 10 and context 5 has 108 parameters (2.2), so parameters take
# 432 bytes and gradients too; the optimizer 2 * 432 + 16 * 4 = 928. A sequence of 3 tokens saves
# 4 * 3 * (32 + 4) = 432 bytes, and its logits are 120. First moment: 432 + 928 + 432 + 3 * 120 = 2152.
# Second: 432 + 432 + 928 + 2 * 80 = 1952, as the embedding (10 x 2, 80 bytes) is larger than 2 x 8. So
# the peak is 2152.
#
# **Predict first.** For a model of GPT-2's vocabulary (50257) with 6 layers of width 384 and a batch of one
# sequence of 256 tokens: at which moment is the peak, and which single component is the largest?

# %%
predicted_moment = None  # your prediction, 1 or 2
predicted_component = None  # your prediction, one of the keys


# %% nbgrader={"grade": false, "grade_id": "lab02-predict_training-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def predict_training(shape: SimpleNamespace, batch: int, seq: int) -> dict[str, int]:
    """Return the bytes of one training step by component, and its peak."""
    ### BEGIN SOLUTION
    d, tokens = shape.d_model, batch * seq
    counted = gpt_parameters(shape.n_layers, d, shape.vocab, shape.context)
    parameters = 4 * sum(counted.values())
    optimizer = 2 * parameters + 4 * (12 * shape.n_layers + 4)
    saved = 4 * tokens * (16 * d * shape.n_layers + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * max(shape.vocab * d, 4 * d * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = 2 * parameters + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": parameters,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab02-predict_training-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 2.10, a real step, predicted
tiny = SimpleNamespace(n_layers=1, d_model=2, n_heads=1, vocab=10, context=5)
got = predict_training(tiny, 1, 3)
for key, value, hint in [
    ("parameters", 432, "108 parameters of 4 bytes"),
    ("gradients", 432, "one number a parameter"),
    ("optimizer", 928, "two moments and 16 counters of 4 bytes"),
    ("saved_activations", 432, "4 * 3 * (16 * 2 + 2 * 2)"),
    ("logits", 120, "3 tokens, 10 numbers each; one copy"),
]:
    assert key in got, f"the key {key} is missing: you return {got}"
    most = 140 if key == "saved_activations" else 0  # at width 2, statistics are a good part
    assert abs(got[key] - value) <= most, f"the example's {key}: {value}, not {got[key]}; {hint}"
assert len(got) == 6, f"six keys are expected, but you return {got}"
value = 432 + 928 + got["saved_activations"] + 3 * 120
assert got["peak"] == value, (
    f"the example peaks at the logits' gradient, {value}, not {got['peak']}"
)
small_vocabulary = SimpleNamespace(n_layers=2, d_model=64, n_heads=2, vocab=20, context=8)
got = predict_training(small_vocabulary, 1, 4)["peak"]
value = 4 * 4 * 101_888 + 4 * 28 + 2 * 4 * 4 * 64 * 64
assert abs(got / value - 1) < 0.01, (
    f"2 layers of width 64, vocab 20: {value} in the step, not {got}; which tensor is the largest?"
)
context = SimpleNamespace(n_layers=2, d_model=64, n_heads=2, vocab=20, context=9)
more = predict_training(context, 1, 4)["parameters"] - 4 * 101_888
assert more == 4 * 64, "one more position is one more vector: use this shape's context"
for name, (shape, batch, measured) in steps.items():
    predicted = predict_training(shape, batch, 32)["peak"]
    print(f"{name}: predicted {predicted:,} bytes, measured {measured:,}", end="")
    print(f", ratio {predicted / measured:.4f}")
    assert abs(predicted / measured - 1) < 0.05, f"{name}: your peak is not within 5 %"

# %% nbgrader={"grade": true, "grade_id": "lab02-predict_training", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 2.10, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab02-predict_training", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.11 In your own words (2 points, 5 minutes)
#
# A colleague reads "175B parameters, fp16, 350 GB" and plans to train the model on eight GPUs of 80 GB
# each, 640 GB in all. In two or three sentences: what do the 350 GB hold, what else has to be in memory
# during training, and which part of that could you not work out from the number of parameters alone?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab02-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# The 350 GB hold the weights, at 2 bytes each, which is enough to use the model. Training needs a
# gradient for each weight (another 350 GB at 2 bytes), the optimizer's state (for Adam two moments of 4
# bytes each, 1400 GB) and usually a copy of the weights in fp32; that is far over 640 GB already. The
# activations kept for the backward pass come on top; they grow with batch and sequence length, which the
# number of parameters does not tell.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-real-step-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## Does it fit? A prediction, and the meter
#
# The lab began with the question whether GPT-3 fits on this machine. You can now answer such a question
# *before* anything runs. Choose a step: change the numbers below as you like, as long as your own
# prediction fits your machine. The model has the vocabulary of GPT-2, so its embedding is as large as the
# real one's. Where there is a GPU, the same cell measures on it.

# %%
my_shape = SimpleNamespace(n_layers=6, d_model=384, n_heads=6, vocab=50257, context=1024)
my_batch, my_seq = 1, 256
my_guess_gb = None  # your guess of the peak, in GB, before you run the next cell

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab02-real-step", "locked": true, "schema_version": 3, "solution": false, "task": false}
device = "cuda" if torch.cuda.is_available() else "cpu"
mine = predict_training(my_shape, my_batch, my_seq)
here = machine_bytes()
for key, size in mine.items():
    print(f"{key:18} {both(int(size))}")
at_logits = mine["parameters"] + mine["optimizer"] + mine["saved_activations"] + 3 * mine["logits"]
moment = 1 if mine["peak"] == at_logits else 2
print(
    f"the peak is at moment {moment}; you predicted {predicted_moment}, and {predicted_component}"
)
print(f"this machine       {both(here)}: it {'fits' if mine['peak'] < here else 'does not fit'}")
if mine["peak"] < 0.7 * here:
    measured, _ = measured_step(my_shape, my_batch, my_seq, device)
    print(f"measured on {device:6} {both(measured)}")
    print(f"predicted / measured = {mine['peak'] / measured:.4f}; you guessed {my_guess_gb} GB")
else:
    print("too close to the limit to be tried: choose a smaller step")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-real-step-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the ratio.** On the CPU it should be 1.00. On a GPU it may come out a little below 1: the meter also
# counts the workspace that the matrix library asks for at its first product, some MiB whatever the model.
# What neither of the two counts lies beside the tensors: the GPU's context and the allocator's rounding,
# some hundred MiB. A prediction that leaves something out should say so.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - GPT-3's weights take 350 GB at 2 bytes a parameter and 700 GB at 4. That is to use it; training
#   needs gradients, optimizer state and activations on top.
# - The parameters of a layer grow with the square of its width, about 12 d_model^2; the embeddings
#   only with the width. A tied head costs nothing.
# - A figure in a paper may be a slip. A product that has to come out shows it.
# - The number of elements that an operation puts out is the product of its output's sizes; the
#   input's do not matter.
# - One tensor a layer, for a batch of 3.2 million tokens, is 7.5 TB for GPT-3. The activations, and
#   not the weights, are the problem.
# - A layer keeps 34sbh bytes at 2 bytes an element, and 5as^2b more if the scores of attention are
#   stored. The second term grows with the square of the sequence length.
# - In inference a tensor dies with its last reader. In training it waits for the backward pass, which
#   runs in reverse: what is made first dies last.
# - So inference needs the memory of a few layers, and training that of all of them.
# - 16 bytes a parameter are there before the first activation. What remains of the budget decides
#   the batch.
# - A formula holds for one implementation. Between the paper's 34sbh and the 112sbh of a layer in
#   float32 with GELU written out lie the format and the operators.
# - A step's peak is at the logits' gradient if there are many tokens, and in the optimizer's step if
#   there are many parameters. Either one can be predicted to a percent before anything runs.
