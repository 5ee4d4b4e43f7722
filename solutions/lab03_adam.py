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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 3: the optimizer's state
#
# A model of 7 billion parameters in float32 takes 28 GB. Train it with Adam, and 84 GB more are
# needed before a single activation is stored. Two thirds of those belong to the optimizer, which
# remembers two numbers for every parameter. In this lab you write Adam, see exactly what it
# remembers, and then write it again so that it takes hardly a byte more than that.
#
# **You will be able to**
# - write Adam's step, and say what its state is and why it starts biased;
# - count the bytes a parameter of a recipe, and the largest model that fits a budget;
# - say when which bytes are live, and predict the peak of a training step;
# - measure how many bytes a step takes, on the way and for good;
# - keep the peak of a step down by working in place and on pieces.
#
# | exercise | minutes | points |
# |---|---|---|
# | 3.1 Adam's step | 30 | 5 |
# | 3.2 Bytes a parameter | 10 | 1 |
# | 3.3 The largest model that fits | 10 | 1 |
# | 3.4 Bytes of state | 15 | 2 |
# | 3.5 Measure the state | 15 | 2 |
# | 3.6 What is live, and when | 20 | 2 |
# | 3.7 The peak of a training step | 25 | 3 |
# | 3.8 Adam on a memory diet | 30 | 4 |
# | 3.9 A step inside backward | 20 | 3 |
# | 3.10 In your own words | 15 | 2 |
#
# In all, 190 minutes and 25 points.

# %% nbgrader={"grade": false, "grade_id": "lab03-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import logging
import math
from itertools import pairwise
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

peakmem.lab("lab03_adam")
print(
    "All exercises of this lab measure on the CPU, with a GPU or without: the bytes are the same."
)


def show_figure(figure, alt):
    """Show a figure with a text for those who cannot see it."""
    display(figure, metadata={"image/png": {"alt": alt}})
    plt.close(figure)


# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-adam_step-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.1 Adam's step (5 points, 30 minutes)
#
# Plain gradient descent moves every parameter by `lr` times its gradient. Where gradients are
# large it leaps, and where they are small it hardly moves. Adam wants steps of about the same
# size, `lr`, everywhere. So it divides the gradient by its usual size. And as the gradient of one
# batch is noisy, it takes a mean over the last steps instead.
#
# For that it remembers two numbers for each parameter, the *moments*. After the gradient $g$ of
# the parameter's $t$-th step ($t = 1, 2, \dots$):
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\, g \qquad\qquad v \leftarrow \beta_2 v + (1 - \beta_2)\, g^2$$
#
# $m$ is a running mean of the gradients, $v$ of their squares; $\sqrt{v}$ is the usual size. Both
# start at 0, so at first they are too small: after one step $m$ is only $0.1\,g$ (with
# $\beta_1 = 0.9$). The weights given to gradients so far add up to $1 - \beta_1^t$, and dividing
# by that makes $m$ a true mean. The same goes for $v$. This is the *bias correction*:
#
# $$\hat m = \frac{m}{1 - \beta_1^t} \qquad\qquad \hat v = \frac{v}{1 - \beta_2^t}
# \qquad\qquad \theta \leftarrow \theta - \mathrm{lr}\,\frac{\hat m}{\sqrt{\hat v} + \epsilon}$$
#
# The small $\epsilon$ keeps the division safe where $\hat v$ is 0. It stands *outside* the root.
# The hats are made afresh in each step; what is remembered is $m$ and $v$.
#
# Write `adam_step(params, grads, state, lr, betas, eps)`, which makes one step and returns nothing.
# - `params` are leaf tensors that require a gradient, as a model's parameters are: the same tensors
#   in the same order at every call. Change them **in place**. Some are not contiguous in memory, so
#   `view(-1)` is refused there and `reshape(-1)` makes a copy.
# - `grads` has one gradient for each parameter. Leave the gradients as they are. A gradient may be
#   `None`: this parameter took no part. Then leave it, its moments and its step count alone.
# - `state` is a dict, empty at first. All that must last until the next call goes in there, under
#   keys of your choice. Two models are trained in turns, each with a state of its own.
# - Keep the step count a Python `int`. If it is a float32 tensor, as in torch's own optimizers,
#   then $1 - \beta^t$ is float32 as well, and too coarse beside float64 parameters.
# - Not allowed: `torch.optim`, or any other ready-made optimizer.
#
# You get 1 point for the first step, 2 for the bias correction over 25 steps, 1 for `None`, and
# 1 for the place of `eps`. Your values are compared with torch's in float64. They may be off by a
# billionth of the distance moved.
#
# *Example:* a parameter of 1.0 with gradient 0.5 and `lr=0.1`. In the first step
# $\hat m = 0.5$ and $\hat v = 0.25$, so the new value is $1 - 0.1 \cdot 0.5 / 0.5 = 0.9$.
#
# **Predict first.** The same parameter, but with a gradient of 50 instead of 0.5: what is its value
# after the first step?

# %%
predicted_value = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab03-adam_step-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def adam_step(
    params: list[torch.Tensor],
    grads: list[torch.Tensor | None],
    state: dict,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> None:
    """Make one step of Adam on `params`, in place, and keep its moments in `state`."""
    ### BEGIN SOLUTION
    beta1, beta2 = betas
    with torch.no_grad():
        for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
            if grad is None:
                continue
            if i not in state:
                state[i] = {"t": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
            own = state[i]
            own["t"] += 1
            own["m"] = beta1 * own["m"] + (1 - beta1) * grad
            own["v"] = beta2 * own["v"] + (1 - beta2) * grad**2
            m_hat = own["m"] / (1 - beta1 ** own["t"])
            v_hat = own["v"] / (1 - beta2 ** own["t"])
            param -= lr * m_hat / (v_hat.sqrt() + eps)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab03-adam_step-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 3.1, Adam's step
def one_parameter(value, gradients, step, **options):
    """Return the parameter's values after each call of `step`."""
    param = torch.tensor([value], dtype=torch.float64, requires_grad=True)
    state, values = {}, []
    for gradient in gradients:
        grad = None if gradient is None else torch.tensor([gradient], dtype=torch.float64)
        step([param], [grad], state, **options)
        values.append(param.item())
        assert grad is None or grad.item() == gradient, "the step changed the gradient"
    return values


(value,) = one_parameter(1.0, [0.5], adam_step, lr=0.1)
assert value != 1.0, "the parameter did not move: change it in place, under torch.no_grad()"
assert abs(value - 0.683772) > 1e-4, "the moments start at 0: correct them for that"
assert abs(value - 0.9) < 1e-6, f"the example's new value is 0.9, but yours is {value}"
assert abs(value - (1 - 0.05 / (0.5 + 1e-8))) < 1e-12, (
    "compute in the parameter's dtype, float64 here: moments like the parameter, a count that is an int"
)

values = one_parameter(1.0, [0.5, -2.0, 1.0], adam_step, lr=0.1)
assert abs(values[1] - 0.955950) < 1e-5, (
    f"after gradients 0.5 and -2: 0.955950, not {values[1]:.6f}"
)

values = one_parameter(1.0, [0.5, None, -2.0], adam_step, lr=0.1)
assert values[1] == values[0], "a gradient of None must leave the parameter alone"
assert abs(values[2] - 0.955950) < 1e-5, "a gradient of None must leave moments and count alone"

(value,) = one_parameter(0.0, [0.5], adam_step, lr=1.0, eps=0.5)
assert abs(value + 0.5) < 1e-6, f"with eps=0.5 the step is 0.5 / (0.5 + 0.5), but yours is {-value}"

(value,) = one_parameter(1.0, [50.0], adam_step, lr=0.1)
print(f"With a gradient of 50 the new value is {value:.6f}; you predicted {predicted_value}.")
print("The first step is as long as lr, however large the gradient is: it divides itself out.")

# %% nbgrader={"grade": true, "grade_id": "lab03-adam_step", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.1, 5 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-adam_step", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-loss-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Is it worth it?
#
# The two moments cost memory. What do they buy? A small GPT learns to continue sequences in which each token
# has two possible followers, drawn with equal chances. So no model can get below a loss of ln 2 = 0.69. Both
# optimizers see the same 120 batches, each with three learning rates, and the picture has the best of each.
# SGD is three lines; Adam is yours.
#
# **Predict first.** SGD at its best falls below a loss of 1 after some 75 steps. How many does Adam need?

# %%
predicted_steps = None  # your prediction, a number


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab03-loss", "locked": true, "schema_version": 3, "solution": false, "task": false}
def make_batches(count=120, vocab=64, batch=16, length=32):
    """Return batches of sequences (batch, length + 1), the same at each call."""
    dice = torch.Generator().manual_seed(0)
    followers = torch.randint(vocab, (vocab, 2), generator=dice)
    batches = []
    for _ in range(count):
        tokens = [torch.randint(vocab, (batch,), generator=dice)]
        for _ in range(length):
            pick = torch.randint(2, (batch,), generator=dice)
            tokens.append(followers[tokens[-1], pick])
        batches.append(torch.stack(tokens, dim=1))
    return batches


def sgd_step(params, grads, state, lr):
    with torch.no_grad():
        for param, grad in zip(params, grads, strict=True):
            param -= lr * grad


def losses_of(step, lr):
    """Train a new small GPT; return the loss of each step."""
    torch.manual_seed(0)
    model = GPT(SimpleNamespace(n_layers=2, d_model=64, n_heads=4, vocab=64, context=32))
    params, state, losses = list(model.parameters()), {}, []
    for tokens in batches:
        model.zero_grad(set_to_none=True)
        logits = model(tokens[:, :-1]).flatten(0, 1)
        loss = F.cross_entropy(logits, tokens[:, 1:].flatten())
        loss.backward()
        step(params, [param.grad for param in params], state, lr=lr)
        losses.append(loss.item())
    return losses


batches = make_batches()
arms = [("SGD", sgd_step, lr) for lr in (0.03, 0.1, 0.3)]
arms += [("Adam", adam_step, lr) for lr in (3e-4, 1e-3, 3e-3)]
best = {}
for name, step, lr in tqdm(arms, desc="six trainings"):
    losses = losses_of(step, lr)
    if name not in best or sum(losses[-10:]) < sum(best[name][1][-10:]):
        best[name] = (lr, losses)
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
plots.loss_curves(ax, {f"{name}, lr {lr:g}": losses for name, (lr, losses) in best.items()})
show_figure(
    figure,
    "Loss over 120 steps. Both curves start at 4.2. Adam falls below 1 within about 50 steps; SGD, "
    "whose curve jumps up at first, needs about twice as many. Both end near 0.8.",
)
for name, (lr, losses) in best.items():
    first = next((i for i, loss in enumerate(losses) if loss < 1), None)
    print(f"{name}: best lr {lr:g}, a loss below 1 at step {first}, {losses[-1]:.2f} at the end")
print(f"You predicted {predicted_steps} steps for Adam.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-loss-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the picture.** Adam is at a loss of 1 in about half the steps, and SGD catches up in the end: on
# this easy task. Its step of equal size everywhere helps where gradients differ much from one parameter to
# the next, as in transformers with their embeddings, attention and norms. There SGD needs many more
# steps, if it gets there at all. That is what 8 bytes a parameter are paid for.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-bytes_per_parameter-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.2 Bytes a parameter (1 point, 10 minutes)
#
# You have just seen it: Adam's state is two numbers for each parameter. So everything that a
# training keeps for its parameters can be told in *bytes a parameter*, and the model's size is a
# mere factor. There are five things to count:
#
# - **weights**, which forward and backward compute with;
# - **gradients**;
# - **master weights**: a second copy in float32, where the weights are in 16 bits. A step of
#   Adam is often smaller than the gap between two 16-bit numbers, so it would be lost;
# - **first moment** and **second moment** of the optimizer.
#
# A *recipe* says which of them there are, and in which format:
#
# | recipe | weights | gradients | master weights | moments |
# |---|---|---|---|---|
# | `"fp32"` | float32 | float32 | none | Adam's, float32 |
# | `"mixed"` | float16 | float16 | float32 | Adam's, float32 |
# | `"mixed_fp32_grads"` | bfloat16 | float32 | float32 | Adam's, float32 |
# | `"bf16"` | bfloat16 | bfloat16 | none | Adam's, bfloat16 |
# | `"sgd"` | float32 | float32 | none | none: plain SGD, no momentum |
#
# Write `bytes_per_parameter(recipe)`, which returns a dict with exactly the keys `"weights"`,
# `"gradients"`, `"master_weights"`, `"first_moment"` and `"second_moment"`.
#
# **Convention:** bytes, as whole numbers; 0 for what a recipe does not have; activations and
# temporary values do not count.
#
# **Predict first.** Mixed precision halves weights and gradients. By how many bytes a parameter
# does `"mixed"` get along with less than `"fp32"`?

# %%
predicted_saving = None  # your prediction, in bytes a parameter


# %% nbgrader={"grade": false, "grade_id": "lab03-bytes_per_parameter-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bytes_per_parameter(recipe: str) -> dict:
    """Return the bytes that training keeps for one parameter, by what they are for."""
    ### BEGIN SOLUTION
    keys = ("weights", "gradients", "master_weights", "first_moment", "second_moment")
    sizes = {
        "fp32": (4, 4, 0, 4, 4),
        "mixed": (2, 2, 4, 4, 4),
        "mixed_fp32_grads": (2, 4, 4, 4, 4),
        "bf16": (2, 2, 0, 2, 2),
        "sgd": (4, 4, 0, 0, 0),
    }
    return dict(zip(keys, sizes[recipe], strict=True))
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab03-bytes_per_parameter-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 3.2, bytes a parameter
expected_keys = {"weights", "gradients", "master_weights", "first_moment", "second_moment"}
for recipe in ("fp32", "mixed", "mixed_fp32_grads", "bf16", "sgd"):
    found = bytes_per_parameter(recipe)
    assert set(found) == expected_keys, f"{recipe!r} needs exactly the keys {sorted(expected_keys)}"
    print(f"{recipe:17} {sum(found.values()):3} bytes a parameter: {found}")
assert bytes_per_parameter("sgd")["first_moment"] == 0, "plain SGD remembers nothing"
assert sum(bytes_per_parameter("fp32").values()) == 16, (
    "float32 takes 4 bytes; in fp32 there are weights, gradients and two moments, and no copy"
)
assert bytes_per_parameter("mixed")["master_weights"] == 4, "the master weights are in float32"
saving = 16 - sum(bytes_per_parameter("mixed").values())
print(f"'mixed' saves {saving} bytes a parameter; you predicted {predicted_saving}.")
print("What is halved is paid back by the master weights: it is activations that get smaller.")

# %% nbgrader={"grade": true, "grade_id": "lab03-bytes_per_parameter", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.2, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-bytes_per_parameter", globals())
### END HIDDEN TESTS

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab03-recipes", "locked": true, "schema_version": 3, "solution": false, "task": false}
recipes = ("fp32", "mixed", "mixed_fp32_grads", "bf16", "sgd")
bars = {
    recipe: {part.replace("_", " "): n for part, n in bytes_per_parameter(recipe).items()}
    for recipe in recipes
}
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
plots.stacked_bars(ax, bars, label="bytes a parameter")
show_figure(
    figure,
    "Stacked bars of the bytes a parameter: fp32 16, mixed 16, mixed with fp32 gradients 18, bf16 8, "
    "sgd 8. In fp32 and mixed, the two moments are half of the bar.",
)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-slide-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Where published figures come from
#
# Papers and slides often give the state of a model as "12 bytes a parameter", 16, 18 or 20. All of
# them can be right: they count different things. Here are GPT-3's 175 billion parameters, first
# by the recipes above and then as two figures that are often quoted: 2800 GB for all but the
# activations, and 1400 GB for the moments.

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab03-slide", "locked": true, "schema_version": 3, "solution": false, "task": false}
GPT3 = 175e9  # rounded, as slides do; the exact count of the printed shape is 174,604,259,328
for recipe in ("fp32", "mixed", "mixed_fp32_grads", "bf16"):
    total = GPT3 * sum(bytes_per_parameter(recipe).values())
    print(f"{recipe:17} {total / 1e9:6.0f} GB = {total / 2**30:5.0f} GiB")

print(f"weights in float32      {4 * GPT3 / 1e9:5.0f} GB, in 16 bits {2 * GPT3 / 1e9:.0f} GB")
print(f"two moments in float32  {8 * GPT3 / 1e9:5.0f} GB")
print(f"'optimizer, 12 bytes'   {12 * GPT3 / 1e9:5.0f} GB")
exact = 174_604_259_328
print(f"16 bytes, exact count   {16 * exact / 1e9:5.0f} GB instead of {16 * GPT3 / 1e9:.0f} GB")
print(f"7 billion in float32    {4 * 7e9 / 1e9:5.0f} GB of weights, {12 * 7e9 / 1e9:.0f} GB more")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-slide-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Mind the 12.** Adam itself adds 8 bytes a parameter, two moments in float32: 1400 GB. Slides that
# write "12 bytes x 175 billion = 2100 GB of optimizer state" count one more float32 value. In a
# float32 training that third one is the gradient (three times the weights in all), which SGD has
# too. In mixed precision it is the master copy of the weights. Both sums end at 16 bytes, 2800 GB,
# but for different reasons: 4 + 12 with the gradient among the 12, or 2 + 2 + 12 with the masters.
# So before you compare two figures, ask what each one counts.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-largest_model-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.3 The largest model that fits (1 point, 10 minutes)
#
# Now turn it round. A device has a budget, activations take their share, and what is left goes to
# the parameters. Write `largest_model(recipe, budget_bytes, activation_bytes)`: the largest number
# of parameters whose training fits.
#
# **Convention:** everything is in bytes; what counts is the five things of `bytes_per_parameter`
# and the activations. Exactly full is a fit. Part of a parameter is none. Where not even the
# activations fit, the answer is 0.
#
# *Example:* 1000 bytes, 100 of them for activations, recipe `"fp32"`: 900 bytes hold 56 parameters
# of 16 bytes, and 4 bytes stay free.
#
# **Predict first.** How many billions of parameters can be trained in 80 GB with recipe `"mixed"`,
# if activations take 16 GB?

# %%
predicted_billions = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab03-largest_model-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def largest_model(recipe: str, budget_bytes: int, activation_bytes: int) -> int:
    """Return the largest number of parameters whose training fits into the budget."""
    ### BEGIN SOLUTION
    left = max(0, budget_bytes - activation_bytes)
    return left // sum(bytes_per_parameter(recipe).values())
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab03-largest_model-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 3.3, the largest model that fits
found = largest_model("fp32", 1000, 100)
assert not torch.as_tensor(found).is_floating_point(), (
    "return a whole number: // divides and rounds down"
)
assert found != 62, "the activations need room, too"
assert found == 56, f"the example's answer is 56, not {found}"
assert largest_model("sgd", 88, 8) == 10, "80 bytes are exactly 10 parameters of 8"
assert largest_model("fp32", 1000, 1001) == 0, "a model has no negative number of parameters"
GB, GIB = 10**9, 2**30
for recipe in ("fp32", "mixed", "mixed_fp32_grads", "bf16", "sgd"):
    in_gb = largest_model(recipe, 80 * GB, 16 * GB) / 1e9
    in_gib = largest_model(recipe, 80 * GIB, 16 * GIB) / 1e9
    print(f"{recipe:17} {in_gb:5.2f} billion if GB are meant, {in_gib:5.2f} if GiB are")
print(f"You predicted {predicted_billions} for 'mixed'.")

# %% nbgrader={"grade": true, "grade_id": "lab03-largest_model", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.3, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-largest_model", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-state_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.4 Bytes of state (2 points, 15 minutes)
#
# "8 bytes a parameter" holds for Adam. Other optimizers remember less, and to know how much you
# need the *shapes* of the parameters. Write `state_bytes(shapes, optimizer)`: the bytes that the
# optimizer's state takes for parameters of these shapes (a list of tuples). Let $n$ be the number
# of values in one tensor; each tensor is counted by itself, and the sum is returned.
#
# - `"sgd"`: nothing.
# - `"momentum"`: one float32 value for each parameter.
# - `"adam"`: two.
# - `"adafactor"` (without a first moment): it does not keep the second moment of a matrix but only
#   its mean over each row and over each column. For a tensor of two or more dimensions that is
#   $n / \text{last}$ values and $n / \text{second last}$ values, where "last" and "second last"
#   are the sizes of its last two dimensions. For a vector or a single number ($n$ = 1, shape `()`),
#   all $n$ values. All in float32.
# - `"adam8bit"`: both moments as 1 byte a value, in blocks of 256 values. Each block has one
#   float32 scale *for each moment*. The last block of a tensor may be short, but has a scale too.
#
# **Convention:** bytes of state only, not of parameters or gradients; a whole number. Step
# counters and code tables do not count.
#
# *Points:* all or nothing.
#
# *Example:* one matrix of (100, 30), $n$ = 3000. Momentum 12,000 bytes, Adam 24,000; Adafactor
# 100 + 30 values, 520 bytes; 8-bit Adam 3000 bytes and 12 scales for each moment, 6096 in all.
#
# **Predict first.** GPT-2's embedding is a matrix of (50257, 768). About how many times smaller
# than Adam's is Adafactor's state for it?

# %%
predicted_ratio = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab03-state_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def state_bytes(shapes: list[tuple[int, ...]], optimizer: str) -> int:
    """Return the bytes of an optimizer's state for parameters of these shapes."""
    ### BEGIN SOLUTION
    total = 0
    for shape in shapes:
        n = math.prod(shape)
        if optimizer == "momentum":
            total += 4 * n
        elif optimizer == "adam":
            total += 8 * n
        elif optimizer == "adafactor" and len(shape) >= 2:
            total += 4 * (n // shape[-1] + n // shape[-2])
        elif optimizer == "adafactor":
            total += 4 * n
        elif optimizer == "adam8bit":
            total += 2 * (n + 4 * math.ceil(n / 256))
    return total
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab03-state_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 3.4, bytes of state
for optimizer, expected in (
    ("sgd", 0),
    ("momentum", 12_000),
    ("adam", 24_000),
    ("adafactor", 520),
    ("adam8bit", 6_096),
):
    found = state_bytes([(100, 30)], optimizer)
    assert found == expected, f"(100, 30) under {optimizer}: {expected} bytes, not {found}"
assert state_bytes([(100, 30), (30,)], "adam") == 24_240, "sum over all tensors"
assert state_bytes([(), (7,)], "adafactor") == 32, "what is no matrix keeps all its values"
embedding = [(50257, 768)]
ratio = state_bytes(embedding, "adam") / state_bytes(embedding, "adafactor")
print(f"Adafactor's state for GPT-2's embedding is {ratio:.0f} times smaller than Adam's;")
print(f"you predicted {predicted_ratio}.")

# %% nbgrader={"grade": true, "grade_id": "lab03-state_bytes", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.4, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-state_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-state_bytes-real-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### And the real ones?
#
# Here is what torch's own optimizers keep for a matrix and a vector after one step, as the sum over
# all tensors in their state.


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab03-state_bytes-real", "locked": true, "schema_version": 3, "solution": false, "task": false}
def torch_state_bytes(make):
    """Return the bytes of all tensors in a torch optimizer's state after one step."""
    params = [torch.zeros(shape, requires_grad=True) for shape in ((100, 30), (30,))]
    for param in params:
        param.grad = torch.ones_like(param)
    optimizer = make(params)
    optimizer.step()
    kept = [value for own in optimizer.state.values() for value in own.values()]
    return sum(value.nbytes for value in kept if torch.is_tensor(value))


for name, make in (
    ("sgd", lambda params: torch.optim.SGD(params)),
    ("momentum", lambda params: torch.optim.SGD(params, momentum=0.9)),
    ("adam", lambda params: torch.optim.Adam(params)),
    ("adafactor", lambda params: torch.optim.Adafactor(params)),
):
    ours, real = state_bytes([(100, 30), (30,)], name), torch_state_bytes(make)
    print(f"{name:10} {ours:6} bytes by your formula, {real:6} in torch, {real - ours} more")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-state_bytes-real-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Adam and Adafactor have 8 bytes more: a step counter, one float32 number for each of the two
# tensors. (You need a count for each parameter, too.)
#
# torch has no 8-bit optimizer. Other libraries do; here are the states of torchao's, for one matrix of
# (4096, 4096). The cell measures them if torchao is installed. You need not install it: if it is not
# there, the cell shows what was measured with version 0.18.0.

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab03-state_bytes-torchao", "locked": true, "schema_version": 3, "solution": false, "task": false}
QUOTED = {"AdamW8bit": 34_080_768, "AdamWFp8": 34_078_720, "AdamW4bit": 17_825_920}


def torchao_state_bytes():
    """Return the bytes of torchao's two moments for a matrix of (4096, 4096), and its version."""
    from peakmem.allocations import storages_of

    logging.disable(logging.WARNING)  # torchao reports GPU libraries that it does not find
    try:
        import torchao
        from torchao import optim

        param = torch.zeros(4096, 4096, requires_grad=True)
        found = {}
        for name in QUOTED:
            make = getattr(optim, name)([param])._new_buffer  # as its first step does
            moments = (make(param, signed) for signed in (True, False))
            found[name] = sum(s.nbytes() for moment in moments for s in storages_of(moment))
        return found, f"measured here with torchao {torchao.__version__}"
    except (ImportError, AttributeError):
        return QUOTED, "quoted: measured with torchao 0.18.0, not here"
    finally:
        logging.disable(logging.NOTSET)


real, origin = torchao_state_bytes()
n = 4096 * 4096
print(f"{'your adam':10} {state_bytes([(4096, 4096)], 'adam') / n:.5f} bytes a parameter")
ours = state_bytes([(4096, 4096)], "adam8bit")
print(f"{'adam8bit':10} {ours / n:.5f} bytes a parameter by your formula")
for name, size in real.items():
    print(f"{name:10} {size / n:.5f} bytes a parameter, {size - ours:+,} to adam8bit ({origin})")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-state_bytes-torchao-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# AdamW8bit has 2048 bytes more than your formula: two tables (one for each moment) of the 256 float32 values
# that a code can stand for. AdamWFp8 stores 8-bit floating-point numbers, needs no table, and is your formula
# to the byte. AdamW4bit takes half a byte a value and blocks of 128. What the formula does not tell: torchao
# leaves tensors of under 4096 values, and those that are no whole number of blocks, in float32.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-measured_state_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.5 Measure the state (2 points, 15 minutes)
#
# A formula is a claim. You can also look: a torch optimizer keeps its state in `optimizer.state`, a
# dict from each parameter to what is remembered for it. Write `measured_state_bytes(optimizer)`,
# which adds up the memory that is really held there.
#
# Two things make this less simple than a sum of `tensor.nbytes`. A tensor is only a *view* of a
# piece of memory, its **storage**: `tensor.untyped_storage()`, whose `nbytes()` is its size and
# whose `data_ptr()` says where it lies. A view of one row keeps the storage of the whole matrix
# alive. And several tensors may share one storage, which is there once. The second thing: some
# optimizers keep tensors in dicts, lists and tuples within a parameter's state, nested at will.
#
# **Convention:** the whole bytes of each storage that is reached, each storage once. Step counters
# that are tensors count; Python numbers, parameters and gradients do not. The optimizer must be as
# it was afterwards. Mind that `optimizer.state` is a `defaultdict`: `optimizer.state[param]` makes
# an empty entry where there was none. Before the first step there is nothing: 0 bytes.
#
# *Points:* all or nothing.
#
# *Example:* a state of `{"m": t[:2], "history": [t[2:], 7]}`, with `t` of 5 float32 values: 20
# bytes.
#
# **Predict first.** How many bytes does torch's Adam really keep after a step, for one parameter of
# 1000 float32 values?

# %%
predicted_bytes = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab03-measured_state_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def measured_state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Return the bytes of all storages that the optimizer's state holds, each once."""
    ### BEGIN SOLUTION
    storages = {}

    def visit(thing):
        if torch.is_tensor(thing):
            storage = thing.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
        elif isinstance(thing, dict):
            visit(list(thing.values()))
        elif isinstance(thing, (list, tuple)):
            for part in thing:
                visit(part)

    visit(list(optimizer.state.values()))
    return sum(storages.values())
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab03-measured_state_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 3.5, measure the state
param = torch.zeros(1000, requires_grad=True)
optimizer = torch.optim.Adam([param])
found = measured_state_bytes(optimizer)
assert found == 0, f"before the first step there is no state, but you find {found} bytes"
assert len(optimizer.state) == 0, "you made an entry in the state: read it with .values()"
t = torch.zeros(5)
optimizer.state[param] = {"m": t[:2], "history": [t[2:], 7]}
found = measured_state_bytes(optimizer)
assert found != 8, "look into dicts, lists and tuples as well"
assert found != 40, "two views of one storage: count it once"
assert found == 20, f"the example's state holds 20 bytes, not {found}"

optimizer.state.clear()
param.grad = torch.ones(1000)
optimizer.step()
found = measured_state_bytes(optimizer)
assert found != 8000, "the step counter is a tensor too, of 4 bytes"
assert found == 8004, f"Adam keeps 8004 bytes for 1000 values, not {found}"
print(f"After a step Adam keeps {found} bytes; you predicted {predicted_bytes}.")

# %% nbgrader={"grade": true, "grade_id": "lab03-measured_state_bytes", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.5, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-measured_state_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-step_timeline-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.6 What is live, and when (2 points, 20 minutes)
#
# Bytes a parameter say how much there is, but not *when*. A training that runs out of memory does
# so at one moment: in the first backward pass, in the first step, or in the second forward pass.
# So follow the live bytes from event to event.
#
# Write `step_timeline(param_bytes, activation_bytes, events)`: for each event, the bytes that are
# live just after it. It is float32 training with Adam. Let $P$ be `param_bytes` and $A$
# `activation_bytes`. The events are strings:
#
# | event | what it does |
# |---|---|
# | `"forward"` | makes $A$ of activations. Two forwards before a backward make $2A$ |
# | `"backward"` | frees one $A$. Makes gradients, $P$, if there are none; else it adds to them in place |
# | `"step"` | makes the two moments, $2P$, if they are not there yet. Without gradients it does nothing |
# | `"zero_grad(set_to_none=True)"` | frees the gradients |
# | `"zero_grad(set_to_none=False)"` | writes zeros into them: nothing is freed, nothing is made |
#
# **Convention:** bytes; the parameters are always there, so they are counted from the first event
# on; step counters and temporary values are not. Each backward has a forward before it.
#
# *Points:* all or nothing.
#
# *Example:* $P$ = 10, $A$ = 3, events forward, backward, step, forward: 13, 20, 40, 43.
#
# **Predict first.** $P$ = 10, $A$ = 25. In which iteration is most memory live, the first or the
# second? (Each is forward, backward, step, zero_grad with set_to_none=True.)

# %%
predicted_iteration = None  # your prediction, 1 or 2


# %% nbgrader={"grade": false, "grade_id": "lab03-step_timeline-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def step_timeline(param_bytes: int, activation_bytes: int, events: list[str]) -> list[int]:
    """Return the bytes live just after each event of a float32 training with Adam."""
    ### BEGIN SOLUTION
    activations = gradients = state = 0
    live = []
    for event in events:
        if event == "forward":
            activations += activation_bytes
        elif event == "backward":
            activations -= activation_bytes
            gradients = param_bytes
        elif event == "step" and gradients:
            state = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            gradients = 0
        live.append(param_bytes + activations + gradients + state)
    return live
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab03-step_timeline-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 3.6, what is live, and when
FREE, ZERO = "zero_grad(set_to_none=True)", "zero_grad(set_to_none=False)"
found = step_timeline(10, 3, ["forward", "backward", "step", "forward"])
assert list(found) == [13, 20, 40, 43], f"the example gives 13, 20, 40, 43, not {found}"
found = step_timeline(10, 3, ["forward", "backward", "step", FREE])
assert found[-1] == 30, "set_to_none=True frees the gradients, and the moments stay"
found = step_timeline(10, 3, ["forward", "backward", ZERO])
assert found[-1] == 20, "set_to_none=False frees nothing"
found = step_timeline(10, 3, ["forward", "backward", "forward", "backward"])
assert list(found) == [13, 20, 23, 20], "the second backward adds to the gradients in place"
found = step_timeline(10, 3, ["step", "forward"])
assert list(found) == [10, 13], "without gradients a step does nothing"

iteration = ["forward", "backward", "step", FREE]
live = list(step_timeline(10, 25, 2 * iteration))
for event, level in zip(2 * iteration, live, strict=True):
    print(f"{event:28} {level:3} {'#' * int(level)}")
most = live.index(max(live)) // len(iteration) + 1
print(f"Most is live in iteration {most}; you predicted {predicted_iteration}.")

# %% nbgrader={"grade": true, "grade_id": "lab03-step_timeline", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.6, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-step_timeline", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-meter-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## How much memory does a step take?
#
# Let $P$ be the bytes of all parameters. Gradients take $P$ too, and the two moments $2P$. So
# between steps $4P$ are live. But *during* a step there are intermediate values as well, and the
# training has to fit at its peak.
#
# `MemoryMeter` counts live bytes while a block of code runs. `track` hands it what is there
# already; from then on it sees every operator, and every tensor that is freed. This is torch's own
# Adam in its two usual ways: a loop over the parameters, and `foreach`, which treats all parameters
# together in few large operators (quick on a GPU, and its default there).

# %% nbgrader={"grade": false, "grade_id": "lab03-meter", "locked": true, "schema_version": 3, "solution": false, "task": false}
SHAPES = [(256, 1024)] * 8  # eight equal float32 matrices, 1 MiB each
P = sum(4 * math.prod(shape) for shape in SHAPES)


def new_model():
    """Return parameters of those shapes, and gradients for them."""
    torch.manual_seed(0)
    params = [torch.randn(shape).requires_grad_() for shape in SHAPES]
    return params, [torch.randn(shape) for shape in SHAPES]


def torch_step(foreach):
    """Return the meter's report on torch's first Adam step."""
    params, grads = new_model()
    for param, grad in zip(params, grads, strict=True):
        param.grad = grad
    optimizer = torch.optim.Adam(params, foreach=foreach)
    return measure_call(optimizer.step, device="cpu", track=[params, grads])


for name, foreach in (("for-loop", False), ("foreach", True)):
    found = torch_step(foreach)
    print(
        f"torch, {name:8}: {found.live_before_bytes / P:.2f} P before the step, "
        f"{found.peak_bytes / P:.2f} P at its peak, {found.live_after_bytes / P:.2f} P after it"
    )

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab03-meter-own", "locked": true, "schema_version": 3, "solution": false, "task": false}
params, grads = new_model()
with MemoryMeter("cpu").track(params, grads) as meter:
    state = {}
    adam_step(params, grads, state)
print(
    f"your adam_step: {meter.peak_bytes / P:.2f} P at its peak, {meter.live_bytes / P:.2f} P after"
)
event, live = max(meter.timeline, key=lambda entry: entry[1])
print(f"The peak came with the operator {event}.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-timelines-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### One step, operator by operator
#
# A peak is a moment in a curve. So here is the whole curve, of one training step in its second iteration:
# forward and backward make the gradients, then Adam makes its step, by a for-loop, by `foreach`, and by a
# *fused* kernel, which does all of Adam in a single operator. The eight matrices are used one after
# the other and activations are tiny, so all you see is parameters, moments, gradients and what the
# step makes on the way.
#
# **Predict first.** All three start with parameters and moments, $3P$, and end with the gradients besides,
# $4P$. The for-loop reaches $4.375\,P$, as you have just seen. How many times does its curve touch that
# height? And how high does the fused kernel go?

# %%
predicted_touches = None  # your prediction, a number
predicted_fused_peak = None  # your prediction, in P


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab03-timelines", "locked": true, "schema_version": 3, "solution": false, "task": false}
def step_curve(**options):
    """Return the live bytes, in units of P, after each operator of a second training step."""
    params, _ = new_model()
    optimizer = torch.optim.Adam(params, **options)
    x = torch.ones(1, SHAPES[0][0])

    def training_step():
        optimizer.zero_grad(set_to_none=True)
        sum((x @ param).sum() for param in params).backward()
        optimizer.step()

    training_step()
    optimizer.zero_grad(set_to_none=True)
    meter = MemoryMeter("cpu").track(params, optimizer)
    with meter:
        training_step()
    return [live / P for _, live in meter.timeline]


ways = {"for-loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
figure, panels = plt.subplots(1, 3, figsize=(10, 4), layout="constrained", sharey=True)
for ax, (name, options) in zip(panels, ways.items(), strict=True):
    curve = step_curve(**options)
    touches = sum(live == max(curve) > before for before, live in pairwise(curve))
    plots.live_timelines(ax, {name: curve}, unit="P")
    print(f"{name:8} peaks at {max(curve):.3f} P, which its curve touches {touches} times")
for ax in panels[1:]:
    ax.set_ylabel("")
panels[0].set_ylim(0, 5.6)  # of all three
show_figure(
    figure,
    "Three curves of live memory in units of P. Each rises from 3 P in eight stairs to 4 P while "
    "backward makes the gradients. Then the for-loop makes eight teeth, seven of them up to 4.38 P, foreach one block "
    "up to 5 P, and fused stays at 4 P.",
)
print(f"You predicted {predicted_touches} times (for-loop) and {predicted_fused_peak} P (fused).")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-timelines-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Look at the picture.** The stairs are the gradients, made one matrix after the other. Then the three
# differ. The first of the for-loop's eight teeth is lower than the others. **Why is that, and why** are the peaks $4.375\,P$, $5\,P$ and $4\,P$? The next exercise gives you the pieces, and in
# 3.10 you explain all three in your own words.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-peak_of_step-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.7 The peak of a training step (3 points, 25 minutes)
#
# Where did the temporary values come from? torch's for-loop does this for one parameter after the
# other; only the third line makes new tensors:
#
# ```python
# exp_avg.lerp_(grad, 1 - beta1)
# exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
# denom = (exp_avg_sq.sqrt() / root_of_correction).add_(eps)  # the root, and the quotient
# param.addcdiv_(exp_avg, denom, value=-step_size)
# ```
#
# While a tensor of $b$ bytes has its turn, its root and its quotient are live together: $2b$. And
# the name `denom` still holds what was made for the tensor *before* it, until it is set anew. So:
#
# | `optimizer` | temporary values at the most |
# |---|---|
# | `"for-loop"` | twice a tensor's own bytes + the bytes of the tensor before it, for the tensor where this is most. The first one has none before it |
# | `"foreach"` | the roots of all tensors at once: $P$ |
# | `"fused"` | none: one kernel does it all, value by value |
#
# Now the whole training step, in its second iteration or later: the moments are there. Write
# `peak_of_step(shapes, activation_bytes, optimizer)`, which returns the peak in bytes and the phase
# it comes in, `"backward"` or `"step"`, as a tuple. `shapes` are those of float32 parameters, in
# their order.
#
# **Convention:** bytes. In `"backward"`, parameters, moments, all activations and all gradients count
# as live together (its end, at worst). In `"step"` the activations are gone, and the temporary
# values come in addition. Step counters do not count. There is no tie.
#
# You get 1 point for the right phase, 1 if all your peaks are within 5 % of what the meter
# measures, 1 if they are within 1 %.
#
# *Example:* float32 vectors of 10 and 30 values, $P$ = 160 bytes, with 100 bytes of activations. Backward:
# 4 * 160 + 100 = 740. For-loop step: 640 + (2 * 120 + 40) = 920. So `(920, "step")`.
#
# **Predict first.** For the eight equal matrices of 1 MiB: how many MiB is the peak of a for-loop
# step above $4P$?

# %%
predicted_temporaries_mib = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab03-peak_of_step-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def peak_of_step(
    shapes: list[tuple[int, ...]], activation_bytes: int, optimizer: str
) -> tuple[int, str]:
    """Return the peak of a training step with Adam in bytes, and "backward" or "step"."""
    ### BEGIN SOLUTION
    sizes = [4 * math.prod(shape) for shape in shapes]
    total = sum(sizes)
    temporaries = 0
    if optimizer == "for-loop":
        before = [0, *sizes]
        temporaries = max(2 * own + last for own, last in zip(sizes, before, strict=False))
    elif optimizer == "foreach":
        temporaries = total
    if activation_bytes > temporaries:
        return 4 * total + activation_bytes, "backward"
    return 4 * total + temporaries, "step"
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab03-peak_of_step-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 3.7, the peak of a training step
found = peak_of_step([(10,), (30,)], 100, "for-loop")
assert found[1] == "step", "the for-loop's temporary values take more than the activations here"
assert found[0] != 880, "the for-loop still holds the quotient of the tensor before"
assert found[0] == 920, f"the example's peak is 920 bytes, not {found[0]}"
assert tuple(peak_of_step([(10,), (30,)], 100, "foreach")) == (800, "step"), "foreach: 5 P"
assert tuple(peak_of_step([(10,), (30,)], 100, "fused")) == (740, "backward"), "fused: no temporary"


def second_step(**options):
    """Return the meter's report on the second step of torch's Adam."""
    params, grads = new_model()
    for param, grad in zip(params, grads, strict=True):
        param.grad = grad
    optimizer = torch.optim.Adam(params, **options)
    optimizer.step()
    return measure_call(optimizer.step, device="cpu", track=[params, grads, optimizer])


for name, options in (
    ("for-loop", {"foreach": False}),
    ("foreach", {"foreach": True}),
    ("fused", {"fused": True}),
):
    measured = second_step(**options).peak_bytes
    predicted = peak_of_step(SHAPES, 0, name)[0]
    print(
        f"{name:8} {predicted / 2**20:6.2f} MiB by your formula, {measured / 2**20:6.2f} measured "
        f"({measured / P:.3f} P), ratio {predicted / measured:.4f}"
    )
print(f"For the for-loop you predicted {predicted_temporaries_mib} MiB above 4 P.")

# %% nbgrader={"grade": true, "grade_id": "lab03-peak_of_step", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.7, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-peak_of_step", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-lean_adam_step-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.8 Adam on a memory diet (4 points, 30 minutes)
#
# A step that makes whole tensors on the way needs room for them, and the largest tensor of a
# language model, its embedding, can be a gigabyte. Adam treats every value by itself, though. So
# nothing forces a step to hold more than a few values at a time beside parameters, gradients and
# moments.
#
# Write `lean_adam_step`, which does what `adam_step` does under the same rules, on a budget:
# - **During any call**, the first one included, at most `params + grads + 2P + 1 MiB` may be live.
# - **Between calls**, beside `params` and `grads`, at most `2P + 64 KiB` may be: the two moments,
#   and some room for counters. What you keep in `state`, in globals or elsewhere all counts.
# - Numpy's memory counts like torch's.
#
# You get 2 points for right results, and 2 for keeping the budget, which is measured on float32
# parameters of a few MiB. The meter measures from inside, and the grader compares that with what
# the system says from outside.
#
# Two hints. Operators that end in an underscore work in place: `m.mul_(beta1).add_(grad, alpha=x)`
# makes no new tensor, `beta1 * m + x * grad` makes three. And a *view* of a tensor costs nothing:
# `t.split(k, dim)` or `t[a:b]` give pieces of `t` that share its memory, so what you write into a
# piece is written into `t`. Pieces of some ten thousand values are quick enough. Mind that one row
# of a matrix may be larger than 1 MiB.
#
# *Example:* one parameter of 1,000,000 float32 values, $P$ = 4 MB. Parameter, gradient and
# moments take 16 MB. The quotient $\hat m / (\sqrt{\hat v} + \epsilon)$ of the whole tensor would be
# 4 MB more; of pieces of 10,000 values it is 40 KB at a time.
#
# **Predict first.** How many MiB above `params + grads + 2P` does a step reach on the eight
# matrices of 1 MiB each, if it makes four intermediate values of a whole matrix at a time?

# %%
predicted_mib = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab03-lean_adam_step-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def lean_adam_step(
    params: list[torch.Tensor],
    grads: list[torch.Tensor | None],
    state: dict,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> None:
    """As adam_step, with less than 1 MiB beside parameters, gradients and moments."""
    ### BEGIN SOLUTION
    beta1, beta2 = betas

    def pieces(tensor, most=2**15):
        """Views of at most `most` values, which together are the tensor; any layout will do."""
        if tensor.numel() <= most:
            yield tensor
            return
        longest = max(range(tensor.ndim), key=lambda dim: tensor.shape[dim])
        for half in tensor.tensor_split(2, dim=longest):
            yield from pieces(half)

    with torch.no_grad():
        for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
            if grad is None:
                continue
            if i not in state:
                state[i] = {"t": 0, "m": torch.zeros_like(param), "v": torch.zeros_like(param)}
            own = state[i]
            own["t"] += 1
            step_size = lr / (1 - beta1 ** own["t"])
            root = math.sqrt(1 - beta2 ** own["t"])
            for p, g, m, v in zip(*map(pieces, (param, grad, own["m"], own["v"])), strict=True):
                m.mul_(beta1).add_(g, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
                p.addcdiv_(m, v.sqrt().div_(root).add_(eps), value=-step_size)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab03-lean_adam_step-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 3.8, Adam on a memory diet
(value,) = one_parameter(1.0, [0.5], lean_adam_step, lr=0.1)
assert abs(value - (1 - 0.05 / (0.5 + 1e-8))) < 1e-12, "compute in the parameter's dtype, as in 3.1"
values = one_parameter(1.0, [0.5, None, -2.0], lean_adam_step, lr=0.1)
assert abs(values[2] - 0.955950) < 1e-5, f"after 0.5, None and -2: 0.955950, not {values[2]:.6f}"
tall = torch.zeros(3, 2, dtype=torch.float64).T.requires_grad_()  # not contiguous
lean_adam_step([tall], [torch.ones(2, 3, dtype=torch.float64)], {}, lr=0.1)
assert (tall + 0.1).abs().max() < 1e-6, (
    "a parameter that is not contiguous did not move as it should"
)

MIB = 2**20
long_vector = torch.zeros(700_000, requires_grad=True)
wide_matrix = torch.zeros(2, 500_000, requires_grad=True)
params, grads = [long_vector, wide_matrix], [torch.ones(700_000), torch.ones(2, 500_000)]
P = sum(param.nbytes for param in params)
state = {}
with MemoryMeter("cpu", count_numpy=True).track(params, grads) as meter:
    lean_adam_step(params, grads, state)
rise = meter.peak_bytes + meter.numpy_peak_bytes - meter.baseline_bytes
kept = meter.live_bytes - meter.baseline_bytes
print(f"above params + grads: {rise / MIB:.2f} MiB at the peak, {kept / MIB:.2f} MiB kept")
print(f"the budget:           {2 * P / MIB + 1:.2f} MiB at the peak, {2 * P / MIB:.2f} MiB kept")
assert rise <= 2 * P + MIB, (
    f"the peak is {(rise - 2 * P - MIB) / MIB:.2f} MiB over the budget: work in place, on pieces, "
    "and cut long vectors and rows too"
)
assert kept <= 2 * P + 64 * 1024, "more than two float32 moments a parameter is kept"

# %% nbgrader={"grade": true, "grade_id": "lab03-lean_adam_step", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.8, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-lean_adam_step", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-diet-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### What was gained?
#
# The eight matrices again, with your two steps beside torch's. "Above" is what the step takes
# beside parameters, gradients and moments.

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab03-diet", "locked": true, "schema_version": 3, "solution": false, "task": false}
P = sum(4 * math.prod(shape) for shape in SHAPES)


def own_step(step):
    """Return the meter's report on the first call of `step`."""
    params, grads = new_model()
    return measure_call(step, params, grads, {}, device="cpu")


for name, found in (
    ("torch, foreach", torch_step(foreach=True)),
    ("torch, for-loop", torch_step(foreach=False)),
    ("adam_step", own_step(adam_step)),
    ("lean_adam_step", own_step(lean_adam_step)),
):
    print(f"{name:16} {(found.peak_bytes - 4 * P) / MIB:6.2f} MiB above 4 P")
print(f"Four values of a whole matrix are 4 MiB; you predicted {predicted_mib}.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-step_in_backward-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.9 A step inside backward (3 points, 20 minutes)
#
# Parameters and moments have to stay. But do the gradients? Backward makes them one after another,
# from the last layer to the first. If each parameter is updated as soon as its gradient is there,
# the gradient can be freed at once, and hardly any gradients are live at the same time.
#
# torch has a place for that: `param.register_post_accumulate_grad_hook(hook)` calls `hook(param)`
# each time a backward has finished `param.grad`. It returns a handle, and `handle.remove()` takes
# the hook away.
#
# Write `step_in_backward(params, lr)`. After it, `loss.backward()` alone makes a step of plain SGD,
# `param - lr * param.grad`, on each parameter and sets its gradient to `None`. It returns an object
# with a method `remove()`, after which backward only makes gradients again, as before. `params` are
# leaf tensors that require a gradient; a parameter may be used twice in a model. No
# optimizer of torch's is allowed.
#
# **Convention:** the step may take twice the bytes of the largest parameter's gradient above what
# was live before it, and 64 KiB. That is room for one gradient and one temporary value.
#
# You get 1 point for the same result as backward and SGD after one another, 2 for the memory, which
# is measured at grading.
#
# *Example:* a parameter of 1.0, `lr=0.1`, and the loss `3 * param`: after backward it is 0.7.
#
# **Predict first.** Eight weights of 1 MiB each. How many MiB of gradients are live at once, at the
# most, if the step is made in backward?

# %%
predicted_gradients_mib = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab03-step_in_backward-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def step_in_backward(params: list[torch.Tensor], lr: float = 1e-3):
    """Make backward apply SGD to each parameter and free its gradient; return a handle."""
    ### BEGIN SOLUTION

    def update(param):
        with torch.no_grad():
            param.add_(param.grad, alpha=-lr)
        param.grad = None

    hooks = [param.register_post_accumulate_grad_hook(update) for param in params]

    class Handle:
        def remove(self):
            for hook in hooks:
                hook.remove()

    return Handle()
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab03-step_in_backward-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 3.9, a step inside backward
param = torch.tensor([1.0], requires_grad=True)
handle = step_in_backward([param], lr=0.1)
(3 * param).sum().backward()
assert abs(param.item() - 0.7) < 1e-6, f"the example's new value is 0.7, not {param.item()}"
assert param.grad is None, "set the gradient to None once it is used"
handle.remove()
(3 * param).sum().backward()
assert abs(param.item() - 0.7) < 1e-6, "after remove() backward must leave parameters alone"
assert param.grad is not None, "after remove() the gradient stays"


def backward_rise(in_backward):
    """Return how far live bytes rise in the backward pass of a chain of eight 1 MiB weights."""
    weights = [torch.full((512, 512), 1e-3, requires_grad=True) for _ in range(8)]
    if in_backward:
        step_in_backward(weights, lr=0.1)
    x = torch.ones(1, 512)
    for weight in weights:
        x = x @ weight
    return measure_call(x.sum().backward, device="cpu", track=[weights, x]).rise_bytes


print(f"plain backward:   {backward_rise(False) / 2**20:.2f} MiB above what was live before")
print(f"step in backward: {backward_rise(True) / 2**20:.2f} MiB; ", end="")
print(f"you predicted {predicted_gradients_mib}.")
assert backward_rise(True) <= 2 * 2**20 + 64 * 1024, "gradients are kept for longer than needed"

# %% nbgrader={"grade": true, "grade_id": "lab03-step_in_backward", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.9, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-step_in_backward", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.10 In your own words (2 points, 15 minutes)
#
# A friend fits a model with SGD and sees that memory is full to the last GB. He switches to Adam
# and runs out of memory in the first step, although forward and backward still go through. In
# two or three sentences: what came in addition, when, and does a smaller batch cure it?
#
# And in one sentence each: why are the peaks of one step under for-loop, foreach and fused Adam
# $4.375\,P$, $5\,P$ and $4\,P$ on the eight equal matrices, as the three curves before 3.7 show?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab03-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Adam keeps two moments for each parameter, 2P bytes that SGD does not need, and it makes them in
# its first step, after forward and backward have gone through. They stay from then on. They do not
# depend on the batch; a smaller batch only helps as far as it frees activations to make room, and
# not at all in the step itself if the activations are gone by then.
#
# All three hold parameters, gradients and two moments, 4P. The for-loop makes a root and a quotient
# of one matrix while the last quotient is still there: 3/8 P. foreach makes the roots of all
# matrices at once: P. The fused kernel works value by value and makes no tensor.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - Adam remembers two numbers for each parameter: 8 bytes beside 4 of a float32 parameter and 4 of
#   its gradient. They appear in the first step and stay.
# - The moments start at 0; the bias correction makes true means of them.
# - They buy steps: where gradients differ in size from parameter to parameter, Adam gets there sooner.
# - A step's peak is more than its state: intermediate values count, and foreach makes them for all
#   parameters at once. In place and on pieces, they come down to almost nothing.
