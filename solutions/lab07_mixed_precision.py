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
# - say which operators run in 16 bits, and why the others do not;
# - say why gradients vanish in float16, and write the loss scaler that saves them;
# - say why updates vanish too, and keep the masters that save those;
# - count what halves and what does not, and train a small GPT in 16 bits as well as in 32;
# - time a GPU without fooling yourself, and say what fewer bits buy in time.
#
# | exercise | minutes | points |
# |---|---|---|
# | 7.1 What runs in 16 bits? | 10 | 2 |
# | 7.2 What is flushed to zero? | 15 | 2 |
# | 7.3 The best scale | 10 | 1 |
# | 7.4 The loss scaler | 30 | 5 |
# | 7.5 Master weights | 25 | 4 |
# | 7.6 What halves, and what does not? | 10 | 2 |
# | 7.7 Train in low precision | 30 | 4 |
# | 7.8 How much faster? (GPU) | 20 | 2 |
# | 7.9 In your own words | 5 | 2 |
#
# In all, about two and a half hours, and 24 points. Exercise 7.8 needs a CUDA GPU. Without one it is
# skipped, and its points leave your total.

# %% nbgrader={"grade": false, "grade_id": "lab07-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch

import peakmem

peakmem.lab("lab07_mixed_precision")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_num_threads(1)  # for networks as small as these, threads cost more time than they save
print(
    "Bytes are measured on the GPU where there is one. On the CPU the meter counts live storages:"
)
print(
    "they stand for what a GPU's allocator would be asked for. The small trainings run on the CPU"
)
print("in either case, so that you see the losses that the text speaks of.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-autocast_dtype-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.1 What runs in 16 bits? (2 points, 10 minutes)
#
# Not every operator takes 16 bits well. A product of matrices does: each result is rounded once, the
# sum inside is kept in float32 by the hardware, and that is where the time goes. A long sum does not:
# you saw in lab 1 how it stalls. An exponential leaves float16's range above $e^{11}$. So
# `torch.autocast` keeps two lists, and decides operator by operator.
#
# On CUDA it runs in 16 bits: `matmul`, `linear`, `conv2d`, `bmm`, `scaled_dot_product_attention`.
# It runs in float32: `softmax`, `log_softmax`, `layer_norm`, `sum`, `exp`, `log`, `norm`,
# `cross_entropy`, `mse_loss`. (What is on neither list runs in the widest dtype of its inputs.)
#
# Write `autocast_dtype(op: str, low: str) -> str`. It returns `low` (such as `"bfloat16"`) or
# `"float32"` for these fourteen operators.
#
# **Convention:** any other name raises `ValueError`.
#
# *Example:* `autocast_dtype("bmm", "float16")` is `"float16"`, and `autocast_dtype("exp", "float16")`
# is `"float32"`.
#
# **Predict first.** `scaled_dot_product_attention` has a softmax inside. In which dtype does it run
# when `low` is `"bfloat16"`?

# %%
predicted_attention_dtype = None  # your prediction, a string


# %% nbgrader={"grade": false, "grade_id": "lab07-autocast_dtype-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def autocast_dtype(op: str, low: str) -> str:
    """Return the dtype in which autocast on CUDA runs an operator: `low` or "float32"."""
    ### BEGIN SOLUTION
    if op in {"matmul", "linear", "conv2d", "bmm", "scaled_dot_product_attention"}:
        return low
    sums = {"softmax", "log_softmax", "layer_norm", "sum", "norm", "cross_entropy", "mse_loss"}
    if op in sums | {"exp", "log"}:
        return "float32"
    raise ValueError(f"{op!r} is on neither of autocast's lists")
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-autocast_dtype-check", "locked": true, "schema_version": 3, "solution": false, "task": false, "points": 0}
# Self-check of 7.1, what runs in 16 bits
assert autocast_dtype("matmul", "float16") == "float16", "products of matrices run in `low`"
assert autocast_dtype("linear", "bfloat16") == "bfloat16", "return `low`, whichever it is"
assert autocast_dtype("softmax", "float16") == "float32", "softmax takes exponentials and sums"
assert autocast_dtype("mse_loss", "float16") == "float32", "a loss is a long mean: float32"
try:
    answer = autocast_dtype("no_such_op", "float16")
except ValueError:
    answer = None
assert answer is None, f"an unknown operator raises ValueError, but yours returned {answer!r}"
attention = autocast_dtype("scaled_dot_product_attention", "bfloat16")
assert attention == "bfloat16", f"attention is mostly products of matrices, but got {attention}"
print(f"Attention runs in {attention}; you predicted {predicted_attention_dtype}.")
print("Its kernel keeps the softmax in float32 inside, where nobody has to store it.")

# %% nbgrader={"grade": true, "grade_id": "lab07-autocast_dtype", "locked": true, "schema_version": 3, "solution": false, "task": false, "points": 2}
# Exercise 7.1, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-autocast_dtype", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-model-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## The model of this lab
#
# A small GPT learns which token follows which. It has 2 layers, 32 features and 32 tokens, and sees
# 256 tokens at a time: all of it runs on a CPU in seconds.
#
# Large models differ in one thing that matters here: the loss is a mean over a **huge** batch, of
# some millions of tokens, cut into micro-batches. Each of them adds its share, `loss / 65536` here,
# so that a batch has 16.8 million tokens. That factor stands in every gradient. To save you 65,535
# runs we take all micro-batches to be alike: we run one, and multiply by 65536 when the step is made.
# The loss is worked out in float32 in all precisions, as autocast does it.

# %% nbgrader={"grade": false, "grade_id": "lab07-model", "locked": true, "schema_version": 3, "solution": false, "task": false}
from peakmem.models import ModelShape
from peakmem.nn import GPT

PARTS = 65536  # micro-batches in one batch


class LanguageModel(torch.nn.Module):
    """model(tokens, targets) is this micro-batch's share of the batch's mean loss."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.gpt = GPT(ModelShape("tiny", n_layers=2, d_model=32, n_heads=2, vocab=32, context=16))
        for module in self.modules():
            if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
                torch.nn.init.normal_(module.weight, std=0.3)

    def forward(self, tokens, targets):
        logits = self.gpt(tokens).float()  # (batch, length, vocab)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()) / PARTS


torch.manual_seed(1)
follower = torch.randperm(32)  # of each token
TOKENS = torch.randint(32, (16, 16))  # (batch, length)
TARGETS = follower[TOKENS]

model = LanguageModel()
model(TOKENS, TARGETS).backward()
GRADIENTS = [parameter.grad for parameter in model.parameters()]
sizes = torch.cat([gradient.flatten() for gradient in GRADIENTS]).abs()
print(f"{len(sizes):,} gradients in float32, the median is 2^{sizes.median().log2():.1f}")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-flushed_fraction-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.2 What is flushed to zero? (2 points, 15 minutes)
#
# The smallest positive number of float16 is $2^{-24}$, about 6e-8. Half of that or less rounds to 0:
# it is *flushed*. bfloat16 has float32's exponents and goes down to $2^{-133}$. So the same gradients
# can be gone in one format and safe in another of the same size.
#
# Write `flushed_fraction(grads: list, dtype: str, scale: float) -> float`. `grads` is a list of
# float32 tensors of any shapes. Of all their values that are not 0, return the share that becomes 0
# when it is multiplied by `scale` and then cast to `dtype`.
#
# **Convention:** `dtype` is `"float16"` or `"bfloat16"`, anything else raises `ValueError`. Count over
# all tensors together. Return 0.0 where no value is nonzero. Leave the tensors as they are.
#
# *Example:* of the values 1e-8, 1e-3 and 0, with `"float16"` and `scale=1.0`, one of two is flushed:
# 0.5. With `scale=8.0` it is 8e-8, which survives: 0.0.
#
# **Predict first.** Which share of the model's gradients above is flushed in float16?

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


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-flushed_fraction-check", "locked": true, "schema_version": 3, "solution": false, "task": false, "points": 0}
# Self-check of 7.2, what is flushed to zero
example = [torch.tensor([1e-8, 1e-3, 0.0])]
share = flushed_fraction(example, "float16", 1.0)
assert abs(share - 1 / 3) > 1e-6, "a gradient that was 0 before does not count"
assert share == 0.5, f"one of the example's two nonzero values is flushed, not {share}"
assert flushed_fraction(example, "float16", 8.0) == 0.0, "scaled by 8 nothing is flushed"
assert flushed_fraction(example, "bfloat16", 1.0) == 0.0, "bfloat16 goes down to 2^-133"
assert flushed_fraction([torch.tensor([2.0**-24])], "float16", 1.0) == 0.0, "subnormals survive"
share = flushed_fraction([torch.tensor([4e-8])], "float16", 1.0)
assert flushed_fraction([torch.tensor([1e5])], "float16", 1.0) == 0.0, "1e5 is inf, and not 0"
assert share == 0.0, "4e-8 is below 2^-24, but nearer to it than to 0: only half of it is flushed"
share = flushed_fraction([torch.tensor([1e-8]), torch.ones(3)], "float16", 1.0)
assert share == 0.25, f"count over all tensors together: 1 of 4, not {share}"
assert flushed_fraction([torch.zeros(2)], "float16", 1.0) == 0.0, "no nonzero value: 0.0"
for dtype in ("float16", "bfloat16"):
    print(f"{dtype:9} {flushed_fraction(GRADIENTS, dtype, 1.0):.1%} of the model's gradients")
print(f"You predicted {predicted_flushed} for float16.")

# %% nbgrader={"grade": true, "grade_id": "lab07-flushed_fraction", "locked": true, "schema_version": 3, "solution": false, "task": false, "points": 2}
# Exercise 7.2, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-flushed_fraction", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-best_scale-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.3 The best scale (1 point, 10 minutes)
#
# Multiplied by a scale, all gradients move up together. Small ones are saved as long as the largest
# one does not overflow. A power of two is best: it changes the exponent only, and rounds nothing.
#
# Write `best_scale(grads: list) -> float`: the largest power of two from $2^{-24}$ to $2^{24}$ with
# which **all** scaled values stay finite in float16.
#
# **Convention:** what counts is the value after the cast. The largest number is 65504, and what lies
# below 65520, halfway to where the next would be, is rounded to it. Where there is no value at
# all, or all are 0, every scale does, so the answer is $2^{24}$.
#
# *Example:* the largest gradient is -3.0. $3 \cdot 2^{14} = 49152$ is finite, $3 \cdot 2^{15}$ is not:
# the best scale is 16384.
#
# **Predict first.** To which exponent of two does the model above allow you to scale?

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


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-best_scale-check", "locked": true, "schema_version": 3, "solution": false, "task": false, "points": 0}
# Self-check of 7.3, the best scale
scale = best_scale([torch.tensor([1.0, -3.0])])
assert scale != 32768, "the sign does not matter: -3 overflows where 3 does"
assert scale == 16384, f"the example's best scale is 16384, not {scale}"
assert best_scale([torch.ones(2), torch.tensor([3.0])]) == 16384, "look at all tensors"
assert best_scale([torch.tensor([65519.0])]) == 1, "65519 rounds to 65504, which is finite"
assert best_scale([torch.tensor([65520.0])]) == 0.5, "65520 rounds to inf"
assert best_scale([torch.zeros(3)]) == 2.0**24, "zeros may be scaled as far as you like"
scale = best_scale(GRADIENTS)
print(f"The best scale is 2^{math.log2(scale):.0f}; you predicted 2^{predicted_exponent}.")
print(f"With it {flushed_fraction(GRADIENTS, 'float16', scale):.1%} are flushed.")

# %% nbgrader={"grade": true, "grade_id": "lab07-best_scale", "locked": true, "schema_version": 3, "solution": false, "task": false, "points": 1}
# Exercise 7.3, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-best_scale", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-ranges-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### See the gradients move
#
# *Figure.* Below, each step-like line is a histogram of $\log_2$ of the gradients' sizes, before and
# after scaling. The shaded columns with their bars at the foot are what float16 and bfloat16 can hold.
# bfloat16's goes on far beyond both edges of the picture.

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab07-ranges", "locked": true, "schema_version": 3, "solution": false, "task": false}
from peakmem import plots


def exponents(scale):
    values = torch.cat([gradient.flatten() for gradient in GRADIENTS]) * scale
    return values[values != 0].abs().log2().numpy()


figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
plots.gradient_histogram(
    axes,
    {"as they are": exponents(1.0), "scaled": exponents(best_scale(GRADIENTS))},
    {"float16": (-25, 16), "bfloat16": (-134, 128)},
)
axes.set_xlim(-50, 26)
plt.show()

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-loss_scaler-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.4 The loss scaler (5 points, 30 minutes)
#
# Exercise 7.2 showed how many gradients float16 flushes: the loss is a mean over a batch, so each
# carries a factor of 1 / batch. And a gradient of 0 is no small error. That weight stops learning.
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
from autograder.grading.stock import score

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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-master_weights-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.5 Master weights (4 points, 25 minutes)
#
# The gradients are saved; now the *update* is in danger. Just below 1 float16's numbers are
# $2^{-11}$ apart, about 0.0005. A weight of 1 minus an update of 0.0002 is nearest to 1: the update is
# lost, and so are a thousand like it. Scaling is no help, as weights cannot be scaled.
#
# So keep a second copy of the weights in float32, the **masters**. Forward and backward use a copy
# rounded to 16 bits. The update is made on the masters, where small ones add up, and then the masters
# are rounded into the copy afresh.
#
# Write the class `MasterWeights(lr, dtype=torch.float16)`:
# - `load(tensors)` takes a list of float32 tensors and keeps its own float32 copies of them in the
#   list `master`. It makes the list `params`: leaf tensors in `dtype` with `requires_grad`.
# - `step()` makes a step of plain SGD: for each param with a gradient, `master - lr * gradient`, in
#   float32. Then each param is its master, rounded. Where `.grad` is `None`, both stay as they are.
#
# **Convention:** gradients come in `dtype`, unscaled. The tensors given to `load` do not change.
# `torch.amp` and `torch.autocast` are not allowed.
#
# *Points:* small updates survive 2, the low copy is the rounded master 1, first load and `None` 1.
#
# *Example:* a weight of 1.0, `lr=0.0008`, and a gradient of 0.25 at each of 4 steps: the master ends at
# 0.9992, and the float16 copy at the number nearest to it, 0.99902. Float16 alone would stay at 1.
#
# **Predict first.** A bfloat16 weight of 1.0 gets 100 updates of -0.001, without a master. Where does
# it end?

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


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-master_weights-check", "locked": true, "schema_version": 3, "solution": false, "task": false, "points": 0}
# Self-check of 7.5, master weights
weights = MasterWeights(lr=0.0008)
start = [torch.tensor([1.0]), torch.tensor([1.0001])]
weights.load(start)
assert weights.params[0].dtype == torch.float16, "params are in `dtype`"
assert weights.params[0].requires_grad, "params require a gradient"
assert weights.params[0].is_leaf, "params are leaves"
assert weights.master[1].item() == start[1].item(), "load keeps masters unrounded"
for _ in range(4):
    weights.params[0].grad = torch.tensor([0.25], dtype=torch.float16)
    weights.step()
master, param = weights.master[0].item(), weights.params[0].item()
assert master != 1.0, "the master did not move: update it in float32"
assert abs(master - 0.9992) < 1e-6, f"four updates of 0.0002 lead to 0.9992, not {master}"
assert param == torch.tensor(master).half().item(), "after a step, params are the rounded masters"
assert start[0].item() == 1.0, "step changed the tensor that was given to load: clone it"
assert weights.master[1].item() == start[1].item(), "a grad of None leaves its master alone"
tiny = MasterWeights(lr=2.0**-14)
tiny.load([torch.tensor([0.0])])
tiny.params[0].grad = torch.tensor([2.0**-14], dtype=torch.float16)
tiny.step()
assert tiny.master[0].item() == -(2.0**-28), "lr * gradient is 0 in float16: form it in float32"
alone = torch.tensor(1.0, dtype=torch.float16)
for _ in range(4):
    alone -= 0.0002
print(f"The master ends at {master:.4f}, its copy at {param:.5f}, float16 alone at {alone.item()}.")
alone = torch.tensor(1.0, dtype=torch.bfloat16)
for _ in range(100):
    alone -= 0.001
print(f"bfloat16 alone ends at {alone.item()}; you predicted {predicted_weight}.")

# %% nbgrader={"grade": true, "grade_id": "lab07-master_weights", "locked": true, "schema_version": 3, "solution": false, "task": false, "points": 4}
# Exercise 7.5, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-master_weights", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-training_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.6 What halves, and what does not? (2 points, 10 minutes)
#
# Now count. These are the recipes of lab 3, in bytes a parameter:
#
# | recipe | weights | gradients | master weights | each of Adam's two moments | activations |
# |---|---|---|---|---|---|
# | `"fp32"` | 4 | 4 | 0 | 4 | as in float32 |
# | `"mixed"` | 2 | 2 | 4 | 4 | half |
# | `"mixed_fp32_grads"` | 2 | 4 | 4 | 4 | half |
# | `"bf16"` | 2 | 2 | 0 | 2 | half |
# | `"sgd"` | 4 | 4 | 0 | 0 | as in float32 |
#
# Write `training_bytes(n_params: int, activation_bytes_fp32: int, recipe: str) -> dict` with exactly
# the keys `"weights"`, `"gradients"`, `"master_weights"`, `"first_moment"`, `"second_moment"` and
# `"activations"`.
#
# **Convention:** whole bytes; `activation_bytes_fp32`, a multiple of 4, is what activations take in
# float32; an unknown recipe raises `ValueError`.
#
# *Example:* `training_bytes(10, 400, "mixed")` has 20, 20, 40, 40, 40 and 200.
#
# **Predict first.** GPT-3 has 175 billion parameters. How many GB fewer do all entries but the
# activations take in `"mixed"` than in `"fp32"`?

# %%
predicted_saving_gb = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab07-training_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def training_bytes(n_params: int, activation_bytes_fp32: int, recipe: str) -> dict[str, int]:
    """Return the bytes of a training step by what they are for."""
    ### BEGIN SOLUTION
    sizes = {
        "fp32": (4, 4, 0, 4, 4),
        "mixed": (2, 2, 4, 4, 4),
        "mixed_fp32_grads": (2, 4, 4, 4, 4),
        "bf16": (2, 2, 0, 2, 2),
        "sgd": (4, 4, 0, 0, 0),
    }
    if recipe not in sizes:
        raise ValueError(f"{recipe!r} is unknown; use one of {', '.join(sizes)}")
    keys = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
    found = {key: size * n_params for key, size in zip(keys, sizes[recipe], strict=True)}
    return {**found, "activations": activation_bytes_fp32 * sizes[recipe][0] // 4}
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-training_bytes-check", "locked": true, "schema_version": 3, "solution": false, "task": false, "points": 0}
# Self-check of 7.6, what halves and what does not
found = training_bytes(10, 400, "mixed")
assert sorted(found) == sorted(
    ["weights", "gradients", "master_weights", "first_moment", "second_moment", "activations"]
), f"the dict needs exactly the six keys, but yours are {list(found)}"
assert found["master_weights"] == 40, "masters are in float32, 4 bytes each"
assert found["activations"] == 200, "activations in 16 bits take half"
whole = not any(torch.as_tensor(n_bytes).is_floating_point() for n_bytes in found.values())
assert whole, f"bytes are whole numbers: divide with //, not as in {found}"
assert list(training_bytes(10, 400, "sgd").values()).count(0) == 3, "plain SGD keeps no state"
assert training_bytes(10, 400, "sgd")["activations"] == 400, "in float32 nothing is halved"
for recipe in ("fp32", "mixed", "mixed_fp32_grads", "bf16", "sgd"):
    found = training_bytes(175 * 10**9, 0, recipe)
    print(f"{recipe:17} GPT-3 takes {sum(found.values()) / 1e9:5.0f} GB beside activations")
saving = sum(training_bytes(175 * 10**9, 0, "fp32").values())
saving -= sum(training_bytes(175 * 10**9, 0, "mixed").values())
print(f"'mixed' saves {saving / 1e9:.0f} GB of them; you predicted {predicted_saving_gb}.")

# %% nbgrader={"grade": true, "grade_id": "lab07-training_bytes", "locked": true, "schema_version": 3, "solution": false, "task": false, "points": 2}
# Exercise 7.6, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-training_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-copies-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### What autocast keeps
#
# `torch.autocast` leaves the weights in float32 and casts them where they are used. Backward needs the
# cast copies again, so they stay until then. A model of eight 512 x 512 layers has 8 MiB of weights,
# so a copy of each is 0.5 MiB. Seven of them stay: the first layer's would only serve the gradient of
# the input, which nobody wants. What is live after forward, and what is left of it?
#
# **Predict first.** With few tokens, does autocast take more or less than float32?

# %%
predicted_autocast = None  # your prediction, "more" or "less"


# %% tags=["demo"] nbgrader={"grade": false, "grade_id": "lab07-copies", "locked": true, "schema_version": 3, "solution": false, "task": false}
from peakmem.meter import measure_call


def kept_mib(batch, precision):
    """Return MiB that forward leaves behind, on a fresh model."""
    layers = [torch.nn.Linear(512, 512, bias=False) for _ in range(8)]
    model = torch.nn.Sequential(*(part for layer in layers for part in (layer, torch.nn.ReLU())))
    dtype = torch.bfloat16 if precision == "all bfloat16" else torch.float32
    model, x = model.to(DEVICE, dtype), torch.randn(batch, 512, device=DEVICE, dtype=dtype)

    def forward(x):
        with torch.autocast(DEVICE, torch.bfloat16, enabled=precision == "autocast"):
            return model(x)

    found = measure_call(forward, x, track=[model], warm_up=1)
    return (found.live_after_bytes - found.live_before_bytes) / 2**20


for batch in (64, 4096):
    in_float32 = 8 * batch * 512 * 4 / 2**20  # the output of each ReLU
    # The first layer's cast input is kept as well: a ninth activation in 16 bits.
    predictions = {
        "float32": in_float32,
        "all bfloat16": in_float32 / 2,
        "autocast": in_float32 / 2 * 9 / 8 + 7 * 0.5,
    }
    for precision, predicted in predictions.items():
        measured = kept_mib(batch, precision)
        print(
            f"{batch:5} tokens, {precision:12} {predicted:6.2f} MiB predicted, "
            f"{measured:6.2f} measured, ratio {predicted / measured:.3f}"
        )
print(f"You predicted that autocast takes {predicted_autocast} with few tokens.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-step-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Your count beside a whole step
#
# Now set `training_bytes` beside a step that really runs: a GPT of 0.9 million parameters, 1024 tokens
# and Adam, in three ways. `"mixed"` has bfloat16 weights and gradients, and float32 masters. Autocast is
# no row of your table: weights, gradients and moments are those of `"fp32"`, the activations halve, and
# the cast copies come on top, 2 bytes a parameter. What activations take in float32 is measured first:
# all that forward and the loss leave behind.
#
# **Predict first.** By which factor does the peak shrink in `"mixed"`?

# %%
predicted_shrink = None  # your prediction, such as 2.0


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab07-step", "locked": true, "schema_version": 3, "solution": false, "task": false}
from tqdm.auto import tqdm

from peakmem.meter import measure

SHAPE = ModelShape("small", n_layers=4, d_model=128, n_heads=4, vocab=512, context=128)


def loss_of(gpt, tokens, way):
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=way == "autocast"):
        logits = gpt(tokens)  # (batch, length, vocab)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def build_step_in(way):
    def build_step(device):
        gpt = GPT(SHAPE).to(device)
        weights = list(gpt.parameters())
        masters = [w.detach().clone() for w in weights] if way == "mixed" else weights
        gpt.to(torch.bfloat16 if way == "mixed" else torch.float32)
        adam = torch.optim.Adam(masters)
        tokens = torch.randint(512, (8, 128), device=device)

        def step():
            loss_of(gpt, tokens, way).backward()
            if way == "mixed":
                for master, weight in zip(masters, weights, strict=True):
                    master.grad = weight.grad.float()
            adam.step()
            if way == "mixed":
                with torch.no_grad():
                    for master, weight in zip(masters, weights, strict=True):
                        weight.copy_(master)
                adam.zero_grad()  # the float32 gradients were for the step only
            gpt.zero_grad(set_to_none=False)  # the others stay, as your table counts them

        return step

    return build_step


gpt = GPT(SHAPE).to(DEVICE)
tokens = torch.randint(512, (8, 128), device=DEVICE)
found = measure_call(loss_of, gpt, tokens, "fp32", warm_up=1)
kept = (found.live_after_bytes - found.live_before_bytes) // 4 * 4
n = sum(parameter.numel() for parameter in gpt.parameters())
autocast = training_bytes(n, kept // 8 * 4, "fp32")
predictions = {
    "fp32": sum(training_bytes(n, kept, "fp32").values()),
    "autocast": sum(autocast.values()) + 2 * n,
    "mixed": sum(training_bytes(n, kept, "mixed").values()),
}
del gpt, found
print("MiB       predicted  measured  ratio  of it logits and temporary tensors")
peaks = {}
for way in tqdm(predictions):
    ledger = measure(build_step_in(way))
    peaks[way] = ledger.peak_bytes
    owners = ledger.by_owner()
    passing = (owners.get("logits", 0) + owners.get("temporary", 0)) / 2**20
    predicted, measured = predictions[way] / 2**20, peaks[way] / 2**20
    print(
        f"{way:9} {predicted:9.1f} {measured:9.1f} {predicted / measured:6.2f} {passing:8.1f}",
        flush=True,
    )
print(f"'mixed' shrinks the peak {peaks['fp32'] / peaks['mixed']:.2f} times; ", end="")
print(f"you predicted {predicted_shrink}.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-step-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the ratios show.* A ratio below 1 says that more was live than you counted. The peak stands
# where backward begins. There the logits and their gradient are live beside all that your table has
# (the last column; what the loss keeps is among your activations already). Autocast is furthest off:
# it adds `x + f(x)` in float32, and layer norms read and write float32, so not all activations halve.
# And the peak of `"mixed"` is not half: masters and moments stay in float32. It is the activations
# that halve, so the more tokens a step has, the more the 16 bits save.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-train-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 7.7 Train in low precision (4 points, 30 minutes)
#
# Put it together. Write `train(model, batches, precision, lr=0.1)`, which trains with plain SGD, one
# step a batch, and returns the list of losses, as Python floats.
# - `model(*batch)` is the loss of a batch (a tuple of integer tensors). The model's parameters are in
#   float32: **they are the masters**, and are updated in place.
# - `precision` is `"float32"`, `"float16"` or `"bfloat16"`. Forward and backward run on copies of the
#   parameters in that dtype. `torch.func.functional_call(model, copies, batch)` calls the model with
#   other tensors in place of its parameters; `copies` is a dict from name to tensor, and
#   `model.named_parameters()` has the names.
# - In float16 the loss is scaled. Divide the gradients **in float32**: in float16 they would vanish
#   a second time. A step with an `inf` or a `NaN` anywhere is skipped for all weights, and not tried
#   again; its loss is still listed. Your `LossScaler` can do it: give the float32 parameters the gradients, and it an optimizer on them.
#
# **Convention:** the losses are unscaled, as they were before each step. `torch.amp` and
# `torch.autocast` are not allowed.
#
# *Points:* float32 1, float16 keeps up where naive float16 does not 2, bfloat16 1. In float16 the
# weights have to cover 75 % of float32's way down the loss, in bfloat16 95 %, and a step in either may
# take at most 80 % of float32's bytes, by the meter.
#
# *Example:* after `train(model, [batch] * 3, "float32")` the list has 3 losses, each lower than the
# one before.
#
# **Predict first.** Of these four, which follow float32's curve closely: (a) naive float16, (b)
# float16 with scaling but without masters, (c) float16 with both, (d) bfloat16 with masters?

# %%
predicted_to_follow = None  # your prediction, such as "a b"


# %% nbgrader={"grade": false, "grade_id": "lab07-train-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train(
    model: torch.nn.Module, batches: list[tuple], precision: str, lr: float = 0.1
) -> list[float]:
    """Train with SGD, forward and backward in `precision`; return the loss of each step."""
    ### BEGIN SOLUTION
    dtype = getattr(torch, precision)
    scaler = LossScaler() if precision == "float16" else LossScaler(initial=1.0, growth=1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    masters = dict(model.named_parameters())
    losses = []
    for batch in batches:
        copies = {name: p.detach().to(dtype).requires_grad_() for name, p in masters.items()}
        loss = torch.func.functional_call(model, copies, batch)
        losses.append(loss.item())
        scaler.scale(loss).backward()
        for name, master in masters.items():
            master.grad = copies[name].grad.float()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return losses
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab07-train-check", "locked": true, "schema_version": 3, "solution": false, "task": false, "points": 0}
# Self-check of 7.7, train in low precision
start = torch.cat([p.detach().flatten() for p in LanguageModel().parameters()])
way = {}
for precision in ("float32", "float16", "bfloat16"):
    model = LanguageModel()
    losses = train(model, [(TOKENS, TARGETS)] * 3, precision, lr=0.001 * PARTS)
    assert len(losses) == 3, "one loss for each batch"
    assert abs(losses[0] * PARTS / 4.95 - 1) < 0.05, "the first loss is 4.95 / PARTS, unscaled"
    assert all(p.dtype == torch.float32 for p in model.parameters()), "the model stays float32"
    assert losses[0] > losses[1] > losses[2], f"in {precision} the loss did not fall: {losses}"
    moved = torch.cat([p.detach().flatten() for p in model.parameters()]) - start
    way[precision] = moved
for precision in ("float16", "bfloat16"):
    ratio = (way[precision].norm() / way["float32"].norm()).item()
    print(f"In {precision} the weights moved {ratio:.3f} times as far as in float32.")
    assert 0.95 < ratio < 1.05, f"in {precision} updates are lost, or too large"
    still = ((way[precision] == 0) & (way["float32"] != 0)).float().mean().item()
    assert still < 0.05, f"in {precision} {still:.0%} of the weights stay: divide in float32"


large = [(TOKENS.repeat(8, 1), TARGETS.repeat(8, 1))]
rise = {}
for precision in ("float32", "float16", "bfloat16"):
    model = LanguageModel()
    rise[precision] = measure_call(train, model, large, precision, device="cpu").rise_bytes
    share = rise[precision] / rise["float32"]
    print(f"A step in {precision} takes {share:.0%} of float32's bytes.")
    assert precision == "float32" or share < 0.8, "run forward and backward on 16-bit copies"


class Burst(LanguageModel):
    """Its gradients overflow in float16."""

    def forward(self, tokens, targets):
        return super().forward(tokens, targets) * 2.0**40


model = Burst()
losses = train(model, [(TOKENS, TARGETS)] * 2, "float16", lr=1e-9)
assert len(losses) == 2, "the loss of a step that was skipped is listed, too"
moved = torch.cat([p.detach().flatten() for p in model.parameters()]) - start
assert (moved == 0).all(), "after an overflow all weights have to be as they were"

# %% nbgrader={"grade": true, "grade_id": "lab07-train", "locked": true, "schema_version": 3, "solution": false, "task": false, "points": 4}
# Exercise 7.7, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab07-train", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-experiment-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### The experiment
#
# The GPT again, trained five times from the same weights, on the same batch, by the same SGD. Three of
# the runs are your `train`. The other two are what happens without its parts: `model.half()` and a step
# on the 16-bit weights, with and without a scaled loss.
#
# *Figure.* Left, the loss of each step for the five runs. Right, the gradients of the first step in
# naive and in scaled float16, as histograms of $\log_2$ of their sizes; the scaled ones are shown
# after they were divided by the scale. What is 0 is not on a histogram, so count the areas.

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab07-experiment", "locked": true, "schema_version": 3, "solution": false, "task": false}
STEPS, LR = 80, 0.001 * PARTS


def train_without_masters(scale, lr=LR):
    """Train in float16 alone; return the losses, and the first step's gradients in float32."""
    model = LanguageModel().half()
    losses, first, lost = [], None, 0
    for _ in range(STEPS):
        model.zero_grad()
        loss = model(TOKENS, TARGETS)
        losses.append(loss.item() * PARTS)
        (loss * scale).backward()
        gradients = [p.grad.float() / scale for p in model.parameters()]
        first = first or gradients
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                before = parameter.clone()
                parameter.copy_(parameter.float() - lr * gradient)
                lost += int(((parameter == before) & (gradient != 0)).sum())
    return losses, first, lost


def train_yours(precision, lr=LR):
    batches = [(TOKENS, TARGETS)] * STEPS
    return [loss * PARTS for loss in train(LanguageModel(), batches, precision, lr=lr)]


runs, first, lost = {}, {}, {}
for name in tqdm(["float32", "naive float16", "scaled float16", "float16", "bfloat16"]):
    if name in ("naive float16", "scaled float16"):
        found = train_without_masters(1.0 if name.startswith("naive") else 2.0**16)
        runs[name], first[name], lost[name] = found
    else:
        runs[name + (" + masters" if name != "float32" else "")] = train_yours(name)

figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
plots.loss_curves(left, runs)
left.get_legend().remove()
left.legend(loc="lower left", frameon=False, handlelength=3)
values = {name: torch.cat([g.flatten() for g in grads]) for name, grads in first.items()}
plots.gradient_histogram(
    right,
    {name: v[v != 0].abs().log2().numpy() for name, v in values.items()},
    {"float16": (-25, 16)},
)
right.set_xlim(-46, -10)
plt.show()
full = runs["float32"][0] - runs["float32"][-1]
for name, losses in runs.items():
    covered = (losses[0] - losses[-1]) / full
    print(f"{name:18} from {losses[0]:.3f} to {losses[-1]:.3f}, {covered:4.0%} of float32's way")
for name, v in values.items():
    share = lost[name] / (STEPS * len(v))
    print(f"{name:18} {(v == 0).float().mean():.0%} of the first gradients are 0, ", end="")
    print(f"{share:.0%} of all updates were nonzero and lost")
print(f"You predicted that {predicted_to_follow} follow float32.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-experiment-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the pictures show.* In naive float16 96 % of the gradients are 0, and the loss hardly falls.
# (In 7.2 only a quarter were flushed: there backward ran in float32, and only its results were cast.
# Here every gradient on the way down is cast too, and what is 0 once makes zeros of all below.)
# Scaling alone brings the gradients back, yet about half of the way is lost: most updates are below
# half a gap of the float16 weights. With scaling **and** masters float16 follows float32 so closely
# that the curves cover each other. bfloat16 does so without any scaling, as it has float32's range;
# the masters it needs even more, since its gaps are 8 times as wide.
#
# **How typical is that?** The spread of the weights (0.3, where GPT-2 begins with 0.02), the factor of
# 1/65536 and the small learning rate were chosen so that every effect shows within 80 steps. The cell
# below leaves out the factor, as for an ordinary batch, and takes a learning rate 100 times as high:
# there naive float16 follows float32. What you saw is what waits for those who make the batch large
# and the steps small, as the training of large models does.

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab07-ordinary", "locked": true, "schema_version": 3, "solution": false, "task": false}
ordinary = train_yours("float32", lr=0.1 * PARTS)
# Multiplying the loss by PARTS takes the factor out again: these are the gradients of one batch.
naive, _, _ = train_without_masters(scale=PARTS, lr=0.1 * PARTS)
covered = (naive[0] - naive[-1]) / (ordinary[0] - ordinary[-1])
print(f"float32       from {ordinary[0]:.3f} to {ordinary[-1]:.3f}")
print(f"naive float16 from {naive[0]:.3f} to {naive[-1]:.3f}, {covered:.0%} of float32's way")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab07-practice", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### In practice
#
# With `torch` you write none of this:
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
# The model stays in float32, so its parameters are the masters, and autocast makes the copies. In
# DeepSpeed the same things are keys of the configuration: `fp16.enabled`,
# `fp16.initial_scale_power` (16 means a first scale of $2^{16}$), `fp16.loss_scale_window` (your
# `interval`), `fp16.loss_scale` (0 searches, any other number is fixed); and `bf16.enabled`, which has
# no keys for a scale, for the reason you have just seen.

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
from autograder.grading.stock import score

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
# - Updates below half a gap are lost as well, and no scale helps there: keep float32 masters.
# - Activations halve. Weights, gradients and masters together do not: 2 + 2 + 4 bytes against 4 + 4.
# - bfloat16 has float32's range and needs no scaling, but it needs masters.
# - A GPU's clock is read after the GPU has finished. Fewer bits buy time only where the work is
#   products of matrices and the GPU has units for that format.
