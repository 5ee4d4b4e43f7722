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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 5: gradient accumulation
#
# The batch that you want does not fit. The gradient of a batch is a mean over its samples, and a
# mean can be summed up piece by piece. So you run small *micro-batches* one after another, add up
# their gradients, and step once.
#
# The idea takes one sentence, and has been coded wrongly in many libraries, for years. The memory
# comes out right at once. The gradient does not, and nothing crashes.
#
# **You will be able to**
# - find the largest micro-batch that fits a memory budget, in few runs, or predict it from a line;
# - accumulate the gradient of a batch exactly, also with a short last micro-batch and with tokens
#   that do not count;
# - write the training loop around it: left-overs, clipping and a schedule in their right places;
# - say what accumulation cannot save, what it costs in time, and which layers it changes.
#
# | exercise | minutes | points |
# |---|---|---|
# | 5.1 The largest micro-batch | 15 | 4 |
# | 5.2 The memory line | 15 | 2 |
# | 5.3 Accumulate gradients | 25 | 4 |
# | 5.4 The mean over tokens | 20 | 3 |
# | 5.5 A whole epoch | 25 | 4 |
# | 5.6 The layer that sees the batch | 15 | 2 |
# | 5.7 In your own words | 5 | 2 |
#
# In all, about two hours, and 21 points.

# %% nbgrader={"grade": false, "grade_id": "lab05-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import copy
import math
import time
from types import SimpleNamespace

import matplotlib.pyplot as plt
import torch
from IPython.display import display
from torch.nn import functional as F
from tqdm.auto import tqdm

import peakmem
from peakmem import plots
from peakmem.meter import MemoryMeter, measure_call
from peakmem.nn import GPT

peakmem.lab("lab05_accumulation")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cuda":
    print("Bytes are those that torch's allocator hands out; seconds are the GPU's.")
else:
    print("Here main memory stands for the GPU's, a budget of 24 MiB for its size.")


def show(figure, alt):
    """Show a figure, with a text that says what is to be seen in it."""
    display(figure, metadata={"image/png": {"alt": alt}})
    plt.close(figure)


# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-model-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### A batch that does not fit
#
# The model of this lab is a small GPT, trained with Adam. `measured_peak` makes a fresh one each
# time, and lets a `MemoryMeter` count the bytes that are *live*: held by some tensor. It counts during
# one *update*: forward and backward of a batch, then one step of the optimizer. Given a budget, the
# meter stops the run at the first operator that goes above it, as a full GPU does: with *out of
# memory*.

# %% nbgrader={"grade": false, "grade_id": "lab05-model", "locked": true, "schema_version": 3, "solution": false, "task": false}
MIB = 2**20
BUDGET = 24 * MIB
BATCH = 32  # samples: the batch that we want
SHAPE = SimpleNamespace(n_layers=2, d_model=128, n_heads=4, vocab=256, context=64)


def mean_loss(logits, labels):
    """Return the mean loss over all tokens."""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def new_training(samples):
    """Return a fresh model, an Adam that has made a step, and a batch of tokens and labels."""
    torch.manual_seed(0)
    model = GPT(SHAPE).to(DEVICE)
    # foreach=False: one parameter after the other, without temporary values for all of them at once
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    tokens, labels = torch.randint(SHAPE.vocab, (2, samples, SHAPE.context), device=DEVICE)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()  # makes the two moments; the gradients, zeros, stay
    return model, optimizer, tokens, labels


def all_at_once(model, tokens, labels):
    """Add the gradient of the batch to what is there."""
    mean_loss(model(tokens), labels).backward()


def measured_peak(samples, backward=all_at_once, budget_bytes=math.inf):
    """Return the peak of one update in bytes; OutOfMemory where it goes above the budget.

    Weights, gradients and moments count: they are there before.
    """
    # Earlier cells may have left something on a GPU: it counts neither as peak nor as budget.
    others = torch.cuda.memory_stats()["requested_bytes.all.current"] if DEVICE == "cuda" else 0
    model, optimizer, tokens, labels = new_training(samples)
    meter = MemoryMeter(DEVICE, others + budget_bytes)
    with meter.track(model, optimizer, tokens, labels):
        backward(model, tokens, labels)
        optimizer.step()
        optimizer.zero_grad()
    return meter.peak_bytes - others


_ = measured_peak(2)  # libraries take their workspaces now, and not in the middle of a measurement

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab05-too-large", "locked": true, "schema_version": 3, "solution": false, "task": false}
peak = measured_peak(BATCH)
print(f"{BATCH} samples take {peak / MIB:.1f} MiB. The budget is {BUDGET / MIB:.0f} MiB.")
try:
    measured_peak(BATCH, budget_bytes=BUDGET)
except peakmem.OutOfMemory as error:
    print("OutOfMemory:", error)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-largest_micro_batch-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.1 The largest micro-batch (4 points, 15 minutes)
#
# Small micro-batches waste time: each run pays the same fixed cost for less work. So you want the
# largest one that fits. The only sure way to know whether `m` samples fit is to run them.
#
# Write `largest_micro_batch(run, upper)`:
# - `run(m)` runs a micro-batch of `m` samples, and raises `peakmem.OutOfMemory` where they do not
#   fit. If `m` samples fit, so do fewer. `m` goes from 1 to `upper`.
# - Return the largest `m` in `1..upper` that fits, or `0` where not even one does.
# - Runs are slow: call `run` at most `ceil(log2(upper)) + 2` times (1 of the 4 points). Halving needs
#   about `log2(upper)` runs; two more are allowed for the ends of the range.
# - Any other error than `OutOfMemory` is a bug of the model. Let it pass through. What an error says
#   tells nothing: a bug may speak of memory, too.
#
# A full GPU makes torch raise `torch.cuda.OutOfMemoryError`. `MemoryMeter` turns it into
# `peakmem.OutOfMemory`, so one name is enough here, with and without a GPU.
#
# *Example:* with `upper = 10` and room for 6 samples, the answer is 6.
#
# **Predict first.** How many runs does your search need at most for `upper = 1024`?

# %%
predicted_runs = None  # your prediction, a number

# %% nbgrader={"grade": false, "grade_id": "lab05-largest_micro_batch-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
from collections.abc import Callable


def largest_micro_batch(run: Callable[[int], object], upper: int) -> int:
    """Return the largest m in 1..upper for which run(m) fits, 0 where none does."""
    ### BEGIN SOLUTION
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
        except peakmem.OutOfMemory:
            too_large = middle
        else:
            fits = middle
    return fits
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab05-largest_micro_batch-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 5.1, the largest micro-batch
def search(room, upper):
    """Return what your search finds where `room` samples fit, and how many runs it took."""
    sizes = []

    def run(m):
        whole = not isinstance(m, float)
        assert whole, (
            f"your search called run({m}), but half a sample cannot be run: divide with //"
        )
        assert 1 <= m <= upper, f"your search called run({m}), but sizes go from 1 to {upper}"
        sizes.append(m)
        assert len(sizes) < 2000, "2000 runs and no end: does each run make the interval smaller?"
        if m > room:
            raise peakmem.OutOfMemory("aten::bmm asked for too much")

    try:
        return largest_micro_batch(run, upper), len(sizes)
    except peakmem.OutOfMemory:
        said = "peakmem.OutOfMemory came out of your search: catch it where you call run(m)"
        raise AssertionError(said) from None


found, _ = search(6, 10)
assert found == 6, f"6 samples fit and 7 do not, but your search returned {found}"
assert not isinstance(found, float), f"return a whole number: 6, not {found}"
found, _ = search(0, 10)
assert found == 0, f"nothing fits, so the answer is 0, but your search returned {found}"
for room in (10, 99):
    found, _ = search(room, 10)
    assert found == 10, f"there is room for {room} and upper is 10: return 10, not {found}"
for room in (0, 1):
    found, _ = search(room, 1)
    assert found == room, f"upper is 1, and there is room for {room}: return {room}, not {found}"


def passes_through(bug):
    """Tell whether an error that a run raises comes out of your search."""

    def run(m):
        raise bug("out of memory? No: this is a bug, and 3 samples do not fit a shape")

    try:
        largest_micro_batch(run, 10)
    except bug:
        return True
    return False


for bug in (ValueError, RuntimeError):  # torch raises RuntimeError for most bugs, as of shapes
    assert passes_through(bug), (
        f"run raised a {bug.__name__}, and your search hid it: catch peakmem.OutOfMemory only"
    )

counts = []
for room in (0, 1, 700, 1023, 1024):
    found, runs = search(room, 1024)
    assert found == room, f"of 1024 sizes {room} fit, but your search returned {found}"
    assert runs <= 12, f"at most 12 runs are allowed for 1024 sizes; yours took {runs}"
    counts.append(runs)
print(f"Largest micro-batch found in at most {max(counts)} runs; you predicted {predicted_runs}.")

# %% nbgrader={"grade": true, "grade_id": "lab05-largest_micro_batch", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 5.1, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab05-largest_micro_batch", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-search-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Live the loop
#
# Now with the real model: run, out of memory, make it smaller, run again. Your search does it for
# you. Gradients are there from the start in these runs. In accumulation they are, too: from the second
# micro-batch on, the sum so far waits in memory.


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab05-search", "locked": true, "schema_version": 3, "solution": false, "task": false}
def run(m):
    """Run a micro-batch of m samples under the budget, and say what came of it."""
    try:
        peak = measured_peak(m, budget_bytes=BUDGET)
    except peakmem.OutOfMemory:
        print(f"{m:3} samples: out of memory")
        raise
    print(f"{m:3} samples: fits, {peak / MIB:.1f} MiB")


MICRO_BATCH = largest_micro_batch(run, BATCH)
print(f"The largest micro-batch is {MICRO_BATCH} samples.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-memory_line-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.2 The memory line (2 points, 15 minutes)
#
# Must you really run into the wall to know where it is? Each sample keeps its own activations for
# backward, and all samples keep the same number of bytes. Weights, gradients and the optimizer's
# state are there whatever the batch. So the peak is a straight line over the batch size:
#
# $$\text{peak} \approx \text{fixed} + \text{samples} \times \text{bytes per sample}$$
#
# A few cheap runs at small sizes give you the line, and the line tells the rest. Real measurements
# scatter a little (allocators round, libraries choose other kernels), so take the line with the
# least sum of *squared* distances to all points. With means $\bar x$ and $\bar y$:
#
# $$\text{slope} = \frac{\sum (x_i - \bar x)(y_i - \bar y)}{\sum (x_i - \bar x)^2}
# \qquad \text{fixed} = \bar y - \text{slope} \cdot \bar x$$
#
# Write `memory_line(batch_sizes, peaks)`. It returns the tuple `(fixed_bytes, bytes_per_sample)`.
# Library functions are welcome, but mind the order of what they return.
#
# **Convention:** bytes, as floats, not rounded. Sizes and peaks are lists, tuples or arrays of equal
# length, in any order, with two different sizes at least.
#
# *Points:* all or nothing.
#
# *Example:* sizes 1, 2, 4 with peaks 30, 40, 60: 20 bytes are fixed, and each sample takes 10.
#
# **Predict first.** The weights of the model above take 1.7 MiB. How many MiB are fixed?

# %%
predicted_fixed_mib = None  # your prediction, a number

# %% nbgrader={"grade": false, "grade_id": "lab05-memory_line-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
from collections.abc import Sequence


def memory_line(batch_sizes: Sequence[int], peaks: Sequence[int]) -> tuple[float, float]:
    """Return (fixed_bytes, bytes_per_sample) of the least-squares line."""
    ### BEGIN SOLUTION
    n = len(batch_sizes)
    mean_size, mean_peak = sum(batch_sizes) / n, sum(peaks) / n
    above = sum(
        (size - mean_size) * (peak - mean_peak)
        for size, peak in zip(batch_sizes, peaks, strict=True)
    )
    slope = above / sum((size - mean_size) ** 2 for size in batch_sizes)
    return mean_peak - slope * mean_size, slope
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab05-memory_line-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 5.2, the memory line
found = memory_line([1, 2, 4], [30, 40, 60])
assert found is not None, "return two numbers: (fixed_bytes, bytes_per_sample)"
assert len(found) == 2, "return two numbers: (fixed_bytes, bytes_per_sample)"
assert abs(found[0] - 10) > 1e-4, "first the fixed bytes, then the bytes of a sample"
assert abs(found[0] - 20) < 1e-4, f"the example's fixed part is 20 bytes, not {found[0]}"
assert abs(found[1] - 10) < 1e-4, f"a sample of the example takes 10 bytes, not {found[1]}"
found = memory_line([3, 1, 2], [60, 20, 70])  # no line goes through these three points
assert abs(found[1] - 20) < 1e-4, f"the slope with the least squares is 20 here, not {found[1]}"
assert abs(found[0] - 10) < 1e-4, f"the fixed part is 10 here, not {found[0]}"
found = memory_line([1, 2, 3], [20, 30, 41])
assert abs(found[1] - 10.5) < 1e-4, f"a sample takes 10.5 bytes here, not {found[1]}: do not round"
found = memory_line([1000, 1001], [80_000_001_000, 80_000_001_001])  # of a large GPU
assert abs(found[1] - 1) < 1e-4, (
    f"a sample takes 1 byte here, not {found[1]}: float32 is too coarse for so many bytes; use "
    "Python's floats, or float64"
)
print("The line is right.")

# %% nbgrader={"grade": true, "grade_id": "lab05-memory_line", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 5.2, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab05-memory_line", globals())
### END HIDDEN TESTS

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab05-line", "locked": true, "schema_version": 3, "solution": false, "task": false}
sizes = [4, 6, 8, 10]
fixed_bytes, sample_bytes = memory_line(sizes, [measured_peak(size) for size in sizes])
weights = 4 * sum(parameter.numel() for parameter in GPT(SHAPE).parameters())
print(f"weights                         {weights / MIB:6.2f} MiB")
print(f"weights, gradients, two moments {4 * weights / MIB:6.2f} MiB")
print(f"fixed, by your line             {fixed_bytes / MIB:6.2f} MiB; you predicted ", end="")
print(predicted_fixed_mib)
print(f"each sample, by your line       {sample_bytes / MIB:6.2f} MiB")
print(f"largest that should fit         {int((BUDGET - fixed_bytes) // sample_bytes):3} samples")
print(f"largest found by running        {MICRO_BATCH:3} samples")
for size in (1, 2, 16, BATCH):
    predicted, measured = fixed_bytes + size * sample_bytes, measured_peak(size)
    print(
        f"{size:3} samples: {predicted / MIB:5.1f} MiB by your line, {measured / MIB:5.1f} "
        f"measured, ratio {predicted / measured:.3f}"
    )

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab05-line-plot", "locked": true, "schema_version": 3, "solution": false, "task": false}
all_sizes = [1, 2, 3, *sizes, 12, 16, 24, 32]
peaks = [measured_peak(size) / MIB for size in tqdm(all_sizes, leave=False, delay=2)]
line = [(fixed_bytes + size * sample_bytes) / MIB for size in (0, BATCH)]
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
plots.peak_over_batch(ax, all_sizes, peaks, ([0, BATCH], line), budget=BUDGET / MIB, unit="MiB")
fitted = [peaks[all_sizes.index(size)] for size in sizes]
ring = {"markerfacecolor": "none", "markeredgecolor": "black", "markersize": 13}
ax.plot(sizes, fitted, "o", label="fitted to these four", **ring)
at_budget = (BUDGET - fixed_bytes) / sample_bytes
ax.plot(
    [0, at_budget],
    [line[0], BUDGET / MIB],
    "D",
    color="black",
    markersize=8,
    clip_on=False,
    zorder=5,
)
for text, at in (
    (f"fixed: {line[0]:.1f} MiB", (0, line[0])),
    (f"room for {int(at_budget)} samples", (at_budget, BUDGET / MIB)),
):
    ax.annotate(text, at, xytext=(12, -18), textcoords="offset points", fontsize=11)
ax.legend(fontsize=11)
show(
    figure,
    "Measured peak memory over the size of the micro-batch, with the fitted line and the budget. "
    "Rings mark the four sizes that the line was fitted to: 4, 6, 8 and 10. From 4 samples on the "
    "points lie on the line. It starts at the fixed bytes, for no sample, and crosses the budget "
    "just above the largest size that fits. Diamonds mark both places.",
)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-line-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the picture.** Four runs with small batches told what the search found by running into the
# wall, and also what 32 samples need without running them. Three things are worth a second look.
# - *The line does not start at zero.* What it starts at is four times the weights: weights,
#   gradients and Adam's two moments. No micro-batch, however small, gets below it.
# - *One or two samples take a little more than the line says*: too little to see it in the picture, so
#   look at the two ratios below 1 that are printed above it. With many samples, memory is highest
#   when backward begins, with all activations there. With few, it is highest later: backward makes a
#   new gradient for a weight matrix, and for a moment it lies beside the old `.grad` that it will be
#   added to. That gradient's size does not depend on the batch.
# - The line is about *this* length of sequence. Twice the tokens, twice the slope; more, if attention
#   stores its length x length scores. This model's does not.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-accumulate_gradients-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.3 Accumulate gradients (4 points, 25 minutes)
#
# The whole batch has a mean loss, $L = \frac{1}{B} \sum_i \ell_i$. Cut it into micro-batches of $n_1,
# n_2, \dots$ samples with mean losses $L_1, L_2, \dots$ Then
#
# $$L = \sum_k \frac{n_k}{B} L_k \qquad\text{and so}\qquad
# \nabla L = \sum_k \frac{n_k}{B} \nabla L_k .$$
#
# torch does the adding: `backward()` *adds* to `.grad` and never overwrites it. That is why training
# loops clear gradients, and it is all that accumulation needs. It also frees what the forward kept.
# So the next micro-batch finds the memory empty again, as long as nothing holds on to the last one.
#
# Write `accumulate_gradients(model, loss_fn, inputs, targets, micro_batch)`, which adds the gradient
# of the full batch's mean loss to the `.grad` of the model's parameters, and returns that loss.
# - `loss_fn(outputs, targets)` is the *mean* loss of the samples it is given.
# - Give the model at most `micro_batch` samples at a time. The last micro-batch may be shorter.
# - `.grad` may hold something already. It stays, and yours is added.
# - Return a plain number: a loss kept as a tensor keeps its graph.
#
# **Convention:** no optimizer step, no clearing; model, inputs and targets stay as they are, and the
# model runs in the mode that it is in. Memory is
# measured at grading. What is live when your function is called (model, batch, gradients that are
# there) does not count. Above that, live memory may rise by at most twice what forward and backward
# of one micro-batch alone make it rise. A `.grad` that is made on the way counts in both.
#
# You get 2 points for the gradients with equal micro-batches, the memory included, 1 for a short
# last micro-batch, and 1 for existing gradients and the returned loss.
#
# *Example:* 5 samples, `micro_batch=2`: micro-batches of 2, 2 and 1 samples, which weigh 0.4, 0.4 and
# 0.2.
#
# **Predict first.** Somebody forgets the weights, and calls `loss_fn(...).backward()` on 4 equal
# micro-batches. How many times too large is the gradient?

# %%
predicted_factor = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab05-accumulate_gradients-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def accumulate_gradients(
    model: torch.nn.Module,
    loss_fn: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    inputs: torch.Tensor,
    targets: torch.Tensor,
    micro_batch: int,
) -> float:
    """Add the gradient of the batch's mean loss to .grad, by micro-batches; return the loss."""
    ### BEGIN SOLUTION
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch), strict=True):
        loss = loss_fn(model(x), y) * (len(x) / len(inputs))
        loss.backward()
        total += loss.item()
    return total
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab05-accumulate_gradients-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 5.3, accumulate gradients
def one_weight():
    """Return a model of one weight, and five samples whose gradients differ widely."""
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(1.0)
    return model, torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]]), torch.zeros(5, 1)


class Noisy(torch.nn.Linear):
    """Gives another result in training than in evaluation, as a dropout does."""

    def forward(self, x):
        return super().forward(x) * (2 if self.training else 1)


def squares(outputs, targets):
    """Return the mean of the squared errors."""
    assert not targets.requires_grad, "loss_fn takes the outputs first, and then the targets"
    return F.mse_loss(outputs, targets)


model, inputs, targets = one_weight()
loss = accumulate_gradients(model, squares, inputs[:4], targets[:4], 2)
assert model.weight.grad is not None, "no gradient: call backward() on each micro-batch's loss"
found = model.weight.grad.item()  # the full batch: 2 * (1 + 4 + 9 + 16) / 4 = 15
for wrong, why in (
    (30, "twice too large: 2 micro-batches, and each counts in full"),
    (25, "only the last micro-batch is left: do not clear between them"),
    (12.5, "half of the last micro-batch alone: do not clear between them"),
    (7.5, "the loss is a mean already: divide by 4, but multiply by the micro-batch's 2 samples"),
):
    assert abs(found - wrong) > 1e-4, f"the gradient is {found:g} instead of 15, {why}"
assert abs(found - 15) < 1e-4, f"the gradient of the first four samples is 15, not {found:g}"
assert loss is not None, "return the batch's mean loss"
assert not torch.is_tensor(loss), "return a number, loss.item(), not a tensor"
assert abs(loss - 7.5) < 1e-4, f"their mean loss is 7.5, not {loss:g}"
assert model.weight.item() == 1.0, "the weight has changed: no optimizer step belongs in here"
assert model.training, "the model was in training mode, and is no longer"

model, inputs, targets = one_weight()
loss = accumulate_gradients(model, squares, inputs, targets, 2)
found = model.weight.grad.item()
for wrong, why in (
    (26.6667, "the last micro-batch has one sample, so it weighs 1/5, not 1/3"),
    (32, "the last micro-batch has one sample, so it weighs 1/5, not 2/5"),
    (15, "the last micro-batch, of one sample, is left out"),
    (12, "the last micro-batch, of one sample, is left out"),
    (65, "a mean divided by its own number of samples once more; weigh it by its share of all 5"),
):
    assert abs(found - wrong) > 1e-3, f"the gradient is {found:g} instead of 22: {why}"
assert abs(found - 22) < 1e-4, f"the gradient of all five samples is 22, not {found:g}"
assert abs(loss - 11) < 1e-4, f"their mean loss is 11, not {loss:g}"
accumulate_gradients(model, squares, inputs, targets, 3)
found = model.weight.grad.item()
assert abs(found - 22) > 1e-4, "22 were there before and are lost: add to .grad, do not clear it"
assert abs(found - 44) < 1e-4, f"22 were there and 22 were to be added, but now it is {found:g}"

for training, right in ((False, 22), (True, 88)):
    model = Noisy(1, 1, bias=False).train(training)
    model.weight.data.fill_(1.0)
    accumulate_gradients(model, squares, inputs, targets, 2)
    found = model.weight.grad.item()
    assert abs(found - right) < 1e-3, (
        "the mode is the caller's to set: no train() or eval() in here"
    )

model, inputs = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()), torch.ones(16, 512, 8)


def rise_bytes(samples):
    """Return how far live memory rises over these samples, by micro-batches of 2."""
    model.zero_grad()
    given = (model, F.mse_loss, inputs[:samples], inputs[:samples], 2)
    return measure_call(accumulate_gradients, *given, device="cpu").rise_bytes


rises = rise_bytes(2), rise_bytes(16)
assert rises[1] <= 2 * rises[0], (
    f"live memory rises by {rises[0]:,} bytes with one micro-batch and {rises[1]:,} with eight: does "
    "each call backward() before the next one starts, and is nothing kept but numbers?"
)

wrong, inputs, targets = one_weight()
for sample in range(4):
    F.mse_loss(wrong(inputs[sample : sample + 1]), targets[sample : sample + 1]).backward()
print(f"Without weights, 4 micro-batches: {wrong.weight.grad.item():g} instead of 15, ", end="")
print(f"{wrong.weight.grad.item() / 15:g} times; you predicted {predicted_factor}.")

# %% nbgrader={"grade": true, "grade_id": "lab05-accumulate_gradients", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 5.3, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab05-accumulate_gradients", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-fits-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### The batch fits
#
# Now the batch of 32 under the budget that stopped it before, by your `accumulate_gradients`, with
# a fresh model each time. Each line gives what your memory line (5.2) predicts for a micro-batch of
# this size, and what the meter saw. And is it the same gradient? (The cell needs your 5.1 and 5.2.)


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab05-fits", "locked": true, "schema_version": 3, "solution": false, "task": false}
def by_micro_batches(m):
    """Return a backward of the whole batch, m samples at a time, by your function."""
    return lambda model, tokens, labels: accumulate_gradients(model, mean_loss, tokens, labels, m)


for m in (BATCH, MICRO_BATCH, 4, 1):
    predicted = (fixed_bytes + m * sample_bytes) / MIB
    try:
        measured = f"{measured_peak(BATCH, by_micro_batches(m), BUDGET) / MIB:5.1f} MiB measured"
    except peakmem.OutOfMemory:
        measured = "out of memory"
    print(f"{BATCH} samples by {m:2}: {predicted:5.1f} MiB predicted, {measured}")

gradients = []
for m in (BATCH, MICRO_BATCH):
    model, optimizer, tokens, labels = new_training(BATCH)
    loss = accumulate_gradients(model, mean_loss, tokens, labels, m)
    gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    print(f"loss by {m:2}: {loss:.6f}")
error = (gradients[0] - gradients[1]).norm() / gradients[0].norm()
print(f"The gradients differ by {error:.1e} of their length: float32's rounding.")


def plain_loop(model, tokens, labels):
    """Backward as in a loop without accumulation: gradients are None before it."""
    model.zero_grad()
    all_at_once(model, tokens, labels)


alone = largest_micro_batch(lambda m: measured_peak(m, plain_loop, BUDGET), BATCH)
print(f"A plain loop, without gradients in forward: {alone} samples fit, ", end="")
print(f"{measured_peak(alone, plain_loop) / MIB:.1f} MiB. With them: {MICRO_BATCH} samples.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-saves-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **What was saved, and what was not.** Activations went down with the micro-batch. Weights, gradients
# and moments did not move: a model that does not fit with one sample does not fit with any number of
# micro-batches. Accumulation even needs the gradients *during* forward, where a plain loop has none: the
# last line printed says how many samples that costs.
#
# Did small sizes run out of memory, too? Then ask: does each micro-batch call `backward()` before the
# next one starts?

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-accumulate_token_mean-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.4 The mean over tokens (3 points, 20 minutes)
#
# A language model's loss is a mean over *tokens*, and not all of them count: padding, or the question
# in front of an answer, is labelled `ignore_index`. So two micro-batches with the same number of
# samples may count 10 tokens and 1000. Their means must not weigh the same. Widely used training
# libraries got this wrong until 2024. The loss curves looked fine, only a little off.
#
# The mean that is meant is *one* division, at the end, over the whole batch:
#
# $$L = \frac{\text{sum of the losses of all counted tokens in the batch}}
# {\text{number of counted tokens in the batch}}$$
#
# Write `accumulate_token_mean(model, tokens, labels, micro_batch, ignore_index)`, which adds the
# gradient of $L$ to `.grad` and returns $L$.
# - `model(tokens)` gives logits of shape (samples, length, vocabulary). `labels` has the shape of
#   `tokens`, and is shifted already: `labels[i, t]` is the right answer for `logits[i, t]`.
# - Labels are all there before the first micro-batch runs. They are small: counting is cheap.
# - If no token of the batch counts, return 0.0 and change no gradient. A micro-batch in which none
#   counts is fine, too.
# - As in 5.3: at most `micro_batch` samples at a time, with backward before the next micro-batch
#   starts; `.grad` may hold something, and the model stays as it is.
#
# `F.cross_entropy(logits, labels, ignore_index=..., reduction="sum")` takes logits of shape (tokens,
# vocabulary) and labels of shape (tokens,); `flatten(0, 1)` and `flatten()` bring them there.
#
# *Points:* all or nothing.
#
# *Example:* two micro-batches. In the first, 3 tokens count, with losses 1, 2 and 3; in the second,
# one counts, with loss 6. $L$ = 12 / 4 = 3.
#
# **Predict first.** What is the mean of the two micro-batches' means in the example?

# %%
predicted_mean = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab05-accumulate_token_mean-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def accumulate_token_mean(
    model: torch.nn.Module,
    tokens: torch.Tensor,
    labels: torch.Tensor,
    micro_batch: int,
    ignore_index: int = -100,
) -> float:
    """Add the gradient of the mean loss over all counted tokens to .grad; return that mean."""
    ### BEGIN SOLUTION
    counted = (labels != ignore_index).sum().item()
    if counted == 0:
        return 0.0
    total = 0.0
    for x, y in zip(tokens.split(micro_batch), labels.split(micro_batch), strict=True):
        logits = model(x).flatten(0, 1)
        loss = F.cross_entropy(logits, y.flatten(), ignore_index=ignore_index, reduction="sum")
        loss = loss / counted
        loss.backward()
        total += loss.item()
    return total
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab05-accumulate_token_mean-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 5.4, the mean over tokens
class Table(torch.nn.Embedding):
    """A model whose logits for a token are its row of a table. It takes `most` samples at a time."""

    def __init__(self, most):
        super().__init__(3, 2)
        self.weight.data = torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
        self.most = most

    def forward(self, tokens):
        assert self.training, "the model was in training mode, and ran in evaluation mode"
        assert len(tokens) <= self.most, (
            f"micro_batch is {self.most}, but the model was given {len(tokens)} samples at a time"
        )
        return super().forward(tokens)


tokens = torch.tensor([[0, 1, 2], [1, 1, 1], [2, 2, 2]])
labels = torch.tensor([[0, 0, 0], [0, -100, -100], [-100, -100, -100]])
each = [math.log(1 + math.exp(logit)) for logit in (0, 1, 2, 1)]  # of the tokens that count
model = Table(1)
found = accumulate_token_mean(model, tokens, labels, 1)
assert found is not None, "return the mean"
assert not torch.is_tensor(found), "return a number, not a tensor"
assert not math.isnan(found), "a micro-batch in which no token counts must not make NaN"
sum_of_means = sum(each[:3]) / 3 + each[3]
mean = sum(each) / 4
for wrong, why in (
    (sum_of_means / 2, "3 tokens count in one, 1 in the next: no mean of means"),
    (sum_of_means / 3, "3 tokens count in one, 1 in the next: no mean of means"),
    (sum_of_means, "3 tokens count in one, 1 in the next: no sum of means"),
    (sum(each) / 9, "divide by the tokens that count, not by all of them"),
    (sum(each), "the sum over the tokens is not divided by their number"),
    (sum(each[:2]) / 4, "labels are shifted already: do not shift them again"),
    (sum(each[:2]) / 2, "labels are shifted already: do not shift them again"),
):
    assert abs(found - wrong) > 1e-4, f"{found:.4f} instead of {mean:.4f}: {why}"
assert abs(found - mean) < 1e-4, f"the mean over the four tokens is {mean:.4f}, not {found:.4f}"
expected = Table(3)
F.cross_entropy(expected(tokens).flatten(0, 1), labels.flatten()).backward()
gradient = expected.weight.grad
assert torch.allclose(model.weight.grad, gradient), "the loss is right, but not .grad"
accumulate_token_mean(model, tokens, labels, 1)
assert not torch.allclose(model.weight.grad, gradient), "the gradient that was there is lost: add"
assert torch.allclose(model.weight.grad, 2 * gradient), "what was there is not as it was: only add"

model = Table(2)
assert accumulate_token_mean(model, tokens, torch.full((3, 3), -100), 2) == 0.0, "none counts: 0.0"
assert model.weight.grad is None or not model.weight.grad.any(), "none counts: no gradient"
model = Table(2)
found = accumulate_token_mean(
    model, tokens, labels.masked_fill(labels == -100, 1), 2, ignore_index=1
)
assert abs(found - mean) < 1e-4, (
    "ignore_index is not always -100: here it is 1. Use it where you count, and in cross_entropy"
)
assert torch.allclose(model.weight.grad, gradient), "with ignore_index=1, .grad is off"


class Wide(torch.nn.Embedding):
    """As Table, with logits so many that memory shows whether graphs are kept."""

    def __init__(self):
        super().__init__(3, 500)


def rise_bytes(samples):
    """Return how far live memory rises over these samples, one at a time."""
    given = torch.zeros(samples, 64, dtype=torch.long)
    return measure_call(accumulate_token_mean, Wide(), given, given, 1, device="cpu").rise_bytes


rises = rise_bytes(1), rise_bytes(8)
assert rises[1] <= 2 * rises[0], (
    f"live memory rises by {rises[0]:,} bytes with one micro-batch and {rises[1]:,} with eight: does "
    "each call backward() before the next one starts?"
)
print(f"The mean of means of the example is {(2 + 6) / 2:g}; you predicted {predicted_mean}.")

# %% nbgrader={"grade": true, "grade_id": "lab05-accumulate_token_mean", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 5.4, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab05-accumulate_token_mean", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-train_epoch-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.5 A whole epoch (4 points, 25 minutes)
#
# Around accumulation stands a training loop, and what used to happen for each batch has to be sorted
# anew: what belongs to each *micro-batch*, and what to each *update*? Forward and backward belong to
# the micro-batch. The optimizer's step, clearing, clipping and the schedule of the learning rate
# belong to the update.
#
# Clipping is the subtle one. It shortens the gradient to length `max_norm` where it is longer. What
# has to be clipped is the mean gradient of the whole update, once. The noise of single micro-batches
# partly cancels in the mean; clip them one by one, and you get another direction.
#
# Write `train_epoch(model, optimizer, loader, accumulation_steps, max_norm, scheduler)`, which trains
# one pass over the loader and returns the number of updates.
# - `loader` can be looped over once: it may be a generator or a `DataLoader`, with no `len()` and no
#   index. It yields tuples, and `model(*batch)` is the mean loss of one micro-batch. All micro-batches
#   have the same number of samples and of counted tokens, so their means weigh the same.
# - Only one micro-batch's graph is in memory at a time: backward comes before the next forward.
# - Each `accumulation_steps` micro-batches make one update with their *mean* gradient.
# - If some are left over at the end, they make one more update, with the mean over just those.
# - Unless `max_norm` is None, clip once for each update
#   (`torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)` does it): the length over all
#   parameters, whatever groups the optimizer has.
# - Unless `scheduler` is None, call `scheduler.step()` once after each update. (A *schedule* changes the
#   learning rate while training goes on; each call is one step of it.)
# - Gradients are clean before you start, and must be clean (None or zero) at the end.
#
# A group may be held as a list: micro-batches are small before they run through the model.
# `itertools.islice(iterator, n)` takes the next `n` from an iterator. A `DataLoader` is none, and would
# begin anew each time; `iter(loader)`, called once, makes one of any loader. The whole loader as a list
# is accepted, too, but that of a real data set may not fit.
#
# You get 2 points for updates and their gradients, 1 for left-overs, 1 for clipping and the schedule.
# The gradients that `optimizer.step` sees at each step are judged, not the weights.
#
# *Example:* 7 micro-batches, `accumulation_steps=3`: 3 updates, of 3, 3 and 1 micro-batches.
#
# **Predict first.** A schedule *warms up* over 1000 steps: the learning rate rises from near zero to its
# full value. Before, each batch was one update; now 8 micro-batches are. By mistake the scheduler
# still steps with each micro-batch. After how many *updates* is the warm-up over?

# %%
predicted_updates = None  # your prediction, a number

# %% nbgrader={"grade": false, "grade_id": "lab05-train_epoch-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
from collections.abc import Iterable
from itertools import islice


def train_epoch(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: Iterable[tuple],
    accumulation_steps: int,
    max_norm: float | None = None,
    scheduler=None,
) -> int:
    """Train one pass over the loader, and return the number of updates."""
    ### BEGIN SOLUTION
    batches, updates = iter(loader), 0
    while group := list(islice(batches, accumulation_steps)):
        for batch in group:
            (model(*batch) / len(group)).backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        updates += 1
    return updates
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab05-train_epoch-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 5.5, a whole epoch
events = []  # updates and steps of the scheduler, in order


class Slope(torch.nn.Module):
    """Two weights, and a loss whose gradients are the number it is given, and 3/4 of that."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.other = torch.nn.Parameter(torch.zeros(()))
        self.waiting = 0  # losses whose backward is still to come

    def forward(self, slope):
        assert not isinstance(slope, tuple), "the loader yields tuples of arguments: model(*batch)"
        loss = self.weight * slope + self.other * (0.75 * slope)
        assert not self.waiting, "call backward() on each loss before the next micro-batch runs"
        self.waiting += 1
        loss.register_hook(self.backward_begins)
        return loss

    def backward_begins(self, _):
        self.waiting -= 1


class Noting(torch.optim.SGD):
    """Plain SGD that notes the gradients it sees, and that it stepped."""

    def step(self, closure=None):
        gradient = self.param_groups[0]["params"][0].grad
        assert gradient is not None, "optimizer.step() without a gradient: cleared too early?"
        events.append("update")
        self.seen = [*getattr(self, "seen", []), gradient.item()]
        return super().step(closure)


class Loader:
    """Like torch's DataLoader, it can be looped over, but is no iterator itself."""

    def __init__(self, slopes):
        self.slopes, self.loops = slopes, 0

    def __iter__(self):
        self.loops += 1
        assert self.loops == 1, (
            "the loader was begun a second time, and gives its first micro-batches again: take "
            "iter(loader) once, and all micro-batches from that"
        )
        return ((slope,) for slope in self.slopes)


def epoch(slopes, steps, loader=Loader, **options):
    """Return what train_epoch returned, the gradients that were seen, and the weight's own."""
    model = Slope()
    optimizer = Noting([{"params": [p]} for p in model.parameters()], lr=0.1)  # two groups
    count = train_epoch(model, optimizer, loader(slopes), steps, **options)
    return count, getattr(optimizer, "seen", []), model.weight.grad


count, seen, left = epoch([1.0, 2.0, 6.0, 1.0, 1.0, 1.0], 3)
assert len(seen) == 2, f"6 micro-batches by 3 are 2 updates, not {len(seen)}"
for wrong, why in (
    (9, "an update needs the mean of its micro-batches, not their sum"),
    (2, "only the last micro-batch is left: clear after the update, not within it"),
    (1 / 3, "the first update came after one micro-batch, not after three"),
):
    assert abs(seen[0] - wrong) > 1e-5, f"the optimizer saw {seen[0]:g} instead of 3: {why}"
assert abs(seen[0] - 3) < 1e-5, f"the mean of 1, 2 and 6 is 3, but the optimizer saw {seen[0]:g}"
assert abs(seen[1] - 1) < 1e-5, f"the second mean is 1, not {seen[1]:g}: clear after each update"
assert count == 2, f"return the number of updates, 2, not {count}"
assert not left, "gradients are left at the end: clear them after the last update, too"
count, seen, left = epoch([1.0, 1.0, 1.0, 4.0], 3)
assert len(seen) == 2, "one micro-batch is left over: it makes an update of its own"
assert abs(seen[1] - 4) < 1e-5, f"its mean is over one micro-batch: 4, not {seen[1]:g}"
count, seen, left = epoch([4.0, -3.0], 2, max_norm=1.0)
assert abs(seen[0] - 0.5) < 1e-5, f"the mean of 4 and -3 needs no clipping; seen: {seen[0]:g}"
count, seen, left = epoch([4.0, 4.0, 4.0], 2, max_norm=1.0)  # gradients (4, 3), of length 5
assert abs(seen[0] - 4.0) > 1e-4, "max_norm=1.0, but the gradient (4, 3) of length 5 is not clipped"
assert abs(seen[0] - 1.0) > 1e-4, (
    "clip the length over all parameters, not group by group: (4, 3) becomes (0.8, 0.6)"
)
assert abs(seen[0] - 0.4) > 1e-4, "the mean is to be clipped: divide first, and clip then"
assert abs(seen[0] - 0.8) < 1e-4, f"(4, 3) is clipped to (0.8, 0.6), not to {seen[0]:g}"
assert abs(seen[1] - 0.8) < 1e-4, f"left-overs are clipped last, too: 0.8, not {seen[1]:g}"
events.clear()
epoch([1.0] * 5, 2, scheduler=SimpleNamespace(step=lambda: events.append("schedule")))
steps = events.count("schedule")
assert steps == 3, f"the scheduler steps once for each of 3 updates, not {steps} times"
assert events == ["update", "schedule"] * 3, "call scheduler.step() after optimizer.step()"
assert epoch([], 2)[0] == 0, "an empty loader makes no update"
count, seen, left = epoch([1.0] * 5, 2, loader=lambda slopes: ((s,) for s in slopes))
assert seen == [1.0] * 3, f"of a generator of 5 micro-batches the optimizer saw {seen}"
print(f"8 steps of the schedule in each update: 1000 steps are {1000 / 8:g} updates; ", end="")
print(f"you predicted {predicted_updates}.")

# %% nbgrader={"grade": true, "grade_id": "lab05-train_epoch", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 5.5, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab05-train_epoch", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-batch_norm_gap-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.6 The layer that sees the batch (2 points, 15 minutes)
#
# 5.3 assumed that a sample's loss does not depend on the other samples in its batch. *Batch norm*
# breaks that: in training it subtracts the mean over the samples of the batch, and divides by their
# standard deviation. In a micro-batch there are fewer samples, so their mean and standard deviation
# are others, and so are the outputs. No weighting mends that. Layer norm looks at one sample at a
# time, which is one reason why language models use it.
#
# Write `batch_norm_gap(model, x, micro_batch)`. Run the model in *training* mode on the full batch
# `x`, and on micro-batches of `x`, whose outputs you put together again. Return the largest absolute
# difference between the two.
#
# **Convention:** a plain float. `model.train()` puts all layers in training mode. The model is left as
# it was: its mode (each layer's: a layer may be in another one than the rest), its gradients, and batch norm's
# *running statistics*, the averages of past means and variances that evaluation mode uses instead of
# the batch's own; each forward in training mode moves them. A batch norm is never asked for a
# micro-batch of one sample: in training mode `BatchNorm1d` refuses it, as one sample has no spread.
# And no model has dropout: it draws anew in each forward, so it would make a gap of its own.
#
# *Points:* all or nothing.
#
# *Example:* one batch norm, `x` = 0, 0, 1, 1 (one feature), `micro_batch=2`. The full batch becomes
# -1, -1, 1, 1. Each micro-batch is constant, so it becomes 0, 0. The gap is 1.
#
# **Predict first.** The same four values in another order: 0, 1, 0, 1. What is the gap?

# %%
predicted_gap = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab05-batch_norm_gap-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def batch_norm_gap(model: torch.nn.Module, x: torch.Tensor, micro_batch: int) -> float:
    """Return the largest difference of outputs in training mode, full batch to micro-batches."""
    ### BEGIN SOLUTION
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        pieces = torch.cat([twin(piece) for piece in x.split(micro_batch)])
        return (twin(x) - pieces).abs().max().item()
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab05-batch_norm_gap-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 5.6, the layer that sees the batch
x = torch.tensor([[0.0], [0.0], [1.0], [1.0]])
norm = torch.nn.BatchNorm1d(1).eval()
norm.running_mean.fill_(3.0)  # as after some training
norm.weight.grad = torch.ones(1)
before = copy.deepcopy(norm.state_dict())
gap = batch_norm_gap(norm, x, 2)
assert gap is not None, "return the gap"
assert gap != 0.0, "no gap? In evaluation mode batch norm does not look at the batch: call train()"
assert not torch.is_tensor(gap), "return a number, not a tensor"
assert abs(gap - 1) < 1e-4, f"the example's gap is 1, not {gap:g}"
for name, value in norm.state_dict().items():
    assert torch.equal(value, before[name]), f"{name} of the model has changed: work on a copy"
assert not norm.training, "the model was in evaluation mode, and must be afterwards"
assert norm.weight.grad is not None, "the gradient that the model had is gone: work on a copy"
assert norm.weight.grad.item() == 1.0, "the model's gradient has changed: work on a copy"
frozen = torch.nn.Sequential(torch.nn.BatchNorm1d(1), torch.nn.Tanh())
frozen[0].eval()
gap = batch_norm_gap(frozen, x, 2)
assert gap != 0.0, "a layer was left in evaluation mode: call train() whatever mode the model is in"
modes = [module.training for module in frozen.modules()]
assert modes == [True, False, True], "each layer must be in the mode that it was in before"
norm = torch.nn.BatchNorm1d(1)
gap = batch_norm_gap(norm, torch.tensor([[0.0], [0.0], [1.0], [2.0], [1.0], [2.0]]), 4)
assert norm.training, "the model was in training mode, and must be afterwards"
assert abs(gap - 0.3202) > 1e-3, "6 samples by 4: the last two are a micro-batch, too"
assert abs(gap - 1.2247) > 1e-3, "6 samples by 4 are 4 and 2: split(4) cuts so, chunk(4) does not"
assert abs(gap - 1) < 1e-3, f"0, 0, 1, 2, 1, 2 by 4: the gap is 1, at the last sample, not {gap:g}"
one = torch.tensor([[0.0], [0.0], [0.0], [1.0]])
# the full batch gives -0.577 three times and 1.732, the micro-batches 0, 0, -1, 1
for sign in (1, -1):
    gap = batch_norm_gap(torch.nn.BatchNorm1d(1), sign * one, 2)
    assert abs(gap - 0.7320) < 1e-3, f"the largest absolute difference is 0.732 here, not {gap:.3f}"
gap = batch_norm_gap(torch.nn.LayerNorm(3), torch.randn(7, 3), 2)
assert gap < 1e-6, f"layer norm treats each sample by itself, but your gap is {gap:g}"
gap = batch_norm_gap(torch.nn.BatchNorm1d(1), x[[0, 2, 1, 3]], 2)
print(f"In the order 0, 1, 0, 1 the gap is {gap:g}; you predicted {predicted_gap}.")
print("There both micro-batches have the mean and the standard deviation of the full batch.")

# %% nbgrader={"grade": true, "grade_id": "lab05-batch_norm_gap", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 5.6, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab05-batch_norm_gap", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-order-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Does it help to mix the data? A hundred values, first sorted, then shuffled:

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab05-order", "locked": true, "schema_version": 3, "solution": false, "task": false}
values = torch.linspace(0, 1, 100)[:, None]
mixed = values[torch.randperm(100, generator=torch.Generator().manual_seed(0))]
for m in (2, 5, 25):
    gaps = [batch_norm_gap(torch.nn.BatchNorm1d(1), data, m) for data in (values, mixed)]
    print(f"micro-batches of {m:2}: gap {gaps[0]:.2f} sorted, {gaps[1]:.2f} shuffled")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-order-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Mixed data *and* larger micro-batches make the gap small. With two samples at a time mixing hardly
# helps, and large micro-batches of sorted data are no better than small ones.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-mistakes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Five mistakes, measured
#
# Here is each classic mistake on a small model, with a fresh one for each, on sorted data (the worst
# case, and a common one). The error is the length of the difference to the full batch's gradient,
# over that gradient's length. The first is your own function.


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab05-mistakes", "locked": true, "schema_version": 3, "solution": false, "task": false}
torch.manual_seed(0)
x = torch.randn(23, 4, dtype=torch.float64)  # 5 micro-batches: 5, 5, 5, 5 and 3
y = torch.linspace(0, 3, 23, dtype=torch.float64)[:, None] + torch.randn(23, 3).double()  # sorted
labels = torch.randint(3, (23,))
labels[torch.arange(23) % 5 < torch.arange(23) // 5] = -100  # 5, 4, 3, 2 and 0 labels count


def network(*middle):
    """Return a small float64 network, always with the same weights."""
    torch.manual_seed(1)
    layers = [torch.nn.Linear(4, 16), *middle, torch.nn.Tanh(), torch.nn.Linear(16, 3)]
    return torch.nn.Sequential(*layers).double()


def gradient_of(model, backward):
    """Return the gradient that `backward(model)` leaves, as one vector."""
    model.zero_grad()
    backward(model)
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def by_pieces(weight, after=lambda model: None, loss_fn=F.mse_loss):
    """Return a backward over micro-batches of 5; `weight(x, y)` is what each loss counts."""

    def backward(model):
        for a, b in zip(x.split(5), y.split(5), strict=True):
            (weight(a, b) * loss_fn(model(a), b)).backward()
            after(model)

    return backward


whole = lambda model: F.mse_loss(model(x), y).backward()  # noqa: E731
full = gradient_of(network(), whole)


def clipped(model):
    """Clip the gradient to half the length of the full batch's."""
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5 * full.norm().item())


def error(model, backward, expected):
    """Return the relative error of a gradient."""
    return ((gradient_of(model, backward) - expected).norm() / expected.norm()).item()


share = lambda a, b: len(a) / len(x)  # noqa: E731
norm = torch.nn.BatchNorm1d(16)
token_loss = lambda model: F.cross_entropy(model(x), labels).backward()  # noqa: E731
tokens_full = gradient_of(network(), token_loss)


def mean_of_means(model):
    """Average the means of the micro-batches that have one."""
    for a, b in zip(x.split(5), labels.split(5), strict=True):
        if (b != -100).any():
            (F.cross_entropy(model(a), b) / 4).backward()


def clipped_whole(model):
    """Clip once, after the full batch."""
    whole(model)
    clipped(model)


clipped_full = gradient_of(network(), clipped_whole)
own = lambda model: accumulate_gradients(model, F.mse_loss, x, y, 5)  # noqa: E731
errors = {
    "accumulate_gradients (yours)": error(network(), own, full),
    "no division by 5": error(network(), by_pieces(lambda a, b: 1.0), full),
    "short last one counts 1/5": error(network(), by_pieces(lambda a, b: 1 / 5), full),
    "mean of means over tokens": error(network(), mean_of_means, tokens_full),
    "each micro-batch clipped": error(network(), by_pieces(share, clipped), clipped_full),
    "batch norm": error(
        network(copy.deepcopy(norm)),
        by_pieces(share),
        gradient_of(network(copy.deepcopy(norm)), whole),
    ),
}
for name, size in errors.items():
    print(f"{name:30} {size:.1e}")
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
plots.gradient_errors(ax, errors)
show(
    figure,
    "Relative error of the gradient on a logarithmic axis: your function, in a colour of its own, "
    "and five mistakes. "
    "Your function is at the rounding error of float64, some fifteen orders of magnitude below the "
    "mistakes. A missing division is the largest, at four times the gradient.",
)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-mistakes-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the picture.** There is nothing between right and wrong: right means rounding error, and
# each mistake costs a share of the gradient that you would see in no error message.
#
# Would you see it in the parameters? Not under Adam, which divides the gradient by its own size:

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab05-adam", "locked": true, "schema_version": 3, "solution": false, "task": false}
for make in (torch.optim.SGD, torch.optim.Adam):
    moved = []
    for weight in (1 / 4, 1.0):
        model = network()
        optimizer = make(model.parameters(), lr=0.1)
        for a, b in zip(x[:20].split(5), y[:20].split(5), strict=True):  # 4 equal micro-batches
            (weight * F.mse_loss(model(a), b)).backward()
        optimizer.step()
        moved.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    off = (moved[0] - moved[1]).abs().max().item()
    print(f"{make.__name__:4}: without the division a parameter is off by up to {off:.1e}")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-adam-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# So a test of the *parameters* after a step of Adam passes, although the gradient is several times
# too large. It shows elsewhere: clipping at a fixed norm bites far too often, weight decay (Adam's, not
# AdamW's) is too weak beside the gradient that it is added to, and under SGD training may blow up.
# Test gradients.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-time-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### What does it cost?
#
# Accumulation does the same arithmetic in smaller pieces. But each piece pays a fixed price for
# starting its operators, and small matrices use the device badly. How does the time for one sample
# depend on the micro-batch?
#
# **Predict first.** Take 16 short samples of 8 tokens each. How many times slower are they one by one
# than all at once? 1 would mean that only the arithmetic counts, 16 that only the number of pieces does.

# %%
predicted_slowdown = None  # your prediction, a number


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab05-time", "locked": true, "schema_version": 3, "solution": false, "task": false}
def ms_per_sample(sizes, length):
    """Return the time for one of 16 samples of this many tokens, by micro-batches of each size.

    It is the shortest of six rounds. All sizes take turns, so that other programs that run now slow
    down one as much as another.
    """
    model, _, tokens, labels = new_training(16)
    rounds = []
    for _ in tqdm(range(7), desc="timing", leave=False, delay=2):  # the first warms up
        times = []
        for m in sizes:
            start = time.perf_counter()
            accumulate_gradients(model, mean_loss, tokens[:, :length], labels[:, :length], m)
            if DEVICE == "cuda":
                torch.cuda.synchronize()
            times.append(1000 * (time.perf_counter() - start) / 16)
        rounds.append(times)
    return [min(column) for column in zip(*rounds[1:], strict=True)]


sizes = [1, 2, 4, 8, 16]
ms = ms_per_sample(sizes, 8)
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
plots.time_per_sample(ax, sizes, ms)
show(
    figure,
    "Time per sample in milliseconds over the size of the micro-batch: 1, 2, 4, 8 and 16. As a rule "
    "each doubling makes it fall, and less than the one before; other programs that run now may bend "
    "the curve. The lines printed below give its two ends.",
)
print(f"8 tokens a sample:  by 1 {ms[0]:.2f} ms, by 16 {ms[-1]:.2f} ms, ", end="")
print(f"ratio {ms[0] / ms[-1]:.1f}; you predicted {predicted_slowdown}.")
ms = ms_per_sample([1, 16], SHAPE.context)
print(f"{SHAPE.context} tokens a sample: by 1 {ms[0]:.2f} ms, by 16 {ms[-1]:.2f} ms, ", end="")
print(f"ratio {ms[0] / ms[-1]:.1f}.")


# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-time-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Hence the largest micro-batch that fits, and not the smallest that works: just under the budget, at
# the least cost in time. What counts is the work in one piece. The second line printed above is about
# samples with eight times the tokens: a single one of them is more work for the same fixed price, so on
# a CPU it matters less how many go together. A GPU wants much more work in one piece. Where the curve
# is flat, you may as well stay below the limit and keep some room.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-practice", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### In practice
#
# Training libraries do what you wrote. The numbers that they ask you for hang together:
#
# $$\text{batch} = \text{micro-batch} \times \text{accumulation steps} \times \text{devices}$$
#
# | here | DeepSpeed's configuration | transformers' `TrainingArguments` |
# |---|---|---|
# | `micro_batch` | `train_micro_batch_size_per_gpu` | `per_device_train_batch_size` |
# | `accumulation_steps` | `gradient_accumulation_steps` | `gradient_accumulation_steps` |
# | samples an update | `train_batch_size` | their product with the number of devices |
#
# DeepSpeed takes any two of its three keys and works out the third; where all are given and
# contradict each other, it refuses to start. In both, steps (of the schedule, of logging, of saving)
# are updates, not micro-batches. Recent versions of transformers count the tokens of the whole
# update first, as you did in 5.4.
#
# With several devices, torch's DDP averages gradients over all of them in *every* backward. When
# accumulating only the last one has to: `with model.no_sync():` around the others, forward *and*
# backward, lets the gradients add up locally. Measured here with one process, and a hook that
# counts what would be sent:

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab05-no-sync", "locked": true, "schema_version": 3, "solution": false, "task": false}
import contextlib

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def sent_bytes(accumulation_steps, no_sync):
    """Return the bytes that DDP hands over to be averaged in one update."""
    model = DistributedDataParallel(torch.nn.Linear(256, 256))
    sent = []

    def count(_, bucket):
        sent.append(bucket.buffer().nbytes)
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    model.register_comm_hook(None, count)
    for step in range(accumulation_steps):
        quiet = no_sync and step < accumulation_steps - 1
        with model.no_sync() if quiet else contextlib.nullcontext():
            model(torch.ones(2, 256)).mean().backward()
    return sum(sent)


for no_sync in (False, True):
    print(f"8 micro-batches, no_sync={no_sync!s:5}: {sent_bytes(8, no_sync):9,} bytes sent")
dist.destroy_process_group()

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.7 In your own words (2 points, 5 minutes)
#
# A friend says: "I use micro-batches of one sample, so my model of any size fits." In two or three
# sentences: what does accumulation make smaller, what does it leave as it was, and what does a
# micro-batch of one sample cost?
#
# 1 point for the first two questions together, 1 for the third.

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab05-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Accumulation makes the activations smaller: they grow with the samples in flight. The weights,
# their gradients and the optimizer's state do not depend on the batch and stay as they were. With
# one sample at a time the device is used badly, so each sample takes longer.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - The largest micro-batch that fits is found by halving: `log2` of the range, not the range.
# - Only *out of memory* means "smaller, please". Every other error is a bug.
# - The peak is a line over the micro-batch. What it starts at (weights, gradients, state) no
#   accumulation can save.
# - Micro-batches weigh by their samples, or by their counted tokens. Divide before backward, and by
#   what the whole batch has.
# - Clipping, schedule, step and clearing belong to the update, not to the micro-batch.
# - Batch norm makes a micro-batch another function; layer norm does not.
# - Time per sample rises when micro-batches get too small. So: as large as fits.
