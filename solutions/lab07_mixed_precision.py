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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 7: fewer bytes an element
#
# A number in float16 or bfloat16 takes 2 bytes, in float32 it takes 4. So the activations of a
# training step halve, and recent GPUs multiply such numbers several times faster. The price is range
# and precision. *Mixed precision* pays it where it is cheap: most of the work is done in 16 bits,
# and what would go wrong there stays in 32.
#
# **You will be able to**
# - say why gradients vanish in float16, and write the loss scaler that saves them;
# - time a GPU without fooling yourself, and say what fewer bits buy in time.
#
# | exercise | minutes | points |
# |---|---|---|
# | 7.4 The loss scaler | 30 | 5 |
# | 7.8 How much faster? (GPU) | 20 | 2 |
# | 7.9 In your own words | 5 | 2 |
#
# Exercise 7.8 needs a CUDA GPU. Without one it is skipped, and its points leave your total.

# %% nbgrader={"grade": false, "grade_id": "lab07-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch

import peakmem

peakmem.lab("lab07_mixed_precision")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-loss_scaler-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.4 The loss scaler (5 points, 30 minutes)
#
# The smallest positive number of float16 is 2^-24, about 6e-8. What is below half of that rounds to
# 0. Gradients are often that small: the loss is a mean over a batch, so each gradient carries
# a factor of 1 / batch. And a gradient of 0 is no small error. That weight stops learning.
#
# Backward is linear: **multiply the loss by a scale, and every gradient is multiplied by it**. So
# scale the loss up before backward, and divide the gradients by the scale before the optimizer sees
# them. By then they are in float32, where small numbers are safe.
#
# Which scale? A small one saves little. A large one overflows: above 65504 float16 has only `inf`,
# and `inf - inf` is `NaN`. The right scale differs between models, and it changes as training goes
# on. So let the scaler search. After a step whose gradients are all finite, it might have dared
# more. After an overflow it was too large; that step's gradients are lost, so the step is skipped.
#
# Write the class `LossScaler(initial=2.0**16, growth=2.0, backoff=0.5, interval=2000)`:
# - `scale(loss)` returns the loss times the current scale. So `scale(1.0)` is the scale itself.
# - `unscale_(optimizer)` divides the gradients of all its parameters by the scale, in place. Those
#   who want to *clip* gradients call it before they clip, since the limit is meant for true
#   gradients. An optimizer has several groups of parameters (`optimizer.param_groups`, each a dict
#   with a list `"params"`), and a parameter's `.grad` may be `None`.
# - `step(optimizer)` unscales if that was not done since the last `update`. Then it calls
#   `optimizer.step()`, but only if no gradient holds an `inf` or a `NaN`.
# - `update()` ends the step. If it was skipped, the scale is multiplied by `backoff`. After
#   `interval` good steps in a row it is multiplied by `growth`, and the count begins again.
#
# `torch.amp`, `torch.cuda.amp` and `torch.autocast` are not allowed: they hold the answer.
#
# *Points:* the scale after each update 2, steps taken and skipped 2, unscaling before clipping 1.
#
# *Example:* with `initial=8.0` and `interval=2`, two good steps make the scale 16. An overflow in
# the third makes it 8 again.
#
# **Predict first.** `initial=8.0`, `interval=3`, the other settings as above. Two steps are good,
# the third overflows, two more are good. What is the scale after these five?

# %%
predicted_scale = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab07-loss_scaler-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
class LossScaler:
    """Scale a loss so that its gradients fit float16, and find out by which factor.

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
        """Let the optimizer step on true gradients, or not at all if one is inf or NaN."""
        ### BEGIN SOLUTION
        if not self.unscaled:
            self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()
        ### END SOLUTION

    def update(self) -> None:
        """End the step: let the scale back off, or grow, or stay."""
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
# Self-check of 7.4, the loss scaler
def train_on(gradients, clip=False, **settings):
    """Step once for each true gradient of one weight; return the scales and the weight's values."""
    weight = torch.nn.Parameter(torch.tensor(1.0))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    scaler = LossScaler(**settings)
    scales, values = [], []
    for gradient in gradients:
        optimizer.zero_grad()
        scaler.scale(weight * gradient).backward()
        if clip:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_([weight], max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
        scales.append(float(scaler.scale(1.0)))
        values.append(weight.item())
    return scales, values


assert float(LossScaler().scale(3.0)) == 3 * 2.0**16, "scale(loss) is the loss times `initial`"
scales, values = train_on([1.0, 1.0], initial=8.0)
assert values == [0.5, 0.0], (
    f"two steps of 0.5 times a gradient of 1 lead from 1 to 0.5 and 0, but yours to {values}; "
    "the optimizer needs true gradients, divided by the scale"
)
scales, values = train_on([1.0, 1.0, 1.0, 1.0], initial=8.0, interval=2)
assert scales == [8, 16, 16, 32], f"with interval=2 the scales are 8, 16, 16, 32, not {scales}"
for bad in (math.inf, -math.inf, math.nan):
    scales, values = train_on([1.0, bad, 1.0], initial=8.0, interval=2)
    assert scales[:2] == [8, 4], f"after a gradient of {bad} the scale goes from 8 to 4: {scales}"
    assert values[1] == values[0], f"a gradient of {bad} has to leave the weights as they were"
    assert values[2] == 0.0, f"the step after a skipped one is taken again, but got {values}"
    assert scales[2] == 4, f"one good step after an overflow is not two in a row, but got {scales}"
scales, values = train_on([0.5, 4.0], clip=True, initial=8.0)
assert [round(value, 3) for value in values] == [0.75, 0.25], (
    f"clipped to 1, the gradients 0.5 and 4 lead from 1 to 0.75 and 0.25, but yours to {values}; "
    "unscale_ divides, and step does not divide again"
)
scales, values = train_on([1.0, 1.0, math.inf, 1.0, 1.0], initial=8.0, interval=3)
print(f"The scales are {scales}; you predicted {predicted_scale} at the end.")

# %% nbgrader={"grade": true, "grade_id": "lab07-loss_scaler", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
# Exercise 7.4, 5 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.stock import score

score("lab07-loss_scaler", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-loss_scaler-see", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### See it work
#
# One layer learns to copy another. Its weight stays in float32; forward and backward run on a copy
# in 16 bits. The loss is a mean over 256 x 64 numbers, so the gradients are small from the start.
#
# **Predict first.** Whose loss ends lower without a scaler, float16's or bfloat16's?

# %%
predicted_lower_loss = None  # your prediction, "float16" or "bfloat16"


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab07-loss_scaler-train", "locked": true, "schema_version": 3, "solution": false, "task": false}
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


scaled, scales = learn(torch.float16, LossScaler(interval=5))
runs = {
    "float32": (learn(torch.float32)[0], "#000000", "-"),
    "bfloat16": (learn(torch.bfloat16)[0], "#009E73", "-."),
    "float16": (learn(torch.float16)[0], "#D55E00", "--"),
    "float16, scaled": (scaled, "#0072B2", "-"),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for name, (losses, colour, dashes) in runs.items():
    left.semilogy(losses, color=colour, linestyle=dashes, label=name)
left.set(xlabel="step", ylabel="loss", title="Loss", ylim=(1e-12, None))
left.legend()
right.semilogy(scales, base=2, color="#0072B2")
right.set(xlabel="step", ylabel="scale", title="What your scaler found")
plt.show()
for name, (losses, _, _) in runs.items():
    print(f"{name:16s} last loss {losses[-1]:.1e}")
print(f"The scale went from 2^16 to at most 2^{math.log2(max(scales)):.0f}.")
print(f"Without a scaler you predicted {predicted_lower_loss} to end lower.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-loss_scaler-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the pictures show.* Left: in float16 alone the loss falls to about 2e-8 and stays there,
# because the gradients have become 0. With the scaler it ends about a thousand times lower. There
# the rounding of float16's 11 significant bits stops it, and no scale helps against that. bfloat16
# needs no scaler, since it has float32's range, but it stops earlier than scaled float16: it has
# only 8 significant bits. float32 goes on below the picture. Right: the scale doubles every 5 steps
# until an overflow. From then on it goes up and down just below the largest scale that fits.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-gpu_speed-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.8 How much faster? (2 points, 20 minutes, GPU)
#
# A GPU has special units for products of matrices: *tensor cores*. They take numbers in 16 bits, and
# on GPUs since 2020 also *TF32*: float32 numbers of which the multiplier reads only the 10 highest
# fraction bits. How much time do they save on **your** GPU?
#
# Write `speedup()`. It returns a dict with exactly the keys `"float32"`, `"tf32"`, `"float16"` and
# `"bfloat16"`, and for each the **seconds** of one product `x @ w`. Both matrices are 8192 x 8192,
# filled with random normal numbers, on the GPU, in that dtype.
# - For TF32 the matrices are float32, and torch is allowed to use it:
#   `torch.set_float32_matmul_precision("high")`. For honest float32 set `"highest"`.
# - A GPU works on its own. `x @ w` only *asks* for a product, and Python goes on at once. Call
#   `torch.cuda.synchronize()` before you read the clock, at the start and at the end. Or put a
#   `torch.cuda.Event(enable_timing=True)` on both sides; their `elapsed_time` is in milliseconds.
# - The first product of a kind is slower, as libraries are loaded. Run one before you time.
# - Making the matrices is not part of the product.
#
# *Points:* all four times within a factor of 1.5 of those that the grader's probe takes on the same
# GPU, a moment before.
#
# *Example:* a product takes 2 x 8192^3 = 1.1e12 operations. A GPU that does 60e12 a second needs
# 18 ms for it.
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
# Self-check of 7.8, how much faster?
if torch.cuda.is_available():
    seconds = speedup()
    names = ["float32", "tf32", "float16", "bfloat16"]
    assert sorted(seconds) == sorted(names), f"the keys are {names}, but yours are {list(seconds)}"
    for name in names:
        rate = 2 * 8192**3 / seconds[name]  # operations a second
        assert rate < 1e16, (
            f"{seconds[name]:.1e} s for {name} would be {rate:.0e} operations a second, more than "
            "any GPU does; did you wait for the GPU before you read the clock?"
        )
        assert rate > 3e11, f"{seconds[name]:.1e} s for {name} is very long; are these seconds?"
    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    bars = axes.barh(names, [seconds[name] * 1000 for name in names], color="#0072B2")
    axes.bar_label(bars, [f"{seconds['float32'] / seconds[name]:.1f} x" for name in names])
    axes.set(xlabel="milliseconds for one product", title=torch.cuda.get_device_name())
    axes.invert_yaxis()
    axes.margins(x=0.1)
    plt.show()
    ratio = seconds["float32"] / seconds["bfloat16"]
    print(f"bfloat16 is {ratio:.1f} times as fast as float32; you predicted {predicted_speedup}.")
else:
    print("Skipped: exercise 7.8 needs a CUDA GPU, and there is none here.")
    print("Its 2 points are left out of your total. You may still write speedup().")

# %% nbgrader={"grade": true, "grade_id": "lab07-gpu_speed", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 7.8, 2 points: hidden cases are run here when your instructor grades the lab on a GPU.
### BEGIN HIDDEN TESTS
from autograder.stock import score

score("lab07-gpu_speed", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.9 In your own words (2 points, 5 minutes)
#
# A friend trains in bfloat16 and says: "I never needed a loss scaler." Another one trains in float16
# with a scaler, and sees some steps skipped in the first minute. In three or four sentences: why
# does the first one need none, and should the second one worry?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab07-explain", "locked": false, "schema_version": 3, "solution": true, "task": false, "points": 2}
# ### BEGIN SOLUTION
# bfloat16 has 8 exponent bits, as many as float32, so gradients that are tiny in float32 are not 0 in
# bfloat16 either: there is nothing to rescue. What it lacks is precision, and scaling cannot add
# that. The skipped steps are how the scaler finds its scale: it begins too high on purpose, backs off
# after each overflow, and soon overflows only once in a while. Skips that go on and on, with a scale
# that keeps falling, would be a reason to worry: then the gradients are inf or NaN at any scale.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - Float16 loses small gradients because of its *range*, not its precision. Scaling the loss moves
#   all gradients into the range, and dividing afterwards takes hardly any time.
# - A scaler needs no tuning: it grows after good steps in a row, and backs off after an overflow.
#   A step with an `inf` or a `NaN` is skipped as a whole.
# - Clip true gradients: unscale first.
# - A GPU's clock is read after the GPU has finished. Fewer bits buy time only where the work is
#   products of matrices and the GPU has units for that format.
