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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 3: the optimizer's state
#
# A model of 7 billion parameters in float32 takes 28 GB. To train it with Adam you need 84 GB more
# before you store a single activation. Two thirds of that belong to the optimizer, which remembers two
# numbers for each parameter. You write Adam, see exactly what it remembers, and find memory that is held
# needlessly.
#
# **You will be able to**
# - write Adam's step, and say what its state is and why it starts biased;
# - count the bytes per parameter of a recipe, and the largest model that fits a budget;
# - say which bytes are live when, and find what holds memory needlessly;
# - beyond the core: predict the peak of a step, and keep it down with in-place work and small pieces.
#
# | exercise | part | minutes | points |
# |---|---|---|---|
# | 3.1 Adam's step | core | 25 | 5 |
# | 3.2 Bytes per parameter | core | 8 | 1 |
# | 3.3 The largest model that fits | core | 4 | 1 |
# | 3.4 Measure the state | core | 12 | 2 |
# | 3.5 What is live, and when | core | 11 | 2 |
# | 3.6 Find the leak | core | 8 | 2 |
# | 3.7 In your own words | core | 7 | 2 |
# | 3.8 Bytes of state | stretch | 9 | 2 |
# | 3.9 The peak of a training step | stretch | 13 | 3 |
# | 3.10 Adam on a memory diet | stretch | 14 | 4 |
# | 3.11 A step inside backward | stretch | 9 | 3 |
# | **core** | | **75** | **15** |
# | **stretch** | | **45** | **12** |

# %% nbgrader={"grade": false, "grade_id": "lab03-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch
from tqdm.auto import tqdm

import peakmem
from peakmem import plots
from peakmem.labs import Case, close, lab03, predicted, self_check, show_figure, whole

peakmem.lab("lab03_adam")
print("This lab measures on the CPU, even if you have a GPU: the bytes are the same.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-adam_step-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.1 Adam's step (core, 5 points, 25 minutes)
#
# Plain gradient descent moves each parameter by `lr` times its gradient: it leaps where gradients are
# large and crawls where they are small. Adam wants steps of about the same length, `lr`, everywhere. So
# it divides the gradient by its usual size; and since one batch's gradient is noisy, it averages over
# past steps.
#
# For that it remembers two numbers per parameter, the *moments*. In the parameter's $t$-th step ($t = 1, 2,
# \dots$), with gradient $g$:
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\, g \qquad\qquad v \leftarrow \beta_2 v + (1 - \beta_2)\, g^2$$
#
# $m$ is a running mean of the gradients, $v$ of their squares; $\sqrt{v}$ is the usual size. Both start
# at 0, so at first they are too small: with $\beta_1 = 0.9$, one step leaves $m = 0.1\,g$. The weights
# of all gradients so far add up to $1 - \beta_1^t$. Dividing by that sum makes $m$ a true mean, and
# likewise $v$. This is the *bias correction*:
#
# $$\hat m = \frac{m}{1 - \beta_1^t} \qquad\qquad \hat v = \frac{v}{1 - \beta_2^t}
# \qquad\qquad \theta \leftarrow \theta - \mathrm{lr}\,\frac{\hat m}{\sqrt{\hat v} + \epsilon}$$
#
# $\epsilon$ keeps the division safe where $\hat v$ is 0; it stands *outside* the root. Each step computes
# $\hat m$ and $\hat v$ anew; only $m$ and $v$ are remembered.
#
# Write `adam_step`, which makes one step and returns nothing.
# - `params` are leaf tensors that require a gradient, the same ones in the same order at each call. Change
#   them **in place**, under `torch.no_grad()`. Some aren't contiguous: there `view(-1)` fails and
#   `reshape(-1)` copies.
# - `grads` has one gradient per parameter; leave them unchanged. `None` means that the parameter took no
#   part: leave it, its moments and its step count alone.
# - `state` is an empty dict at first. Keep everything that must last in it, under keys you choose; two models
#   may alternate, each with its own `state`.
# - Keep the step count a Python `int`: with a float32 count, $1 - \beta^t$ is too coarse for float64 parameters.
# - `torch.optim` and other ready-made optimizers are not allowed.
#
# *Points:* first step 1, bias correction over 25 steps 2, `None` 1, place of `eps` 1. Grading allows an
# error of a billionth of the distance moved.
#
# *Example:* value 1.0, gradient 0.5, `lr=0.1`. At $t = 1$, $\hat m = 0.5$ and $\hat v = 0.25$, so the new
# value is $1 - 0.1 \cdot 0.5 / 0.5 = 0.9$.
#
# **Predict first.** With a gradient of 50, what is the same parameter's value after the first step?

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
values = lab03.values_after(adam_step)
changed = {
    "a gradient was changed": "compute with the gradients, but leave them as they are",
    "a list was changed": "leave the lists `params` and `grads` as they are",
}
fast = {"lr": 0.1}
self_check(
    values,
    [
        Case(
            (1.0, [0.5]),
            (0.900000002,),  # eps is the 2 at the end
            "update under torch.no_grad(); work it out on paper with t = 1, where both hats are exact",
            fast,
            label="the example: 0.5",
            wrong=changed
            | {
                (1.0,): "change the parameter in place, under torch.no_grad()",
                (0.683772434,): "the moments start at 0: divide them by 1 - beta ** t",
                (0.92558632,): "t counts from 1",
                (math.nan,): "t counts from 1: at t = 0 you divide by 1 - beta ** 0, which is 0",
                (0.800000008,): "divide by the square root of v",
                (1.099999998,): "subtract the step",
                (0.90000067,): "the step count is float32: keep it a Python int",
                (0.900000661,): "the step count is float32: keep it a Python int",
                (0.899999999,): "give the moments the parameter's dtype, float64 here",
                (0.900000063,): "correct v first, then take the root, then add eps",
            },
        ),
        Case(
            (0.0, [0.5]),
            (-0.5,),
            "eps stands outside the root: 0.5 / (0.5 + 0.5)",
            {"lr": 1.0, "eps": 0.5},
            label="eps = 0.5",
            wrong={(-0.577350269,): "your eps is under the root: add it after taking the root"},
        ),
        Case(
            (1.0, [0.5, -2.0]),
            (0.900000002, 0.955950351),
            "the second step: t = 2, with moments kept from the first",
            fast,
            label="gradients 0.5, -2",
            wrong={
                (
                    0.900000002,
                    0.888321429,
                ): "keep the uncorrected moments; the hats are for one step only",
                (0.900000002, 1.000000001): "put the new m, v and t into `state`: `m = ...` alone "
                "only rebinds the name m",
                (0.900000002, 0.950336923): "beta1 belongs to m, beta2 to v",
            },
        ),
        Case(
            (1.0, [0.5, None, -2.0]),
            (0.900000002, 0.900000002, 0.955950351),
            "None leaves the parameter, its moments and its count alone",
            fast,
            label="gradients 0.5, None, -2",
            wrong={
                (0.900000002, 0.900000002, 0.948031282): "the count rises in a call with None: "
                "give each parameter its own count"
            },
        ),
        Case(
            (1.0, [0.5, 0.0]),
            (0.900000002, 0.832994178),
            "a gradient of 0 is a step like any other: the moments decay, and t counts it",
            fast,
            label="gradients 0.5, 0",
        ),
        Case(
            (1.0, [0.5, -2.0]),
            (0.900000002, 0.978236649),
            "use the betas you are given",
            {"lr": 0.1, "betas": (0.5, 0.9)},
            label="other betas",
        ),
        Case((1.0, [0.5]), (0.999,), "lr is 1e-3 if none is given", label="the default lr"),
        Case(
            (),
            (1.1, 0.955950351, 0.900000001, 0.812893606),
            "each parameter of each model needs its own moments and count, all in `state`",
            label="two models that alternate",
            wrong={
                (1.1, 1.1, 0.900000001, 0.900000001): "after None, continue with the next parameter"
            },
            function=lab03.in_turns(adam_step),
        ),
        Case(
            (),
            (-0.1,),
            "reshape and flatten copy it: change the parameter itself, each value with its own moments",
            label="not contiguous",
            function=lab03.on_transposed(adam_step),
        ),
    ],
)
if predicted(predicted_value, question="what is the value after a gradient of 50?"):
    print(
        f"A gradient of 50 leads to {values(1.0, [50.0], lr=0.1)[0]:.6f}; you predicted {predicted_value}."
    )
    print("The first step has length lr, however large the gradient is: its size cancels out.")

# %% nbgrader={"grade": true, "grade_id": "lab03-adam_step", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.1, 5 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-adam_step", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-loss-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Is it worth it?
#
# The moments cost memory. What do they buy? A small GPT learns sequences in which each token has two
# equally likely followers, so no model gets below a loss of $\ln 2 = 0.69$. SGD and your Adam see the same
# 120 batches, each at the better of two learning rates.
#
# **Predict first.** SGD falls below a loss of 1 after about 75 steps. How many does Adam need?

# %%
predicted_steps = None  # your prediction, a number


# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab03-loss", "locked": true, "schema_version": 3, "solution": false, "task": false}
def sgd_step(params, grads, state, lr):
    with torch.no_grad():
        for param, grad in zip(params, grads, strict=True):
            param -= lr * grad


if predicted(predicted_steps, question="how many steps does Adam need to get below 1?"):
    best = {}
    arms = [(sgd_step, 0.1), (sgd_step, 0.3), (adam_step, 1e-3), (adam_step, 3e-3)]
    for step, lr in tqdm(arms, desc="four trainings"):
        losses = lab03.losses_of(step, lr)
        if step not in best or sum(losses[-10:]) < sum(best[step][1][-10:]):
            best[step] = (lr, losses)
    curves = {f"{step.__name__}, lr {lr:g}": losses for step, (lr, losses) in best.items()}
    figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
    plots.loss_curves(ax, curves)
    ax.axhline(1, color="0.6", linewidth=1, zorder=1)
    show_figure(
        figure,
        "Loss over 120 steps, both starting at 4.2: Adam's curve falls below 1 well before SGD's, which jumps "
        "up at first. Both end near 0.8, SGD's a little higher.",
    )
    for name, losses in curves.items():
        first = next((i for i, loss in enumerate(losses) if loss < 1), None)
        print(f"{name}: below 1 at step {first}, {losses[-1]:.2f} at the end")
    print(f"You predicted {predicted_steps} steps for Adam.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-loss-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Adam gets there sooner; on this easy task SGD comes close in the end. Equal steps help where gradients
# differ widely between parameters, as they do between a transformer's embeddings, attention and norms. That
# is what the 8 bytes per parameter buy.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-bytes_per_parameter-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.2 Bytes per parameter (core, 1 point, 8 minutes)
#
# Per parameter, training keeps **weights**, **gradients**, a **first moment** and a **second moment**, and
# sometimes **master weights**. A step of Adam is often smaller than the gap between two 16-bit numbers, and
# would be lost. So if the optimizer's step computes in a wider format than the weights', it works on a copy
# of them in that format: the master weights. The moments have that format, too.
#
# `RECIPES` lists the formats of weights, gradients and step, and the optimizer. Write
# `bytes_per_parameter(recipe)`: a dict with exactly the keys `"weights"`, `"gradients"`,
# `"master_weights"`, `"first_moment"` and `"second_moment"`, in whole bytes, 0 for anything absent.
# Plain SGD has no moments. An unknown recipe raises `ValueError`; a dict's own `KeyError` will do.
#
# *Points:* all or nothing.
#
# *Example:* `"bf16"` has 2 bytes of weights, gradients and each moment, and no master weights: 8 in total.
#
# **Predict first.** Mixed precision halves weights and gradients. How many bytes per parameter does `"mixed"`
# save compared with `"fp32"`?

# %% nbgrader={"grade": false, "grade_id": "lab03-recipe-table", "locked": true, "schema_version": 3, "solution": false, "task": false}
RECIPES = {  # format of weights, gradients and the optimizer's step; the optimizer
    "fp32": (torch.float32, torch.float32, torch.float32, "adam"),
    "mixed": (torch.float16, torch.float16, torch.float32, "adam"),
    "mixed_fp32_grads": (torch.bfloat16, torch.float32, torch.float32, "adam"),
    "bf16": (torch.bfloat16, torch.bfloat16, torch.bfloat16, "adam"),
    "sgd": (torch.float32, torch.float32, torch.float32, "sgd"),
}
print(f"torch.bfloat16.itemsize is {torch.bfloat16.itemsize} bytes")

# %%
predicted_saving = None  # your prediction, in bytes per parameter


# %% nbgrader={"grade": false, "grade_id": "lab03-bytes_per_parameter-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bytes_per_parameter(recipe: str) -> dict:
    """Return the bytes that training keeps for one parameter, by what they are for."""
    ### BEGIN SOLUTION
    if recipe not in RECIPES:
        raise ValueError(f"no such recipe: {recipe}")
    weights, gradients, step, optimizer = RECIPES[recipe]
    moment = step.itemsize if optimizer == "adam" else 0
    return {
        "weights": weights.itemsize,
        "gradients": gradients.itemsize,
        "master_weights": step.itemsize if step != weights else 0,
        "first_moment": moment,
        "second_moment": moment,
    }
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab03-bytes_per_parameter-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 3.2, bytes per parameter
parts = ["weights", "gradients", "master_weights", "first_moment", "second_moment"]
self_check(
    bytes_per_parameter,
    [
        Case(
            ("fp32",),
            dict(zip(parts, (4, 4, 0, 4, 4), strict=True)),
            "the step has the weights' format: no copy",
        ),
        Case(
            ("mixed",),
            dict(zip(parts, (2, 2, 4, 4, 4), strict=True)),
            "the step's format is wider than the weights': master weights and moments of 4 bytes",
        ),
        Case(
            ("mixed_fp32_grads",),
            dict(zip(parts, (2, 4, 4, 4, 4), strict=True)),
            "these gradients are float32, and so is the step",
        ),
        Case(
            ("bf16",),
            dict(zip(parts, (2, 2, 0, 2, 2), strict=True)),
            "the step has the weights' format: no copy, and moments of 2 bytes",
        ),
        Case(
            ("sgd",), dict(zip(parts, (4, 4, 0, 0, 0), strict=True)), "plain SGD remembers nothing"
        ),
        Case(
            ("MIXED",),
            "refused",
            "an unknown recipe must not give a size",
            label="an unknown recipe",
            function=lab03.or_refused(bytes_per_parameter),
        ),
        Case(
            ("mixed_fp16",),
            "refused",
            "a name that only starts like a recipe's is also unknown",
            label="another unknown recipe",
            function=lab03.or_refused(bytes_per_parameter),
        ),
        Case(
            ("my_fp32",),
            "refused",
            "a name that only ends like a recipe's is also unknown",
            label="a third unknown recipe",
            function=lab03.or_refused(bytes_per_parameter),
        ),
        *(
            Case(
                (name,),
                "refused",
                "each recipe has only one name",
                label=f"the unknown {name!r}",
                function=lab03.or_refused(bytes_per_parameter),
            )
            for name in ("bf16_adam", "sgd_momentum", "sgd ", "mixed-fp32-grads")
        ),
    ],
)
if predicted(predicted_saving, question="how many bytes per parameter does mixed precision save?"):
    saving = 16 - sum(bytes_per_parameter("mixed").values())
    print(f"'mixed' saves {saving} bytes per parameter; you predicted {predicted_saving}.")
    print("The master weights cancel the saving: only activations get smaller.")

# %% nbgrader={"grade": true, "grade_id": "lab03-bytes_per_parameter", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.2, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-bytes_per_parameter", globals())
### END HIDDEN TESTS

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab03-recipes", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_saving, question="how many bytes per parameter does mixed precision save?"):
    bars = {
        recipe: {part.replace("_", " "): n for part, n in bytes_per_parameter(recipe).items()}
        for recipe in RECIPES
    }
    figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    plots.stacked_bars(ax, bars, label="bytes per parameter")
    ax.set_xticks(range(0, 21, 4))
    show_figure(
        figure,
        "Stacked bars of bytes per parameter: fp32 16, mixed 16, mixed with fp32 gradients 18, bf16 8, "
        "sgd 8. In fp32 and mixed, the two moments are half of the bar.",
    )
    for recipe, bar in bars.items():
        print(f"GPT-3, {recipe:17} {175 * sum(bar.values()):5,} GB")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-recipes-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **Mind the 12.** Published figures say "12 bytes per parameter" for the optimizer, or 16, or 18. Adam
# itself adds 8; the other 4 are the gradient in float32 training, or the master weights in mixed precision.
# Both total 16 (2800 GB for GPT-3), for different reasons. Ask what a figure counts.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-largest_model-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.3 The largest model that fits (core, 1 point, 4 minutes)
#
# Now turn the question around: activations take their share of a budget, and parameters fill the rest. Write
# `largest_model(recipe, budget_bytes, activation_bytes)`: the largest whole number of parameters whose
# training fits; an exact fit counts. If not even the activations fit, the answer is 0. An unknown
# recipe raises an error, as in 3.2.
#
# *Points:* all or nothing.
#
# *Example:* of 1000 bytes, activations take 100. In `"fp32"`, the other 900 hold 56 parameters of 16 bytes.
#
# **Predict first.** How many billion parameters can you train in 80 GB with `"mixed"`, if activations take
# 16 GB?

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
self_check(
    largest_model,
    [
        Case(
            ("fp32", 1000, 100),
            56,
            "900 bytes are left, 16 per parameter; // gives a whole number",
            wrong={62: "the activations need room, too", 57: "round down: 57 don't fit"},
        ),
        Case(("bf16", 88, 8), 10, "80 bytes hold exactly 10 parameters of 8: an exact fit counts"),
        Case(("mixed_fp32_grads", 1000, 100), 50, "900 bytes are left, 18 per parameter"),
        Case(("sgd", 100, 900), 0, "a model can't have a negative number of parameters"),
        Case(("fp32", 115, 100), 0, "15 bytes hold no parameter"),
        Case(("fp32", 116, 100), 1, "16 bytes hold one parameter"),
        Case(("sgd", 8 * 10**17 - 1, 0), 10**17 - 1, "divide with //: a float has 53 bits"),
        Case(
            ("fp32", 1000, 110),
            55,
            "890 bytes are left, 16 per parameter",
            wrong={56: "subtract first, then divide, and round once"},
        ),
        *(
            Case(
                (name, 1000, 100),
                "refused",
                "raise an error, as in 3.2",
                label=f"the unknown {name!r}",
                function=lab03.or_refused(largest_model),
            )
            for name in ("mixed_fp16", "fp32_adam", "pure_bf16", "sgd ")
        ),
    ],
    equal=whole(),
)
if predicted(predicted_billions, question="how many billion parameters in 80 GB?"):
    for recipe in RECIPES:
        gb, gib = (largest_model(recipe, 80 * unit, 16 * unit) / 1e9 for unit in (10**9, 2**30))
        print(f"{recipe:17} {gb:5.2f} billion if the budget is in GB, {gib:5.2f} if in GiB")
    print(f"You predicted {predicted_billions} for 'mixed'.")

# %% nbgrader={"grade": true, "grade_id": "lab03-largest_model", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.3, 1 point: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-largest_model", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-measured_state_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.4 Measure the state (core, 2 points, 12 minutes)
#
# A formula is a claim. You can also look: a torch optimizer keeps its state in `optimizer.state`, a dict
# that maps each parameter to the values kept for it. Write `measured_state_bytes(optimizer)`: the bytes held
# there.
#
# Summing `tensor.nbytes` isn't enough. A tensor is only a *view* of a piece of memory, its **storage**
# `tensor.untyped_storage()`, which has `nbytes()` and an address, `data_ptr()`. A view of one row keeps the
# whole matrix alive, and several tensors may share one storage. Some optimizers also nest tensors in
# dicts, lists and tuples, to any depth.
#
# **Convention:** each storage that the state's values reach counts once, in full. Step counters
# that are tensors count; Python numbers and the dict's keys, the parameters, don't. Leave the
# optimizer unchanged: reading `optimizer.state[param]` adds an entry if there is none, so go through `.values()`.
#
# *Points:* all or nothing. *Example:* a state `{"m": t[:2], "history": [t[2:], 7]}`, with `t` of five float32
# values, holds 20 bytes.
#
# **Predict first.** How many bytes does torch's Adam keep after a step on one parameter of 1000 float32
# values?

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
# Self-check of 3.4, measure the state
def found_in(*states):
    """Return what your function finds in the states of parameters, and whether it changed them."""
    params = [torch.zeros(1000, requires_grad=True), torch.zeros(3, requires_grad=True)]
    optimizer = torch.optim.Adam([{"params": [param]} for param in params])  # two groups
    if "after a step" in states:
        params[0].grad = torch.ones(1000)
        optimizer.step()
    else:
        optimizer.state.update(zip(params, states, strict=False))
    entries = len(optimizer.state)
    found = measured_state_bytes(optimizer)
    if len(optimizer.state) != entries:
        return "you added an entry"
    return (
        found if measured_state_bytes(optimizer) == found else "the next call finds another number"
    )


def found_once_emptied():
    """Return what your function finds in a state that it measured before, and that is now empty."""
    optimizer = torch.optim.Adam([torch.zeros(3, requires_grad=True)])
    optimizer.state[optimizer.param_groups[0]["params"][0]] = {"m": torch.zeros(3)}
    measured_state_bytes(optimizer)
    optimizer.state.clear()
    return measured_state_bytes(optimizer)


t, u, w = torch.zeros(5), torch.zeros(7), torch.zeros(1)
unchanged = {
    "you added an entry": "optimizer.state[param] adds an entry: use .values()",
    "the next call finds another number": "don't remove anything, and don't keep anything from an earlier call",
}
self_check(
    found_in,
    [
        Case(
            (),
            0,
            "before the first step there is nothing",
            label="before the first step",
            wrong=unchanged,
        ),
        Case(
            ({"m": t[:2], "history": [t[2:], 7]},),
            20,
            "t's storage has five values, and two views of it count once",
            label="the example",
            wrong=unchanged
            | {
                8: "look into lists too, and count storages whole",
                40: "two views of one storage count once",
                4020: "the dict's keys, the parameters, don't count",
            },
        ),
        Case(
            ({"codes": [{"q": (t, [[u.byte()], None])}], "again": t}, {"shared": [t, w]}),
            31,
            "look into dicts, lists and tuples, however deep",
            label="nested",
            wrong=unchanged
            | {
                24: "look deeper into the nesting",
                27: "the second parameter also has a state",
                51: "two parameters may also share a storage",
                71: "t appears three times, but its storage counts once",
                52: "nbytes() knows how many bytes a value takes",
            },
        ),
        Case(
            ({"rows": {"mean": {"of": u[3:].detach()}}},),
            28,
            "a dict may hold dicts",
            label="dicts in dicts",
            wrong=unchanged
            | {16: "a view keeps its whole storage, wherever it begins; it may have no _base"},
        ),
        Case(
            (),
            0,
            "look again in each call",
            label="an emptied state",
            function=found_once_emptied,
        ),
        Case(
            ("after a step",),
            8004,
            "two moments of 1000 values and a step counter",
            label="torch's Adam after a step",
            wrong=unchanged | {8000: "the step counter is a tensor too, of 4 bytes"},
        ),
    ],
)
if predicted(predicted_bytes, question="how many bytes does Adam keep for 1000 values?"):
    print(f"Adam keeps {found_in('after a step')} bytes; you predicted {predicted_bytes}.")

# %% nbgrader={"grade": true, "grade_id": "lab03-measured_state_bytes", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.4, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-measured_state_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-step_timeline-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.5 What is live, and when (core, 2 points, 11 minutes)
#
# Bytes per parameter say how much, not *when*. Training runs out of memory when the most is live.
# So follow the live bytes from event to event; 3.9 looks inside a step.
#
# Write `step_timeline(param_bytes, activation_bytes, events)`: the bytes live just after each event of
# float32 training with Adam. With $P$ bytes of parameters and $A$ of activations per forward:
#
# | event | what it does |
# |---|---|
# | `"forward"` | makes $A$; two forwards before a backward make $2A$ |
# | `"backward"` | frees one $A$; makes gradients ($P$), or adds to existing ones in place |
# | `"step"` | makes the two moments ($2P$) if they don't exist yet; does nothing without gradients |
# | `"zero_grad(set_to_none=True)"` | frees the gradients |
# | `"zero_grad(set_to_none=False)"` | writes zeros into them, and frees nothing |
#
# **Convention:** the parameters count at all times; step counters and temporaries don't. Each backward
# has a forward before it.
#
# *Points:* all or nothing. *Example:* $P = 10$, $A = 3$, events forward, backward, step, forward: 13, 20, 40, 43.
#
# **Predict first.** $P = 10$, $A = 25$. Which iteration of forward, backward, step and
# `zero_grad(set_to_none=True)` has the most live memory, the first or the second?

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
# Self-check of 3.5, what is live, and when
FREE, ZERO = "zero_grad(set_to_none=True)", "zero_grad(set_to_none=False)"
once = ["forward", "backward", "step"]
self_check(
    step_timeline,
    [
        Case(
            (10, 3, [*once, "forward"]),
            [13, 20, 40, 43],
            "note the bytes after each event",
            label="the example",
            wrong={
                (10, 13, 20, 40): "these are the bytes before each event",
                (3, 10, 30, 33): "the parameters count at all times",
                (13, 20, 30, 33): "Adam has two moments",
                (13, 20, 30, 30): "the step keeps the gradients and makes two moments",
                (13, 23, 43, 46): "backward frees the activations of one forward",
            },
        ),
        Case(
            (10, 3, [*once, FREE]),
            [13, 20, 40, 30],
            "True frees the gradients; the moments stay",
            label="set_to_none=True after a step",
        ),
        Case(
            (10, 3, ["forward", "backward", ZERO]),
            [13, 20, 20],
            "False frees nothing",
            label="set_to_none=False after a backward",
        ),
        Case(
            (10, 3, [ZERO, "step", *once[:2], ZERO, "step"]),
            [10, 10, 13, 20, 20, 40],
            "without gradients the step makes nothing; zeros are gradients too",
            label="a step without gradients, and one with zeros",
        ),
        Case(
            (10, 3, ["forward", "backward", FREE, "step"]),
            [13, 20, 10, 10],
            "the gradients are freed before the step, so it does nothing",
            label="a step after the gradients are freed",
        ),
        Case((10, 3, []), [], "no events, no values", label="no events"),
        Case(
            (10, 3, ["forward", "forward", "backward", "backward"]),
            [13, 16, 23, 20],
            "one backward frees one forward's activations; the second adds in place",
            label="two forwards, two backwards",
        ),
        Case(
            (10, 3, ["forward", *once, *once[1:], "forward", "forward"]),
            [13, 16, 23, 43, 40, 40, 43, 46],
            "the step keeps activations; each forward makes new ones",
            label="a step between two backwards",
        ),
        *(
            Case((p, a, [*once, "forward"]), live, "other sizes, same events", label=f"{p}, {a}")
            for p, a, live in [(12, 3, [15, 24, 48, 51]), (10, 4, [14, 20, 40, 44])]
        ),
        Case(
            (7, 2, [*once, "forward"]),
            [9, 14, 28, 30],
            "other sizes, same events",
            label="the example with other sizes",
        ),
        Case(
            (10, 3, [*once, *once]),
            [13, 20, 40, 43, 40, 40],
            "moments and gradients are made only once",
            label="two iterations without zero_grad",
        ),
    ],
)
if predicted(predicted_iteration, question="which iteration has the most live memory?"):
    iteration = [*once, FREE]
    live = list(step_timeline(10, 25, 2 * iteration))
    for event, level in zip(2 * iteration, live, strict=True):
        print(f"{event:28} {level:3} {'#' * int(level)}")
    most = live.index(max(live)) // len(iteration) + 1
    print(f"The most is live in iteration {most}; you predicted {predicted_iteration}.")

# %% nbgrader={"grade": true, "grade_id": "lab03-step_timeline", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.5, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-step_timeline", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-calculator-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Play
#
# The same events for GPT-2, operator by operator. Which matters most: the precision, the optimizer, or the batch?

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab03-calculator", "locked": true, "schema_version": 3, "solution": false, "task": false}
try:
    with lab03.with_hidden_modules():
        from IPython.display import display

        from peakmem.show.widgets import adam_state

        display(adam_state())
except ImportError:  # without ipywidgets, a still picture
    print("Without ipywidgets, a picture: which saves more here, another precision or plain SGD?")
    gb = {
        recipe: {
            part.replace("_", " "): 0.124 * n for part, n in bytes_per_parameter(recipe).items()
        }
        for recipe in RECIPES
    }
    figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    plots.stacked_bars(ax, gb, label="GB of GPT-2, 124 million parameters")
    show_figure(
        figure,
        "Stacked bars for GPT-2 in GB: fp32 and mixed 2, mixed with fp32 gradients 2.2, bf16 and sgd 1.",
    )

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-find_the_leak-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.6 Find the leak (core, 2 points, 8 minutes)
#
# `two_stages` below trains on half of the batches at a learning rate of 0.1 and on the rest at 0.01. Its
# results are correct. `make_optimizer(lr=...)` returns SGD with momentum, which makes one velocity per
# parameter in its first step, $P$ in total. It has `step()` and `zero_grad()`, but no `param_groups`.
# Activations are small.
#
# The *meter* counts the live bytes after each operator.
#
# **Predict first.** What is the peak of `two_stages`, in $P$?


# %% nbgrader={"grade": false, "grade_id": "lab03-two_stages", "locked": true, "schema_version": 3, "solution": false, "task": false}
def two_stages(model, make_optimizer, batches):
    """Train half of the batches at 0.1 and the rest at 0.01; return the losses."""
    losses = []
    fast, slow = make_optimizer(lr=0.1), make_optimizer(lr=0.01)
    for i, (x, y) in enumerate(batches):
        optimizer = fast if i < len(batches) // 2 else slow
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


# %%
predicted_peak = None  # your prediction, in P

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab03-leak", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_peak, question="what is the peak of two_stages, in P?"):
    curve = lab03.training_curve(two_stages)
    figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    plots.live_timelines(ax, {"two_stages": curve}, unit="P")
    show_figure(
        figure,
        "Live memory of two_stages over its operators, in units of P: six teeth, one per batch. From the "
        "middle on, both their bases and their tips are one P higher.",
    )
    print(f"Peak {max(curve):.2f} P; you predicted {predicted_peak}.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-find_the_leak-task", "locked": true, "schema_version": 3, "solution": false, "task": false}
# What holds the extra $P$? Write `train_in_two_stages`, which returns the same losses and leaves the same
# weights, with a peak of at most $3.5\,P$. Each stage has a new optimizer.
#
# *Points:* same results 1, peak below the bound 1, measured at grading.


# %% nbgrader={"grade": false, "grade_id": "lab03-find_the_leak-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train_in_two_stages(model, make_optimizer, batches) -> list[float]:
    """Train half of the batches at 0.1 and the rest at 0.01, within 3.5 P; return the losses."""
    ### BEGIN SOLUTION
    losses, half = [], len(batches) // 2
    for lr, stage in ((0.1, batches[:half]), (0.01, batches[half:])):
        optimizer = make_optimizer(lr=lr)  # frees the one before
        for x, y in stage:
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab03-find_the_leak-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 3.6, find the leak
self_check(
    lab03.results_of(train_in_two_stages),
    [
        Case(
            (),
            lab03.results_of(two_stages)(),
            "keep the halves and rates, zero_grad() after each step, and a new optimizer in each stage",
            label="losses and weights",
        ),
        Case(
            (),
            "within 3.5 P",
            "the first optimizer lives on through the second stage: what still refers to it?",
            label="peak",
            function=lab03.peak_of(train_in_two_stages),
        ),
    ],
    equal=close(1e-4),
)

# %% nbgrader={"grade": true, "grade_id": "lab03-find_the_leak", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.6, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-find_the_leak", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.7 In your own words (core, 2 points, 7 minutes)
#
# A friend's model just fits with SGD. With Adam it runs out of memory in the first step, although forward and
# backward still succeed. In two or three sentences: what was added, when, and would a smaller batch help? (1
# point)
#
# And in one sentence: how did 3.6's picture show that an *optimizer* held the extra $P$, and not gradients or
# activations? (1 point)

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab03-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Adam keeps two moments for each parameter, 2P bytes that SGD does not need. It makes them in its first
# step, after forward and backward, and they stay. They do not depend on the batch: a smaller one only
# frees activations, which are gone by the time of the step anyway.
#
# The extra P came with the first step of the second stage and never left: gradients and activations come
# and go with each batch, and only an optimizer's state is made once, in its first step.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-core-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **The core ends here.** You should now be able to say:
#
# - Adam remembers two numbers per parameter: 8 bytes, on top of 4 for a float32 parameter and 4 for its
#   gradient. They appear in the first step and stay.
# - The moments start at 0; the bias correction makes them true means.
# - A second optimizer brings its own state; the first one's is freed only when nothing refers to it.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-state_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.8 Bytes of state (stretch, 2 points, 9 minutes)
#
# Some optimizers remember less, depending on the parameters' *shapes*. Write `state_bytes(shapes, optimizer)`: the
# bytes of state, summed over all tensors. For a tensor of $n$ values:
#
# - `"sgd"` keeps nothing, `"momentum"` one float32 value per parameter, `"adam"` two.
# - `"adafactor"` (without a first moment) keeps only means of the second moment over rows and over columns: for two
#   or more dimensions, $n / \text{last}$ and $n / \text{second last}$ float32 values. Vectors and single
#   numbers (shape `()`) keep all $n$.
# - `"adam8bit"` keeps both moments at 1 byte per value, in blocks of 256. Each block, even a short last
#   one, has one float32 scale per moment.
#
# **Convention:** step counters and tables of the 8-bit codes' values don't count.
#
# *Points:* all or nothing. *Example:* (100, 30) takes 12,000 bytes under momentum, 24,000 under Adam,
# $4 \cdot (100 + 30) = 520$ under Adafactor and $2 \cdot (3000 + 4 \cdot 12) = 6096$ in 8 bits. Two such
# matrices, (2, 100, 30), take 1040 under Adafactor.
#
# **Predict first.** GPT-2's embedding is a matrix of (50257, 768). About how many times smaller than
# Adam's is Adafactor's state for it?

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
# Self-check of 3.8, bytes of state
matrix = [(100, 30)]
self_check(
    state_bytes,
    [
        Case((matrix, "sgd"), 0, "plain SGD remembers nothing"),
        Case(([], "adam"), 0, "no tensors, no state"),
        Case(
            (matrix, "momentum"),
            12_000,
            "one value of 4 bytes per parameter",
            wrong={3000: "a value takes 4 bytes"},
        ),
        Case(
            ([(100, 30), (30,)], "adam"),
            24_240,
            "two values per parameter, summed over all tensors",
        ),
        Case(
            (matrix, "adafactor"),
            520,
            "one mean per row and one per column",
            wrong={130: "a value takes 4 bytes"},
        ),
        Case(
            ([(2, 100, 30)], "adafactor"),
            1040,
            "each of the two matrices has rows and columns",
            wrong={
                520: "there are two matrices",
                528: "n / last + n / second last, not a sum of sizes",
            },
        ),
        Case(
            ([(1, 40)], "adafactor"),
            164,
            "one row is also a matrix: it has a mean per row and per column",
        ),
        Case(
            ([(2, 1, 2, 5, 3)], "adafactor"),
            128,
            "the last two dimensions are a matrix's, however many come before them",
        ),
        Case(
            ([(), (7,)], "adafactor"), 32, "vectors and numbers keep all their values; () has n = 1"
        ),
        Case(
            (matrix, "adam8bit"),
            6096,
            "12 blocks, each with a scale per moment",
            wrong={
                6048: "each moment has its own scales",
                6088: "the short last block has a scale, too",
            },
        ),
        Case(
            ([(10,), (256,), (257,)], "adam8bit"),
            1078,
            "each tensor has its own blocks; 256 values fill one, 257 need two",
        ),
        Case(([(7,), (7,)], "adam"), 112, "two tensors of the same shape count twice"),
    ],
)
if predicted(predicted_ratio, question="how many times smaller is Adafactor's state?"):
    ratio = state_bytes([(50257, 768)], "adam") / state_bytes([(50257, 768)], "adafactor")
    print(f"Adafactor's state is {ratio:.0f} times smaller; you predicted {predicted_ratio}.")

# %% nbgrader={"grade": true, "grade_id": "lab03-state_bytes", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.8, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-state_bytes", globals())
### END HIDDEN TESTS


# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab03-state_bytes-real", "locked": true, "schema_version": 3, "solution": false, "task": false}
def after_a_step(make):
    """Return a torch optimizer of a matrix and a vector after one step."""
    params = [torch.ones(shape, requires_grad=True) for shape in ((100, 30), (30,))]
    sum(param.sum() for param in params).backward()
    optimizer = make(params)
    optimizer.step()
    return optimizer


for name, make in (
    ("sgd", torch.optim.SGD),
    ("momentum", lambda params: torch.optim.SGD(params, momentum=0.9)),
    ("adam", torch.optim.Adam),
    ("adafactor", torch.optim.Adafactor),
):
    ours = state_bytes([(100, 30), (30,)], name)
    real = measured_state_bytes(after_a_step(make))
    print(f"{name:10} {ours:6} bytes by your formula, {real:6} in torch, {real - ours} more")

ours = state_bytes([(4096, 4096)], "adam8bit")  # measured for this lab with torchao 0.18.0
for name, real in (("AdamW8bit", 34_080_768), ("AdamWFp8", 34_078_720), ("AdamW4bit", 17_825_920)):
    print(f"torchao's {name:10} {real:11,} bytes for 4096 x 4096, adam8bit {real - ours:+,}")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-state_bytes-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# torch's 8 extra bytes are two step counters. In torchao, PyTorch's library for low precision, AdamW8bit adds
# two tables of 256 float32 codes; AdamWFp8 is your formula to the byte; AdamW4bit packs two
# values into a byte.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-timelines-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.9 The peak of a training step (stretch, 3 points, 13 minutes)
#
# Between steps, parameters, gradients and moments take $4P$. *During* a step there are temporaries too. The
# cell below measures the second training step on eight matrices of 1 MiB under torch's Adam, three ways: a
# for-loop over parameters; `foreach`, which runs each operation on all of them at once; and `fused`, which
# runs the whole step in one function, value by value.
#
# **Predict first.** The for-loop peaks at $4.375\,P$. How high does fused go?

# %%
predicted_fused_peak = None  # your prediction, in P

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab03-timelines", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_fused_peak, question="what is fused's peak, in P?"):
    ways = {"for-loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
    figure, panels = plt.subplots(1, 3, figsize=(10, 4), layout="constrained", sharey=True)
    for ax, (name, options) in zip(panels, ways.items(), strict=True):
        curve, stepped_from = lab03.step_curve(**options)
        plots.live_timelines(ax, {name: curve}, unit="P")
        ax.axvspan(stepped_from, len(curve) - 1, color="0.9", zorder=0)
        print(f"{name:8} peaks at {max(curve):.3f} P")
    for ax in panels[1:]:
        ax.set_ylabel("")
    panels[0].set_ylim(0, 5.6)
    show_figure(
        figure,
        "Three curves of live memory in P, with the optimizer's step shaded. Each climbs from 3 P to "
        "4 P in eight stairs during backward. In the step, the for-loop makes eight teeth, seven of them up to "
        "4.38 P; foreach one block up to 5 P; fused stays at 4 P.",
    )
    print(f"You predicted {predicted_fused_peak} P for fused.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-peak_of_step-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Why? torch's for-loop does this for one parameter after another; only the third line makes new tensors:
#
# ```python
# exp_avg.lerp_(grad, 1 - beta1)
# exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
# denom = (exp_avg_sq.sqrt() / root_of_correction).add_(eps)  # the root, and the quotient
# param.addcdiv_(exp_avg, denom, value=-step_size)
# ```
#
# A tensor's root and quotient are live together, and until then `denom` still refers to the *previous*
# tensor's quotient.
#
# | `optimizer` | temporaries at most |
# |---|---|
# | `"for-loop"` | twice a tensor's bytes + the previous tensor's, if any; for the worst tensor |
# | `"foreach"` | the roots of all tensors at once, then divided in place: $P$ |
# | `"fused"` | none |
#
# Write `peak_of_step(shapes, activation_bytes, optimizer)` for a step when the moments exist: a tuple of the
# peak in bytes and its phase, `"backward"` or `"step"`. `shapes` belong to float32 parameters.
#
# **Convention:** in backward, parameters, moments, all gradients and all activations are live together. In
# the step the activations are gone. Step counters don't count, and there is no tie.
#
# *Points:* phase 1, all peaks within 5% of the meter 1, within 1% another 1.
#
# *Example:* vectors of 10 and 30 values, $P = 160$, 100 bytes of activations. Backward: $640 + 100 = 740$.
# For-loop step: $640 + (2 \cdot 120 + 40) = 920$. So `(920, "step")`.


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
# Self-check of 3.9, the peak of a training step
vectors = [(10,), (30,)]
self_check(
    peak_of_step,
    [
        Case(
            (vectors, 100, "for-loop"),
            (920, "step"),
            "640 + 2 * 120 + 40 is more than 640 + 100",
            wrong={
                (880, "step"): "the previous tensor's quotient is still live",
                (760, "step"): "the root and the quotient are two tensors",
                (800, "step"): "root, quotient, and the previous tensor's quotient",
                (1020, "step"): "in the step the activations are gone",
            },
        ),
        Case(
            ([(30,), (20,)], 100, "for-loop"),
            (1080, "step"),
            "the second tensor is the worst: 2 * 80 + 120; the first has no tensor before it",
        ),
        Case(
            ([(30,), (5,), (10,)], 100, "for-loop"),
            (960, "step"),
            "the first tensor is the worst: 2 * 120, and no tensor before it",
        ),
        Case(
            ([(10,), (10,), (30,)], 100, "for-loop"),
            (1080, "step"),
            "2 * 120, plus 40 for the tensor right before it",
        ),
        Case((vectors, 100, "foreach"), (800, "step"), "the roots of all tensors: P"),
        Case(
            ([(2, 5, 3), ()], 100, "foreach"),
            (620, "step"),
            "any number of dimensions: these are 30 values, and one",
        ),
        Case((vectors, 100, "fused"), (740, "backward"), "no temporaries: the peak is in backward"),
        Case((vectors, 300, "for-loop"), (940, "backward"), "here the activations are larger"),
    ],
)
P = sum(4 * math.prod(shape) for shape in lab03.SHAPES)
for name, options in (
    ("for-loop", {"foreach": False}),
    ("foreach", {"foreach": True}),
    ("fused", {"fused": True}),
):
    ours, measured = (
        peak_of_step(lab03.SHAPES, 0, name)[0],
        lab03.metered_adam(**options).peak_bytes,
    )
    print(
        f"{name:8} {ours / P:.3f} P by your formula, {measured / P:.3f} P measured, ratio {ours / measured:.4f}"
    )

# %% nbgrader={"grade": true, "grade_id": "lab03-peak_of_step", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.9, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-peak_of_step", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-lean_adam_step-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.10 Adam on a memory diet (stretch, 4 points, 14 minutes)
#
# A whole-tensor temporary of an embedding can take a gigabyte. But Adam treats each value separately, so a
# step never needs more than a few values at a time.
#
# Write `lean_adam_step`: `adam_step` under the same rules, on a budget.
# - **During any call**, including the first, at most `params + grads + 2P + 1 MiB` are live.
# - **Between calls**, at most `2P + 64 KiB` besides `params` and `grads`: the moments, and counters.
#   Everything you keep counts, in `state`, globals or elsewhere. Numpy's memory counts, too.
#
# `pieces(tensor)` below cuts a tensor into *views*: writing into a piece writes into the tensor. Tensors of the
# same shape give matching pieces. In-place operators end in an underscore:
# `m.mul_(beta1).add_(grad, alpha=x)` makes no tensor, `beta1 * m + x * grad` makes three.
#
# *Points:* equal results 2, within the measured budget 2.
#
# *Example:* a parameter of 1,000,000 values takes 16 MB with gradient and moments. The whole quotient
# $\hat m / (\sqrt{\hat v} + \epsilon)$ would be 4 MB more; a piece of it is at most 128 KiB.
#
# **Predict first.** How many MiB above $4P$ does your `adam_step` reach on the eight 1 MiB matrices? Count the
# temporaries that are live together.


# %% nbgrader={"grade": false, "grade_id": "lab03-pieces", "locked": true, "schema_version": 3, "solution": false, "task": false}
def pieces(tensor, most=2**15):
    """Yield views of at most `most` values, which together make up the tensor; any layout will do."""
    if tensor.numel() <= most:
        yield tensor
        return
    longest = max(range(tensor.ndim), key=lambda dim: tensor.shape[dim])
    for half in tensor.tensor_split(2, dim=longest):
        yield from pieces(half)


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
    """Like adam_step, with less than 1 MiB besides parameters, gradients and moments."""
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
            step_size = lr / (1 - beta1 ** own["t"])
            root = math.sqrt(1 - beta2 ** own["t"])
            for p, g, m, v in zip(*map(pieces, (param, grad, own["m"], own["v"])), strict=True):
                m.mul_(beta1).add_(g, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
                p.addcdiv_(m, v.sqrt().div_(root).add_(eps), value=-step_size)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab03-lean_adam_step-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 3.10, Adam on a memory diet
self_check(
    lab03.values_after(lean_adam_step),
    [
        Case(
            (1.0, [0.5]),
            (0.900000002,),
            "as in 3.1, in the parameter's dtype",
            {"lr": 0.1},
            label="one step",
        ),
        Case(
            (1.0, [0.5, -2.0]),
            (0.900000002, 0.955950351),
            "the second step: `m = beta1 * m + ...` makes a tensor that state doesn't have; m.mul_ works in place",
            {"lr": 0.1},
            label="gradients 0.5, -2",
        ),
        Case(
            (1.0, [0.5, None, -2.0]),
            (0.900000002, 0.900000002, 0.955950351),
            "None leaves the parameter, its moments and its count alone",
            {"lr": 0.1},
            label="gradients 0.5, None, -2",
        ),
        Case(
            (0.0, [0.5]),
            (-0.5,),
            "eps is added to the corrected root",
            {"lr": 1.0, "eps": 0.5},
            label="eps = 0.5",
        ),
        Case(
            (),
            (-0.1,),
            "reshape and flatten copy such a parameter: cut the parameter itself",
            label="not contiguous",
            function=lab03.on_transposed(lean_adam_step),
        ),
        Case(
            (),
            (1.1, 0.955950351, 0.900000001, 0.812893606),
            "each parameter of each model needs its own moments and count, all in `state`",
            label="two models that alternate",
            function=lab03.in_turns(lean_adam_step),
        ),
        Case(
            (),
            "within the budget",
            "work in place on pieces, and keep two float32 moments per parameter",
            label="memory",
            wrong={"not every value made one step": "pieces leave values out, or overlap"},
            function=lab03.budget_of(lean_adam_step),
        ),
    ],
)

# %% nbgrader={"grade": true, "grade_id": "lab03-lean_adam_step", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.10, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-lean_adam_step", globals())
### END HIDDEN TESTS

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab03-diet", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_mib, question="how many MiB above 4 P?"):
    for name, found in (
        ("torch, foreach", lab03.metered_adam(foreach=True)),
        ("torch, for-loop", lab03.metered_adam(foreach=False)),
        ("adam_step", lab03.metered_step(adam_step)),
        ("lean_adam_step", lab03.metered_step(lean_adam_step)),
    ):
        print(f"{name:16} {(found.peak_bytes - 4 * P) / 2**20:6.2f} MiB above 4 P")
    print(f"You predicted {predicted_mib} for adam_step.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-step_in_backward-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 3.11 A step inside backward (stretch, 3 points, 9 minutes)
#
# Parameters and moments have to stay. Do gradients? Backward makes them one after another. If you update each
# parameter once its gradient is ready, then free it, two are hardly ever live at once.
#
# `param.register_post_accumulate_grad_hook(hook)` calls `hook(param)` whenever a backward has finished
# `param.grad`. It returns a handle whose `remove()` removes the hook.
#
# Write `step_in_backward(params, lr)`. Once you have called it, `loss.backward()` alone makes an SGD step,
# `param - lr * param.grad`, on each parameter and sets its gradient to `None`. Return an object with
# `remove()`, after which backward only computes gradients. `params` are leaf tensors that require a
# gradient, used once or more. Leave other hooks alone, and use no torch optimizer.
#
# *Points:* same result 1; 2 if memory rises by at most twice the largest gradient plus 64 KiB: room for one
# gradient and one temporary.
#
# *Example:* parameter 1.0, `lr=0.1`, loss `3 * param`: backward leaves 0.7.
#
# **Predict first.** By how many MiB does memory rise in your backward, for eight weights of 1 MiB each?

# %%
predicted_rise_mib = None  # your prediction, a number


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
# Self-check of 3.11, a step inside backward
self_check(
    lab03.from_backward_to_step(step_in_backward),
    [
        Case(
            (),
            (0.7, 0.7, False, 0.7, 0.7, True, 0.994),
            "in this order, after one backward: a, b, and whether gradients are left; after remove() and "
            "another backward: the same three; last, a parameter of another call with the default lr",
            label="two parameters",
            wrong={
                (
                    1.0,
                    1.0,
                    True,
                    1.0,
                    1.0,
                    True,
                    1.0,
                ): "backward alone makes the step: register a hook",
                (0.7, 0.7, True, 0.7, 0.7, True, 0.994): "set param.grad to None once it is used",
                (0.7, 0.7, True, 0.7, 0.7, True, 0.991): "set param.grad to None once it is used",
                (0.7, 0.7, False, 0.4, 0.4, False, 0.994): "remove() must remove the hooks",
                (0.7, 0.7, False, 0.7, 0.4, True, 0.994): "remove() must remove all hooks",
                (0.7, 0.7, False, 0.4, 0.7, True, 0.994): "remove() must remove all hooks",
                (1.3, 1.3, False, 1.3, 1.3, True, 1.006): "subtract the step",
                (0.997, 0.997, False, 0.997, 0.997, True, 0.994): "another call with another lr "
                "changed this one's: keep lr in the call's own variables",
                "a hook from before is gone": "remove only the hooks whose handles you keep",
                (0.7, 0.7, False, 0.7, 0.7, True, 1.0): "remove() removed another call's hooks: "
                "keep each call's hooks in its own variables",
            },
        ),
        Case(
            (),
            "at most 2.06 MiB",
            "a gradient is kept for longer than needed",
            label="eight weights of 1 MiB",
            function=lab03.rise_of(step_in_backward),
        ),
    ],
)
if predicted(predicted_rise_mib, question="by how many MiB does memory rise in backward?"):
    for name, hooked in (("plain backward", None), ("step in backward", step_in_backward)):
        print(
            f"{name:17} {lab03.metered_backward(hooked) / 2**20:.2f} MiB above what was live before"
        )
    print(f"You predicted {predicted_rise_mib}.")

# %% nbgrader={"grade": true, "grade_id": "lab03-step_in_backward", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 3.11, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab03-step_in_backward", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab03-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - A step's peak is more than its state: `foreach` makes temporaries of all parameters at once, and in-place
#   work on pieces hardly any.
