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
# - count the parameters of a GPT exactly, component by component.
#
# | exercise | minutes | points |
# |---|---|---|
# | 2.1 Bytes of the weights | 5 | 1 |
# | 2.2 Where the parameters are | 20 | 4 |
# | 2.3 In your own words | 5 | 2 |
# | **total** | **30** | **7** |
#
# Each exercise has the same rhythm. You **predict** a number (a plain variable; it is not graded),
# you **write** a function, the cell below **measures** and shows your prediction beside the result,
# and you **explain** the difference to yourself before you go on. That cell also checks your
# function with a few cases; when it passes, you are probably done. Grading tries many more.
#
# All functions return whole **bytes** (or whole numbers of things), never GB. 1 GB is 10^9 bytes,
# 1 GiB is 2^30 bytes, 7.4 % more. Papers and shops say GB for either one, so this lab prints both.
#
# This lab needs no GPU. Where there is one, the question about "this machine" is about its memory.

# %% nbgrader={"grade": false, "grade_id": "lab02-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import os
from types import SimpleNamespace

import torch

import peakmem
from peakmem.nn import GPT
from peakmem.units import GB, both

peakmem.lab("lab02_sizing")


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
for n_params, dtype, value, hint in [
    (3, "bf16", 6, "16 bits are 2 bytes"),
    (3, "int4", 2, "12 bits are a byte and a half: round up"),
    (4, "int4", 2, "two numbers share a byte"),
    (10, "fp8", 10, "8 bits are 1 byte"),
    (10, "fp64", 80, "64 bits are 8 bytes"),
    (175_000_000_000, "fp16", 350_000_000_000, "bytes, not GB"),
]:
    got = weight_bytes(n_params, dtype)
    assert got == value, f"{n_params} of {dtype} take {value} bytes, not {got}; {hint}"
    assert not isinstance(got, float), f"bytes are whole numbers, but you return {got}"
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
from autograder.stock import score

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
from autograder.stock import score

score("lab02-gpt_parameters", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-gpt_parameters-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the numbers.** GPT-3 has 174,604,259,328 parameters; 175 billion is rounded, so 350 GB
# is exactly 349.2. In the small model a third of all parameters are embeddings; in the large one they
# are nothing, for they grow with the width and the layers with its square. There, two thirds of
# everything are MLPs: the 8 d_model^2 of 12 d_model^2 a layer.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 2.3 In your own words (2 points, 5 minutes)
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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab02-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - GPT-3's weights take 350 GB at 2 bytes a parameter and 700 GB at 4. That is to use it; training
#   needs gradients, optimizer state and activations on top.
# - The parameters of a layer grow with the square of its width, about 12 d_model^2; the embeddings
#   only with the width. A tied head costs nothing.
