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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 5: gradient accumulation
#
# The batch you want doesn't fit. But the gradient of a batch is a mean over its samples, and you can compute
# a mean piece by piece. So run small *micro-batches* one after another, add up their gradients, and step
# once.
#
# The idea takes one sentence, and many libraries got it wrong for years. Most first attempts get the memory
# right but the gradient wrong, and nothing crashes.
#
# **You will be able to**
# - accumulate a batch's gradient exactly, with a short last micro-batch and with tokens that don't count;
# - find what keeps a micro-batch in memory after its turn;
# - write the training loop around it, with leftovers, clipping and a schedule in the right places;
# - beyond the core: find the largest micro-batch that fits, with a line or a search, and say which layers
#   accumulation changes.
#
# | exercise | part | minutes | points |
# |---|---|---|---|
# | 5.1 Accumulate gradients | core | 21 | 4 |
# | 5.2 Find the leak | core | 7 | 2 |
# | 5.3 The mean over tokens | core | 15 | 3 |
# | 5.4 A whole epoch | core | 22 | 4 |
# | 5.5 In your own words | core | 5 | 2 |
# | 5.6 The memory line | stretch | 10 | 2 |
# | 5.7 The largest micro-batch | stretch | 11 | 4 |
# | 5.8 The layer that sees the batch | stretch | 10 | 2 |
# | **core** | | **70** | **15** |
# | **stretch** | | **31** | **8** |

# %% nbgrader={"grade": false, "grade_id": "lab05-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import copy
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import matplotlib.pyplot as plt
import torch
from torch.nn import functional as F
from tqdm.auto import tqdm

import peakmem
from peakmem import plots
from peakmem.labs import Case, close, lab05, predicted, self_check, show_figure, whole
from peakmem.labs.lab05 import BATCH, BUDGET, MIB, mean_loss, measured_peak
from peakmem.meter import MemoryMeter

peakmem.lab("lab05_accumulation")
if lab05.device() == "cuda":
    print("Bytes are those that torch's allocator hands out; times are measured on the GPU.")
else:
    print("Here, main memory with a budget of 24 MiB stands in for the GPU's memory.")
_ = measured_peak(2)  # makes libraries allocate their workspaces now, not during a measurement

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-too-large-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### A batch that does not fit
#
# `measured_peak` runs one *update* of a small GPT: forward and backward of a batch, then a step of Adam. A
# meter counts the *live* bytes, those that some tensor holds. Given a budget, the meter stops the run at the
# first operator that exceeds it, as a full GPU does.

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab05-too-large", "locked": true, "schema_version": 3, "solution": false, "task": false}
print(
    f"{BATCH} samples take {measured_peak(BATCH) / MIB:.1f} MiB. The budget is {BUDGET / MIB:.0f} MiB."
)
try:
    measured_peak(BATCH, budget_bytes=BUDGET)
except peakmem.OutOfMemory as error:
    print("OutOfMemory:", error)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-accumulate_gradients-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.1 Accumulate gradients (core, 4 points, 21 minutes)
#
# The batch's mean loss is $L = \frac{1}{B} \sum_i \ell_i$. Cut it into micro-batches of $n_1, n_2, \dots$
# samples with mean losses $L_1, L_2, \dots$ Then
#
# $$L = \sum_k \frac{n_k}{B} L_k \qquad\text{and so}\qquad
# \nabla L = \sum_k \frac{n_k}{B} \nabla L_k .$$
#
# torch does the adding: `backward()` *adds* to `.grad`. It also frees the saved tensors, so the next
# micro-batch can reuse their memory, as long as nothing else keeps the last one alive.
#
# Write `accumulate_gradients`: it adds the gradient of the full batch's mean loss to the parameters' `.grad`,
# and returns that loss.
# - `loss_fn(outputs, targets)` is the *mean* loss of the samples it gets.
# - The model gets at most `micro_batch` samples at a time. The last micro-batch may be shorter.
# - `.grad` may already hold a gradient: keep it, and add yours.
# - Return a plain number: a loss tensor holds its graph until backward has run on it.
#
# **Convention:** don't step the optimizer or clear gradients, and leave the model, its mode (`train()` or
# `eval()`) and the data as they are. Memory may rise at most twice as far as for one micro-batch.
#
# *Points:* gradients and memory with equal micro-batches 2, a short last one 1, existing gradients and the loss 1.
#
# *Example:* 5 samples, `micro_batch=2`: micro-batches of 2, 2 and 1 samples weigh 0.4, 0.4 and 0.2.
#
# **Predict first.** You forget the weights, and call `loss_fn(...).backward()` on 4 equal micro-batches.
# How many times too large is the gradient?

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
# Self-check of 5.1, accumulate gradients
# (gradient, loss) of a model of one weight, for the samples 1, 2, ...
accumulated = lab05.accumulated(accumulate_gradients)
said = {
    "a tensor came back": "return a number: loss.item()",
    "no loss came back": "return the batch's mean loss",
    "no gradient": "call backward() on each micro-batch's loss",
    "a hook is left": "remove your hooks: later gradients go through them, too",
    "the weight has changed": "don't step an optimizer in here",
    "the model's mode has changed": "the mode is the caller's to set: no train() or eval()",
    "requires_grad has changed": "leave the data, the model and gradient recording as they are",
}
self_check(
    accumulated,
    [
        Case(
            (4, 2),
            (15.0, 7.5),
            "weigh each mean by its share of the samples, before backward",
            label="4 samples by 2",
            wrong=said
            | {
                (30.0, 15.0): "both micro-batches count in full: weigh them",
                (
                    30.0,
                    7.5,
                ): "the loss is right, but each micro-batch's gradient counts in full: weigh it",
                (7.5, 3.75): "L_k is already a mean: weigh it by n_k / B, not by 1 / B",
                (25.0, 15.0): "only the last micro-batch is left: don't clear between them",
                (15.0, 15.0): "the gradient is right, but the loss is a sum of means: weigh it too",
                (15.0, 12.5): "the gradient is right, but the loss is the last micro-batch's",
                (60.0, 30.0): "the model is in evaluation mode: don't call train()",
            },
        ),
        Case(
            (5, 2),
            (22.0, 11.0),
            "the last micro-batch has one sample, so it weighs 1/5",
            label="5 samples by 2",
            wrong={
                (
                    26.6667,
                    13.3333,
                ): "the last micro-batch has a single sample: it weighs 1/5, not 1/3",
                (
                    26.6667,
                    11.0,
                ): "the loss is right, but in the gradient the last micro-batch weighs 1/3",
                (15.0, 7.5): "you left out the last micro-batch, of one sample",
                (12.0, 6.0): "you left out the last micro-batch, of one sample",
                (32.0, 16.0): "the last micro-batch has len(x) samples, not micro_batch",
            },
        ),
        Case(
            (7, 3), (40.0, 20.0), "weigh by 3/7, 3/7 and 1/7, not rounded", label="7 samples by 3"
        ),
        Case((2, 4), (5.0, 2.5), "one micro-batch has all samples", label="2 samples by 4"),
        Case(
            (5, 3, 22.0),
            (44.0, 11.0),
            "the gradient of 22 was there before: add to .grad",
            label="a gradient of 22 is there",
            wrong={(22.0, 11.0): "the old gradient is lost: add to .grad, don't clear it"},
        ),
        Case(
            (5, 2),
            (88.0, 44.0),
            "the mode is the caller's to set",
            {"training": True},
            label="in training mode",
            wrong=said | {(22.0, 11.0): "the model is in training mode: don't call eval()"},
        ),
        Case(
            (4, 2),
            (2.5, 2.5),
            "call the loss_fn that you are given",
            {"loss_fn": F.l1_loss},
            label="another loss_fn",
        ),
        Case(
            (),
            "as for one",
            "call backward() before the next micro-batch starts, and keep only numbers",
            label="memory of eight micro-batches",
            function=lab05.rise_of(accumulate_gradients),
        ),
    ],
)
if predicted(predicted_factor, question="how many times too large without weights?"):
    squares = [x * x for x in (1.0, 2.0, 3.0, 4.0)]  # the parts of each sample's mean
    factor = sum(squares) / (sum(squares) / len(squares))
    print(
        f"Each mean counts in full: {factor:g} times too large; you predicted {predicted_factor}."
    )

# %% nbgrader={"grade": true, "grade_id": "lab05-accumulate_gradients", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 5.1, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab05-accumulate_gradients", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-fits-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### The batch fits
#
# Now run the batch of 32 under the budget that stopped it. `accumulate_gradients` needs the same weights,
# gradients and moments, but fewer activations.
#
# **Predict first.** Weights take 1.67 MiB, so weights, gradients and moments take 6.7; all 32 samples at once took
# about 47. How many times smaller is the *whole* peak with micro-batches of 1 than with 8?

# %%
predicted_fall = None  # your prediction, a number


# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab05-fits", "locked": true, "schema_version": 3, "solution": false, "task": false}
# The peaks of 32 samples in your micro-batches, and how far the gradients differ
def by_micro_batches(m):
    """Return a backward of the whole batch, m samples at a time, using your function."""
    return lambda model, tokens, labels: accumulate_gradients(model, mean_loss, tokens, labels, m)


if predicted(predicted_fall, question="how many times smaller is the peak with 1?"):
    for m in (BATCH, 8, 4, 1):
        try:
            print(
                f"{BATCH} samples, {m:2} at a time: {measured_peak(BATCH, by_micro_batches(m), BUDGET) / MIB:5.1f} MiB"
            )
        except peakmem.OutOfMemory:
            print(f"{BATCH} samples, {m:2} at a time: out of memory")
    fall = measured_peak(BATCH, by_micro_batches(8)) / measured_peak(BATCH, by_micro_batches(1))
    print(
        f"With 1, the peak is {fall:.1f} times smaller than with 8; you predicted {predicted_fall}."
    )

    gradients = []
    for m in (BATCH, 8):
        model, _, tokens, labels = lab05.new_training(BATCH)
        accumulate_gradients(model, mean_loss, tokens, labels, m)
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    error = (gradients[0] - gradients[1]).norm() / gradients[0].norm()
    print(
        f"The gradients, {BATCH} and 8 samples at a time, differ by {error:.1e} of their length: float32's rounding."
    )

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-saves-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# A model that doesn't fit with one sample doesn't fit with any number of micro-batches. If small
# micro-batches ran out of memory too, check that each one calls `backward()` before the next one starts.
#
# ### What does it cost?
#
# The arithmetic stays the same, but each piece pays a fixed price for starting its operators.
#
# **Predict first.** Take 16 short samples of 8 tokens each. How many times slower are they one by one than all
# at once? 1 would mean that only arithmetic counts, 16 that only the number of pieces does.

# %%
predicted_slowdown = None  # your prediction, a number

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab05-time", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_slowdown, question="how many times slower one by one?"):
    sizes = [1, 2, 4, 8, 16]
    ms = lab05.milliseconds_a_sample(accumulate_gradients, sizes, 8)
    figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    plots.time_per_sample(ax, sizes, ms)
    show_figure(
        figure,
        "Time per sample in milliseconds over micro-batches of 1, 2, 4, 8 and 16. Each doubling usually "
        "lowers it, by less each time; other running programs can distort the curve.",
    )
    print(
        f"8 tokens per sample:  {ms[0] / ms[-1]:.1f} times slower one by one than all at once; you predicted {predicted_slowdown}."
    )
    ms = lab05.milliseconds_a_sample(accumulate_gradients, [1, 16], 64)
    print(f"64 tokens per sample: {ms[0] / ms[-1]:.1f} times slower one by one than all at once.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-time-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# So take the largest micro-batch that fits. What matters is the work per piece: with longer samples, or on a
# smaller device, the curve flattens sooner. A GPU needs far more work per piece than a CPU.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-find_the_leak-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.2 Find the leak (core, 2 points, 7 minutes)
#
# After an update you run validation, also in micro-batches. `leaky_validation` returns the correct mean loss.
#
# **Predict first.** You double the number of micro-batches, each of the same size. Does the peak stay the same,
# or about double?


# %% nbgrader={"grade": false, "grade_id": "lab05-leaky_validation", "locked": true, "schema_version": 3, "solution": false, "task": false}
def leaky_validation(model, loss_fn, inputs, targets, micro_batch):
    """Return the mean loss of all samples."""
    total = 0.0
    for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch), strict=True):
        total += loss_fn(model(x), y) * len(x)
    return (total / len(inputs)).item()


# %%
predicted_rise = None  # your prediction, 1 (stays the same) or 2 (about doubles)

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab05-leak", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_rise, question="what is the peak for twice as many micro-batches?"):
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64), torch.nn.Tanh()] * 4)
    figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    curves = {}
    for count in (8, 16):
        data = torch.randn(2, 32 * count, 64)
        with MemoryMeter("cpu").track(model, data) as meter:
            leaky_validation(model, F.mse_loss, *data, 32)
        curves[f"{count} micro-batches"] = [
            (live - meter.baseline_bytes) / 1024 for _, live in meter.timeline
        ]
    plots.live_timelines(ax, curves, unit="KiB")
    show_figure(
        figure,
        "Live memory above the data over the operators of leaky_validation: both curves climb from 0 in a "
        "straight line until the end, the one for 16 micro-batches twice as high.",
    )
    first, second = (max(curve) for curve in curves.values())
    print(f"{second / first:.1f} times the peak; you predicted {predicted_rise}.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-find_the_leak-task", "locked": true, "schema_version": 3, "solution": false, "task": false}
# What keeps every micro-batch alive? Write `validation_loss`, which returns the same loss. On top of the
# model and the data, it may hold as much as all layers' outputs for three micro-batches. Leave the model's
# mode and gradients as they are, and gradient recording switched on.
#
# *Points:* same results 1, peak below the bound 1, measured at grading.


# %% nbgrader={"grade": false, "grade_id": "lab05-find_the_leak-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def validation_loss(model, loss_fn, inputs, targets, micro_batch) -> float:
    """Return the mean loss of all samples, with few micro-batches in memory at a time."""
    ### BEGIN SOLUTION
    total = 0.0
    with torch.no_grad():
        for x, y in zip(inputs.split(micro_batch), targets.split(micro_batch), strict=True):
            total += loss_fn(model(x), y).item() * len(x)
    return total / len(inputs)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab05-find_the_leak-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 5.2, find the leak
def in_evaluation(model, *rest):
    """Switch to evaluation mode, as many loops do before validation; the task doesn't ask for it."""
    model.eval()
    return leaky_validation(model, *rest)


loss, there, mode, peak = lab05.validation_of(leaky_validation)()
other_loss, _, other_mode, _ = lab05.validation_of(in_evaluation)()
bound = "within 7.1 MiB"  # data, model and gradients 4.1, three micro-batches' outputs 3
self_check(
    lab05.validation_of(validation_loss),
    [
        Case(
            (),
            (loss, there, mode, bound),
            "weigh each mean by its samples, one micro-batch at a time; keep the mode and gradients",
            label="loss, gradients, mode, peak",
            wrong={
                (
                    loss,
                    there,
                    mode,
                    peak,
                ): "every graph is still live: keep only numbers, or make no graph",
                (
                    loss,
                    "gradients changed",
                    mode,
                    bound,
                ): "backward frees graphs, but adds gradients",
                (loss, "gradients gone", mode, bound): "the gradients are the caller's: keep them",
                (
                    loss,
                    "gradients off",
                    mode,
                    bound,
                ): "use `with torch.no_grad():`, which ends with its block",
                (loss, there, mode, "8.1 MiB"): "run one micro-batch at a time",
                (
                    other_loss,
                    there,
                    other_mode,
                    bound,
                ): "the model stays in eval() after your function: leave its mode alone",
                (
                    other_loss,
                    there,
                    mode,
                    bound,
                ): "evaluation mode gives another loss: don't call eval()",
            },
        )
    ],
    equal=close(1e-4),
)

# %% nbgrader={"grade": true, "grade_id": "lab05-find_the_leak", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 5.2, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab05-find_the_leak", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-accumulate_token_mean-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.3 The mean over tokens (core, 3 points, 15 minutes)
#
# A language model's loss is a mean over *tokens*, and not all of them count: padding, or the question before
# an answer, has the label `ignore_index`. In two micro-batches of equal size, 10 and 1000 tokens may count,
# so their means must not weigh the same. Widely used libraries got this wrong until 2024; their loss curves
# were only a little off.
#
# The mean you want is *one* division over the whole batch:
#
# $$L = \frac{\text{sum of the losses of all counted tokens in the batch}}
# {\text{number of counted tokens in the batch}}$$
#
# Write `accumulate_token_mean`: it adds the gradient of $L$ to `.grad` and returns $L$.
# - `model(tokens)` gives logits, the numbers before the softmax, of shape (samples, length, vocabulary).
#   `labels[i, t]` is the correct token for `logits[i, t]`: the labels are already shifted.
# - You have all labels before the first micro-batch runs, and counting them is cheap.
# - If no token of the batch counts, return 0.0 and change no gradient. A micro-batch may also have no counted
#   token.
# - As in 5.1: at most `micro_batch` samples at a time, backward before the next one, and leave the mode as it is.
#
# `F.cross_entropy(logits, labels, ignore_index=..., reduction="sum")` takes logits of shape (tokens,
# vocabulary) and labels of shape (tokens,); `flatten(0, 1)` and `flatten()` give these shapes.
#
# *Points:* all or nothing. *Example:* of two micro-batches, the first has three counted tokens with losses 1,
# 2 and 3, the second has one with loss 6. $L = 12 / 4 = 3$.
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
# Self-check of 5.3, the mean over tokens
unequal = [[0, 0, 0], [-100, -100, -100], [-100, 0, -100]]  # 3 tokens count, none, and 1
right, nan = (1.3616, "right gradient"), float("nan")
said = {
    "a tensor came back": "return a number",
    "no mean came back": "return the mean",
    "gradients are off": "leave gradient recording switched on",
    "a hook is left": "remove your hooks: later gradients go through them, too",
}
other = "another gradient"
self_check(
    lab05.token_mean_of(accumulate_token_mean),
    [
        Case(
            (unequal, 1),
            right,
            "sum the losses, and divide by the counted tokens of the whole batch",
            label="3, 0 and 1 tokens count",
            wrong=said
            | {
                (nan, other): "where no token counts, a mean is 0 / 0: use sums",
                (nan, right[1]): "where no token counts, a mean is 0 / 0: use sums",
                (0.897, other): "don't take a mean of means: 3 tokens count in one, 1 in the next",
                (0.6052, other): "divide by the tokens that count, not by all of them",
                (5.4466, other): "divide by the number of counted tokens",
                (1.1066, other): "the labels are already shifted",
                (1.3616, other): "the mean is right, but .grad isn't: divide before backward",
            },
        ),
        Case(
            (unequal, 1),
            right,
            "add to the old gradient; don't clear anything",
            {"before": 1.0},
            label="a gradient is there",
        ),
        Case(
            ([[-100] * 3] * 3, 2),
            (0.0, "right gradient"),
            "return 0.0, and change no gradient",
            {"before": 1.0},
            label="no token counts",
            wrong={(nan, "right gradient"): "0 / 0 is NaN: return 0.0 if none counts"},
        ),
        Case(
            ([[-100] * 3, [-100, 0, -100], [-100] * 3], 2),
            (2.1269, "right gradient"),
            "if one token counts, L is its loss",
            label="one token counts",
        ),
        Case(
            ([[0, 0, 0], [1, 1, 1], [1, 0, 1]], 2),
            right,
            "ignore_index is 1 here: use it where you count, and in cross_entropy",
            {"ignore_index": 1},
            label="ignore_index=1",
        ),
        Case(
            ([[0, -100, -100], [0, 0, -100], [-100, -100, -100]], 2),
            (1.649, "right gradient"),
            "count again in each call",
            label="other labels of the same shape",
        ),
        Case(
            (unequal, 2),
            right,
            "the mode is the caller's to set",
            {"training": False},
            label="in evaluation mode",
        ),
        Case(
            (),
            "as for one",
            "call backward() before the next micro-batch starts, and keep only numbers",
            label="memory of eight micro-batches",
            function=lab05.token_rise_of(accumulate_token_mean),
        ),
    ],
)
if predicted(predicted_mean, question="what is the mean of the example's means?"):
    print(f"The mean of means of the example is {(2 + 6) / 2:g}; you predicted {predicted_mean}.")

# %% nbgrader={"grade": true, "grade_id": "lab05-accumulate_token_mean", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 5.3, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab05-accumulate_token_mean", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-train_epoch-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.4 A whole epoch (core, 4 points, 22 minutes)
#
# Forward and backward belong to the *micro-batch*. The optimizer's step, clearing, clipping and the
# learning-rate schedule belong to the *update*.
#
# Clipping is the subtle one: it shortens a gradient longer than `max_norm` to that length. Clip the mean
# gradient of the whole update, once. The noise of single micro-batches partly cancels in the mean; if you
# clip them one by one, you get a different direction.
#
# Write `train_epoch`, which trains for one pass over the loader and returns the number of updates.
# - You can loop over `loader` once; it has no `len()` and no indexing. It yields tuples, and `model(*batch)`
#   is the mean loss of one micro-batch. All micro-batches have the same size, so their means weigh the same.
# - Every `accumulation_steps` micro-batches make one update with their *mean* gradient. Run backward on each
#   before the next forward.
# - Leftovers at the end make one more update, with their own mean. Many published loops divide each loss by
#   `accumulation_steps`, which is too much for a short last group.
# - Unless `max_norm` is None, clip once per update, over all parameters:
#   `torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)`.
# - Unless `scheduler` is None, call `scheduler.step()` once after each update.
# - Gradients are cleared (None or zero) before you start, and must be cleared at the end.
#
# You may keep a group in a list. `islice(iterator, n)` takes the next `n`; a `DataLoader` isn't an iterator
# and would start over each time, so call `iter(loader)` once.
#
# *Points:* updates and their gradients 2, leftovers 1, clipping and schedule 1.
#
# *Example:* 7 micro-batches with `accumulation_steps=3` make 3 updates, of 3, 3 and 1 micro-batches.
#
# **Predict first.** A learning rate *warms up* over 1000 scheduler steps. Now eight micro-batches make an
# update, but the scheduler still steps after each micro-batch. After how many *updates* is the warm-up over?

# %%
predicted_updates = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab05-train_epoch-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train_epoch(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: Iterable[tuple],
    accumulation_steps: int,
    max_norm: float | None = None,
    scheduler=None,
) -> int:
    """Train for one pass over the loader, and return the number of updates."""
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
# Self-check of 5.4, a whole epoch
two, three = "update update", "update schedule update schedule update schedule"
self_check(
    # (updates, gradients that the optimizer saw, events); "dirty": gradients are left at the end
    lab05.epoch_of(train_epoch),
    [
        Case(
            ([1.0, 2.0, 6.0, 1.0, 1.0, 1.0], 3),
            (2, (3.0, 1.0), two),
            "two updates, with the means of 1, 2, 6 and of 1, 1, 1",
            label="6 micro-batches by 3",
            wrong={
                (2, (6.0, 2.0), two): "train in the mode that the model has: don't call eval()",
                (2, (9.0, 3.0), two): "an update needs the mean of its micro-batches, not the sum",
                (6, (3.0, 1.0), two): "return the number of updates",
                (2, (3.0, 4.0), f"{two} dirty"): "clear the gradients after each update",
                (2, (3.0, 1.0), f"{two} dirty"): "clear the gradients after the last update, too",
                (
                    6,
                    (1.0, 2.0, 6.0, 1.0, 1.0, 1.0),
                    " ".join(["update"] * 6),
                ): "step once per update",
                (3, (3.0, 1.0, None), f"{two} update"): "make no update if nothing is left over",
            },
        ),
        Case(
            ([1.0, 1.0, 1.0, 4.0], 3),
            (2, (1.0, 4.0), two),
            "the leftover micro-batch makes its own update",
            label="4 micro-batches by 3",
            wrong={
                (
                    2,
                    (1.0, 1.3333),
                    two,
                ): "the last group has one micro-batch: divide by 1, not by 3",
                (1, (1.0,), "update dirty"): "leftovers make one more update",
                (1, (1.0,), "update"): "leftovers make one more update",
            },
        ),
        Case(([], 3), (0, (), ""), "an empty loader makes no update", label="an empty loader"),
        Case(
            ([1.0, 2.0], 1),
            (2, (1.0, 2.0), two),
            "each micro-batch is an update",
            label="2 micro-batches by 1",
        ),
        Case(
            ([4.0, -3.0], 2),
            (1, (0.5,), "update"),
            "the mean of 4 and -3 is short: clip the mean, and never lengthen it",
            {"max_norm": 1.0},
            label="a mean that needs no clipping",
            wrong={
                (1, (0.8,), "update"): "0.5 is shorter than max_norm: leave it unchanged",
                (1, (-0.7,), "update"): "clip once per update",
            },
        ),
        Case(
            ([4.0, 4.0, 4.0], 2),
            (2, (1.6, 1.6), two),
            "the gradient (4, 3) has length 5: it becomes (1.6, 1.2)",
            {"max_norm": 2.0},
            label="clipping (4, 3) to length 2",
            wrong={
                (2, (4.0, 4.0), two): "clip before optimizer.step()",
                (2, (2.0, 2.0), two): "clip the length over all parameters, in one call",
                (2, (0.8, 1.6), two): "divide first, then clip",
                (2, (1.6, 4.0), two): "clip the leftovers, too",
                (2, (0.8, 0.8), two): "clip to the max_norm that you are given",
            },
        ),
        Case(
            ([4.0, 4.0], 2),
            (1, (0.4,), "update"),
            "the gradient (4, 3) has length 5: it becomes (0.4, 0.3)",
            {"max_norm": 0.5},
            label="clipping (4, 3) to length 0.5",
        ),
        Case(
            ([4.0, 4.0], 2),
            (1, (0.0,), "update"),
            "only None means no clipping",
            {"max_norm": 0.0},
            label="clipping to length 0",
        ),
        Case(
            ([1.0] * 5, 2),
            (3, (1.0, 1.0, 1.0), three),
            "scheduler.step() once after each update",
            {"schedule": True},
            label="a schedule over 5 micro-batches by 2",
        ),
    ],
)
if predicted(predicted_updates, question="how many updates until the warm-up is over?"):
    print(
        f"With 8 scheduler steps per update: {1000 / 8:g} updates; you predicted {predicted_updates}."
    )

# %% nbgrader={"grade": true, "grade_id": "lab05-train_epoch", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 5.4, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab05-train_epoch", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-mistakes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Five mistakes, measured
#
# The cell below makes five mistakes on a small model and sorted data (the worst case, and a common one), with
# four micro-batches of 5 samples and one of 3:
# 1. no division at all;
# 2. the short last micro-batch counts as much as the others;
# 3. a mean of means over tokens;
# 4. each micro-batch clipped;
# 5. batch norm, a layer that subtracts the mean of the batch it sees: no weighting fixes that (5.8).
#
# A mistake's size is the length of its *difference* from the correct gradient, relative to that gradient's
# length. So a gradient 5 times too large has an error of 4, or 400%.
#
# **Predict first.** Which of the five makes the smallest error, and how large is it in percent?

# %%
predicted_percent = None  # your prediction, a number

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab05-mistakes", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_percent, question="how large is the smallest mistake, in percent?"):
    errors = lab05.gradient_errors(accumulate_gradients)
    figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    plots.gradient_errors(ax, errors)
    show_figure(
        figure,
        "Relative error of the gradient on a logarithmic axis. A correct function is at the rounding error "
        "of float64, about fifteen orders of magnitude below the five mistakes; a missing division is the "
        "largest, off by more than four times the gradient.",
    )
    smallest = min(size for name, size in errors.items() if name != "yours")
    print(f"The smallest is {100 * smallest:.0f}%; you predicted {predicted_percent}.")
    for name, error in lab05.parameter_errors().items():
        print(
            f"{name:4}: without the division a parameter is off by up to {error:.1e} after a step"
        )

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-mistakes-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Nothing is in between: a correct gradient is off only by rounding. A test of the *parameters* wouldn't
# notice the missing division, since Adam divides the gradient by its own size. The mistake shows elsewhere:
# gradients are clipped too often, and SGD may diverge. So test gradients.
#
# In libraries, $\text{batch} = \text{micro-batch} \times \text{accumulation steps} \times \text{devices}$:
# `train_batch_size`, `train_micro_batch_size_per_gpu` and `gradient_accumulation_steps` in DeepSpeed. Their
# schedules and logs count updates.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.5 In your own words (core, 2 points, 5 minutes)
#
# A friend says: "I use micro-batches of one sample, so my model of any size fits." In two or three
# sentences: what does accumulation make smaller, and what does it leave unchanged (1 point)? What does a
# micro-batch of one sample cost (1 point)?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab05-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Accumulation makes the activations smaller: they grow with the samples in flight. The weights, their
# gradients and the optimizer's state do not depend on the batch and stay as they were. With one sample at a
# time the device is underused, so each sample takes longer.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-core-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **The core ends here.** You should now be able to say:
#
# - Weigh micro-batches by their samples, or by their counted tokens: divide before backward, and by the
#   whole batch's total.
# - Clipping, schedule, step and clearing belong to the update.
# - A loss that stays a tensor keeps its micro-batch in memory until backward has run on it.
#
# The stretch finds the largest micro-batch, and shows where accumulation changes the model.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-memory_line-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.6 The memory line (stretch, 2 points, 10 minutes)
#
# Every sample saves the same number of bytes for backward; weights, gradients and the optimizer's state don't
# depend on the batch. So the peak is a line:
#
# $$\text{peak} \approx \text{fixed} + \text{samples} \times \text{bytes per sample}$$
#
# A few cheap runs give you the line, and the line gives you every other peak. Measurements scatter a little,
# so take the line with the smallest sum of *squared* vertical distances. With means $\bar x$ and $\bar y$:
#
# $$\text{slope} = \frac{\sum (x_i - \bar x)(y_i - \bar y)}{\sum (x_i - \bar x)^2}
# \qquad \text{fixed} = \bar y - \text{slope} \cdot \bar x$$
#
# Write `memory_line(batch_sizes, peaks)`: return the tuple `(fixed_bytes, bytes_per_sample)` of unrounded
# floats. You may use library functions; check the order of what they return. Sizes and peaks are lists,
# tuples or arrays in any order, with at least two different sizes.
#
# *Points:* all or nothing. *Example:* sizes 1, 2, 4 with peaks 30, 40, 60: (20, 10).
#
# **Predict first.** The weights of the model above take 1.67 MiB. How many MiB are fixed?

# %%
predicted_fixed_mib = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab05-memory_line-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
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
# Self-check of 5.6, the memory line
self_check(
    memory_line,
    [
        Case(
            ([1, 2, 4], [30, 40, 60]),
            (20.0, 10.0),
            "20 bytes are fixed, and each sample takes 10",
            wrong={(10.0, 20.0): "first the fixed bytes, then the bytes per sample"},
        ),
        Case(
            ([3, 1, 2, 2], [60, 20, 50, 90]),
            (15.0, 20.0),
            "no line goes through all four points: use least squares over all of them",
            wrong={(0.0, 20.0): "this line only goes through the smallest and the largest size"},
        ),
        Case(([1, 3, 4], [20, 30, 41]), (87 / 7, 47 / 7), "don't round"),
        Case(([1, 1, 1, 2], [20, 20, 50, 50]), (10.0, 20.0), "repeated measurements all count"),
        Case(([1, 2, 4], [1, 2, 10]), (-3.0, 22 / 7), "the line may start below 0"),
        Case(
            ([1, 2], [80_000_001_000, 80_000_002_000]),
            (80e9, 1000.0),
            "float32 is too coarse for a large GPU's bytes: use Python's floats or float64",
        ),
    ],
    equal=close(1e-6),
)

# %% nbgrader={"grade": true, "grade_id": "lab05-memory_line", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 5.6, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab05-memory_line", globals())
### END HIDDEN TESTS

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab05-line", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_fixed_mib, question="how many MiB are fixed?"):
    sizes, all_sizes = [4, 6, 8, 10], [1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32]
    peaks = {size: measured_peak(size) for size in tqdm(all_sizes, leave=False, delay=2)}
    fixed_bytes, sample_bytes = memory_line(sizes, [peaks[size] for size in sizes])
    ends = [(fixed_bytes + size * sample_bytes) / MIB for size in (0, BATCH)]
    figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
    in_mib = [peak / MIB for peak in peaks.values()]
    plots.peak_over_batch(
        ax, all_sizes, in_mib, ([0, BATCH], ends), budget=BUDGET / MIB, unit="MiB"
    )
    show_figure(
        figure,
        "Measured peak over the micro-batch with the line fitted to 4, 6, 8 and 10 samples, and the budget. "
        "From 4 samples on, the points are on the line. It starts at the fixed bytes and crosses the budget "
        "just above the largest size that fits.",
    )
    print(f"weights, gradients, two moments {4 * lab05.weight_bytes() / MIB:5.2f} MiB")
    print(
        f"fixed, from your line             {fixed_bytes / MIB:5.2f} MiB; you predicted {predicted_fixed_mib}"
    )
    print(f"largest that should fit         {int((BUDGET - fixed_bytes) // sample_bytes)} samples")
    for size in (1, 2, 16, BATCH):
        line = fixed_bytes + size * sample_bytes
        print(
            f"{size:3} samples: {line / MIB:5.1f} MiB by your line, ratio to the meter's {line / peaks[size]:.3f}"
        )

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-line-explain", "locked": true, "schema_version": 3, "solution": false, "task": false}
# The line starts at four times the weights; no micro-batch gets below that. One or two samples take a little
# more than the line says: their peak comes later, when backward makes a weight matrix's new gradient while
# the old `.grad` is still live. And the line holds only for this sequence length.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-calculator-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Play
#
# Which micro-batch fits, and what does a smaller one cost?

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab05-calculator", "locked": true, "schema_version": 3, "solution": false, "task": false}
try:
    from peakmem.show.widgets import accumulation
except ImportError:
    print("Without ipywidgets, a still picture of this lab's model instead of GPT-2 on real GPUs.")
    peaks = {f"micro-batch {m}": {"fixed": 6.7, "activations": 1.26 * m} for m in (1, 4, 16, 32)}
    figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
    plots.stacked_bars(ax, peaks, label="MiB of this lab's model", limit=BUDGET / MIB)
    show_figure(
        figure,
        "Stacked bars: the fixed bytes stay the same, activations grow with the micro-batch.",
    )
else:
    from IPython.display import display

    display(accumulation())

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-largest_micro_batch-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.7 The largest micro-batch (stretch, 4 points, 11 minutes)
#
# The only sure way to know whether `m` samples fit is to run them. Write `largest_micro_batch(run, upper)`:
# - `run(m)` runs `m` samples, `m` from 1 to `upper`, and raises `peakmem.OutOfMemory` if they don't fit. If
#   `m` samples fit, so do fewer.
# - Return the largest `m` that fits, or `0` if not even one sample does.
# - Runs are slow: call `run` at most `ceil(log2(upper)) + 2` times. Halving the range needs about
#   `log2(upper)` runs; two more are for its ends.
# - Any other error, even a plain `MemoryError`, is a bug in the model. Let it through, whatever its message says.
#
# `MemoryMeter` turns a full GPU's `torch.cuda.OutOfMemoryError` into `peakmem.OutOfMemory`, so one name is enough.
#
# *Points:* correct size 3, few runs 1. *Example:* `upper = 10` and room for 6: the answer is 6.
#
# **Predict first.** How many runs does your search need at most for `upper = 1024`?

# %%
predicted_runs = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab05-largest_micro_batch-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def largest_micro_batch(run: Callable[[int], object], upper: int) -> int:
    """Return the largest m in 1..upper for which run(m) fits, 0 if none does."""
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
# Self-check of 5.7, the largest micro-batch
BUGS = (ValueError, RuntimeError, MemoryError, peakmem.Infeasible)
left = {"OutOfMemory came out of it": "catch peakmem.OutOfMemory where you call run(m)"}
hidden = {
    f"{bug.__name__} was hidden": "catch only peakmem.OutOfMemory, none of its base classes"
    for bug in BUGS
}
self_check(
    lab05.searches(largest_micro_batch),  # (room, upper)
    [
        Case(
            (6, 10),
            6,
            "6 samples fit, 7 don't",
            label="room for 6 of 10",
            wrong=left | {4: "keep searching above 4", 7: "7 don't fit", 5: "6 fit, too"},
        ),
        Case(
            (0, 10), 0, "nothing fits: 0", label="room for none", wrong=left | {1: "try 1 as well"}
        ),
        Case((99, 10), 10, "upper is 10", label="room for all", wrong={9: "try upper as well"}),
        Case((0, 1), 0, "try 1 as well", label="upper is 1, no room"),
        Case((1, 1), 1, "1 fits", label="upper is 1, room for 1"),
        Case(
            (1, 1, ValueError),
            "ValueError passed through",
            "a bug must reach the caller from the last run, too",
            label="a bug in the only run",
            wrong=hidden,
        ),
        *(
            Case(
                (room, 4096),
                room,
                "14 runs are allowed: halve the interval with each one",
                label=f"{room} of 4096",
            )
            for room in (2, 700, 4095, 4096)
        ),
        *(
            Case(
                (3, 10, bug),
                f"{bug.__name__} passed through",
                "a bug must reach the caller",
                label=f"a bug: {bug.__name__}",
                wrong=hidden,
            )
            for bug in BUGS
        ),
        Case(
            (700, 4096, RuntimeError, 3),
            "RuntimeError passed through",
            "a bug must reach the caller from any run, not only from the first",
            label="a bug in the fourth run",
            wrong=hidden,
        ),
    ],
    equal=whole(),
)
if predicted(predicted_runs, question="at most how many runs for 1024 sizes?"):
    counts = []
    for room in (0, 1, 700, 1023, 1024):
        tried = []

        def run(m, room=room, tried=tried):
            tried.append(m)
            if m > room:
                raise peakmem.OutOfMemory("too much")

        largest_micro_batch(run, 1024)
        counts.append(len(tried))
    print(f"At most {max(counts)} runs; you predicted {predicted_runs}.")

# %% nbgrader={"grade": true, "grade_id": "lab05-largest_micro_batch", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 5.7, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab05-largest_micro_batch", globals())
### END HIDDEN TESTS


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab05-search", "locked": true, "schema_version": 3, "solution": false, "task": false}
def run(m):
    """Run a micro-batch of m samples under the budget, and print whether it fits."""
    try:
        peak = measured_peak(m, budget_bytes=BUDGET)
    except peakmem.OutOfMemory:
        print(f"{m:3} samples: out of memory")
        raise
    print(f"{m:3} samples: fits, {peak / MIB:.1f} MiB")


if predicted(predicted_runs, question="at most how many runs for 1024 sizes?"):
    print(f"The largest micro-batch is {largest_micro_batch(run, BATCH)} samples.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-batch_norm_gap-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.8 The layer that sees the batch (stretch, 2 points, 10 minutes)
#
# 5.1 assumed that a sample's loss doesn't depend on the other samples. *Batch norm* breaks that: in training,
# it subtracts the mean over the batch's samples and divides by their standard deviation. A micro-batch has a
# different mean and deviation, and no weighting fixes that. Layer norm looks at one sample at a time, which
# is one reason why language models use it.
#
# Write `batch_norm_gap(model, x, micro_batch)`: run the model in *training* mode on the full batch `x`, and
# on micro-batches whose outputs you concatenate. Return the largest absolute difference as a plain float.
#
# **Convention:** `model.train()` puts all layers in training mode. Leave the model as it was: each layer's
# mode and settings, gradients and `requires_grad`, and batch norm's *running statistics*, which every forward in
# training mode updates.
# Batch norm never gets a micro-batch of one sample, and no model has dropout.
#
# *Points:* all or nothing. *Example:* one batch norm, `x` = 0, 0, 1, 1 (one feature), `micro_batch=2`. The full batch becomes
# -1, -1, 1, 1; each micro-batch is constant, so it becomes 0, 0. The gap is 1.
#
# **Predict first.** What is the gap for the same four values in the order 0, 1, 0, 1?

# %%
predicted_gap = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab05-batch_norm_gap-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def batch_norm_gap(model: torch.nn.Module, x: torch.Tensor, micro_batch: int) -> float:
    """Return the largest difference between full-batch and micro-batch outputs in training mode."""
    ### BEGIN SOLUTION
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        pieces = torch.cat([twin(piece) for piece in x.split(micro_batch)])
        return (twin(x) - pieces).abs().max().item()
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab05-batch_norm_gap-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 5.8, the layer that sees the batch
gap = lab05.gap_of(batch_norm_gap)
said = {
    "a tensor came back": "return a number, with .item()",
    "no gap came back": "return the gap",
    "running statistics have changed": "work on copy.deepcopy(model)",
    "x has changed": "leave `x` as it is",
    "a mode has changed": "each layer's mode must be as it was: work on a copy",
    "a gradient has changed": "leave the model's gradients alone: work on a copy",
    "a setting has changed": "track_running_stats or requires_grad has changed: work on a copy",
    "gradients are off": "use `with torch.no_grad():`, which ends with its block",
    0.0: "no gap? In evaluation mode, batch norm doesn't look at the batch: call train()",
}
self_check(
    gap,
    [
        Case(
            ([0.0, 0.0, 1.0, 1.0], 2),
            1.0,
            "compare -1, -1, 1, 1 with 0, 0, 0, 0",
            label="the example",
            wrong=said,
        ),
        Case(
            ([0.0, 0.0, 1.0, 1.0], 2),
            1.0,
            "call train(), whatever mode the model is in",
            {"training": False},
            label="in evaluation mode",
            wrong=said,
        ),
        Case(
            ([0.0, 0.0, 1.0, 2.0, 1.0, 2.0], 4),
            1.0,
            "micro-batches of 4 and 2; the gap is at the fifth sample",
            label="6 samples by 4",
            wrong={
                0.32: "the last two samples are also a micro-batch",
                1.225: "split(4) cuts into 4 and 2, chunk(4) doesn't",
            },
        ),
        Case(
            ([1.0, 0.0, 0.0, 0.0], 2),
            0.732,
            "the largest absolute difference, in any micro-batch",
            label="a positive difference",
            wrong={0.577: "take absolute values first"},
        ),
        Case(
            ([0.0, 0.0, 0.0, -1.0], 2),
            0.732,
            "the largest absolute difference",
            label="a negative difference",
            wrong={0.577: "take absolute values first"},
        ),
        Case(
            ([[0.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1.0, 1.0]], 2),
            1.0,
            "take the largest over all features, too",
            label="two features",
        ),
        Case(
            ([0.0, 0.0, 1.0, 1.0], 2),
            1.0,
            "BatchNorm1d isn't the only batch norm",
            {"training": False, "layer": "channels"},
            label="BatchNorm2d",
        ),
        Case(
            ([0.0, 1.0, 2.0, 5.0], 2),
            0.0,
            "layer norm treats each sample separately",
            {"layer": "layer"},
            label="layer norm",
        ),
    ],
    equal=close(1e-3, 1e-3),
)
if predicted(predicted_gap, question="what is the gap for 0, 1, 0, 1?"):
    print(
        f"In the order 0, 1, 0, 1 the gap is {gap([0.0, 1.0, 0.0, 1.0], 2):g}; you predicted {predicted_gap}."
    )
    values = torch.linspace(0, 1, 100)[:, None]
    mixed = values[torch.randperm(100, generator=torch.Generator().manual_seed(0))]
    for m in (2, 5, 25):
        gaps = [batch_norm_gap(torch.nn.BatchNorm1d(1), data, m) for data in (values, mixed)]
        print(f"100 values, {m:2} at a time: gap {gaps[0]:.2f} sorted, {gaps[1]:.2f} shuffled")
    print(
        "On sorted data, a larger micro-batch alone doesn't help. On shuffled data, the gap shrinks."
    )

# %% nbgrader={"grade": true, "grade_id": "lab05-batch_norm_gap", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 5.8, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab05-batch_norm_gap", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - The peak grows linearly with the micro-batch, and accumulation saves nothing of its fixed part.
# - Only *out of memory* means "smaller, please". Every other error is a bug.
# - Batch norm computes another function on a micro-batch; layer norm doesn't.
