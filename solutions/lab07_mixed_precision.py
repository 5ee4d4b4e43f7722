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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 7: fewer bytes per element
#
# Numbers in float16 or bfloat16 take 2 bytes instead of 4. So activations take half the memory, and recent
# GPUs multiply several times faster. The price is range and precision. *Mixed precision* pays it where it is
# cheap: most work is done in 16 bits, and the few steps that would go wrong stay in 32.
#
# **You will be able to**
# - say why gradients vanish in float16, and write the loss scaler that saves them;
# - say why updates vanish too, and keep the master weights that save them;
# - find what keeps 16-bit copies alive, and train a small GPT in 16 bits as well as in 32.
#
# | exercise | part | minutes | points |
# |---|---|---|---|
# | 7.1 What is flushed to zero? | core | 13 | 2 |
# | 7.2 The best scale | core | 8 | 1 |
# | 7.3 The loss scaler | core | 25 | 5 |
# | 7.4 Master weights | core | 15 | 4 |
# | 7.5 Find the leak | core | 9 | 2 |
# | 7.6 In your own words | core | 5 | 2 |
# | 7.7 Train in low precision | stretch | 16 | 4 |
# | 7.8 What runs in 16 bits? | stretch | 9 | 2 |
# | 7.9 What halves, and what does not? | stretch | 8 | 2 |
# | 7.10 How much faster? | stretch | 12 | 2 |
# | **core** | | **75** | **16** |
# | **stretch** | | **45** | **10** |
#
# Without a CUDA GPU, 7.10 doesn't count.

# %% nbgrader={"grade": false, "grade_id": "lab07-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import copy
import math

import matplotlib.pyplot as plt
import torch
from torch import nn

import peakmem
from peakmem import plots
from peakmem.hardware import accelerator
from peakmem.labs import Case, close, predicted, self_check, show_figure, whole
from peakmem.labs.lab07 import (
    autocast_keeps,
    language_model,
    scale_slider,
    train_without_masters,
)
from peakmem.labs.recorded import print_products
from peakmem.meter import measure_call
from peakmem.show.plots.lab07 import draw_scaler

peakmem.lab("lab07_mixed_precision")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_num_threads(1)  # for networks as small as these, threads cost more time than they save
print("Bytes are measured on the GPU if there is one; on the CPU, live storages stand in for them.")
print("The small models always train on the CPU, so your losses match the text.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-model-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## The model of this lab
#
# A small GPT (2 layers, 32 features, a vocabulary of 32) learns which token follows which. In one way it's
# like a large one: its loss is a mean over a **huge** batch of 16.8 million tokens, cut into 65,536
# micro-batches of 256. So `model(tokens, targets)` returns `loss / 65536`, and every gradient contains that
# factor. All micro-batches are alike here, so we run one and multiply the step by 65536. Losses are computed
# in float32.

# %% nbgrader={"grade": false, "grade_id": "lab07-model", "locked": true, "schema_version": 3, "solution": false, "task": false}
PARTS = 65536  # micro-batches in one batch

torch.manual_seed(1)
follower = torch.randperm(32)  # of each token
TOKENS = torch.randint(32, (16, 16))  # (batch, length)
TARGETS = follower[TOKENS]

model = language_model(PARTS)
model(TOKENS, TARGETS).backward()
GRADIENTS = [parameter.grad for parameter in model.parameters()]
sizes = torch.cat([gradient.flatten() for gradient in GRADIENTS]).abs()
print(
    f"{len(sizes):,} gradients in float32: the median is 2^{sizes.median().log2():.1f}, "
    f"the largest 2^{sizes.max().log2():.1f}"
)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-flushed_fraction-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.1 What is flushed to zero? (core, 2 points, 13 minutes)
#
# The smallest positive float16 is $2^{-24}$, about 6e-8. Half of that or less rounds to 0: it is *flushed*.
# bfloat16 has float32's exponent bits and goes down to $2^{-133}$.
#
# Write `flushed_fraction(grads: list, dtype: str, scale: float) -> float`. `grads` is a list of float32 tensors of
# any shapes. Return the share of their nonzero values that become 0 when multiplied by `scale` and then cast
# to `dtype`.
#
# **Convention:** `dtype` is `"float16"` or `"bfloat16"`; anything else raises `ValueError`. Count over all tensors
# together; return 0.0 if no value is nonzero. Leave the tensors as they are.
#
# *Points:* all or nothing.
#
# *Example:* with `"float16"` and `scale=1.0`, one of the two nonzero values in 1e-8, 1e-3 and 0 is flushed:
# 0.5. With `scale=8.0` the first is 8e-8, which survives: 0.0.
#
# **Predict first.** What share of the model's gradients is flushed in float16?

# %%
predicted_flushed = None  # your prediction, from 0 to 1


# %% nbgrader={"grade": false, "grade_id": "lab07-flushed_fraction-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def flushed_fraction(grads: list[torch.Tensor], dtype: str, scale: float) -> float:
    """Return the share of the nonzero values that become 0 when scaled and cast."""
    ### BEGIN SOLUTION
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"expected float16 or bfloat16, but got {dtype!r}")
    nonzero = flushed = 0
    for grad in grads:
        counted = grad != 0
        nonzero += int(counted.sum())
        flushed += int((counted & ((grad * scale).to(dtypes[dtype]) == 0)).sum())
    return flushed / nonzero if nonzero else 0.0
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-flushed_fraction-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 7.1, what is flushed to zero
def on_tensors(function, values, *rest):
    """Return the function's result on a list of tensors, one per value."""
    grads = [torch.tensor(value) for value in values]
    given = [grad.tolist() for grad in grads]
    result = function(grads, *rest)
    return result if [grad.tolist() for grad in grads] == given else "grads changed"


def share_of(*values, dtype="float16", scale=1.0):
    """Return the share of several tensors' values; a number is a tensor without dimensions."""
    return on_tensors(flushed_fraction, values, dtype, scale)


example = [1e-8, 1e-3, 0.0]
ZERO = "a gradient that was already 0 doesn't count"
TINY = "2^-24 survives, and so do values closer to it than to 0: cast, then look for zeros"
RAISE = "raise ValueError unless dtype is float16 or bfloat16"
CHANGED = {"grads changed": "leave the tensors as they are: grad * scale makes a new one"}
self_check(
    share_of,
    [
        Case((example,), 0.5, "the example", wrong={1 / 3: ZERO, 2 / 3: ZERO} | CHANGED),
        Case(([2.0**-24, 4e-8],), 0.0, TINY),
        Case((example,), 0.0, "scale first, then cast", {"scale": 8.0}),
        Case((example,), 0.0, "bfloat16 goes down to 2^-133", {"dtype": "bfloat16"}),
        Case(([2.0**-134, 2.0**-132],), 0.5, "half of 2^-133 rounds to 0", {"dtype": "bfloat16"}),
        Case(
            ([2.0**-140, 2.0**-120],),
            0.5,
            "the product 2^-152 is 0 even before the cast: count it too",
            {"dtype": "bfloat16", "scale": 2.0**-12},
        ),
        Case(
            ([2.0**-50, 1.0],),
            0.5,
            "the product with 1 is inf, and still nonzero; keep the scale in float32",
            {"scale": 2.0**17},
        ),
        Case((2.0**-25,), 1.0, "half of 2^-24 rounds to 0"),
        Case((1e5,), 0.0, "1e5 becomes inf, not 0"),
        Case((-1e-8, [1.0, 1.0]), 1 / 3, "of all tensors' values, 1 in 3"),
        Case(([0.0, 0.0],), 0.0, "no nonzero value: 0.0"),
        Case((), 0.0, "no tensors, so no nonzero value: 0.0"),
        Case((example,), None, RAISE, {"dtype": "float8"}, raises=ValueError),
        *(
            Case((example,), None, RAISE, {"dtype": name}, raises=ValueError)
            for name in ("float", "fp16", "Float16", "torch.float16")
        ),
        Case((), None, RAISE, {"dtype": "float32"}, raises=ValueError),
    ],
    equal=close(1e-5),
)
if predicted(predicted_flushed, question="what share is flushed in float16?"):
    for dtype in ("float16", "bfloat16"):
        print(f"{dtype:9} {flushed_fraction(GRADIENTS, dtype, 1.0):.1%} of the model's gradients")
    print(f"You predicted {predicted_flushed} for float16.")
    print(
        "These were computed in float32 and cast at the end. A backward in float16 loses far more:"
    )
    print("once a gradient is 0, all gradients computed from it are 0, too.")

# %% nbgrader={"grade": true, "grade_id": "lab07-flushed_fraction", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 7.1, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-flushed_fraction", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-best_scale-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.2 The best scale (core, 1 point, 8 minutes)
#
# A scale moves all gradients up together. That saves the small ones, as long as the largest doesn't overflow.
# A power of two changes only the exponent, so nothing is rounded.
#
# Write `best_scale(grads: list) -> float`: return the largest power of two from $2^{-24}$ to $2^{24}$ that
# keeps **all** scaled values finite in float16. One always exists.
#
# **Convention:** what matters is the value after the cast. The largest float16 is 65504; anything below 65520
# rounds down to it. Without nonzero values, return $2^{24}$. Leave the tensors as they are.
#
# *Points:* all or nothing.
#
# *Example:* for 0.5 and -3.0, the larger magnitude decides. $3 \cdot 2^{14} = 49152$ is finite, $3 \cdot
# 2^{15}$ isn't: 16384.
#
# **Predict first.** Without the limit of $2^{24}$, what is the largest power of two by which you could scale
# the model's gradients? Give its exponent.

# %%
predicted_exponent = None  # your prediction, a whole number


# %% nbgrader={"grade": false, "grade_id": "lab07-best_scale-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def best_scale(grads: list[torch.Tensor]) -> float:
    """Return the largest power of two that leaves all scaled gradients finite in float16."""
    ### BEGIN SOLUTION
    largest = max((grad.abs().max().item() for grad in grads if grad.numel()), default=0.0)
    scale = 2.0**24
    while scale > 2.0**-24 and largest * scale >= 65520:
        scale /= 2
    return scale
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-best_scale-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 7.2, the best scale
def scale_of(*values):
    """Return the best scale of several tensors."""
    return on_tensors(best_scale, values)


changed = {"grads changed": "leave the tensors as they are: grad * scale makes a new one"}
self_check(
    scale_of,
    [
        Case(([0.5, -3.0],), 16384, "the sign doesn't matter: -3 overflows too", wrong=changed),
        Case(([1.0, 1.0], [3.0], 1.0), 16384, "look at all tensors; a single number is also one"),
        Case(([3.0] * 16,), 16384, "the largest value decides, not a norm"),
        Case(([[3.0, 0.0], [0.0, 0.0]],), 16384, "in a matrix, too, each value counts separately"),
        Case(([65519.0],), 1, "65519 rounds to 65504, which is finite"),
        Case(([65519.99],), 1, "anything below 65520 is finite"),
        Case(([65520.0],), 0.5, "65520 rounds to inf; scales may be below 1"),
        Case(([2.0**39],), 2.0**-24, "scales go down to 2^-24"),
        Case(([1e-9],), 2.0**24, "scales go up to 2^24"),
        Case(([0.0, 0.0],), 2.0**24, "you may scale zeros as far as you like"),
        Case((), 2.0**24, "without a gradient, any scale will do: return the largest"),
    ],
)
if predicted(predicted_exponent, question="which exponent is the largest?"):
    farthest = 2.0 ** math.floor(math.log2(65519 / sizes.max().item()))
    print(
        f"They can be scaled by 2^{math.log2(farthest):.0f}; you predicted 2^{predicted_exponent}."
    )
    print(f"best_scale stops at its limit, 2^{math.log2(best_scale(GRADIENTS)):.0f}.")
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    nonzero = sizes[sizes > 0].log2()
    plots.gradient_histogram(
        axes,
        {"as they are": nonzero.numpy(), "scaled": (nonzero + math.log2(farthest)).numpy()},
        {"float16": (-25, 16), "bfloat16": (-134, 128)},
    )
    axes.set_xlim(-50, 26)
    show_figure(
        figure,
        "Histograms of log2 of the gradients' sizes. As they are, about a quarter is to the left of "
        "float16's range; scaled, the largest touches its right edge. bfloat16 holds them all.",
    )

# %% nbgrader={"grade": true, "grade_id": "lab07-best_scale", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 7.2, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-best_scale", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-slider-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Play
#
# Your `flushed_fraction` computes the shares. Which scales flush few values and overflow none?

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab07-slider", "locked": true, "schema_version": 3, "solution": false, "task": false}
scale_slider(flushed_fraction, GRADIENTS)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-loss_scaler-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.3 The loss scaler (core, 5 points, 25 minutes)
#
# A weight whose gradient is 0 stops learning. But backward is linear: **multiply the loss by a scale, and
# every gradient is multiplied by it**. So scale the loss up before backward, and divide the gradients, in
# float32, before the optimizer sees them.
#
# Which scale? A small scale saves little; a large one overflows to `inf`, and `inf - inf` is `NaN`. The right
# scale changes during training. So let the scaler search: after good steps it raises the scale; after an
# overflow it lowers it and skips the step.
#
# Write the class `LossScaler(initial=2.0**16, growth=2.0, backoff=0.5, interval=2000)`:
# - `scale(loss)` returns the loss times the current scale, so `scale(1.0)` returns the scale itself.
# - `unscale_(optimizer)` divides the gradients of all the optimizer's parameters by the scale, in place. The
#   parameters, and so their gradients, are float32 here. Call it before you *clip* gradients. An optimizer
#   may have several groups (`optimizer.param_groups`, each a dict with a list `"params"`), and a `.grad` may
#   be `None`.
# - `step(optimizer)` unscales unless you called `unscale_` since the last `update`. Then it calls
#   `optimizer.step()`, but only if no gradient holds an `inf` or a `NaN`.
# - `update()` ends the step. If the step was skipped, it multiplies the scale by `backoff`. After `interval`
#   good steps in a row, it multiplies the scale by `growth` and restarts the count.
#
# Don't use `torch.amp`, `torch.cuda.amp` or `torch.autocast`.
#
# *Points:* the scale after each update 2, steps taken and skipped 2, unscaling before clipping 1.
#
# *Example:* with `initial=8.0` and `interval=2`, two good steps raise the scale to 16. An overflow lowers it
# to 8 again.
#
# **Predict first.** With `initial=8.0` and `interval=3`, two steps are good, the third overflows, and two
# more are good. What is the scale then?

# %%
predicted_scale = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab07-loss_scaler-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
class LossScaler:
    """Scale a loss so that its gradients fit float16, and search for the right factor.

    `initial` is the first scale. `growth` multiplies it after `interval` good steps in a row,
    `backoff` after a step that overflowed.
    """

    def __init__(
        self,
        initial: float = 2.0**16,
        growth: float = 2.0,
        backoff: float = 0.5,
        interval: int = 2000,
    ) -> None:
        ### BEGIN SOLUTION
        self.current = initial
        self.growth = growth
        self.backoff = backoff
        self.interval = interval
        self.good_steps = 0  # in a row
        self.unscaled = False  # since the last update
        self.overflow = False
        ### END SOLUTION

    def scale(self, loss: torch.Tensor | float) -> torch.Tensor | float:
        """Return the loss times the current scale."""
        ### BEGIN SOLUTION
        return loss * self.current
        ### END SOLUTION

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Divide the gradients of the optimizer's parameters by the current scale, in place."""
        ### BEGIN SOLUTION
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.div_(self.current)
                    if not parameter.grad.isfinite().all():
                        self.overflow = True
        self.unscaled = True
        ### END SOLUTION

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Let the optimizer step on unscaled gradients, or not at all if one is inf or NaN."""
        ### BEGIN SOLUTION
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()
        ### END SOLUTION

    def update(self) -> None:
        """End the step: lower, raise or keep the scale."""
        ### BEGIN SOLUTION
        if self.overflow:
            self.current *= self.backoff
            self.good_steps = 0
        else:
            self.good_steps += 1
            if self.good_steps == self.interval:
                self.current *= self.growth
                self.good_steps = 0
        self.unscaled = False
        self.overflow = False
        ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-loss_scaler-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 7.3, the loss scaler
def with_gradient(weight, gradient):
    """Return a loss with this gradient, which overflows even while the loss is finite."""
    loss = 1.0 * weight
    loss.register_hook(lambda upstream: upstream * gradient)
    return loss


def train_on(gradients, clipped=(), **settings):
    """Step once per true gradient of one weight; return its values and the scales after each.

    The steps whose numbers are in `clipped` clip the gradient to 1 after unscale_.
    """
    weight = nn.Parameter(torch.tensor(1.0))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    scaler = LossScaler(**settings)
    values, scales, taken = [], [], []
    optimizer.register_step_post_hook(lambda *_: taken.append(number))
    for number, gradient in enumerate(gradients):
        optimizer.zero_grad()
        loss = with_gradient(weight, gradient)
        scaler.scale(loss).backward()
        if loss._version:
            return "scale has changed the loss"
        if number in clipped:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_([weight], max_norm=1.0)
        before = scaler.scale(1.0)  # as a log reads it
        scaler.step(optimizer)
        if scaler.scale(1.0) != before:
            return "step has changed the scale"
        scaler.update()
        values.append(round(weight.item(), 3))
        scales.append(float(scaler.scale(1.0)))
    if any(not math.isfinite(gradients[number]) for number in taken):
        return "optimizer.step() was called after an overflow"
    return values, scales


def last_scales(steps):
    """Return the last two scales of good steps with the default settings, as exponents of two."""
    weight, scaler, scales = nn.Parameter(torch.zeros(())), LossScaler(), []
    optimizer, weight.grad = torch.optim.SGD([weight], lr=0.5), torch.zeros(())
    for _ in range(steps):
        scaler.step(optimizer)
        scaler.update()
        scales.append(math.log2(scaler.scale(1.0)))
    return scales[-2:]


def one_of_two():
    """Return the scale of a scaler after making another one."""
    scaler, _ = LossScaler(initial=8.0), LossScaler(initial=1.0)
    return float(scaler.scale(1.0))


def two_groups(first, last):
    """Return three weights of two groups after a step with decay; the second has no gradient."""
    weights = [nn.Parameter(torch.ones(2)) for _ in range(3)]
    groups = [{"params": [weights[1], weights[0]]}, {"params": weights[2:]}]
    optimizer = torch.optim.SGD(groups, lr=0.5, weight_decay=1.0)
    scaler = LossScaler(initial=8.0)
    other = nn.Parameter(torch.zeros(2))
    other.grad = torch.zeros(2)
    scaler.step(torch.optim.SGD([other], lr=0.5))  # another optimizer's step
    scaler.update()
    loss = with_gradient(weights[0][0], first) + with_gradient(weights[2][0], last)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return tuple(weight[0].item() for weight in weights)


fast = {"initial": 8.0, "interval": 2}
GROUPS = "go through all param_groups of the optimizer you are given; a .grad may be None"
ANY = {(0.5, 1.0, 0.5): "don't call optimizer.step(): weight decay acts on gradients of 0, too"}
SKIP = "after an inf in a .grad, skip the step, halve the scale, and restart the count; take the next step"
NAN = "a NaN in a gradient also counts as an overflow"
EARLY = {"step has changed the scale": "only update changes the scale"}
CLIP = "unscale_ divides once: step doesn't divide again, but the step after an update does"
self_check(
    train_on,
    [
        Case(
            ([1.0],),
            ([0.5], [2.0**16]),
            "divide the gradient by the scale before the step",
            wrong={"scale has changed the loss": "return loss * scale, which is a new tensor"},
        ),
        Case(
            ([1.0, 1.0],),
            ([0.5, 0.0], [2.0**16] * 2),
            "in update, forget that unscale_ was called: the next step unscales again",
        ),
        Case(([1.0] * 4,), ([0.5, 0, -0.5, -1], [8, 16, 16, 32]), "interval=2", fast),
        Case((2000,), [16, 17], "by default, interval=2000", function=last_scales),
        Case(
            (),
            8.0,
            "keep the scale in self: each scaler has its own",
            label="a scaler's scale after making another one",
            function=one_of_two,
        ),
        Case(
            ([1.0, 1.0, math.inf],),
            ([0.5, 0.0, 0.0], [8, 24, 6]),
            "use the growth and backoff you are given",
            {**fast, "growth": 3.0, "backoff": 0.25},
            wrong=EARLY,
        ),
        Case(([math.inf],), ([1.0], [2.0**-21]), "no scale is too small", {"initial": 2.0**-20}),
        Case(
            ([2.0**17, 0.0],),
            ([1 - 2.0**16] * 2, [2.0**24, 2.0**25]),
            "no scale is too large, and 2^17 is a valid float32 gradient",
            {"initial": 2.0**24, "interval": 2},
        ),
        Case((1.0, 1.0), (0.0, 1.0, 0.0), GROUPS, label="two groups", function=two_groups),
        *(
            Case(pair, (1.0,) * 3, GROUPS, label=label, function=two_groups, wrong=ANY)
            for pair, label in (
                ((1.0, math.inf), "inf in the second group"),
                ((math.inf, 1.0), "inf in the first group"),
            )
        ),
        *(
            Case(([1.0, bad, 1.0],), ([0.5, 0.5, 0.0], [8, 4, 4]), hint, fast, wrong=EARLY)
            for bad, hint in ((math.inf, SKIP), (-math.inf, SKIP), (math.nan, NAN))
        ),
        Case(([0.5, 4.0], [0, 1]), ([0.75, 0.25], [8, 16]), CLIP, fast),
        Case(([1.0, 1.0, 1.0], [0]), ([0.5, 0, -0.5], [8, 16, 16]), CLIP, fast),
        Case(([1.0, math.inf, 1.0], [1]), ([0.5, 0.5, 0.0], [8, 4, 4]), SKIP, fast),
    ],
)
if predicted(predicted_scale, question="what is the scale after the five steps?"):
    _, scales = train_on([1.0, 1.0, math.inf, 1.0, 1.0], initial=8.0, interval=3)
    print(f"The scales are {scales}; you predicted {predicted_scale} at the end.")

# %% nbgrader={"grade": true, "grade_id": "lab07-loss_scaler", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
# Exercise 7.3, 5 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-loss_scaler", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-loss_scaler-see", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### See it work
#
# One layer learns to copy another. Its weight stays in float32; forward and backward run on a 16-bit copy.
#
# **Predict first.** Whose loss ends lower without a scaler, float16's or bfloat16's?

# %%
predicted_lower_loss = None  # your prediction, "float16" or "bfloat16"


# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab07-loss_scaler-train", "locked": true, "schema_version": 3, "solution": false, "task": false}
def learn(dtype, scaler=None, steps=300):
    """Train in `dtype`; return the loss and the scale of each step."""
    torch.manual_seed(0)
    inputs = torch.randn(256, 64)  # (batch, features)
    targets = inputs @ (0.01 * torch.randn(64, 64) / 8)
    weight = torch.nn.Parameter(torch.zeros(64, 64))
    optimizer = torch.optim.SGD([weight], lr=5.0)
    losses, scales = [], []
    for _ in range(steps):
        optimizer.zero_grad()
        outputs = inputs.to(dtype) @ weight.to(dtype)
        loss = (outputs.float() - targets).square().mean()
        losses.append(loss.item())
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scales.append(float(scaler.scale(1.0)))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return losses, scales


if predicted(predicted_lower_loss, question="whose loss ends lower?"):
    scaled, scales = learn(torch.float16, LossScaler(interval=5))
    losses = {
        "float32": learn(torch.float32)[0],
        "bfloat16": learn(torch.bfloat16)[0],
        "float16": learn(torch.float16)[0],
        "float16, scaled": scaled,
    }
    for name, curve in losses.items():
        print(f"{name:16s} last loss {curve[-1]:.1e}")
    print(f"The scale went from 2^16 to at most 2^{math.log2(max(scales)):.0f}.")
    print(f"You predicted that {predicted_lower_loss} ends lower without a scaler.")
    show_figure(
        draw_scaler(losses, scales),
        "Left, losses over 300 steps: float16 alone stays at about 2e-8; bfloat16 ends nearly twenty times, "
        "scaled float16 a thousand times lower; float32 falls off the chart. Right, the scale doubles every 5 "
        "steps until an overflow, then goes up and down below the largest that fits.",
    )

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-loss_scaler-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the pictures show.* Left: in float16 alone the loss stops at 2e-8, where the gradients become 0. With
# the scaler it ends about a thousand times lower, at the rounding of float16's 11 significant bits. bfloat16
# needs no scaler, but with 8 significant bits it stops earlier. Right: the scale doubles every 5 steps until
# an overflow.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-master_weights-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.4 Master weights (core, 4 points, 15 minutes)
#
# Now the *update* is in danger. Just below 1, float16's numbers are $2^{-11}$ apart, about 0.0005. A weight
# of 1 minus an update of 0.0002 rounds to 1: the update is lost, and so are a thousand like it.
#
# So keep a second copy of the weights in float32, the **masters**. Forward and backward use the **low copy**, rounded
# to 16 bits. Updates add up in the masters, which you then round into the low copy again.
#
# Write the class `MasterWeights(lr, dtype=torch.float16)`:
# - `load(tensors)` takes a list of float32 tensors and keeps its own float32 copies of them in the list
#   `master`. It also makes the low copy, the list `params`: the same values as leaf tensors in `dtype` with
#   `requires_grad`.
# - `step()` makes a step of plain SGD: for each param with a gradient, the master becomes `master - lr *
#   gradient` in float32, and the param becomes its rounded master. If `.grad` is `None`, both stay as they
#   are.
#
# **Convention:** gradients come in `dtype`, without a loss scale. Don't change the tensors given to `load`,
# and don't use `torch.amp` or `torch.autocast`.
#
# *Points:* small updates survive 2, the low copy is the rounded master 1, masters start unrounded and `None`
# changes nothing 1.
#
# *Example:* with a weight of 1.0, `lr=0.0008`, and a gradient of 0.25 at each of 4 steps, the master ends at
# 0.9992 and the float16 copy at 0.99902. Float16 alone would stay at 1.
#
# **Predict first.** A bfloat16 weight of 1.0 without a master gets 100 updates of -0.001. Where does it end?

# %%
predicted_weight = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab07-master_weights-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MasterWeights:
    """SGD on float32 masters of weights that forward and backward use in `dtype`."""

    def __init__(self, lr: float, dtype: torch.dtype = torch.float16) -> None:
        ### BEGIN SOLUTION
        self.lr = lr
        self.dtype = dtype
        self.master: list[torch.Tensor] = []
        self.params: list[torch.Tensor] = []
        ### END SOLUTION

    def load(self, tensors: list[torch.Tensor]) -> None:
        """Keep float32 copies of the tensors, and make the params from them."""
        ### BEGIN SOLUTION
        self.master = [tensor.detach().clone() for tensor in tensors]
        self.params = [master.to(self.dtype).requires_grad_() for master in self.master]
        ### END SOLUTION

    def step(self) -> None:
        """Update the masters by SGD, and round them into the params."""
        ### BEGIN SOLUTION
        with torch.no_grad():
            for master, param in zip(self.master, self.params, strict=True):
                if param.grad is not None:
                    master -= self.lr * param.grad.float()
                    param.copy_(master)
        ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-master_weights-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 7.4, master weights
def after(values, gradients, lr, **dtype):
    """Return masters and params after a step for each row of gradients, as Python floats."""
    given = [torch.tensor(value).reshape(-1) for value in values]
    weights = MasterWeights(lr, **dtype)
    weights.load(given)
    beside = MasterWeights(2 * lr, **dtype)
    beside.load([tensor + 1 for tensor in given])
    low = dtype.get("dtype", torch.float16)
    for row in gradients:
        for param, gradient in zip(weights.params, row, strict=True):
            right = None if gradient is None else torch.tensor(gradient, dtype=low).reshape(-1)
            param.grad = right
        weights.step()
    if not torch.is_grad_enabled():
        torch.set_grad_enabled(True)
        return "torch no longer records gradients"
    if any(tensor.dtype != torch.float32 for tensor in weights.master):
        return "the masters are not float32"
    if not all(p.dtype == low and p.is_leaf and p.requires_grad for p in weights.params):
        return "the params are not leaves in dtype with requires_grad"
    if [tensor.tolist() for tensor in given] != [
        torch.tensor(value).reshape(-1).tolist() for value in values
    ]:
        return "the tensors that were given to load have changed"
    pairs = zip(weights.master, weights.params, strict=True)
    if any(param.tolist() != master.to(low).tolist() for master, param in pairs):
        return "the params are not the rounded masters"
    return tuple(
        [t.item() if t.numel() == 1 else t.tolist() for t in tensors]
        for tensors in (weights.master, weights.params)
    )


SMALL = "update in float32, under torch.no_grad(), and never read masters back from the copy"
SAID = {
    "torch no longer records gradients": "use `with torch.no_grad():`, which ends with its block",
    "the masters are not float32": "load keeps float32 copies",
    "the params are not leaves in dtype with requires_grad": "detach, cast, then requires_grad_()",
    "the tensors that were given to load have changed": "clone them in load",
    "the params are not the rounded masters": "copy_ into each param: `param = ...` only rebinds a name",
}
PRODUCT = "lr * gradient is 0 in float16: make the gradient float32 first"
NONE = "a gradient of None leaves only its own master and param alone"
self_check(
    after,
    [
        Case(([1.0001], [], 1.0), ([1.0001], [1.0]), "load keeps masters unrounded", wrong=SAID),
        Case(([1.0], [[0.25]] * 4, 0.0008), ([0.9992], [0.99902]), SMALL, wrong=SAID),
        Case(([0.0], [[2.0**-14]], 2.0**-14), ([-(2.0**-28)], [0.0]), PRODUCT, wrong=SAID),
        Case(
            ([[1.0, 2.0]], [[[1.0, -1.0]]], 0.5),
            ([[0.5, 2.5]], [[0.5, 2.5]]),
            "each value has its own gradient; each object has its own tensors and lr, in self",
            wrong=SAID,
        ),
        Case(
            ([1.0, 2.0, 3.0], [[1.0, None, 1.0], [None, 1.0, 1.0]], 0.5),
            ([0.5, 1.5, 2.0], [0.5, 1.5, 2.0]),
            NONE,
            wrong=SAID,
        ),
        Case(
            ([1.0], [[10.0]], 0.004),
            ([0.96], [0.96094]),
            SMALL,
            {"dtype": torch.bfloat16},
            wrong=SAID,
        ),
        Case(
            ([70000.0], [[1.0]], 1.0),
            ([69999.0], [70144.0]),
            "round into dtype: float16's largest number is 65504",
            {"dtype": torch.bfloat16},
            wrong=SAID,
        ),
    ],
    equal=close(1e-5),
)
if predicted(predicted_weight, question="where does bfloat16 alone end?"):
    alone = torch.tensor(1.0, dtype=torch.bfloat16)
    for _ in range(100):
        alone -= 0.001
    print(f"bfloat16 alone ends at {alone.item()}; you predicted {predicted_weight}.")

# %% nbgrader={"grade": true, "grade_id": "lab07-master_weights", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 7.4, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-master_weights", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-find_the_leak-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.5 Find the leak (core, 2 points, 9 minutes)
#
# This loop trains two float32 masters on bfloat16 copies, which it makes anew in each step. Its losses are
# correct. The masters take 2 MiB together, so a step's copies take 1 MiB, and their gradients 1 MiB.
#
# **Predict first.** After backward, autograd has freed what it saved. By how many MiB is the peak of 8 steps
# higher than the peak of 2?

# %%
predicted_growth_mib = None  # your prediction, a number


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab07-leak", "locked": true, "schema_version": 3, "solution": false, "task": false}
def wasteful_train_low(masters, batches, lr):
    """Train float32 masters on bfloat16 copies; return the loss of each step."""
    losses = []
    for x, y in batches:
        copies = [master.bfloat16().requires_grad_() for master in masters]
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for master, low in zip(masters, copies, strict=True):
                master -= lr * low.grad.float()
        losses.append(loss)
    return [loss.item() for loss in losses]


def task_of(steps, width=512):
    """Return two masters and some batches, the same ones each time."""
    torch.manual_seed(0)
    masters = [torch.randn(width, width, device=DEVICE) / width**0.5 for _ in range(2)]
    batches = [torch.randn(2, 4, width, device=DEVICE).unbind() for _ in range(steps)]
    return masters, batches


def peak_mib(train, steps):
    """Return the MiB that training takes on top of masters and batches."""
    masters, batches = task_of(steps)
    return measure_call(train, masters, batches, 0.3, device=DEVICE).rise_bytes / 2**20


if predicted(predicted_growth_mib, question="by how many MiB does the peak grow?"):
    for steps in (1, 2, 4, 8):
        print(
            f"steps: {steps}, {peak_mib(wasteful_train_low, steps):5.1f} MiB on top of the masters"
        )
    print(f"you predicted that 8 steps take {predicted_growth_mib} MiB more than 2")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-find_the_leak-task", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Something holds the copies of every step. Write `train_low(masters, batches, lr)`, which changes the masters in
# place and returns the same losses. **Convention:** on top of masters and batches, it takes at most four
# times the masters' bytes plus 256 KiB, for any number of steps.
#
# *Points:* the results 1, the peak 1.
#
# *Example:* with 2 MiB of master weights in total, at most 8.25 MiB.


# %% nbgrader={"grade": false, "grade_id": "lab07-find_the_leak-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train_low(masters: list[torch.Tensor], batches: list, lr: float) -> list[float]:
    """Train float32 masters on bfloat16 copies, with one step's copies alive at a time."""
    ### BEGIN SOLUTION
    losses = []
    for x, y in batches:
        copies = [master.bfloat16().requires_grad_() for master in masters]
        output = torch.relu(x.bfloat16() @ copies[0]) @ copies[1]
        loss = (output.float() - y).square().mean()
        loss.backward()
        with torch.no_grad():
            for master, low in zip(masters, copies, strict=True):
                master -= lr * low.grad.float()
        losses.append(loss.item())  # the tensor's graph holds the copies it started from
    return losses
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-find_the_leak-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 7.5, find the leak
def results(train):
    """Return the losses and the masters' norms at the end."""
    masters, batches = task_of(3, width=16)
    given = list(batches)
    losses = [float(loss) for loss in train(list(masters), given, 0.2)]
    kept = len(given) == 3 and all(
        torch.equal(a, b)
        for pairs in zip(batches, task_of(3, width=16)[1], strict=True)
        for a, b in zip(*pairs, strict=True)
    )
    return losses, [float(m.norm()) for m in masters], "batches kept" if kept else "batches changed"


def fits(steps):
    """Return whether training stays within the bound."""
    peak = peak_mib(train_low, steps)
    print(f"{steps} steps: {peak:.1f} MiB on top of the masters; 8.25 are allowed")
    return peak <= 8.25


SAME = "in each step, round the masters again and update them in place: master -= ...; keep the batches"
HELD = "a loss's graph holds the copies it started from, with their gradients: keep a number"
self_check(
    results,
    [
        Case((train_low,), results(wasteful_train_low), SAME, label="losses and masters"),
        Case((2,), True, HELD, function=fits),
        Case((12,), True, HELD, function=fits),
    ],
    equal=close(1e-4),
)
print("What leaked: each kept loss held its step's copies, 1 MiB, and their gradients, 1 MiB.")
print("So six more steps take 12 MiB more.")

# %% nbgrader={"grade": true, "grade_id": "lab07-find_the_leak", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 7.5, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-find_the_leak", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.6 In your own words (core, 2 points, 5 minutes)
#
# A friend trains in bfloat16 and says: "I never needed a loss scaler." Another trains in float16 with a scaler,
# and sees some steps skipped in the first minute. In three or four sentences: why doesn't the first one need
# a scaler, and should the second one worry?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab07-explain", "locked": false, "schema_version": 3, "solution": true, "task": false, "points": 2}
# ### BEGIN SOLUTION
# bfloat16 has float32's 8 exponent bits, so gradients that are tiny in float32 are not 0 in bfloat16 either. What
# it lacks is precision, and scaling adds none. The skipped steps are how the scaler finds its scale: it begins too
# high on purpose and backs off after each overflow. Skips that go on and on, with a scale that keeps falling,
# would be a reason to worry: then gradients are inf or NaN at any scale.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-core-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **The core ends here.** You should now be able to say:
#
# - Float16 loses small gradients because of its *range*. Scaling the loss moves them all into it; a step with
#   an `inf` or a `NaN` is skipped as a whole. Unscale before you clip.
# - Updates below half a gap are lost as well, and no scale helps there: keep float32 masters.
# - bfloat16 has float32's range and needs no scaling, but it needs masters.
# - A loss tensor that you keep holds its graph, and the copies it started from.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-train-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.7 Train in low precision (stretch, 4 points, 16 minutes)
#
# Write `train(model, batches, precision, lr=0.1)`, which trains with plain SGD, one step per batch, and
# returns the list of losses.
# - `model(*batch)` is the loss of a batch. The model's parameters are in float32: **they are the masters**, updated
#   in place, so `MasterWeights` isn't needed.
# - `precision` is `"float32"`, `"float16"` or `"bfloat16"`. Forward runs on copies in that dtype; the stub
#   does this. `functional_call` calls the model with other tensors in place of its parameters.
# - In float16 the loss is scaled. Divide the gradients **in float32**: in float16 they would vanish again.
#   Skip a step with an `inf` or a `NaN` anywhere for all weights, and don't retry it; still list its loss.
#   Your `LossScaler` can do this: assign the gradients to the float32 parameters, then pass the scaler their
#   optimizer.
#
# **Convention:** return unscaled losses, each from before its step. Don't use `torch.amp` or
# `torch.autocast`.
#
# *Points:* float32 1, float16 keeps up where naive float16 doesn't 2, bfloat16 1. The loss has to fall by at
# least 75% of float32's fall in float16 and 95% in bfloat16, with at most 80% of float32's bytes.
#
# *Example:* after `train(model, [batch] * 3, "float32")` the list has 3 losses, each lower than the one before.
#
# **Predict first.** Which follow float32's curve closely: (a) naive float16, (b) float16 with scaling but without
# masters, (c) float16 with both, (d) bfloat16 with masters?

# %%
predicted_to_follow = None  # your prediction, such as "a b"


# %% nbgrader={"grade": false, "grade_id": "lab07-train-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train(
    model: torch.nn.Module, batches: list[tuple], precision: str, lr: float = 0.1
) -> list[float]:
    """Train with SGD, forward and backward in `precision`; return the loss of each step."""
    dtype = getattr(torch, precision)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    masters = dict(model.named_parameters())
    losses = []
    ### BEGIN SOLUTION
    scaler = LossScaler() if precision == "float16" else LossScaler(initial=1.0, growth=1.0)
    ### END SOLUTION
    for batch in batches:
        copies = {name: p.detach().to(dtype).requires_grad_() for name, p in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        ### BEGIN SOLUTION
        scaler.scale(loss).backward()
        for name, master in masters.items():
            master.grad = copies[name].grad.float()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        ### END SOLUTION
    return losses


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-train-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 7.7, train in low precision
def weights_of(model):
    """Return all parameters as one vector."""
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def way_of(precision, lr=0.001, factor=2.0**-6):
    """Train for 3 steps on a loss times `factor`; return the losses, and how far the weights went."""
    model = language_model(PARTS, factor)
    start = weights_of(model)
    losses = train(model, [(TOKENS, TARGETS)] * 3, precision, lr=lr * PARTS / factor)
    assert all(p.dtype == torch.float32 for p in model.parameters()), "the model stays float32"
    return losses, weights_of(model) - start


def losses_fall(precision):
    """Return whether 3 losses fall and the first is correct; if not, the losses."""
    losses, _ = way_of(precision, lr=0.01, factor=1.0)
    first = language_model(PARTS)(TOKENS, TARGETS).item()
    begin = len(losses) == 3 and abs(losses[0] / first - 1) < 0.002  # a step lowers it by over 0.01
    if begin and losses[0] > losses[1] > losses[2]:
        return FALL
    if begin and losses[0] == losses[2]:
        return EQUAL
    return f"times PARTS {[round(float(loss) * PARTS, 3) for loss in losses]}"


def same_way(precision):
    """Return whether the weights move as far as in float32, and hardly any of them stay.

    If not, return whether most of them stay.
    """
    (_, way), (_, right) = way_of(precision), way_of("float32")
    still = ((way == 0) & (right != 0)).float().mean().item()
    print(
        f"{precision}: {way.norm() / right.norm():.3f} times float32's way; {still:.0%} of weights stay"
    )
    if 0.95 < way.norm() / right.norm() < 1.05 and still < 0.05:
        return WAY
    return "most weights stay" if still > 0.5 else "another way"


def share_of_bytes(precision):
    """Return whether a step takes less than 80% of float32's bytes; if not, how many."""
    large = [(TOKENS.repeat(8, 1), TARGETS.repeat(8, 1))]
    rise = [
        measure_call(train, language_model(PARTS), large, way, device="cpu").rise_bytes
        for way in (precision, "float32")
    ]
    print(f"A step in {precision} takes {rise[0] / rise[1]:.0%} of float32's bytes.")
    return FEW if rise[0] / rise[1] < 0.8 else f"{rise[0] / rise[1]:.0%}"


def grows_with_steps(precision):
    """Return whether 11 steps take more bytes than 3."""
    few, many = (
        measure_call(
            train, language_model(PARTS), [(TOKENS, TARGETS)] * steps, precision, device="cpu"
        ).rise_bytes
        for steps in (3, 11)
    )
    return many > 1.1 * few


class Burst(nn.Module):
    """Three weights; in float16 the second one's gradient overflows at any useful scale."""

    def __init__(self):
        super().__init__()
        self.first, self.large, self.last = (nn.Parameter(torch.ones(())) for _ in range(3))

    def forward(self):
        usual = self.first.float() + self.last.float()
        return usual / 2**10 + self.large.float() * 2.0**30


def overflow_skipped():
    """Return the losses listed and weights moved in three steps, of which one has an overflow."""
    model = Burst()
    losses = train(model, [()] * 3, "float16")
    return f"{len(losses)} losses, {int((weights_of(model) != 1).sum())} weights moved"


class Line(nn.Module):
    """A weight of 1 that is multiplied by the batch."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, x):
        dtypes.append(self.weight.dtype)
        return self.weight.float() * x


dtypes = []  # those in which a Line has run


def three_batches(**lr):
    """Return losses, and how far the weight moves, of three batches; the second overflows.

    The others are so small that they fit with any usual scale.
    """
    model = Line()
    losses = train(model, [(2.0**-9,), (2.0**30,), (2.0**-8,)], "float16", **lr)
    return losses, 2**9 * (1 - model.weight.item())


def runs_in(precision):
    """Return whether forward runs in this precision."""
    dtypes.clear()
    train(Line(), [(0.25,)], precision)
    return getattr(torch, precision) in dtypes


LOW = ("float16", "bfloat16")
FALL = "3 falling losses, starting from 4.95 / PARTS"
EQUAL = "3 equal losses"
WAY = "float32's way"
FEW = "under 80%"
LISTED = "list each batch's loss before its step, unscaled"
MOVE = {EQUAL: "nothing moves: assign the copies' gradients to the float32 parameters, then step"}
LOST = "divide in float32, and round the float32 parameters again before each forward"
FLUSHED = "most gradients are 0 in float16: scale the loss, and divide in float32"
STAY = {"float16": {"most weights stay": FLUSHED}, "bfloat16": {}}
WHOLE = {
    **dict.fromkeys(
        [f"3 losses, {moved} weights moved" for moved in (1, 2, 3)],
        "one inf or NaN anywhere: skip the step for all weights",
    ),
    "0 losses, 0 weights moved": "also list the loss of a skipped step",
}
self_check(
    losses_fall,
    [
        *(Case((p,), FALL, LISTED, wrong=MOVE) for p in ("float32", *LOW)),
        *(Case((p,), WAY, LOST, wrong=STAY[p], function=same_way) for p in LOW),
        *(Case((p,), FEW, "run on 16-bit copies", function=share_of_bytes) for p in LOW),
        Case(
            ("bfloat16",),
            False,
            "keep loss.item(): a loss's graph holds its step's copies",
            function=grows_with_steps,
        ),
        Case(
            (),
            "3 losses, 0 weights moved",
            "skip a step with inf or NaN, but list its loss",
            label="three steps in which one of three weights overflows",
            function=overflow_skipped,
            wrong=WHOLE,
        ),
        Case(
            (),
            ([2.0**-9, 2.0**30, 2.0**-8], 0.3),
            "make a step per batch, with lr=0.1 by default; after an overflow, make the next step",
            label="losses, and how far the weight moves; the second of three batches overflows",
            function=three_batches,
        ),
        Case(
            (),
            ([2.0**-9, 2.0**30, 2.0**-8], 0.6),
            "step with the lr that train is given",
            {"lr": 0.2},
            label="the same with lr=0.2",
            function=three_batches,
        ),
        *(
            Case((p,), True, "forward runs on copies in this dtype", function=runs_in)
            for p in ("float32", *LOW)
        ),
    ],
    equal=close(1e-3),
)

# %% nbgrader={"grade": true, "grade_id": "lab07-train", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 7.7, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-train", globals())
### END HIDDEN TESTS

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab07-experiment", "locked": true, "schema_version": 3, "solution": false, "task": false}
STEPS, LR = 80, 0.001 * PARTS


def train_yours(precision, lr=LR):
    """Return your losses, as means over tokens."""
    batches = [(TOKENS, TARGETS)] * STEPS
    return [loss * PARTS for loss in train(language_model(PARTS), batches, precision, lr=lr)]


def train_alone(scale, lr=LR):
    """Return the losses of float16 without masters, as means over tokens."""
    losses = train_without_masters(language_model(PARTS), (TOKENS, TARGETS), STEPS, scale, lr)
    return [loss * PARTS for loss in losses]


if predicted(predicted_to_follow, question="which of a, b, c, d follow float32?"):
    runs = {"float32": train_yours("float32")}
    runs["naive float16"] = train_alone(1.0)
    runs["scaled float16"] = train_alone(2.0**16)
    runs["float16 + masters"] = train_yours("float16")
    runs["bfloat16 + masters"] = train_yours("bfloat16")
    full = runs["float32"][0] - runs["float32"][-1]
    for name, losses in runs.items():
        covered = (losses[0] - losses[-1]) / full
        print(
            f"{name:18} from {losses[0]:.3f} to {losses[-1]:.3f}, {covered:4.0%} of float32's way"
        )
    print(f"You predicted these to follow float32: {predicted_to_follow}.")
    ordinary = train_yours("float32", lr=0.1 * PARTS)
    naive = train_alone(float(PARTS), lr=0.1 * PARTS)  # this scale takes the factor out again
    covered = (naive[0] - naive[-1]) / (ordinary[0] - ordinary[-1])
    print(
        f"With an ordinary batch and steps 100 times as large, naive float16 covers {covered:.0%}."
    )
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    plots.loss_curves(axes, runs)
    axes.lines[0].set(linewidth=7, alpha=0.3)  # float32's, so that curves on top of it stay visible
    axes.legend(loc="lower left", fontsize=11)
    show_figure(
        figure,
        "Loss over 80 steps. Naive float16 hardly falls; scaled float16 without masters falls about "
        "half of the way; float16 and bfloat16 with masters cover float32's curve.",
    )

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-experiment-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* In naive float16 almost all gradients are 0: backward casts every gradient on the
# way down, and once one is 0, so are all gradients computed from it. Scaling alone brings them back, yet the
# loss falls only about half as far: most updates are below half a gap of the float16 weights. With both,
# float16 follows float32; so does bfloat16 without scaling, but its gaps are 8 times as wide, so it needs
# masters even more.
#
# **How typical is that?** The factor of 1/65536, the small steps and the wide spread of weights (they begin
# at a standard deviation of 0.3) were chosen so that every effect shows within 80 steps. On an ordinary batch
# with large steps, naive float16 keeps up, as the last line shows. You will see these effects when the batch
# is large and the steps are small.
#
# ### In practice
#
# ```python
# scaler = torch.amp.GradScaler("cuda")             # for float16 only
# with torch.autocast("cuda", dtype=torch.float16):
#     loss = model(*batch)
# scaler.scale(loss).backward()
# scaler.unscale_(optimizer)                        # before clipping
# torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
# scaler.step(optimizer)
# scaler.update()
# ```
#
# The model stays in float32, so its parameters are the masters, and autocast makes the copies.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-dtype_trace-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.8 What runs in 16 bits? (stretch, 2 points, 9 minutes)
#
# `torch.autocast` decides operator by operator. A matrix product runs in 16 bits, since its inner sums are
# accumulated in float32. On a GPU, exponentials, long sums and losses run in float32. The CPU's lists are
# shorter. Everything else runs in its input's dtype. What does *your* model do?
#
# Write `dtype_trace(module, x, dtype) -> list[tuple[str, str]]`. Run `module(x)` once under
# `torch.autocast(x.device.type, dtype=dtype)`. For each *leaf* (a module without children), in the order they
# run, return its name in `module.named_modules()` and its output's dtype, such as `("up", "bfloat16")`.
#
# - The hooks are given: `part.register_forward_hook(note)` makes torch call `note(part, inputs, output)` after each
#   run of `part`. They are on a deep copy, so `module`'s buffers don't change (batch norm counts in training
#   mode).
# - Leave the RNG state as it was: `with torch.random.fork_rng():`.
#
# **Convention:** `dtype` is a torch dtype. List a leaf twice if it runs twice.
#
# *Points:* all or nothing.
#
# *Example:* `dtype_trace(nn.Sequential(nn.Linear(2, 2)), x, torch.bfloat16)` is `[("0", "bfloat16")]`.
#
# **Predict first.** A GPT's layer norms read `x + f(x)`, where `f` ends in a Linear. In which dtype do they run?

# %%
predicted_norm_dtype = None  # your prediction, such as "float32"


# %% nbgrader={"grade": false, "grade_id": "lab07-dtype_trace-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def dtype_trace(module: nn.Module, x: torch.Tensor, dtype: torch.dtype) -> list[tuple[str, str]]:
    """Return the name of each leaf that runs under autocast, and the dtype of its output."""
    found = []
    module = copy.deepcopy(module)  # so that hooks and new statistics are the copy's
    for name, part in module.named_modules():
        if not list(part.children()):

            def note(part, inputs, output, name=name):  # name=name: each hook keeps its own
                ### BEGIN SOLUTION
                found.append((name, str(output.dtype).removeprefix("torch.")))
                ### END SOLUTION

            part.register_forward_hook(note)
    ### BEGIN SOLUTION
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    return found
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-dtype_trace-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 7.8, what runs in 16 bits?
class Residual(nn.Module):
    """x + up(norm(x)), twice; the modules run in a different order than they are created."""

    def __init__(self):
        super().__init__()
        self.up, self.norm, self.unused = nn.Linear(4, 4), nn.LayerNorm(4), nn.Tanh()
        self.drop = nn.Dropout()

    def forward(self, x):
        x = x + self.up(self.norm(x))
        x = x + self.up(self.norm(x))
        return self.drop(self.drop(x)) if self.training else x


def trace_of(module, x, dtype):
    """Return the trace; a dtype may also be named "torch.bfloat16"."""
    return [
        (name, found.removeprefix("torch.") if isinstance(found, str) else "no string")
        for name, found in dtype_trace(module, x, dtype)
    ]


def left_behind(module, x):
    """Return what a call leaves: its hooks, what has changed, and whether the RNG state is the same."""
    module[1].eval()  # as a frozen layer is
    before = copy.deepcopy(module.state_dict())
    modes = [part.training for part in module.modules()]
    others = module[0].register_forward_hook(lambda *_: None)
    torch.rand(1)  # so that the state isn't that of a seed
    state = torch.get_rng_state()
    expected = torch.rand(1)
    torch.set_rng_state(state)
    dtype_trace(module, x, torch.bfloat16)
    changed = [name for name, value in module.state_dict().items() if (value != before[name]).any()]
    changed += [] if [part.training for part in module.modules()] == modes else ["training mode"]
    changed += [] if all(p.requires_grad for p in module.parameters()) else ["requires_grad"]
    hooks = sum(len(part._forward_hooks) for part in module.modules()) - 1  # the one from before
    others.remove()
    return hooks, changed, torch.equal(torch.rand(1), expected)


rows = torch.ones(3, 4)
low, high = "bfloat16", "float32"
trace = [("norm", high), ("up", low)] * 2 + [("drop", high)] * 2
batch_norm = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 4), nn.Dropout())
TWICE = "record each run in its hook: that gives the order, and lists modules that run twice"
self_check(
    trace_of,
    [
        Case(
            (nn.Linear(4, 2), rows, torch.bfloat16),
            [("", low)],
            "its name is empty; autocast gives its output, not its input, 16 bits",
            label="a Linear alone",
            wrong={(("", "no string"),): "give the dtype's name: str(output.dtype)"},
        ),
        Case(
            (nn.Sequential(nn.Linear(4, 2), nn.ReLU()), rows, torch.float16),
            [("0", "float16"), ("1", "float16")],
            "pass dtype on, and list every leaf",
            label="two leaves in float16",
        ),
        Case(
            (Residual(), rows, torch.bfloat16),
            trace,
            TWICE,
            label="a residual block",
            wrong={
                tuple(("drop", dtype) for _, dtype in trace): "bind each hook's name: name=name",
                tuple(trace[:4]): "run the copy in the module's mode",
            },
        ),
        Case(
            (nn.Sequential(nn.Sequential(Residual())), rows, torch.bfloat16),
            [(f"0.0.{name}", dtype) for name, dtype in trace],
            "names are those of named_modules()",
            label="a block within a part of a model",
        ),
        Case(
            (batch_norm, rows),
            (0, [], True),
            "leave no trace: run the copy within torch.random.fork_rng()",
            label="no hooks left, nothing changed, RNG state kept",
            function=left_behind,
            wrong={(-1, (), True): "a hook that the module had before is gone"},
        ),
    ],
)
if predicted(predicted_norm_dtype, question="in which dtype do a GPT's layer norms run?"):
    for name, dtype in dtype_trace(language_model(PARTS).gpt, TOKENS, torch.bfloat16):
        print(f"{name:26} {dtype}")
    print(
        f"You predicted {predicted_norm_dtype} for the layer norms. Their input x + f(x) is float32:"
    )
    print("x started as an embedding in float32, and a sum of float32 and bfloat16 is float32.")

# %% nbgrader={"grade": true, "grade_id": "lab07-dtype_trace", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 7.8, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-dtype_trace", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-training_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.9 What halves, and what does not? (stretch, 2 points, 8 minutes)
#
# Write `training_bytes(n_params: int, activation_bytes_fp32: int, recipe: str) -> dict` with exactly the keys
# of `KEYS`, below, and `"activations"`. `RECIPES` has lab 3's bytes per parameter.
#
# **Convention:** return whole bytes; `activation_bytes_fp32`, a multiple of 4, is what activations take in
# float32. Activations have the weights' dtype. Raise `ValueError` for an unknown recipe.
#
# *Points:* all or nothing.
#
# *Example:* `training_bytes(10, 400, "mixed")` has the values 20, 20, 40, 40, 40 and 200.
#
# **Predict first.** GPT-3 has 175 billion parameters. How many GB less do all entries except the activations
# take in `"mixed"` than in `"fp32"`?

# %%
predicted_saving_gb = None  # your prediction, a number

# %% nbgrader={"grade": false, "grade_id": "lab07-recipes", "locked": true, "schema_version": 3, "solution": false, "task": false}
KEYS = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
RECIPES = {  # bytes per parameter, in the order of KEYS
    "fp32": (4, 4, 0, 4, 4),
    "mixed": (2, 2, 4, 4, 4),
    "mixed_fp32_grads": (2, 4, 4, 4, 4),
    "bf16": (2, 2, 0, 2, 2),
    "sgd": (4, 4, 0, 0, 0),
}


# %% nbgrader={"grade": false, "grade_id": "lab07-training_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def training_bytes(n_params: int, activation_bytes_fp32: int, recipe: str) -> dict[str, int]:
    """Return the bytes of a training step by what they are for."""
    ### BEGIN SOLUTION
    if recipe not in RECIPES:
        raise ValueError(f"{recipe!r} is unknown; use one of {', '.join(RECIPES)}")
    sizes = dict(zip(KEYS, RECIPES[recipe], strict=True))
    found = {key: size * n_params for key, size in sizes.items()}
    return {**found, "activations": activation_bytes_fp32 * sizes["weights"] // 4}
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-training_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 7.9, what halves and what does not
def expected(*sizes):
    """Return sizes by their names."""
    return dict(zip((*KEYS, "activations"), sizes, strict=True))


self_check(
    training_bytes,
    [
        Case((10, 400, "mixed"), expected(20, 20, 40, 40, 40, 200), "whole bytes: divide with //"),
        Case((20, 400, "mixed"), expected(40, 40, 80, 80, 80, 200), "twice the parameters"),
        Case((10, 800, "mixed"), expected(20, 20, 40, 40, 40, 400), "twice the activations"),
        Case((10, 400, "sgd"), expected(40, 40, 0, 0, 0, 400), "in float32, nothing is halved"),
        Case(
            (10, 400, "mixed_fp32_grads"),
            expected(20, 40, 40, 40, 40, 200),
            "activations have the weights' dtype",
        ),
        Case(
            (10, 400, "bf16"), expected(20, 20, 0, 20, 20, 200), "activations in 16 bits take half"
        ),
        Case(
            (0, 2**55 + 4, "mixed"),
            expected(0, 0, 0, 0, 0, 2**54 + 2),
            "use integers throughout: no float holds this",
        ),
        *(
            Case((10, 400, name), raises=ValueError, hint="raise ValueError for an unknown recipe")
            for name in ("fp12", "mixed_fp16", "bf16_adam", "SGD")
        ),
    ],
    equal=whole(),
)
if predicted(predicted_saving_gb, question="how many GB less?"):
    fp32, mixed = (sum(training_bytes(175 * 10**9, 0, r).values()) for r in ("fp32", "mixed"))
    saved = (fp32 - mixed) / 1e9
    print(f"fp32 {fp32 / 1e9:.0f} GB, mixed {mixed / 1e9:.0f} GB, {saved:.0f} GB less: the masters")
    print(f"cost what weights and gradients save; you predicted {predicted_saving_gb}.")

# %% nbgrader={"grade": true, "grade_id": "lab07-training_bytes", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 7.9, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-training_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-copies-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### What autocast keeps
#
# `torch.autocast` casts the float32 weights where they are used. Backward needs the cast weights again, so
# they stay: 2 more bytes per parameter. Eight layers of $512 \times 512$ have 8 MiB of weights, so each
# layer's cast copy takes 0.5 MiB; seven stay, because the first layer's would only serve a gradient that
# nothing needs.
#
# **Predict first.** With few tokens, does autocast take more or less than float32?

# %%
predicted_autocast = None  # your prediction, "more" or "less"

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab07-copies", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_autocast, question="does autocast take more or less?"):
    for batch in (64, 4096):
        in_float32 = 8 * batch * 512 * 4 / 2**20  # the output of each ReLU
        # The first layer's cast input is saved as well: a ninth activation in 16 bits.
        counts = {
            "float32": in_float32,
            "all bfloat16": in_float32 / 2,
            "autocast": in_float32 / 2 * 9 / 8 + 7 * 0.5,
        }
        for precision, count in counts.items():
            kept = autocast_keeps(batch, precision, DEVICE) / 2**20
            print(
                f"{batch:5} tokens, {precision:12} {count:6.2f} MiB counted, {kept:6.2f} measured"
            )
    print(f"You predicted that autocast takes {predicted_autocast} with few tokens.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-gpu_speed-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.10 How much faster? (stretch, 2 points, 12 minutes, GPU)
#
# *Tensor cores* multiply matrices of 16-bit numbers and, since 2020, of *TF32*: float32 numbers of which the
# multiplier reads only the 10 highest fraction bits. V100 and T4 are older: they have neither TF32 nor
# bfloat16 units, so "tf32" runs as float32 there, and bfloat16 is slow.
#
# Write `speedup()`. It returns a dict with exactly the keys `"float32"`, `"tf32"`, `"float16"` and
# `"bfloat16"`. The values are the **seconds** that one product `x @ w` of two random $8192 \times 8192$
# matrices takes on the GPU.
# - For TF32 the matrices are float32, after `torch.set_float32_matmul_precision("high")`; for float32, `"highest"`.
# - `x @ w` only *asks* for a product. Call `torch.cuda.synchronize()` before you read the clock, at the start and at
#   the end, or use two `torch.cuda.Event(enable_timing=True)`, whose `elapsed_time` is in milliseconds.
# - Run one product of each kind before you time it, so that libraries are loaded. Don't time making the
#   matrices.
#
# *Points:* all four times within a factor of 1.5 of the grader's own on the same GPU.
#
# *Example:* a product takes $2 \cdot 8192^3 \approx 1.1 \cdot 10^{12}$ operations: 18 ms at $60 \cdot 10^{12}$ a
# second.
#
# **Predict first.** How many times faster than float32 is bfloat16?

# %%
predicted_speedup = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab07-gpu_speed-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def speedup() -> dict[str, float]:
    """Return the seconds of one 8192 x 8192 product in each of the four precisions."""
    ### BEGIN SOLUTION
    precisions = {
        "float32": (torch.float32, "highest"),
        "tf32": (torch.float32, "high"),
        "float16": (torch.float16, "highest"),
        "bfloat16": (torch.bfloat16, "highest"),
    }
    repeats = 5
    seconds = {}
    for name, (dtype, float32_precision) in precisions.items():
        torch.set_float32_matmul_precision(float32_precision)
        x, w = (torch.randn(8192, 8192, device="cuda", dtype=dtype) for _ in range(2))
        x @ w
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(repeats):
            x @ w
        end.record()
        end.synchronize()
        seconds[name] = start.elapsed_time(end) / 1000 / repeats
    torch.set_float32_matmul_precision("highest")
    return seconds
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-gpu_speed-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 7.10, how much faster?
if torch.cuda.is_available():
    seconds = speedup()
    names = ["float32", "tf32", "float16", "bfloat16"]
    assert sorted(seconds) == sorted(names), f"the keys are {names}, but yours are {list(seconds)}"
    for name in names:
        rate = 2 * 8192**3 / seconds[name]  # operations per second
        assert rate < 1e16, f"{name}: {rate:.0e} operations per second; did you wait for the GPU?"
        assert rate > 3e11, f"{seconds[name]:.1e} s for {name} is very long; are these seconds?"
    if predicted(predicted_speedup, question="how many times faster is bfloat16?"):
        for name in names:
            print(
                f"{name:9} {seconds[name] * 1000:6.2f} ms, {seconds['float32'] / seconds[name]:.1f} x"
            )
        print(f"you predicted {predicted_speedup} x for bfloat16")
else:
    print("Skipped: exercise 7.10 needs a CUDA GPU, and there is none here.")
    print("Its 2 points are left out of your total. You may still write speedup().")
    if predicted(predicted_speedup, question="how many times faster is bfloat16?"):
        print_products()
        print("By data sheet, in Tflop/s:")
        for name in ("v100-32gb", "t4-16gb", "a100-80gb", "h100-80gb"):
            print(f"{name:10} {dict(accelerator(name).tflops)}")
        print(f"you predicted {predicted_speedup} x for bfloat16")

# %% nbgrader={"grade": true, "grade_id": "lab07-gpu_speed", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 7.10, 2 points: hidden cases are run here when your instructor grades the lab on a GPU.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-gpu_speed", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - Activations halve. Weights, gradients and masters together don't: 2 + 2 + 4 bytes against 4 + 4.
