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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 10: where attention's time and memory go
#
# A sequence of 4096 tokens has 16.8 million pairs. Standard attention writes two numbers for each pair and
# head, and keeps one for backward. FlashAttention computes the same result without storing them. You write it
# here, forward and backward. The same idea works for logits, a step's other giant.
#
# **You will be able to**
# - count what attention computes and moves, and tell which of the two limits it;
# - write softmax, attention and its gradients block by block, in memory that grows linearly with the sequence;
# - compute a loss without ever holding all logits;
# - (stretch) time modules, keep two bits per value for backward, and read a recorded memory snapshot.
#
# | exercise | part | minutes | points |
# |---|---|---|---|
# | 10.1 What attention costs | core | 9 | 2 |
# | 10.2 The roofline | core | 5 | 1 |
# | 10.3 Softmax online | core | 11 | 3 |
# | 10.4 Attention by blocks | core | 13 | 4 |
# | 10.5 Backward by blocks | core | 16 | 5 |
# | 10.6 Find the leak | core | 6 | 2 |
# | 10.7 A loss without logits | core | 7 | 4 |
# | 10.8 In your own words | core | 5 | 2 |
# | 10.9 Time by module | stretch | 12 | 2 |
# | 10.10 A GELU of few bits | stretch | 17 | 3 |
# | 10.11 Who holds the peak? | stretch | 13 | 3 |
# | **core** | | **72** | **23** |
# | **stretch** | | **42** | **8** |

# %% nbgrader={"grade": false, "grade_id": "lab10-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from tqdm.auto import tqdm

import peakmem
from peakmem.hardware import accelerator
from peakmem.labs import Case, close, predicted, self_check, show_figure, whole
from peakmem.labs.lab10 import attention_mib, loss_mib, recorded_snapshot, roofline_sliders
from peakmem.models import ModelShape
from peakmem.nn import GPT
from peakmem.probes import lab10
from peakmem.show.plots.lab10 import draw_lengths, draw_module_times, draw_roofline

peakmem.lab("lab10_attention")
MIB = 2**20

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-attention_cost-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 10.1 What attention costs (core, 2 points, 9 minutes)
#
# For each sequence of a batch and each head, with $n$ tokens and heads of dimension $d$:
#
# $$S = \frac{QK^\top}{\sqrt d}, \qquad P = \mathrm{softmax}(S), \qquad O = PV$$
#
# $Q, K, V, O$ are $n \times d$; $S$ and $P$ are $n \times n$.
#
# Write `attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes)`: return a dict of four counts for
# the whole batch and all heads.
# - `flops`: multiplications and additions in the two matrix products, or half of them with a causal mask.
#   Softmax doesn't count.
# - `score_bytes`: the bytes of all matrices $S$.
# - `io_bytes_standard`: bytes moved between the GPU's memory and its processor. Standard attention reads $Q, K$ and writes $S$,
#   reads $S$ and writes $P$, reads $P, V$ and writes $O$.
# - `io_bytes_tiled`: a **function** of `block`. Rows come in blocks, of which the last may be shorter: each
#   block of $Q$ is read once, each block of $O$ is written once, and for each block all of $K$ and $V$ is
#   read.
#
# A mask changes no bytes. All counts are whole numbers. *Points:* all or nothing.
#
# *Example:* `c = attention_cost(1, 1, 4, 2, False, 2)` has 128 flops, 32 score bytes and 192 standard bytes,
# and `c["io_bytes_tiled"](2)` is 96.
#
# **Predict first.** A layer of GPT-3 has 96 heads of 128. How many GB do one sequence's scores take, for 2048
# tokens at 2 bytes?

# %%
predicted_score_gb = None  # your prediction, in GB


# %% nbgrader={"grade": false, "grade_id": "lab10-attention_cost-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes) -> dict:
    """Return flops and bytes of one attention, by FlashAttention's counts."""
    ### BEGIN SOLUTION
    matrix_bytes = batch * heads * seq * head_dim * dtype_bytes
    score_bytes = batch * heads * seq * seq * dtype_bytes
    flops = 4 * batch * heads * seq * seq * head_dim
    return {
        "flops": flops // 2 if causal else flops,
        "score_bytes": score_bytes,
        "io_bytes_standard": 4 * matrix_bytes + 4 * score_bytes,
        "io_bytes_tiled": lambda block: 2 * matrix_bytes * (1 + math.ceil(seq / block)),
    }
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab10-attention_cost-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 10.1, what attention costs
def counts(*arguments, block=2):
    """Return your four counts, with io_bytes_tiled(block) in place of the function."""
    found = attention_cost(*arguments)
    attention_cost(1, 1, 1, 1, False, 1)  # another call changes nothing
    found["io_bytes_tiled"](2 * block)
    return {**found, "io_bytes_tiled": found["io_bytes_tiled"](block)}


def four(flops, score_bytes, standard, tiled):
    return {
        "flops": flops,
        "score_bytes": score_bytes,
        "io_bytes_standard": standard,
        "io_bytes_tiled": tiled,
    }


self_check(
    counts,
    [
        Case(
            (1, 1, 4, 2, False, 2),
            four(128, 32, 192, 96),
            "Each product: 2 x 4 x 4 x 2 flops. io_bytes_tiled is a function, called with 2.",
        ),
        Case((1, 1, 4, 2, True, 2), four(64, 32, 192, 96), "A mask halves only the flops."),
        Case(
            (3, 5, 4, 2, False, 2),
            four(1920, 480, 2880, 1440),
            "Count each head and each sequence.",
        ),
        Case((1, 1, 4, 2, False, 4), four(128, 64, 384, 192), "Bytes grow with dtype_bytes."),
        Case(
            (1, 1, 5, 2, False, 2),
            four(200, 50, 280, 160),
            "Five rows are three blocks of 2: round up.",
        ),
    ],
    equal=whole(),
)
if predicted(predicted_score_gb, question="How many GB do the scores take?"):
    gpt3 = attention_cost(1, 96, 2048, 128, True, 2)
    print(f"{gpt3['score_bytes'] / 1e9:.2f} GB; you predicted {predicted_score_gb}.")
    for block in (16, 128, 512):
        less = gpt3["io_bytes_standard"] / gpt3["io_bytes_tiled"](block)
        print(f"blocks of {block:3}: standard attention moves {less:.2f} times the bytes")

# %% nbgrader={"grade": true, "grade_id": "lab10-attention_cost", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 10.1, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab10-attention_cost", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-roofline-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Blocks of 16 move more than standard attention does. FlashAttention's blocks are as large as the processor's
# own memory allows.
#
# ## 10.2 The roofline (core, 1 point, 5 minutes)
#
# A processor computes and moves bytes at the same time. An operation takes at least the longer of
# $\text{flops} / \text{rate}$ and $\text{bytes} / \text{bandwidth}$; that one is its *bound*.
#
# Write `bound_by(flops, bytes, accelerator)`, which returns `"compute"` or `"memory"` (either one if both take the same
# time), and `least_seconds(flops, bytes, accelerator)`. `accelerator` has `flops_per_s("fp16")` and
# `bandwidth_bytes_per_s`. *Points:* all or nothing.
#
# *Example:* an A100 (`accelerator("a100-80gb")`) has 312 Tflop/s and 2039 GB/s. With `1e12` flops and `1e9`
# bytes, it computes for 3.2 ms and moves bytes for 0.5: `"compute"`.
#
# **Predict first.** What bounds GPT-3's standard attention on an A100, `"compute"` or `"memory"`?

# %%
predicted_bound = None  # your prediction, "compute" or "memory"


# %% nbgrader={"grade": false, "grade_id": "lab10-roofline-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bound_by(flops, bytes, accelerator) -> str:
    """Return what takes longer, "compute" or "memory"."""
    ### BEGIN SOLUTION
    compute = flops / accelerator.flops_per_s("fp16")
    return "compute" if compute > bytes / accelerator.bandwidth_bytes_per_s else "memory"
    ### END SOLUTION


def least_seconds(flops, bytes, accelerator) -> float:
    """Return the seconds that no implementation can beat."""
    ### BEGIN SOLUTION
    compute = flops / accelerator.flops_per_s("fp16")
    return max(compute, bytes / accelerator.bandwidth_bytes_per_s)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab10-roofline-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 10.2, the roofline
a100, v100 = accelerator("a100-80gb"), accelerator("v100-16gb")


def milliseconds(*arguments):
    return 1000 * least_seconds(*arguments)


self_check(
    bound_by,
    [
        Case((1e12, 1e9, a100), "compute", "The example.", label="an A100, 1e12 flops, 1e9 bytes"),
        Case((1e12, 1e10, a100), "memory", "Bytes take 4.9 ms.", label="an A100, 1e10 bytes"),
        Case(
            (1e12, 7.205e9, v100),
            "memory",
            "Compute takes 8 ms, bytes 8.006 ms.",
            label="a V100, 7.205e9 bytes",
        ),
        Case(
            (1e12, 7.195e9, v100),
            "compute",
            "Compute takes 8 ms, bytes 7.994 ms.",
            label="a V100, 7.195e9 bytes",
        ),
        Case(
            (1e12, 1e9, a100),
            3.2051282,
            "Both happen at once: return the longer of the two.",
            label="ms, 1e9",
            function=milliseconds,
        ),
        Case(
            (1e12, 1e10, a100),
            4.9043649,
            "Both happen at once: return the longer of the two.",
            label="ms, 1e10",
            function=milliseconds,
        ),
    ],
    equal=close(1e-6),
)
if predicted(predicted_bound, question="Is standard attention bound by compute or memory?"):
    standard = gpt3["flops"], gpt3["io_bytes_standard"]
    print(f"{bound_by(*standard, a100)}; you predicted {predicted_bound}.")
    tokens, width = 2048, 12288
    operations = {
        "standard attention": standard,
        "tiled by 128": (gpt3["flops"], gpt3["io_bytes_tiled"](128)),
        "tiled by 512": (gpt3["flops"], gpt3["io_bytes_tiled"](512)),
        "linear layer": (2 * tokens * width**2, 2 * (width**2 + 2 * tokens * width)),
        "GELU": (10 * 4 * tokens * width, 2 * 2 * 4 * tokens * width),
        "Adam's step": (12 * width**2, 28 * width**2),
    }
    for name, (flops, moved) in operations.items():
        took = 1e6 * least_seconds(flops, moved, a100)
        print(f"{name:18} {flops / moved:7.1f} flops per byte, at least {took:6.0f} µs")
    show_figure(
        draw_roofline(operations, a100, a100.flops_per_s("fp16")),
        "Attainable rate over flops per byte, a slope that bends into a flat roof at the ridge, 153. On "
        "the roof are attention tiled by 512 and the linear layer. On the slope, from below: Adam's "
        "step, GELU, standard attention and attention tiled by 128.",
    )

# %% nbgrader={"grade": true, "grade_id": "lab10-roofline", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 10.2, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab10-roofline", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-roofline-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* Standard attention moves bytes for five times as long as it computes. With blocks
# of 512, it's on the roof: it computes all the time, like a linear layer. GELU and Adam's step have too few
# flops per byte, so they're fused.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-sliders-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Play
#
# The sliders call your two functions. At what block size does memory stop mattering, and does that depend on
# the number of tokens?

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab10-sliders", "locked": true, "schema_version": 3, "solution": false, "task": false}
roofline_sliders(attention_cost, least_seconds)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-online_softmax-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 10.3 Softmax online (core, 3 points, 11 minutes)
#
# Softmax seems to need a whole row: its maximum $m$, so that no $e^s$ overflows, and the sum $\ell = \sum_j
# e^{s_j - m}$. But you can update both, block by block. If a block raises the maximum from $m$ to $m'$, the
# sum so far is off by one factor:
#
# $$\ell' = \ell\, e^{m - m'} + \sum_{j \in \text{block}} e^{s_j - m'}$$
#
# The same factor rescales a sum of values $v_j$ weighted by $e^{s_j - m}$. Divide by $\ell$ at the end.
#
# Write two functions. Blocks come from an iterator, once each; don't keep any.
# - `online_softmax(blocks)`: each block is a 1-D tensor of scores. Returns `(m, l)` as two numbers.
# - `weighted_sum(blocks)`: each block is a pair, scores `(n,)` and values `(n, width)`. Returns $\sum_j p_j v_j$, a tensor
#   `(width,)`.
#
# Scores may be `-inf`, even a whole block. If all are, return `(-inf, 0.0)` from `online_softmax` and zeros
# from `weighted_sum`. Note that $-\infty - (-\infty)$ is NaN. *Points:* all or nothing. Of 32 blocks with 16
# MiB of values, at most 3 MiB may be alive at once; of scores alone, half.
#
# *Example:* blocks `[0, 0]` and `[ln 2]` give $(0.693, 2)$: the first two count half each once $\ln 2$ is the maximum.
#
# **Predict first.** The maximum so far is 3. Then a score of 10 comes. By what factor do you multiply the old
# sum?

# %%
predicted_factor = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab10-online_softmax-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def online_softmax(blocks) -> tuple[float, float]:
    """Return the maximum of all scores, and the sum of exp(score - maximum)."""
    ### BEGIN SOLUTION
    maximum, total = -math.inf, 0.0
    for scores in blocks:
        new = max(maximum, scores.max().item())
        if new > -math.inf:
            total = total * math.exp(maximum - new) + torch.exp(scores - new).sum().item()
            maximum = new
    return maximum, total
    ### END SOLUTION


def weighted_sum(blocks) -> torch.Tensor:
    """Return the mean of the values, weighted by softmax of the scores."""
    ### BEGIN SOLUTION
    maximum, total, result = -math.inf, 0.0, 0.0
    for scores, values in blocks:
        new = max(maximum, scores.max().item())
        weights = torch.exp(scores - max(new, -1e300))  # -inf - (-inf) would be NaN
        shrink = math.exp(maximum - new) if maximum > -math.inf else 0.0
        total = total * shrink + weights.sum().item()
        result = result * shrink + weights @ values
        maximum = new
    return result / total if total else result
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab10-online_softmax-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 10.3, softmax online
LN2 = math.log(2)


def tensors(blocks):
    for block in blocks:
        given = torch.tensor(block, dtype=torch.float64)
        yield given
        if given.tolist() != list(block):
            raise ValueError("a block was changed")


def of_blocks(*blocks):
    return online_softmax(tensors(blocks))


def one_value_wide():
    return weighted_sum(iter([(torch.zeros(2), torch.tensor([[1.0], [3.0]]))]))


def weighted(*blocks):
    """Each score's values are 1 and the score's index."""
    numbers = iter(range(100))
    pairs = ((s, torch.tensor([[1.0, next(numbers)] for _ in s]).double()) for s in tensors(blocks))
    return weighted_sum(pairs)


def long_row_peak():
    """Return how many MiB of 32 blocks are alive at once, or that the bound holds."""
    yours = {"online_softmax": online_softmax, "weighted_sum": weighted_sum}
    sizes = {"n_blocks": 32, "scores": 512, "width": 128, "seed": 0}
    names = peakmem.probes.Namespace(yours)
    found = lab10.online_softmax(names, long=sizes)
    if found["scores_rise_bytes"] > 2**18:
        return "more than half of all scores"
    mib = found["rise_bytes"] / MIB
    return "at most 3 MiB" if mib <= 3 else f"{mib:.1f} MiB of 16"


off = -math.inf
self_check(
    of_blocks,
    [
        Case(
            ([0.0, 0.0], [LN2]),
            (LN2, 2.0),
            "The example.",
            wrong={(LN2, 3.0): "A new maximum: rescale the old sum."},
        ),
        Case(([LN2], [0.0, 0.0]), (LN2, 2.0), "The maximum comes first."),
        Case(([0.1, 0.3], [0.2]), (0.3, 1 + math.exp(-0.1) + math.exp(-0.2)), "Stay in float64."),
        Case(([1000.0], [1000.0]), (1000.0, 2.0), "Subtract the maximum before exp."),
        Case(([-1e12], [-1e13]), (-1e12, 1.0), "Begin at -inf, not at a number."),
        Case(([off, off], [1.0]), (1.0, 1.0), "As long as all scores are -inf, don't rescale."),
        Case(([off], [off]), (off, 0.0), "Handle a row of -inf."),
        Case(
            ([0.0, 0.0], [LN2]),
            (1.0, 1.25),
            "Weigh the indices 0, 1, 2 by 1/4, 1/4, 1/2.",
            function=weighted,
        ),
        Case(
            ([1000.0], [off], [1000.0]),
            (1.0, 1.0),
            "Don't let -inf produce NaN.",
            function=weighted,
        ),
        Case(([off], [0.0, 0.0]), (1.0, 1.5), "Masked scores have no weight.", function=weighted),
        Case(([off], [off]), (0.0, 0.0), "Return zeros for a row of -inf.", function=weighted),
        Case(
            (),
            (2.0,),
            "Return a tensor (width,).",
            function=one_value_wide,
            label="values of width 1",
        ),
        Case(
            (), "at most 3 MiB", "Don't keep any block.", function=long_row_peak, label="a long row"
        ),
    ],
    equal=close(1e-9),
)
if predicted(predicted_factor, question="By what factor do you multiply the old sum?"):
    print(f"exp(3 - 10) = {math.exp(-7):.5f}; you predicted {predicted_factor}.")

# %% nbgrader={"grade": true, "grade_id": "lab10-online_softmax", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 10.3, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab10-online_softmax", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-tiled_attention-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 10.4 Attention by blocks (core, 4 points, 13 minutes)
#
# Now do that for all rows. The given `block_scores` returns the scaled and masked scores of a block of rows
# against a block of columns: under a causal mask, a token sees itself and earlier tokens. `blocks` cuts `seq`
# into slices.
#
# Write `tiled_attention(q, k, v, block, causal=False)`, equal to torch's
# `scaled_dot_product_attention`, for q, k, v of shape `(batch, heads, seq, head_dim)`.
# - Loop over blocks of rows and, for each, over blocks of columns. Keep $m$, $\ell$ and the sum as tensors
#   with one row for each row of the block.
# - On top of q, k and v, at most $4\,n\,B + 6\,n\,d$ values are alive for each head ($n$ tokens, blocks of
#   $B$, head of $d$), including the output. A mask of $n \times n$ is too much.
# - `block` need not divide `seq`. Don't use torch's attention.
#
# The stub splits off `tiled_forward`, which also returns each row's $L = m + \ln \ell$,
# `(batch, heads, seq, 1)`, for 10.5.
#
# *Points:* equal 2, peak 2. *Example:* with `v` all ones, the output is all ones.
#
# **Predict first.** For 4096 tokens instead of 512, 8 times as many, how many times more memory does standard
# attention take, and how many times more does yours?

# %%
predicted_standard_growth = None  # your prediction, a number
predicted_tiled_growth = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab10-block_scores", "locked": true, "schema_version": 3, "solution": false, "task": false}
def blocks(seq, block):
    """Return slices of length `block` that cover 0 to seq - 1; the last may be shorter."""
    return [slice(first, min(first + block, seq)) for first in range(0, seq, block)]


def block_scores(q, k, rows, columns, causal):
    """Return q's rows times k's columns over the root of head_dim; -inf where masked."""
    scores = q[..., rows, :] @ k[..., columns, :].mT / math.sqrt(q.shape[-1])
    if causal:
        of_rows = torch.arange(rows.start, rows.stop)
        of_columns = torch.arange(columns.start, columns.stop)
        scores = scores.masked_fill(of_columns > of_rows[:, None], -math.inf)
    return scores


# %% tags=["demo"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab10-samples", "locked": true, "schema_version": 3, "solution": false, "task": false}
# What the self-checks of 10.4 to 10.6 call
def sample(seq, gain=1.0, width=6):
    torch.manual_seed(seq)
    q, k, v = torch.randn(3, 2, 3, seq, width, dtype=torch.float64)
    return gain * q, k, v


def by_torch(q, k, v, block, causal):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


SIZES = {"batch": 1, "heads": 1, "seq": 2048, "head_dim": 16, "block": 96, "causal": True}


# %% nbgrader={"grade": false, "grade_id": "lab10-tiled_attention-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tiled_forward(q, k, v, block, causal) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention's output, and for each row the log of its sum of exp(score)."""
    output, log_sum = torch.empty_like(q), torch.empty_like(q[..., :1])
    ### BEGIN SOLUTION
    for rows in blocks(q.shape[-2], block):
        maximum, total, result = torch.full_like(q[..., rows, :1], -math.inf), 0.0, 0.0
        for columns in blocks(q.shape[-2], block):
            if causal and columns.start >= rows.stop:
                break
            scores = block_scores(q, k, rows, columns, causal)
            new = torch.maximum(maximum, scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new), torch.exp(maximum - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            result = result * shrink + weights @ v[..., columns, :]
            maximum = new
        output[..., rows, :] = result / total
        log_sum[..., rows, :] = maximum + torch.log(total)
    ### END SOLUTION
    return output, log_sum


def tiled_attention(q, k, v, block: int, causal: bool = False) -> torch.Tensor:
    """Return softmax(q k^T / sqrt(head_dim)) v, never with all scores alive."""
    ### BEGIN SOLUTION
    return tiled_forward(q, k, v, block, causal)[0]
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab10-tiled_attention-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 10.4, attention by blocks
def off_by(attention, seq, block, causal=None, gain=1.0):
    """Return the largest difference between a result and torch's, or "NaN"."""
    given = sample(seq, gain)
    options = () if causal is None else (causal,)
    output = attention(*given, block, *options)
    attention(*(1 - tensor for tensor in given), block, *options)  # changes nothing
    if output.dtype != torch.float64:
        return f"{output.dtype}; q has torch.float64"
    if not all(map(torch.equal, given, sample(seq, gain))):
        return "q, k or v were changed"
    found = (output - by_torch(*given, block, bool(causal))).abs().max().item()
    return "NaN" if math.isnan(found) else round(found, 6)


def log_sum_off_by(seq, block, causal):
    """Return the largest error of tiled_forward's log of the sums, if you have one."""
    if "tiled_forward" not in globals():
        return 0.0
    q, k, v = sample(seq)
    every = slice(0, seq)
    right = block_scores(q, k, every, every, causal).logsumexp(-1, keepdim=True)
    return round((tiled_forward(q, k, v, block, causal)[1] - right).abs().max().item(), 6)


MOST_MIB = 4 * 2048 * (4 * 96 + 6 * 16) / MIB


def attention_peak(attention, causal):
    """Return the MiB that 2048 tokens take on top of q, k and v, or that the bound holds."""
    sizes = {**SIZES, "causal": causal}
    found = lab10.run_attention(attention, True, True, **sizes, seed=0)["rise_bytes"] / MIB
    return "at most 3.8 MiB" if found <= MOST_MIB else f"{found:.1f} MiB"


self_check(
    off_by,
    [
        Case(
            (tiled_attention, 5, 8),
            0.0,
            "This is one short block, without a mask.",
            label="5 tokens by 8",
        ),
        Case(
            (tiled_attention, 8, 4, False),
            0.0,
            "When a block raises the maximum, rescale l and the sum.",
            label="8 tokens by 4",
        ),
        Case(
            (tiled_attention, 11, 4, False),
            0.0,
            "The last block is shorter.",
            label="11 tokens by 4",
        ),
        Case((tiled_attention, 8, 4, True), 0.0, "Pass causal on.", label="8 tokens by 4, causal"),
        Case(
            (tiled_attention, 11, 4, True), 0.0, "Mask each block.", label="11 tokens by 4, causal"
        ),
        Case(
            (tiled_attention, 11, 4, True, 1e8),
            0.0,
            "Subtract each row's maximum before exp, and mask by -inf.",
            label="huge scores",
        ),
        Case(
            (11, 4, True),
            0.0,
            "Return m + ln l; 10.5 needs it.",
            function=log_sum_off_by,
            label="log_sum",
        ),
        *(
            Case(
                (tiled_attention, causal),
                "at most 3.8 MiB",
                "A seq x seq tensor is alive: scores, or a mask.",
                function=attention_peak,
                label=f"the peak of 2048 tokens{', causal' if causal else ''}",
            )
            for causal in (False, True)
        ),
    ],
)


def standard_attention(q, k, v, block, causal):
    """Attention as written above; it ignores the block."""
    every = slice(0, q.shape[-2])
    return block_scores(q, k, every, every, causal).softmax(-1) @ v


LENGTHS = [512, 1024, 2048, 4096]
if predicted(predicted_standard_growth, predicted_tiled_growth, question="How much more memory?"):
    forward_mib = {
        name: [attention_mib(attention, n, backward=False) for n in tqdm(LENGTHS, desc=name)]
        for name, attention in (("standard", standard_attention), ("yours", tiled_attention))
    }
    for name, found in forward_mib.items():
        print(f"{name:9} {', '.join(f'{mib:.2f}' for mib in found)} MiB for {LENGTHS} tokens")
    growth = [found[-1] / found[0] for found in forward_mib.values()]
    print(f"{growth[0]:.0f} and {growth[1]:.0f} times; you predicted", end=" ")
    print(f"{predicted_standard_growth} and {predicted_tiled_growth}.")

# %% nbgrader={"grade": true, "grade_id": "lab10-tiled_attention", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 10.4, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab10-tiled_attention", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-tiled_backward-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 10.5 Backward by blocks (core, 5 points, 16 minutes)
#
# If autograd recorded your loops, it would save every block: all of $P$ again. So write backward yourself and
# recompute each block of $P$, as in lab 4. Given $L$, that takes one step: $P = e^{S - L}$. With $dO$ the
# incoming gradient and $\odot$ the elementwise product:
#
# $$dV = P^\top dO, \qquad dP = dO\,V^\top, \qquad dS = P \odot (dP - D), \qquad D_i = \sum_j dO_{ij} O_{ij}$$
#
# $$dQ = dS\,K / \sqrt d, \qquad dK = dS^\top Q / \sqrt d$$
#
# $D_i = \sum_j P_{ij}\,dP_{ij}$, one number per row, is the second term of softmax's derivative. All products
# split into blocks: each block of rows and columns adds to its columns' $dV$ and $dK$ and its rows' $dQ$.
#
# Finish `TiledAttention`, called as `TiledAttention.apply(q, k, v, block, causal)`.
# - After forward, keep only q, k, v, the output and one number per row.
# - In forward and backward together, at most $7\,n\,B + 10\,n\,d$ values per head are alive on top of q, k
#   and v.
#
# *Points:* gradients 3, saved bytes 1, peak 1. *Example:* with one token, the output is `v`, so $dV = dO$,
# and $dQ = dK = 0$.
#
# **Predict first.** For 4096 tokens and one head of 64 in float32, how many MiB does forward keep for
# backward on top of q, k and v, standard and tiled?

# %%
predicted_standard_mib = None  # your prediction, in MiB
predicted_tiled_mib = None  # your prediction, in MiB


# %% nbgrader={"grade": false, "grade_id": "lab10-tiled_backward-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
class TiledAttention(torch.autograd.Function):
    """Attention by blocks whose backward recomputes each block's probabilities."""

    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        output, log_sum = tiled_forward(q, k, v, block, causal)
        ctx.block, ctx.causal = block, causal
        ### BEGIN SOLUTION
        ctx.save_for_backward(q, k, v, output, log_sum)
        ### END SOLUTION
        return output

    @staticmethod
    def backward(ctx, gradient):
        ### BEGIN SOLUTION
        q, k, v, output, log_sum = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        row_sums = (gradient * output).sum(-1, keepdim=True)
        for rows in blocks(q.shape[-2], ctx.block):
            for columns in blocks(q.shape[-2], ctx.block):
                if ctx.causal and columns.start >= rows.stop:
                    break
                scores = block_scores(q, k, rows, columns, ctx.causal)
                p = torch.exp(scores - log_sum[..., rows, :])
                dv[..., columns, :] += p.mT @ gradient[..., rows, :]
                dp = gradient[..., rows, :] @ v[..., columns, :].mT
                ds = p * (dp - row_sums[..., rows, :]) / math.sqrt(q.shape[-1])
                dq[..., rows, :] += ds @ k[..., columns, :]
                dk[..., columns, :] += ds.mT @ q[..., rows, :]
        ### END SOLUTION
        return dq, dk, dv, None, None


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab10-tiled_backward-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 10.5, backward by blocks
def gradients_off_by(attention, which, seq, block, causal, gain=1.0):
    """Return the largest difference between one of the three gradients and torch's."""
    found = []
    for function in (attention, by_torch):
        leaves = [tensor.requires_grad_() for tensor in sample(seq, gain)]
        output = function(*leaves, block, causal)
        others = [(1 - leaf.detach()).requires_grad_() for leaf in leaves]
        function(*others, block + 1, not causal)
        (output * torch.arange(output.numel()).view_as(output).cos()).sum().backward()
        found.append(leaves["qkv".index(which)].grad)
    return round((found[0] - found[1]).abs().max().item(), 6)


def kept_bytes(attention):
    """Return whether forward keeps one float32 per row on top of its inputs and its output."""
    sizes = {"batch": 1, "heads": 4, "seq": 512, "head_dim": 16, "block": 128, "seed": 0}
    found = max(
        lab10.run_backward(attention, "kept", True, **sizes, causal=causal)["kept_bytes"]
        for causal in (False, True)
    )
    return (
        "one number per row"
        if found <= 4 * 4 * 512 + 4096
        else f"{found / 8192:.0f} numbers per row"
    )


def backward_peak(attention, causal):
    """Return the MiB of forward and backward on top of q, k, v, or that the bound holds."""
    sizes = {**SIZES, "seq": 1280, "block": 128, "causal": causal}
    found = lab10.run_backward(attention, "one", True, **sizes, seed=0)["rise_bytes"] / MIB
    return (
        "at most 5.2 MiB" if found <= 4 * 1280 * (7 * 128 + 10 * 16) / MIB else f"{found:.1f} MiB"
    )


def gradient_case(which, hint, seq=11, block=4, causal=False):
    label = f"gradient of {which}, {seq} tokens by {block}{', causal' if causal else ''}"
    return Case((TiledAttention.apply, which, seq, block, causal), 0.0, hint, label=label)


self_check(
    gradients_off_by,
    [
        gradient_case("v", "Add P transposed times dO to each block's columns.", 8),
        gradient_case("q", "Subtract D, and divide by the root of head_dim.", 8),
        gradient_case("k", "Use dS transposed times q, divided by the root.", 8),
        *(gradient_case(which, "The last block is shorter.") for which in "vqk"),
        *(gradient_case(which, "P is masked too.", causal=True) for which in "vqk"),
        Case(
            (TiledAttention.apply, "v", 11, 4, True, 300.0),
            0.0,
            "Mask by -inf.",
            label="large scores",
        ),
        Case(
            (TiledAttention.apply,),
            "one number per row",
            "Call save_for_backward with q, k, v, the output and log_sum.",
            function=kept_bytes,
            label="kept for backward",
        ),
        *(
            Case(
                (TiledAttention.apply, causal),
                "at most 5.2 MiB",
                "A seq x seq tensor is alive.",
                function=backward_peak,
                label=f"the peak of 1280 tokens{', causal' if causal else ''}",
            )
            for causal in (False, True)
        ),
    ],
)
if predicted(
    predicted_standard_mib, predicted_tiled_mib, question="How many MiB are kept for backward?"
):
    sizes = {"batch": 1, "heads": 1, "seq": 4096, "head_dim": 64, "block": 128, "causal": False}
    for name, attention, said in (
        ("standard", standard_attention, predicted_standard_mib),
        ("tiled", TiledAttention.apply, predicted_tiled_mib),
    ):
        beside = lab10.run_backward(attention, "kept", True, **sizes, seed=0)["kept_bytes"]
        output = 4096 * 64 * 4
        print(f"{name:9} keeps {(beside + output) / MIB:.2f} MiB; you predicted {said}.")

# %% nbgrader={"grade": true, "grade_id": "lab10-tiled_backward", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
# Exercise 10.5, 5 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab10-tiled_backward", globals())
### END HIDDEN TESTS

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab10-lengths", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(
    predicted_standard_mib, predicted_tiled_mib, question="How many MiB are kept for backward?"
):
    runs = (("standard", standard_attention), ("yours", TiledAttention.apply))
    both_mib = {
        name: [attention_mib(attention, n, backward=True) for n in tqdm(LENGTHS, desc=name)]
        for name, attention in runs
    }
    panels = {"forward": forward_mib, "forward and backward": both_mib}
    show_figure(
        draw_lengths(LENGTHS, panels),
        "Peak MiB over 512 to 4096 tokens, both axes logarithmic, in two panels: forward, and forward "
        "and backward. Standard attention rises by a factor of 4 for each doubling, yours by "
        "at most 2, far below it.",
    )

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-lengths-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* For each doubling of the sequence, standard attention takes four times the memory.
# Yours takes twice as much, just like q, k and v.
#
# Yours takes more *time*: each block takes several small operations. On a GPU, FlashAttention is one fused
# kernel and faster than standard attention, since it moves fewer bytes.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-find_the_leak-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 10.6 Find the leak (core, 2 points, 6 minutes)
#
# This attention cuts rows into blocks and monitors its probabilities: it returns the output, each row's
# entropy, and the first token's share. Its results are correct, but its memory use isn't.
#
# Copy it as `lean_attention(q, k, v, block)` and fix it. With 2048 tokens, one head of 32 and blocks of 64,
# its peak must not exceed 5 MiB, including q, k and v. *Points:* same results 1, peak 1.
#
# *Example:* `wasteful_attention` peaks at about 18 MiB.
#
# **Predict first.** How many MiB do all probabilities of 2048 tokens take?

# %%
predicted_probabilities_mib = None  # your prediction, in MiB


# %% tags=["demo"] nbgrader={"grade": false, "grade_id": "lab10-leak", "locked": true, "schema_version": 3, "solution": false, "task": false}
def wasteful_attention(q, k, v, block):
    """Return attention's output, each row's entropy, and its share of the first token."""
    outputs, probabilities, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        probabilities.append(p)
        firsts.append(p[..., 0])
    entropies = [torch.special.entr(p).sum(-1) for p in probabilities]  # entr(p) is -p ln p
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)


def leak_peak(attention):
    """Return the peak of 2048 tokens in MiB, including q, k and v."""
    names = peakmem.probes.Namespace({"lean_attention": attention})
    sizes = {"heads": 1, "seq": 2048, "head_dim": 32, "block": 64, "seed": 0}
    return lab10.find_the_leak(names, **sizes)["rise_bytes"] / MIB


print(f"a peak of {leak_peak(wasteful_attention):.1f} MiB")


# %% nbgrader={"grade": false, "grade_id": "lab10-find_the_leak-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def lean_attention(q, k, v, block):
    """Return what wasteful_attention returns, without keeping any block's probabilities."""
    ### BEGIN SOLUTION
    outputs, entropies, firsts = [], [], []
    for rows in q.split(block, dim=-2):
        p = (rows @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        outputs.append(p @ v)
        entropies.append(torch.special.entr(p).sum(-1))
        firsts.append(p[..., 0].clone())
    return torch.cat(outputs, dim=-2), torch.cat(entropies, dim=-1), torch.cat(firsts, dim=-1)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab10-find_the_leak-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 10.6, find the leak
def watched(attention, which, gain=1.0):
    given = sample(11, gain)
    attention(*given, 4)  # a second call finds q, k and v as they were
    return attention(*given, 4)[["output", "entropy", "first"].index(which)]


def leak_bound(attention):
    found = leak_peak(attention)
    return "at most 5 MiB" if found <= 5 else f"{found:.1f} MiB"


self_check(
    watched,
    [
        *(
            Case(
                (lean_attention, which),
                watched(wasteful_attention, which),
                "The results must be the same as those of the code above.",
                label=which,
            )
            for which in ("output", "entropy", "first")
        ),
        Case(
            (lean_attention, "entropy", 1000.0),
            watched(wasteful_attention, "entropy", 1000.0),
            "Some p are 0, where -p ln p is 0 as well, not NaN.",
            label="entropy where p is 0",
        ),
        Case(
            (lean_attention,),
            "at most 5 MiB",
            "What still holds a block's probabilities: a list, or a view of them?",
            function=leak_bound,
            label="peak",
        ),
    ],
    equal=close(1e-6),
)
if predicted(predicted_probabilities_mib, question="How many MiB do all probabilities take?"):
    less = leak_peak(wasteful_attention) - leak_peak(lean_attention)
    print(f"{2048**2 * 4 / MIB:.0f} MiB; you predicted {predicted_probabilities_mib}.")
    print(f"Your peak is {less:.0f} MiB lower.")

# %% nbgrader={"grade": true, "grade_id": "lab10-find_the_leak", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 10.6, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab10-find_the_leak", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-chunked_cross_entropy-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 10.7 A loss without logits (core, 4 points, 7 minutes)
#
# Logits are `x @ weight.T`, for $n$ tokens and a vocabulary of $V$: far more values than x has. The loss
# needs only one number per token. So compute a chunk's logits, keep their loss, and let backward recompute
# them, as in lab 4.
#
# Write `chunked_cross_entropy(x, weight, targets, chunk)`: return a scalar that equals
# `F.cross_entropy(x @ weight.T, targets)`, with the same gradients of x and weight after backward.
# - x is `(n, width)`, weight `(V, width)`, targets `(n,)`. A target of -100 doesn't count; at least one does. The loss is
#   the mean over those that count.
# - Only one chunk's logits are alive at a time. On top of x and weight, at most $4\,c\,V$ values are alive
#   for chunks of $c$, plus four times those of x and weight.
# - torch's `checkpoint(function, *inputs, use_reentrant=False)`, imported above, calls the function, keeps
#   only its inputs, and calls it again in backward.
#
# *Points:* all or nothing. *Example:* with `weight` all zeros, the loss is $\ln V$.
#
# **Predict first.** For 1024 tokens and a vocabulary of 16,384 in float32, how many MiB does torch's loss
# take with backward, on top of x and weight?

# %%
predicted_loss_mib = None  # your prediction, in MiB


# %% nbgrader={"grade": false, "grade_id": "lab10-chunked_cross_entropy-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def chunked_cross_entropy(x, weight, targets, chunk: int) -> torch.Tensor:
    """Return the mean cross-entropy of logits x @ weight.T, with at most one chunk of them alive."""
    ### BEGIN SOLUTION
    loss = 0.0
    for part in blocks(len(x), chunk):
        loss = loss + checkpoint(chunk_loss, x[part], weight, targets[part], use_reentrant=False)
    return loss / (targets != -100).sum()


def chunk_loss(x, weight, targets):
    return F.cross_entropy(x @ weight.T, targets, reduction="sum")

    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab10-chunked_cross_entropy-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 10.7, a loss without logits
def torchs_loss(x, weight, targets, chunk):
    return F.cross_entropy(x @ weight.T, targets)


def loss_part(loss, which, ignored=(), chunk=3, factor=1.0, gain=1.0):
    """Return the loss, or a gradient of factor * loss, for 10 tokens and 7 logits."""
    torch.manual_seed(0)
    leaves = [(gain * torch.randn(n, 3).double()).requires_grad_() for n in (10, 7)]
    targets = torch.randint(7, (10,))
    targets[list(ignored)] = -100
    before, found = targets.clone(), loss(*leaves, targets, chunk)
    loss(*((1 - leaf.detach()).requires_grad_() for leaf in leaves), targets.clone(), chunk)
    if not torch.equal(targets, before):
        return "targets were changed"
    if which == "loss":
        return found.detach()
    (factor * found).backward()
    return leaves[["x", "weight"].index(which)].grad


def against_torch(which, hint, label, *options):
    expected = loss_part(torchs_loss, which, *options)
    return Case((chunked_cross_entropy, which, *options), expected, hint, label=label)


def loss_peak(loss):
    found = loss_mib(loss, 512, 8192, 16)
    return "at most 5 MiB" if found <= 5 else f"{found:.1f} MiB"


some = (2, 5, 8)
self_check(
    loss_part,
    [
        against_torch("loss", "Sum over all tokens, and divide once.", "the loss"),
        against_torch(
            "x", "Multiply the probabilities minus the one-hot target by weight.", "gradient of x"
        ),
        against_torch("weight", "Each chunk adds its part.", "gradient of weight"),
        against_torch("loss", "A target of -100 counts nowhere.", "loss, three ignored", some),
        against_torch(
            "x", "A target of -100 has a gradient of 0.", "gradient, three ignored", some
        ),
        against_torch(
            "loss", "The mean of no values is NaN.", "a chunk without targets", (0, 1, 2, 3)
        ),
        against_torch(
            "loss",
            "Subtract the maximum before exp, or use logsumexp.",
            "large logits",
            (),
            3,
            1.0,
            30.0,
        ),
        against_torch("x", "Multiply by the incoming gradient.", "a scaled loss", (), 3, -3.0),
        Case(
            (chunked_cross_entropy,),
            "at most 5 MiB",
            "More than one chunk's logits are alive.",
            function=loss_peak,
            label="peak, of 16 MiB of logits",
        ),
    ],
    equal=close(1e-9, 1e-12),
)
if predicted(predicted_loss_mib, question="How many MiB does torch's loss take?"):
    torchs, yours = (loss_mib(f, 1024, 16384, 32) for f in (torchs_loss, chunked_cross_entropy))
    print(f"torch: {torchs:.0f} MiB, you predicted {predicted_loss_mib}. Yours: {yours:.0f} MiB.")

# %% nbgrader={"grade": true, "grade_id": "lab10-chunked_cross_entropy", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 10.7, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab10-chunked_cross_entropy", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-chunked_cross_entropy-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# torch's logits take 64 MiB. At the peak, three tensors of that size are alive: the log-probabilities, their
# gradient, and the logits' gradient. For GPT-2 with 8 sequences of 1024 tokens, that is 4.9 GB, ten times its
# weights.
#
# Your function computes the logits twice. Once is enough: for token $i$ with target $t_i$, their gradient is
# $(p_i - e_{t_i}) / \text{count}$, with $e$ one-hot. So an `autograd.Function` can add up both gradients in
# `forward`.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 10.8 In your own words (core, 2 points, 5 minutes)
#
# A friend reads that FlashAttention does *more* arithmetic than standard attention in training, yet takes
# less time and memory. "That can't be." In three or four sentences: why is there more arithmetic, and why
# less time and memory?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab10-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Backward computes the scores and probabilities again, one matrix product more, instead of reading them.
# But standard attention is bound by memory: it moves the n by n matrices several times, and the processor
# waits. In blocks they never leave the processor's own memory, so far fewer bytes are moved, and computing
# them again takes less time than reading them. Less memory is needed because only q, k, v, the output and
# one number per row are kept, which grows linearly with the sequence and not with its square.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-core-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **The core ends here.** You should now be able to say:
# - An operation is bound by compute or by memory; its flops per byte tell you which.
# - You can update softmax: a new maximum rescales the sum so far.
# - Attention needs $O(n)$ memory: one number per row is enough to recompute the probabilities.
# - Large tensors that are cheap to compute (probabilities, logits) needn't be stored, forward or backward.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-module_times-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 10.9 Time by module (stretch, 2 points, 12 minutes)
#
# Which modules take up a forward pass's time? Hooks before and after each module's forward can read the
# clock. But a block's time includes its layers'.
#
# Write `module_times(model, x)`: run `model(x)`, and return a dict from each module's name in
# `model.named_modules()` to the seconds of its *own* forward, without its children's, added up over all
# calls. A module that never runs takes 0 or is left out. Leave no hooks behind, and remove no others.
# - Read the clock with `time.perf_counter()`. Grading simulates the clock: a busy machine
#   doesn't change your points.
# - `module.register_forward_pre_hook(hook)` calls `hook(module, inputs)`,
#   `register_forward_hook(hook)` calls `hook(module, inputs, output)`. Both return a handle with `remove()`.
#
# *Points:* all or nothing. *Example:* if a block takes 5 s, 3 of them in its only layer, return
# `{"": 2.0, "layer": 3.0}`.
#
# **Predict first.** What percentage of a small GPT-2's forward pass is spent in linear layers, not counting
# the head?

# %%
predicted_linear_percent = None  # your prediction, in percent


# %% nbgrader={"grade": false, "grade_id": "lab10-module_times-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def module_times(model: nn.Module, x: torch.Tensor) -> dict[str, float]:
    """Return the seconds of each module's own forward, by its name."""
    ### BEGIN SOLUTION
    names = {module: name for name, module in model.named_modules()}
    seconds = dict.fromkeys(names.values(), 0.0)
    running = []  # for each running module, outermost first: its start, its children's time

    def begin(module, inputs):
        running.append([time.perf_counter(), 0.0])

    def end(module, inputs, output):
        start, of_children = running.pop()
        took = time.perf_counter() - start
        seconds[names[module]] += took - of_children
        if running:
            running[-1][1] += took

    handles = [module.register_forward_pre_hook(begin) for module in names]
    handles += [module.register_forward_hook(end) for module in names]
    model(x)
    for handle in handles:
        handle.remove()
    return seconds
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab10-module_times-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 10.9, time by module
def part(name, before, after, *children, calls=1):
    """A module that takes some milliseconds before and after it runs its children."""
    own = {"name": name, "before": before, "after": after}
    return {**own, "calls": calls, "children": list(children)}


def seconds_of(function, tree):
    found = lab10.timed(function, tree)["seconds"]
    return {name: round(took, 6) for name, took in found.items() if took}


def hooks_of(function, tree):
    found = lab10.timed(function, tree)
    return found["hooks"] if found["others_stay"] else "the model's own hook is gone"


def clock_was_read(function, tree):
    return lab10.timed(function, tree)["reads"] > 0


inner = part("block", 100, 200, part("layer", 1000, 0), part("act", 30, 0))
shared = part("act", 30, 0, calls=2) | {"again": "layer.act"}  # it has two names
self_check(
    seconds_of,
    [
        Case(
            (module_times, part("", 2000, 0)),
            True,
            "Call time.perf_counter().",
            function=clock_was_read,
            label="the clock",
        ),
        Case(
            (module_times, part("", 2000, 0)), {"": 2.0}, "The model's name is empty.", label="one"
        ),
        Case(
            (module_times, part("", 500, 1500, part("layer", 3000, 0))),
            {"": 2.0, "layer": 3.0},
            "Leave the children's time out.",
            label="the example",
        ),
        Case(
            (module_times, part("", 5, 5, inner)),
            {"": 0.01, "block": 0.3, "block.layer": 1.0, "block.act": 0.03},
            "Subtract a child's time only from its parent's, not also from its grandparent's.",
            label="three levels",
        ),
        Case(
            (module_times, part("", 1, 0, part("layer", 100, 0, calls=3))),
            {"": 0.001, "layer": 0.3},
            "Add up all calls.",
            label="a layer called three times",
        ),
        Case(
            (module_times, part("", 5, 5, shared, part("layer", 100, 0))),
            {"": 0.01, "act": 0.06, "layer": 0.1},
            "model.named_modules() has each module once, by its first name.",
            label="a module with two names",
        ),
        Case(
            (module_times, part("", 5, 5, inner)),
            0,
            "Call each handle's remove().",
            function=hooks_of,
            label="no hooks left",
        ),
    ],
    equal=close(1e-6),
)

# %% nbgrader={"grade": true, "grade_id": "lab10-module_times", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 10.9, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab10-module_times", globals())
### END HIDDEN TESTS

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab10-times", "locked": true, "schema_version": 3, "solution": false, "task": false}
KINDS = {
    "GPT": "head, embedding sum",
    "Attention": "scores, softmax",
    "MLP": "GELU",
    "Block": "residual sums",
}
if predicted(predicted_linear_percent, question="What percentage is spent in linear layers?"):
    torch.manual_seed(0)
    shape = ModelShape("small", n_layers=6, d_model=512, n_heads=8, vocab=50257, context=256)
    gpt = GPT(shape, attention="standard").eval()
    tokens = torch.randint(50257, (1, 256))
    runs = []
    with torch.no_grad():
        for _ in range(4):  # the first takes longer, and other programs may slow one down
            start = time.perf_counter()
            took = module_times(gpt, tokens)
            runs.append((time.perf_counter() - start, took))
    whole_forward, took = min(runs, key=lambda run: run[0])
    kinds = {}
    for name, inside in gpt.named_modules():
        kind = KINDS.get(type(inside).__name__, type(inside).__name__)
        kinds[kind] = kinds.get(kind, 0.0) + 1000 * took.get(name, 0.0)
    kinds = {kind: ms for kind, ms in kinds.items() if ms > 0.3}
    print(f"sum of all modules: {sum(took.values()) / whole_forward:.0%} of the whole forward")
    linear = kinds["Linear"] / (1000 * sum(took.values()))
    print(f"{linear:.0%} in linear layers; you predicted {predicted_linear_percent}%.")
    show_figure(
        draw_module_times(kinds),
        "Own forward time by kind of module, in ms. Linear layers and the head take most of it; "
        "attention's scores, GELU and the norms take little.",
    )

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-times-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* At 256 tokens, attention's scores take little time: a linear layer's work grows
# with $n\,h^2$, the scores' with $n^2 h$. The head is one product with 50,257 columns. On a GPU, synchronize
# before you read the clock: `torch.cuda.synchronize()`.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-few_bit_gelu-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 10.10 A GELU of few bits (stretch, 3 points, 17 minutes)
#
# GELU keeps its whole input for backward, 32 bits per value. Its derivative is a smooth curve between -0.13
# and 1.13. Replace it with a staircase: cut the axis of $x$ into $2^b$ intervals, and give each one level.
# Then backward needs only each value's interval, $b$ bits (Novikov and others, 2022).
#
# Write `few_bit_gelu(x, bits)` for 1, 2 or 4 bits. The result is exactly `F.gelu(x)`. Backward multiplies the
# incoming gradient by each value's level.
# - After forward, keep at most `bits` bits per value and 4 KiB. `pack` and `unpack` are given.
# - For normally distributed x, the error of the levels $\hat g$ against the derivative $g$,
#   $\|\hat g - g\| / \|g\|$, is at most 0.31, 0.16 and 0.05 with 1, 2 and 4 bits.
# - Adding up 24 results of 131,072 values each needs at most 16 times x in forward and backward, on top of
#   what they keep.
#
# *Hint:* intervals with equal shares of a normal distribution end at `torch.special.ndtri(k / 2**bits)`. An
# interval's best level is its mean derivative: take a few thousand fractional $k$, not equal steps of $x$.
# $g(x) = \Phi(x) + x\,\varphi(x)$, with `ndtr` and the density.
#
# *Points:* all or nothing. *Example:* with one bit, $x < 0$ has the level 0.09, and $x > 0$ has 0.91.
#
# **Predict first.** With 2 bits, how many times fewer bytes does yours keep than `F.gelu`?

# %%
predicted_times_fewer = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab10-few_bit_gelu-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pack(codes, bits):
    """Return codes below 2**bits, 8 // bits of them in each uint8."""
    per_byte = 8 // bits
    codes = F.pad(codes.flatten().to(torch.uint8), (0, -codes.numel() % per_byte))
    shifts = bits * torch.arange(per_byte, dtype=torch.uint8)
    return (codes.view(-1, per_byte) << shifts).sum(1, dtype=torch.uint8)


def unpack(packed, bits, n):
    """Return the first n codes that pack() put into bytes, int64."""
    shifts = bits * torch.arange(8 // bits, dtype=torch.uint8)
    return (packed[:, None] >> shifts & 2**bits - 1).flatten()[:n].long()


def few_bit_gelu(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Return GELU of x; backward keeps a few bits per value."""
    ### BEGIN SOLUTION
    return FewBitGelu.apply(x, bits)


def intervals(bits):
    """Return the inner ends of intervals of x, and the mean derivative of each."""
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n) / n)
    return ends.float(), derivative.view(n, 1000).mean(1).float()


class FewBitGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        ends, _ = intervals(bits)
        ctx.bits = bits
        ctx.save_for_backward(pack(torch.bucketize(x, ends, out_int32=True), bits))
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        _, levels = intervals(ctx.bits)
        codes = unpack(*ctx.saved_tensors, ctx.bits, gradient.numel())
        return gradient * levels[codes].view_as(gradient), None

    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab10-few_bit_gelu-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 10.10, a GELU of few bits
def gelu_values(gelu, bits):
    shape = {1: [40_200], 2: [200, 201], 4: [200, 3, 67]}[bits]
    given = {"x": lab10.values_of(shape, 0), "upstream": lab10.upstream_of(shape, 0)}
    given = {name: tensor.numpy() for name, tensor in given.items()}
    return {**given, **lab10.run_gelu(gelu, "values", False, shape, bits, 0)}


def exact_derivative(x):
    x = torch.tensor(x, requires_grad=True)
    return torch.autograd.grad(F.gelu(x).sum(), x)[0]


def output_off_by(gelu, bits):
    found = gelu_values(gelu, bits)
    return round(
        (torch.tensor(found["output"]) - F.gelu(torch.tensor(found["x"]))).abs().max().item(), 5
    )


def levels_of(gelu, bits):
    found = len(set(gelu_values(gelu, bits)["derivative"].flatten().tolist()))
    return f"at most {2**bits}" if found <= 2**bits else found


def gelu_error(gelu, bits):
    found = gelu_values(gelu, bits)
    right = exact_derivative(found["x"])
    return ((torch.tensor(found["derivative"]) - right).norm() / right.norm()).item()


MOST_ERROR = {1: 0.31, 2: 0.16, 4: 0.05}


def small_error(gelu, bits):
    found = gelu_error(gelu, bits)
    return "small enough" if found <= MOST_ERROR[bits] else round(found, 3)


def passes_on(gelu, bits):
    found = gelu_values(gelu, bits)
    expected = found["upstream"] * found["derivative"]
    return bool(abs(found["gradient"] - expected).max() < 1e-4)


def gelu_kept(gelu, bits):
    return lab10.run_gelu(gelu, "kept", False, [64, 1024], bits, 0)["kept_bytes"]


def bits_kept(gelu, bits):
    found = gelu_kept(gelu, bits)
    return (
        f"{bits} bits" if found <= 64 * 1024 * bits / 8 + 4096 else f"{8 * found / 65536:.0f} bits"
    )


def gelu_case(bits, expected, hint, function):
    return Case(
        (few_bit_gelu, bits),
        expected,
        hint,
        function=function,
        label=f"{function.__name__}, {bits}",
    )


self_check(
    output_off_by,
    [
        gelu_case(2, 0.0, "The result is F.gelu(x).", output_off_by),
        *(
            gelu_case(b, f"at most {2**b}", "There are too many levels.", levels_of)
            for b in (1, 2, 4)
        ),
        *(
            gelu_case(
                b,
                "small enough",
                "Cut a normal distribution into equal shares; a level is the mean derivative.",
                small_error,
            )
            for b in (1, 2, 4)
        ),
        gelu_case(2, True, "Multiply by the incoming gradient.", passes_on),
        *(gelu_case(b, f"{b} bits", "Keep only packed codes.", bits_kept) for b in (1, 2, 4)),
    ],
)
if predicted(predicted_times_fewer, question="How many times fewer bytes?"):
    full = gelu_kept(lambda x, bits: F.gelu(x), 2)
    print(f"{full / gelu_kept(few_bit_gelu, 2):.1f} times; you predicted {predicted_times_fewer}.")

# %% nbgrader={"grade": true, "grade_id": "lab10-few_bit_gelu", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 10.10, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab10-few_bit_gelu", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-who_holds_the_peak-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 10.11 Who holds the peak? (stretch, 3 points, 13 minutes)
#
# On a GPU, `torch.cuda.memory._record_memory_history(stacks="python")` records each allocation with its
# stack, and `_snapshot()` returns the record. `snapshot["device_traces"][0]` lists the first GPU's events in
# order. Each is a dict:
# - `action`: `"alloc"`, `"free_requested"`, `"free_completed"`, or others, which you skip. A block is in use
#   from `alloc` until `free_completed`: another stream may still use it after the request.
# - `addr` and `size`: an address identifies a block, and is reused once the block is free. Skip a free of an
#   address that no event allocated.
# - `frames`: the stack of an `alloc`, innermost first; each frame has `filename`, `line` and `name`. It may be empty.
#
# Write `who_holds_the_peak(snapshot)`: return the owners of all blocks in use at the peak as a list of
# `(owner, bytes)`, largest first, ties by name.
# - The peak is the first moment when the most bytes are in use.
# - The owner is `"filename:line"` of the first frame whose filename has no `/torch/` in it; without one, `"unknown"`.
#
# *Points:* all or nothing. *Example:* for one block of 512 bytes from line 3 of `/home/you/train.py`, return
# `[("/home/you/train.py:3", 512)]`.
#
# **Predict first.** The snapshot below is made up: a layer of GPT-2 with standard attention, a sequence of
# 1024 tokens, logits, loss, backward. Line 22 makes the probabilities, line 34 the logits. Which of the two
# holds more at the peak?

# %%
predicted_holder = None  # your prediction, "probabilities" or "logits"


# %% nbgrader={"grade": false, "grade_id": "lab10-who_holds_the_peak-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def who_holds_the_peak(snapshot: dict) -> list[tuple[str, int]]:
    """Return who holds how many bytes at the peak, the largest first."""
    ### BEGIN SOLUTION
    taken, total, most, at_peak = {}, 0, 0, {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            taken[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in taken:
            total -= taken.pop(event["addr"])["size"]
        if total > most:
            most, at_peak = total, dict(taken)
    owners = {}
    for event in at_peak.values():
        own = [frame for frame in event["frames"] if "/torch/" not in frame["filename"]]
        owner = f"{own[0]['filename']}:{own[0]['line']}" if own else "unknown"
        owners[owner] = owners.get(owner, 0) + event["size"]
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab10-who_holds_the_peak-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 10.11, who holds the peak?
def frame(line, filename="/home/you/train.py"):
    return {"filename": filename, "line": line, "name": "step"}


def event(action, addr, size, *frames):
    return {"action": action, "addr": addr, "size": size, "frames": list(frames)}


def snapshot_of(*events):
    of_another_gpu = [event("alloc", 64, 2**40, frame(1))]
    return {"segments": [], "device_traces": [list(events), of_another_gpu]}


torchs = frame(9, "/opt/env/torch/optim/adam.py")
mine = frame(7, "/srv/mytorch/torch.py")
a, b = event("alloc", 512, 300, frame(3)), event("alloc", 4096, 200, torchs, mine, frame(9))
requested, completed = event("free_requested", 512, 300), event("free_completed", 512, 300)
again = event("alloc", 512, 300, frame(4))


def holders_case(expected, hint, label, *events):
    return Case((snapshot_of(*events),), expected, hint, label=label)


of_a, of_b = ("/home/you/train.py:3", 300), ("/srv/mytorch/torch.py:7", 200)
self_check(
    who_holds_the_peak,
    [
        holders_case([of_a, of_b], "Take the first frame that isn't torch's.", "two blocks", b, a),
        holders_case(
            [of_a, of_b], "Report the peak, not the end.", "freed", b, a, requested, completed
        ),
        holders_case(
            [("/home/you/train.py:3", 300)],
            "If sums are equal, the first is the peak.",
            "address used again",
            *(a, requested, completed, again),
        ),
        holders_case(
            [of_a, of_b],
            "A block is in use until free_completed.",
            "freed late",
            *(a, requested, b, completed),
        ),
        holders_case(
            [("/srv/mytorch/torch.py:7", 400)],
            "Add up an owner's blocks.",
            "one owner, two blocks",
            *(b, {**b, "addr": 9}),
        ),
        holders_case(
            [("unknown", 5)],
            "None of these frames is yours.",
            "unknown",
            event("alloc", 1, 5, torchs),
        ),
        holders_case(
            [of_a, ("/srv/mytorch/torch.py:7", 300)],
            "Sort ties by name.",
            "a tie",
            *(a, {**b, "size": 300}),
        ),
        holders_case(
            [("/home/you/train.py:10", 300), ("/home/you/train.py:3", 300)],
            'Names sort as text: "10" comes before "3".',
            "a tie of two lines",
            *(a, event("alloc", 4096, 300, frame(10))),
        ),
        holders_case([], "Without events, return an empty list.", "empty"),
        holders_case(
            [of_a, of_b],
            "Skip other actions, and frees of blocks allocated before.",
            "others",
            *(event("segment_alloc", 64, 2**40), event("free_completed", 512, 2**30), b),
            *(event("segment_free", 4096, 200), a),
        ),
    ],
)
if predicted(predicted_holder, question="Which holds more at the peak?"):
    print(f"You predicted {predicted_holder}.")
    for owner, held in who_holds_the_peak(recorded_snapshot()):
        print(f"{held / MIB:6.1f} MiB  {owner}")

# %% nbgrader={"grade": true, "grade_id": "lab10-who_holds_the_peak", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 10.11, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab10-who_holds_the_peak", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab10-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# The logits, their log-probabilities and their gradient hold 196 MiB each, and 10.7 removes all three. The
# gradient is `unknown`: autograd's thread has no Python stack. The probabilities of 12 heads hold 48 MiB.
#
# ## What you should now be able to say
#
# - Hooks time modules; a module's own time excludes its children's.
# - For backward, a few bits per value may be enough: keep only what the derivative needs.
# - A snapshot is a list of events. Its peak has owners, and each owner has a remedy.
