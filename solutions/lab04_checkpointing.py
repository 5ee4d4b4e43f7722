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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 4: recompute instead of keep
#
# Training needs memory that inference doesn't. Forward makes results in every layer, and backward needs many
# of them again, so they stay until backward reaches their layer. With long sequences or large batches, they
# take most of the memory.
#
# But you needn't keep what you can recompute. *Checkpointing* drops results in forward and recomputes them in
# backward: it pays for memory with time.
#
# **You will be able to**
# - write `checkpoint`, with correct gradients and random numbers;
# - predict the peak of a chain cut into segments, and choose their length;
# - find what keeps activations alive unintentionally;
# - (stretch) measure what backward waits for, plan for unequal layers, and recompute only attention.
#
# | exercise | part | minutes | points |
# |---|---|---|---|
# | 4.1 Checkpoint | core | 28 | 6 |
# | 4.2 Segments | core | 7 | 2 |
# | 4.3 The square-root rule | core | 19 | 3 |
# | 4.4 Find the leak | core | 12 | 2 |
# | 4.5 In your own words | core | 8 | 2 |
# | 4.6 What does backward wait for? | stretch | 9 | 3 |
# | 4.7 Unequal layers, and a budget | stretch | 20 | 5 |
# | 4.8 Attention only | stretch | 8 | 3 |
# | 4.9 Time against memory on a GPU | stretch | 8 | 2 |
# | **core** | | **74** | **15** |
# | **stretch** | | **45** | **13** |

# %% nbgrader={"grade": false, "grade_id": "lab04-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import itertools
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn
from tqdm.auto import tqdm

import peakmem
from peakmem import plots
from peakmem.labs import Case, close, predicted, self_check, show_figure
from peakmem.labs.lab04 import (
    forward_and_backward,
    keep_arguments,
    kept_arguments,
    new_chain,
    segment_sliders,
)
from peakmem.labs.recorded import print_checkpoints
from peakmem.meter import MemoryMeter
from peakmem.probes import lab04

peakmem.lab("lab04_checkpointing")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 2**20
if DEVICE == "cuda":
    torch.ones(64, 64, device=DEVICE) @ torch.ones(64, 64, device=DEVICE)  # libraries' workspace

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-checkpoint-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.1 Checkpoint (core, 6 points, 28 minutes)
#
# ```
# forward    x ─▶ [ layers 1 to 4 ] ─▶ h ─▶ ...        no graph: only x is kept
# backward   x ─▶ [ layers 1 to 4, again ] ─▶ h        now with a graph, then backward through it
# ```
#
# In forward, call the function *without a graph*, so that nothing is saved, and keep its arguments. In
# backward, call it again with a graph, and run backward through that graph.
#
# Write `checkpoint(fn, *args)`. It returns what `fn(*args)` returns, and leaves the same gradients.
# - `fn` is called once in forward and once in backward. Under `torch.no_grad()` it's called once.
# - After forward, at most 8 KiB more is live than before, not counting the result.
# - A dropout must drop the same values in both calls. Random numbers that other code draws after your
#   forward or backward must be the same as without a checkpoint.
# - `args` are tensors, numbers, None or modules; a tensor may come from another checkpoint. The result is a
#   tensor or a tuple of tensors; some may be integers or never used.
# - Don't use `torch.utils.checkpoint`: you are writing it.
#
# *Points:* gradients 2, kept bytes and calls 2, random numbers 1, several tensors 1.
#
# *Example:* `y = checkpoint(torch.exp, x); y.sum().backward()` gives `x.grad == exp(x)` and calls `exp` twice.
#
# The stub is a `torch.autograd.Function`: torch calls its `forward`, and later its `backward` with one gradient
# for each result. Both get the same `ctx`: `backward` finds there what `forward` put on it. `checkpoint`
# returns `Recompute.apply(fn, *args)`. The stub handles arguments and `backward`'s return values: the tensors
# in `kept_arguments` start a new graph, so the gradients that reach them are in their `.grad`. Your steps:
# 1. In `forward`, put the state of the random number generator (RNG) on `ctx`, and return what `fn` returns.
#    `torch.get_rng_state()` returns the CPU's, 5 KiB.
# 2. In `backward`, restore that state with `torch.set_rng_state(state)`. After the second call, reset the state
#    to what it was when `backward` began.
# 3. Make the second call under `torch.enable_grad()`. Torch runs `backward`, like `forward`, without a graph.
# 4. `torch.autograd.backward(results, gradients)` goes through the new graph, including parameters. It takes two
#    lists. Leave out each result that doesn't require a gradient, and its gradient.
#
# **Predict first.** 16 layers each save one result of 1 MiB. You checkpoint them in four segments of four.
# The gradients that backward is working on take 3 MiB. How many MiB are live at the peak, not counting the chain's own input?

# %%
predicted_peak_mib = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab04-checkpoint-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Recompute(torch.autograd.Function):
    """Forward without a graph; backward through a second run of the function."""

    @staticmethod
    def forward(ctx, fn, *args):  # torch calls it without a graph
        ctx.fn = fn
        keep_arguments(ctx, args)
        ### BEGIN SOLUTION
        ctx.state = torch.get_rng_state()
        return fn(*args)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, *gradients):  # torch calls it without a graph, too
        args = kept_arguments(ctx)
        ### BEGIN SOLUTION
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            result = ctx.fn(*args)
        torch.set_rng_state(now)
        results = result if isinstance(result, tuple) else (result,)
        ways = [(r, g) for r, g in zip(results, gradients, strict=True) if r.requires_grad]
        torch.autograd.backward([r for r, _ in ways], [g for _, g in ways])
        ### END SOLUTION
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)  # None is fn's


def checkpoint(fn, *args):
    """Return fn(*args), keeping only the arguments; backward calls fn again."""
    ### BEGIN SOLUTION
    return Recompute.apply(fn, *args)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab04-checkpoint-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 4.1, checkpoint
def plainly(fn, *args):
    return fn(*args)


def gradients(run, fn, *args):
    """Return the gradients of the float tensors among args after run(fn, *args) and backward."""
    args = [a.detach().clone() if torch.is_tensor(a) else a for a in args]
    leaves = [a.requires_grad_() for a in args if torch.is_tensor(a) and a.is_floating_point()]
    out = run(fn, *args)
    sum(o.sum() for o in (out if isinstance(out, tuple) else (out,)) if o.requires_grad).backward()
    return [leaf.grad for leaf in leaves]


def used_again(run):
    """Two checkpoints in a row; the inner result is used twice, and outside."""
    z = x.clone().requires_grad_()
    h = run(torch.exp, z).tanh()
    (h * run(lambda a, b: a.tanh() * b, h, h)).sum().backward()
    return z.grad


def of_parameters(run):
    """Return a parameter's gradient, and whether the factor now requires one."""
    torch.manual_seed(0)
    layer, factor = nn.Linear(5, 5), torch.ones(5)
    args = [t.clone().requires_grad_() for t in (x, y)]
    run(lambda m, a, b, factor: m(a) * b * factor, layer, *args, factor).sum().backward()
    return layer.weight.grad, factor.requires_grad


def kinds(run, fn, *args):
    out = run(fn, *(a.clone().requires_grad_() for a in args))
    return type(out).__name__, [str(o.dtype) for o in out]


def calls(run):
    """Return the calls of two checkpoints: after forward, after backward, and under no_grad."""
    seen = []

    def fn(n, x):
        seen.append(n)
        return x.tanh().exp()

    out = run(fn, 1, run(fn, 1, x.clone().requires_grad_()))
    counts = [len(seen)]
    out.sum().backward()
    counts.append(len(seen))
    with torch.no_grad():
        out = run(fn, 1, run(fn, 1, x.clone().requires_grad_()))
    return "a graph under no_grad" if out.requires_grad else (*counts, len(seen) - counts[-1])


def drawn(run, which):
    """Return two dropouts' gradient, or the numbers drawn after forward or after backward."""
    torch.manual_seed(1)
    z = torch.rand(1000, requires_grad=True)

    def fn(x):
        return F.dropout(x, 0.5) * torch.rand_like(x)

    out = run(fn, run(fn, z))
    with torch.no_grad():
        run(fn, z)  # it has no backward
    between = torch.rand(3)
    out.sum().backward()
    return {"gradient": z.grad, "between": between, "after": torch.rand(3)}[which]


def is_lean(run, backward=False):
    """Return whether at most 8 KiB more is live after forward, or after backward."""
    wide = torch.randn(512, 512, requires_grad=True)  # 1 MiB
    with MemoryMeter("cpu", count_numpy=True).track(wide) as meter:
        out = run(lambda x: x.tanh().exp().tanh().sigmoid(), wide).sum()
        if backward:
            out.backward()
    results = out.nbytes + (wide.grad.nbytes if backward and wide.grad is not None else 0)
    kept = meter.live_bytes - meter.baseline_bytes - results
    return kept <= 8 * 1024 and meter.numpy_peak_bytes <= wide.nbytes // 2


x, y, places = torch.randn(5), torch.randn(5), torch.tensor([4, 3, 2, 1, 0])


def power(n, x, y, nothing):
    return x**n * y


def several(x, y):
    """Return two results that share a graph, and two without one."""
    h = torch.exp(x * y)
    return h * h, x.argmax(), h.detach(), h.sin()


exp_x = tuple(x.exp().tolist())
of_exp = {
    (None,): "No gradient arrives: call fn under torch.enable_grad(), on kept_arguments(ctx).",
    (
        tuple(2 * value for value in exp_x),
    ): "The gradient is doubled: call fn on kept_arguments(ctx).",
}


def same_as_plain(function, hint, label, *args, **wrong):
    expected = function(plainly, *args)
    return Case((checkpoint, *args), expected, hint, label=label, function=function, **wrong)


self_check(
    gradients,
    [
        same_as_plain(
            gradients,
            "forward returns what fn returns. In backward, put a single result in a list.",
            "exp",
            torch.exp,
            x,
            wrong=of_exp,
        ),
        same_as_plain(
            gradients, "Pass numbers and None through.", "a number among args", power, 3, x, y, None
        ),
        same_as_plain(
            gradients,
            "Integer tensors have no gradient.",
            "an integer tensor among args",
            lambda x, places: x[places] ** 2,
            x,
            places,
        ),
        same_as_plain(
            gradients,
            "fn may return a tuple. Run one backward for all its tensors that require a gradient.",
            "four results",
            several,
            x,
            y,
        ),
        same_as_plain(
            used_again,
            "Call fn on kept_arguments(ctx), and pass on the gradients that backward gets.",
            "an argument used again",
        ),
        same_as_plain(kinds, "Return what fn returns.", "a tuple and its types", several, x, y),
        same_as_plain(
            kinds,
            "A tuple of one tensor stays a tuple.",
            "one tensor in a tuple",
            lambda x: (x.exp(),),
            x,
        ),
        same_as_plain(
            of_parameters,
            "torch.autograd.backward also reaches the parameters of a module among args. Leave "
            "arguments as they are.",
            "parameters",
        ),
        Case(
            (checkpoint,),
            (2, 4, 2),
            "Each checkpoint calls fn once in forward and once in backward, and once under no_grad.",
            wrong={
                (2, 2, 2): "Backward has to call fn again: forward keeps nothing.",
                (2, 5, 2): "Call fn on kept_arguments(ctx): on the arguments themselves, backward "
                "continues into the first checkpoint.",
            },
            function=calls,
            label="calls of fn, two checkpoints in a row",
        ),
        same_as_plain(
            drawn,
            "Draw the same numbers twice: each ctx keeps the RNG state from before its first call.",
            "two dropouts",
            "gradient",
        ),
        same_as_plain(drawn, "Forward leaves the RNG as fn left it.", "after forward", "between"),
        same_as_plain(drawn, "Backward restores the RNG state.", "after backward", "after"),
        Case(
            (checkpoint,),
            True,
            "Something is kept: look at closures, lists and ctx.",
            function=is_lean,
            label="at most 8 KiB kept",
        ),
        Case(
            (checkpoint, True),
            True,
            "Release the second call's results and graph: don't keep them on ctx.",
            function=is_lean,
            label="at most 8 KiB kept after backward",
        ),
    ],
    equal=close(1e-5),
)

# %% nbgrader={"grade": true, "grade_id": "lab04-checkpoint", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.1, 6 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-checkpoint", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-budget-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Out of memory
#
# Here is that chain, with 12 MiB on top of parameters and input. `MemoryMeter` counts live bytes, and its
# `budget_bytes` stops a run that takes more, as a full GPU would.


# %% nbgrader={"grade": false, "grade_id": "lab04-budget", "locked": true, "schema_version": 3, "solution": false, "task": false}
# new_chain(n) gives n layers, each tanh(x * scale), and an input. The input takes 1 MiB, and so does
# the one result that a layer saves. forward_and_backward(run, layers, x, extra_bytes) meters a pass.
def keep_all(layers, x):
    for layer in layers:
        x = layer(x)
    return x


def in_fours(layers, x):
    for first in range(0, len(layers), 4):
        x = checkpoint(keep_all, layers[first : first + 4], x)
    return x


# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab04-dynamics", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_peak_mib, question="How many MiB are live at the peak, with checkpoints?"):
    found = gradients(checkpoint, torch.exp, x)[0]
    assert found is not None, "Your checkpoint loses gradients: first pass the check of 4.1."
    curves = {}
    for name, run in (("keep all", keep_all), ("your checkpoint, by 4", in_fours)):
        try:
            forward_and_backward(run, *new_chain(16), extra_bytes=12 * MIB)
            print(f"{name}: fits in 12 MiB")
        except peakmem.OutOfMemory as error:
            print(f"{name}: out of memory. {error}")
        meter = forward_and_backward(run, *new_chain(16))
        curves[name] = [(live - meter.baseline_bytes) / MIB for _, live in meter.timeline]
    print(f"Your peak: {max(curves[name]):.1f} MiB; you predicted {predicted_peak_mib}.")
    fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    plots.live_timelines(ax, curves, unit="MiB")
    show_figure(
        fig,
        "Live MiB over operators. Keeping all makes one mountain of about 18. With checkpoints, a jagged "
        "climb to 6 in forward, then four small mountains of at most 10, one for each segment.",
    )

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-dynamics-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* With checkpoints, forward climbs by one segment's input every four layers; the
# teeth are results that are freed at once. Then each segment is recomputed in turn: its results pile up, and
# its backward frees them. The peak is three inputs, four results, and three gradients.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-run_in_segments-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.2 Segments (core, 2 points, 7 minutes)
#
# Backward begins with the *last* segment, which ran a moment ago. So don't checkpoint that one.
#
# Write `run_in_segments(layers, x, segment_length)`: run the layers in order, and return the last result.
# - Cut from the front into segments of `segment_length`; the last segment takes the rest.
# - Each segment but the last is *one* call of your `checkpoint`.
# - `layers` is a list, an `nn.ModuleList` or an `nn.Sequential`; `x` requires a gradient.
#
# *Points:* all or nothing.
#
# *Example:* 8 layers in segments of 3 make segments 0 to 2, 3 to 5, and 6 to 7. Backward reruns layers 0 to
# 5.
#
# **Predict first.** 8 layers in segments of 4: how many of the 8 results are live after forward?

# %%
predicted_live_results = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab04-run_in_segments-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def run_in_segments(layers, x: torch.Tensor, segment_length: int) -> torch.Tensor:
    """Run layers in segments; all segments but the last are recomputed in backward."""
    ### BEGIN SOLUTION
    layers = list(layers)

    def run(segment, x):
        for layer in segment:
            x = layer(x)
        return x

    while len(layers) > segment_length:
        segment, layers = layers[:segment_length], layers[segment_length:]
        x = checkpoint(run, segment, x)
    return run(layers, x)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab04-run_in_segments-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 4.2, segments
class Noting(nn.Module):
    """A layer that records its index in a list."""

    def __init__(self, number, calls):
        super().__init__()
        self.number, self.calls = number, calls

    def forward(self, x):
        self.calls.append(self.number)
        return torch.tanh(x)


def called(n, k):
    """Return the indices of the layers called in forward and in backward."""
    seen = []
    layers = [Noting(number, seen) for number in range(n)]
    out = run_in_segments(layers, torch.ones(3, requires_grad=True), k)
    if [layer.number for layer in layers] != list(range(n)):
        return "the list of layers has changed"
    forward = list(seen)
    out.sum().backward()
    return forward, sorted(seen[len(forward) :])


def gradient(run, *segment_length):
    torch.manual_seed(0)
    x = torch.randn(4, 4, requires_grad=True)
    layers = nn.Sequential(*(nn.Linear(4, 4) for _ in range(8)))
    run(layers, x, *segment_length).sum().backward()
    return x.grad


def live_units(n, k):
    layers, x = new_chain(n)
    with MemoryMeter(DEVICE).track(layers, x) as meter:
        out = run_in_segments(layers, x, k)
    del out
    return round((meter.live_bytes - meter.baseline_bytes) / MIB)


self_check(
    called,
    [
        Case(
            (8, 3),
            (list(range(8)), list(range(6))),
            "The last segment isn't checkpointed.",
            wrong=dict.fromkeys(
                [(tuple(range(8)), (3, 3, 4, 4, 5, 5)), (tuple(range(8)), (6, 6, 7, 7))],
                "fn runs again later; a closure then sees the loop's last value.",
            )
            | {"the list of layers has changed": "Copy the list before you take layers out."},
        ),
        Case(
            (6, 2),
            (list(range(6)), list(range(4))),
            "A last segment of full length isn't checkpointed either.",
        ),
        Case(
            (7, 5),
            (list(range(7)), list(range(5))),
            "Cut segments of 5 from the front. The last takes the rest, here 2.",
        ),
        Case((4, 4), (list(range(4)), []), "One segment: nothing runs again."),
        Case((3, 9), (list(range(3)), []), "A segment is never longer than the chain."),
        Case(
            (3, 1), (list(range(3)), [0, 1]), "Segments of one layer: all but the last run again."
        ),
        Case(
            (run_in_segments, 3),
            gradient(keep_all),
            "Each layer runs once, in order, in forward and in its segment's second run.",
            label="the gradient of x",
            function=gradient,
        ),
        Case(
            (8, 4),
            5,
            "Too much is live after forward.",
            wrong={
                2: "The last segment keeps its results: it isn't checkpointed.",
                8: "Each layer's input is kept: a whole segment is one call of checkpoint.",
            },
            function=live_units,
        ),
    ],
    equal=close(1e-5),
)
if predicted(predicted_live_results, question="how many results are live after forward?"):
    live = live_units(8, 4)
    print(
        f"Of the 8 results, {live} are live after forward; you predicted {predicted_live_results}."
    )

# %% nbgrader={"grade": true, "grade_id": "lab04-run_in_segments", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.2, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-run_in_segments", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-sqrt_rule-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.3 The square-root rule (core, 3 points, 19 minutes)
#
# How long should a segment be? With short segments, many inputs stay live. With long ones, recomputing one
# makes many results live at once.
#
# The unit is one layer's output; the chain's input is 1 unit too. `saved` is how many units one layer keeps
# for its backward, including its output: 1 in the chain above, about 17 in a GPT layer. Gradients don't
# count. Cutting $n$ layers into segments of $k$ ($k > n$ means $n$) makes $s = \lceil n/k \rceil$ segments;
# the last has $r = n - (s-1)\,k$ layers.
# - **End of forward:** each segment's input is live (the chain's is the first), and everything the last segment saves.
# - **Backward**, last segment first: a finished segment frees everything it holds, including its input. Then
#   the previous one is recomputed: $s - 1$ inputs are live, and everything its $k$ layers save. Its last
#   output is among these and no longer counts as an input.
# - With one segment, nothing is recomputed.
#
# Write three functions of whole numbers:
# - `peak_activations(n_layers, segment_length, saved=1)`: the peak, in units;
# - `recomputed_layers(n_layers, segment_length)`: how many layers run again;
# - `best_segment_length(n_layers, saved=1)`: a length with the smallest peak (any of them, if several tie).
#
# *Points:* one each.
#
# *Example:* $n = 8$, $k = 3$, so $s = 3$, $r = 2$. With `saved=1`, forward ends at $3 + 2 = 5$, and
# recomputing the second segment adds 3 to 2 inputs: $2 + 3 = 5$. The peak is 5, and 6 layers run again.
#
# **Predict first.** GPT-3 has 96 layers of 17 units, 1633 with the input; $\sqrt{96} \approx 10$. Which
# length is best, and what is its peak?

# %%
predicted_length = None  # your prediction, in layers
predicted_least_peak = None  # your prediction, in units


# %% nbgrader={"grade": false, "grade_id": "lab04-sqrt_rule-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def peak_activations(n_layers: int, segment_length: int, saved: int = 1) -> int:
    """Return the most units that are live at once, including the chain's input."""
    ### BEGIN SOLUTION
    k = min(segment_length, n_layers)
    segments = math.ceil(n_layers / k)
    last = n_layers - (segments - 1) * k
    if segments == 1:
        return n_layers * saved + 1
    return max(segments + last * saved, segments - 1 + k * saved)
    ### END SOLUTION


def recomputed_layers(n_layers: int, segment_length: int) -> int:
    """Return how many layers run a second time, in backward."""
    ### BEGIN SOLUTION
    k = min(segment_length, n_layers)
    return (math.ceil(n_layers / k) - 1) * k
    ### END SOLUTION


def best_segment_length(n_layers: int, saved: int = 1) -> int:
    """Return a segment length with the smallest peak."""
    ### BEGIN SOLUTION
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k, saved))
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab04-sqrt_rule-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 4.3, the square-root rule
def least_peak(n, saved=1):
    return peak_activations(n, best_segment_length(n, saved), saved)


self_check(
    peak_activations,
    [
        Case(
            (8, 3),
            5,
            "The larger of two: forward's end, 3 + 2, and the second segment with 2 inputs, 2 + 3.",
            wrong={6: "While a segment is recomputed, only s - 1 inputs are live."},
        ),
        Case((5, 5), 6, "One segment: five outputs and the chain's input."),
        Case((5, 9), 6, "A segment is never longer than the chain."),
        Case((6, 1), 7, "Segments of one layer: six inputs and one output."),
        Case((10, 4), 6, "The last segment has 2 layers; a recomputed one has 4."),
        Case(
            (8, 3, 5), 17, "2 inputs, and 3 layers of 5.", wrong={5: "A layer holds `saved` units."}
        ),
        Case((4, 4, 3), 13, "One segment: 4 layers of 3, and the chain's input."),
        Case((8, 3), 6, "The example runs 6 layers again.", function=recomputed_layers),
        Case(
            (8, 4), 4, "A last segment of full length isn't recomputed.", function=recomputed_layers
        ),
        Case((5, 9), 0, "One segment: nothing runs again.", function=recomputed_layers),
        Case(
            (15,),
            7,
            "Try every length and take one with the smallest peak.",
            wrong={9: "Return the length, not its peak."},
            function=least_peak,
        ),
        Case((24, 17), 41, "`saved` changes which length is best.", function=least_peak),
        Case((1,), 2, "One layer: one segment of it.", function=least_peak),
        Case((24, 11), 34, "A rounded root isn't always best.", function=least_peak),
        Case((35,), 11, "Two adjacent lengths may tie before a better one.", function=least_peak),
        *(
            Case(
                (n,),
                least,
                "Try every length: peaks may fall and rise more than once.",
                function=least_peak,
            )
            for n, least in ((80, 17), (195, 27))
        ),
    ],
)
if predicted(
    predicted_length, predicted_least_peak, question="what are GPT-3's best length and its peak?"
):
    k = best_segment_length(96, 17)
    print(f"GPT-3: segments of {k}, a peak of {least_peak(96, 17)} units.")
    print(f"You predicted {predicted_length} and {predicted_least_peak}.")
    print(f"Segments of 10 would need {peak_activations(96, 10, 17)}.")

# %% nbgrader={"grade": true, "grade_id": "lab04-sqrt_rule", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.3, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-sqrt_rule", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-u-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# With `saved` $= u$, the peak is about $n/k + ku$. It is smallest at $k = \sqrt{n/u}$, where it is
# $2\sqrt{nu}$. The price is less than one more forward pass. The famous $\sqrt n$ is the case $u = 1$. Real
# layers save much more than their output, so their segments are short: one or two layers.
#
# Next, compare your `peak_activations` with a measurement of 36 layers run by your `run_in_segments`.

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab04-u", "locked": true, "schema_version": 3, "solution": false, "task": false}
lengths = [1, 2, 3, 4, 6, 9, 12, 18, 36]
fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, times in zip(axes, (1, 6), strict=True):
    expected = [peak_activations(36, k, times) for k in lengths]
    measured = []
    for k in tqdm(lengths, desc=f"saved={times}"):
        layers, x = new_chain(36, 256, times)
        meter = forward_and_backward(
            lambda layers, x, k=k: run_in_segments(layers, x, k), layers, x
        )
        # The input was there before: it is the chain's own unit.
        measured.append((meter.peak_bytes - meter.baseline_bytes) / x.nbytes + 1)
    plots.peak_over_segments(ax, lengths, {"predicted": expected, "measured": measured})
    ax.set_xlabel(f"layers per segment (saved = {times})")
    above = [m - p for m, p in zip(measured, expected, strict=True)]
    print(
        f"saved={times}: smallest at k = {lengths[measured.index(min(measured))]}, "
        f"measured {min(above):.1f} to {max(above):.1f} units above predicted"
    )
show_figure(
    fig,
    "Peak in units over segment length, predicted and measured, on two axes. With saved 1, a U with "
    "its bottom at 6. With saved 6 the bottom is at 2 and 3, and the right side far higher. Measured "
    "lies two to three units above predicted.",
)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-u-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* Two **U**s, with their bottoms at $\sqrt{36} = 6$ and near $\sqrt{36/6} \approx 2.4$.
# The measured peak is two or three units above the prediction because of gradients: those of an operation's
# output and input are live together, and an `autograd.Function` also holds its incoming gradient until it
# returns.
#
# **Even lower, at a price:** you can cut a recomputed segment again (*nested* checkpoints). If you keep only
# the chain's input and run all layers from the start for each step of backward, the peak doesn't grow with
# $n$, but the work is $O(n^2)$.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-sliders-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Play
#
# These sliders call your `peak_activations`. When layers save more, how does the best length change?

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab04-sliders", "locked": true, "schema_version": 3, "solution": false, "task": false}
segment_sliders(peak_activations)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-find_the_leak-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.4 Find the leak (core, 2 points, 12 minutes)
#
# `leaky_step`, a checkpointed training step, logs the mean square of each layer's output with *hooks*:
# functions that torch calls after each run of a layer. The results are correct, but the memory use isn't. Copy
# `leaky_step` as `step_with_log(layers, x)` and fix it.
# - It returns the same numbers, leaves the same gradients, and leaves no hook on the layers.
# - With 16 layers, its peak is at most 14 times the bytes of `x`, including `x`, even when it is called
#   again.
# - The layers run through `torch.utils.checkpoint.checkpoint`, as they do now. It checks that a segment's
#   second run, including hooks, saves as many tensors as the first.
#
# *Points:* same results 1, peak 1.
#
# *Example:* for two layers that return 1s and 2s, the log is `[1.0, 4.0]`.
#
# **Predict first.** After three steps on 16 layers, how many times `x` is `leaky_step`'s peak?


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab04-leak", "locked": true, "schema_version": 3, "solution": false, "task": false}
def leaky_step(layers, x):
    """Run one checkpointed step; return the mean square of each layer's output."""
    outputs = []

    def note(layer, inputs, output):
        outputs.append(output)

    for layer in layers:
        layer.register_forward_hook(note)

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    x.sum().backward()
    return [output.square().mean().item() for output in outputs[: len(layers)]]


# %%
predicted_leaky_peak = None  # your prediction, in units of x


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab04-leak_measured", "locked": true, "schema_version": 3, "solution": false, "task": false}
def peak_of(step, n_steps):
    """Return the peak of n steps on the same layers, in units of x and including x."""
    layers, x = new_chain(16)
    x.requires_grad_(False)
    with MemoryMeter(DEVICE).track(layers, x) as meter:
        for _ in range(n_steps):
            step(layers, x)
    return (meter.peak_bytes - meter.baseline_bytes) / x.nbytes + 1


if predicted(predicted_leaky_peak, question="what is the peak of three steps, in units of x?"):
    for n_steps in (1, 2, 3):
        print(f"steps: {n_steps}, a peak of {peak_of(leaky_step, n_steps):.0f} times x")
    print(f"You predicted {predicted_leaky_peak} for three.")


# %% nbgrader={"grade": false, "grade_id": "lab04-find_the_leak-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def step_with_log(layers, x: torch.Tensor) -> list[float]:
    """Run one checkpointed step; return the mean square of each layer's output."""
    ### BEGIN SOLUTION
    log = []

    def note(layer, inputs, output):
        log.append(output.detach().square().mean().item())

    hooks = [layer.register_forward_hook(note) for layer in layers]

    def segment(x, first):
        for layer in layers[first : first + 4]:
            x = layer(x)
        return x

    for first in range(0, len(layers), 4):
        x = torch.utils.checkpoint.checkpoint(segment, x, first, use_reentrant=False)
    for hook in hooks:
        hook.remove()
    x.sum().backward()
    return log
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab04-find_the_leak-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 4.4, find the leak
def mended(layers, x):
    try:
        return step_with_log(layers, x)
    except torch.utils.checkpoint.CheckpointError:
        raise RuntimeError(
            "a segment saved different tensors in its second run. Either a hook computes with a graph "
            "(use output.detach()), or it is gone by then: remove hooks after backward"
        ) from None


def logged(step):
    torch.manual_seed(0)
    layers, x = new_chain(6, 8)
    step(layers, 2 * x.detach())
    return step(layers, x.detach())


def hooks_left(step):
    layers, x = new_chain(6, 8)
    step(layers, x.detach())
    return lab04.hooks_on(*layers)


def input_kept(step):
    layers, x = new_chain(6, 8)
    x = x.detach()
    before = x.clone(), list(layers)
    step(layers, x)
    return not x.requires_grad and torch.equal(x, before[0]) and list(layers) == before[1]


def gradients_left(step):
    torch.manual_seed(0)
    layers, x = new_chain(6, 8)
    for _ in range(2):
        step(layers, x.detach())
    return [layer.scale.grad for layer in layers]


def against_the_bound(step, n_steps):
    peak = peak_of(step, n_steps)
    return "at most 14" if peak <= 14 else f"{peak:.2f}"


self_check(
    logged,
    [
        Case(
            (mended,),
            6,
            "A hook runs in both runs of its segment: return one number per layer.",
            label="numbers in the log of 6 layers",
            function=lambda step: len(logged(step)),
        ),
        Case(
            (mended,),
            logged(leaky_step),
            "A hook runs in both runs of its segment, and what it computes with a graph is saved: "
            "compute on output.detach(), or keep hooks until backward is done.",
            label="the log",
        ),
        Case(
            (mended,),
            gradients_left(leaky_step),
            "The gradients must be the same as in the code above.",
            label="gradients",
            function=gradients_left,
        ),
        Case(
            (mended,),
            True,
            "x and the layers are the caller's: x doesn't require a gradient.",
            label="the inputs are left as they were",
            function=input_kept,
        ),
        Case(
            (mended,),
            0,
            "register_forward_hook returns a handle: call its remove().",
            label="no hooks left on the layers",
            function=hooks_left,
        ),
        Case(
            (mended, 1),
            "at most 14",
            "Something still holds each output: a tensor, a detached one, or a graph.",
            label="one step's peak, in times x",
            function=against_the_bound,
        ),
        Case(
            (mended, 3),
            "at most 14",
            "The peak grows from step to step: what outlives a step?",
            label="three steps' peak, in times x",
            function=against_the_bound,
        ),
    ],
    equal=close(1e-4),
)

# %% nbgrader={"grade": true, "grade_id": "lab04-find_the_leak", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.4, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-find_the_leak", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-practice-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## In practice
#
# - **The price:** backward takes about as long as two forwards. With every layer recomputed, a step takes the time
#   of four forwards instead of three.
# - **`torch.utils.checkpoint.checkpoint(fn, *args, use_reentrant=False)`** takes any arguments, restores RNG
#   states (also the GPU's), and stops recomputing once it has what it needs. `use_reentrant=True` is 4.1's
#   `autograd.Function`: if no argument requires a gradient, the parameters get none.
# - **Hugging Face:** `model.gradient_checkpointing_enable()` makes each layer a segment: GPT-3's peak is 113
#   units, against 82 for segments of two.
#
# **When not to:** if it fits, recomputing buys nothing. If parameters and optimizer state alone exceed the
# memory, it can't help. If the function isn't repeatable (batch norm's statistics, a counter), it does harm.
# Flash attention and fused GELU already do the cheapest part.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.5 In your own words (core, 2 points, 8 minutes)
#
# A friend trains a transformer, checkpointing every layer. Her GPU is 40% full, and a step takes 1.3 seconds.
# "I ran out of memory once, so I switched it on." In three or four sentences: what do you advise, in which
# order, and how long should a step take in the end?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab04-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# More than half of the memory sits idle, and about a quarter of each step is recomputation: one forward of
# four parts of work (forward, recomputed forward, and backward, which is two). So recompute less. First
# only attention, or use flash attention; if that fits, nothing else is needed. Otherwise checkpoint every
# second layer, or only as many layers as the budget asks for. Without any recomputing a step would take
# about 1 second; selective recomputation comes close to that. (Or use the idle memory for a larger batch,
# if the GPU is not busy.)
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-core-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **The core ends here.** You should now be able to say:
# - Checkpointing keeps the inputs of segments and computes the rest again. It's right only if the second run
#   equals the first, random numbers included.
# - The best segment has about $\sqrt{n/u}$ layers, and the peak falls to about $2\sqrt{nu}$.
# - A tensor lives as long as anything refers to it: a list, a hook, a graph.
# - The goal isn't the least memory, but the least *time* that fits. Exercise 4.7 plans for that.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-saved_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.6 What does backward wait for? (stretch, 3 points, 9 minutes)
#
# $y = x^2$ saves $x$, since its derivative is $2x$. $y = e^x$ saves $y$. $y = x + 1$ saves nothing. In
# `held`, the stub collects a `Saved` object for each tensor that the graph of `fn`'s result saves.
#
# Finish `saved_bytes(fn, *inputs)`: the bytes that the graph holds once `fn` has returned.
# - Count whole storages, `tensor.untyped_storage().nbytes()`, each once. A storage's `data_ptr()` identifies
#   it; `tensor.data_ptr()` doesn't, because slices begin elsewhere.
# - Leave out each `nn.Parameter` and its views: a view's `_base` is the tensor that it views; other tensors
#   have None there. Everything else counts: inputs, results, buffers.
#
# *Points:* all or nothing. *Example:* with 1000 float32 values, `x * x` saves `x` twice, in one storage: 4000
# bytes.
#
# **Predict first.** GELU can be written out with `tanh`, or called as `F.gelu`. How many times the bytes of `x`
# does each save?

# %%
predicted_written_out = None  # your prediction, a number
predicted_fused = None  # your prediction, a number

# %% nbgrader={"grade": false, "grade_id": "lab04-saved_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
import weakref


class Saved:
    """One tensor that an operation saved."""

    def __init__(self, tensor):
        self.tensor = tensor.detach()  # the tensor could hold the graph that holds this object
        self.base = tensor._base  # a detached tensor loses it
        self.is_parameter = isinstance(tensor, nn.Parameter)  # False for a view of one


def saved_bytes(fn, *inputs) -> int:
    """Return the bytes of storages that the graph of fn(*inputs) holds, without parameters."""
    references = []  # weak references: they find a Saved object only while a graph holds it

    def pack(tensor):
        # Called for each tensor that an operation saves; the graph keeps what it returns.
        saved = Saved(tensor)
        references.append(weakref.ref(saved))
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
        result = fn(*inputs)  # tensors that it doesn't reach are gone now
    held = [saved for saved in (reference() for reference in references) if saved is not None]
    ### BEGIN SOLUTION
    storages = [
        saved.tensor.untyped_storage()
        for saved in held
        if not saved.is_parameter and not isinstance(saved.base, nn.Parameter)
    ]
    sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
    del result  # it had to stay alive until now
    return sum(sizes.values())
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab04-saved_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 4.6, what does backward wait for?
def drops_branches(x):
    unused = x.cos().sum()
    y = x * x
    unused = torch.exp(x).sum() + x.sin().sum()
    del unused
    return y + torch.tanh(x)


def gelu_written_out(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def saves(fn, expected, hint, label, of=None, **wrong):
    return Case((fn, x if of is None else of), expected, hint, label=label, **wrong)


x = torch.randn(1000, requires_grad=True)
rows = torch.randn(8, 20, requires_grad=True)
weight = nn.Parameter(torch.randn(50, 20))
frozen = nn.Parameter(torch.ones(20), requires_grad=False)
scaled = nn.Module()
scaled.register_buffer("scale", torch.ones(20))
scaled.forward = lambda rows: rows * scaled.scale
self_check(
    saved_bytes,
    [
        saves(
            lambda x: x * x,
            4000,
            "x * x saves x.",
            "x * x",
            wrong={8000: "Count each storage once."},
        ),
        saves(lambda x: torch.exp(2.5 * x), 4000, "exp saves its result.", "exp(2.5 x)"),
        saves(lambda x: torch.exp(x.mean()), 4, "A tensor of one value counts.", "exp(x.mean())"),
        saves(lambda x: x + 1, 0, "x + 1 saves nothing.", "x + 1"),
        saves(
            lambda x: x[:10] ** 2,
            4000,
            "A view keeps its whole storage.",
            "a slice",
            wrong={0: "Leave out only views of an nn.Parameter: this is a view of an input."},
        ),
        saves(
            lambda x: x[:9] ** 2 + x[9:18] ** 2,
            4000,
            "Both slices keep all of x.",
            "two slices",
            wrong={8000: "Identify storages by untyped_storage().data_ptr()."},
        ),
        saves(
            lambda rows: rows @ rows.T,
            640,
            "rows and its transpose are one storage.",
            "rows @ rows.T",
            rows,
            wrong={1280: "Identify storages by untyped_storage().data_ptr() alone."},
        ),
        saves(
            lambda rows: F.linear(rows, weight),
            640,
            "A linear layer saves its input.",
            "a linear layer",
            rows,
            wrong={4640: "It saves a view of its weight, too: look at base."},
        ),
        saves(lambda rows: rows * frozen, 0, "Frozen parameters don't count.", "frozen", rows),
        saves(scaled, 80, "Buffers count.", "a buffer", rows),
        saves(
            lambda rows: rows[:4] * scaled.scale.view(1, 20) + (rows + 1)[:4] ** 2,
            720,
            "80 bytes of the buffer and 640 of rows + 1, each through a view. Leave out only parameters.",
            "views of a buffer and of a result",
            rows,
        ),
        saves(
            lambda rows: F.embedding(torch.arange(9), rows.double().view(20, 8)) ** 2,
            648,
            "9 x 8 float64 values of 8 bytes, and the index: 9 integers of 8 bytes.",
            "float64 and an index",
            rows,
        ),
        saves(
            drops_branches,
            8000,
            "x * x holds x, and tanh its result, perhaps at the address of exp's. The rest left nothing.",
            "dropped branches",
            wrong={
                0: "Keep fn's result alive until you have counted.",
                12000: "exp's graph is gone.",
            },
        ),
    ],
)
if predicted(predicted_written_out, predicted_fused, question="What does GELU save?"):
    written_out = saved_bytes(gelu_written_out, x) / x.nbytes
    fused = saved_bytes(lambda x: F.gelu(x, approximate="tanh"), x) / x.nbytes
    print(f"GELU written out saves {written_out:g} times x; you predicted {predicted_written_out}.")
    print(f"F.gelu saves {fused:g} times x; you predicted {predicted_fused}.")
    print("A fused operation recomputes the rest in its backward: a small checkpoint.")

# %% nbgrader={"grade": true, "grade_id": "lab04-saved_bytes", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.6, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-saved_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-plan-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.7 Unequal layers, and a budget (stretch, 5 points, 20 minutes)
#
# In an image network, the first layers have huge outputs and the last ones tiny ones. And a GPU has only so
# much memory. **The goal is the least time that fits.**
#
# Each stage has a `forward_time`, `saved_bytes` (everything it keeps for backward, including its output) and
# `output_bytes`. A *plan* is a list of strictly increasing indices, each **ending** a segment: `[2, 5]` cuts
# 8 stages into segments 0 to 2, 3 to 5, and 6 to 7. `[]` is one segment. The last isn't recomputed.
# - **Peak:** the largest, over all segments $a \ldots b$, of the `output_bytes` of plan indices below $a$ plus
#   the `saved_bytes` of $a \ldots b$.
# - **Time:** every stage's `forward_time`, plus that of every stage up to the plan's last index again.
#
# Write `plan(stages, budget_bytes)`: the fastest plan whose peak is at most the budget. Raise `ValueError` if
# none exists. With up to 24 stages, trying all $2^{24}$ plans takes too long.
#
# *Points:* all plans fit 2, within 1.2 times the least time 2, least time 1.
#
# *Example:* stages (time, saved, output) (1, 4, 2), (1, 4, 1), (1, 4, 2), and a budget of 9. `[]` peaks at 12,
# `[0]` at $\max(4, 2 + 8) = 10$, `[1]` at $\max(8, 1 + 4) = 8$. So `[1]`: $3 + 2 = 5$.
#
# Only the *last* index decides the time, so the stub goes through the indices. Of all plans that end with $j$
# and fit so far, `least[j]` remembers the one whose kept outputs (including $j$'s) take the fewest bytes, as
# a pair (bytes, plan). For each $i < j$, `least[i]` and the segment $i + 1 \ldots j$ make a candidate. You
# write this step, then choose the plan.
#
# **Predict first.** The chain below saves 1158 MiB. Segments of 4 need 592 MiB and take 202 units of time;
# without checkpoints, it's 114. How long does the best plan within 592 MiB take?

# %%
predicted_time = None  # your prediction, between 114 and 202


# %% nbgrader={"grade": false, "grade_id": "lab04-plan-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def plan(stages, budget_bytes: int) -> list[int]:
    """Return the indices whose outputs to keep: a plan of least time within the budget."""
    n = len(stages)

    def segment_bytes(first, last):
        return sum(stage.saved_bytes for stage in stages[first : last + 1])

    least = {-1: (0, [])}  # before stage 0: no outputs kept, an empty plan
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            ### BEGIN SOLUTION
            if held + segment_bytes(i + 1, j) <= budget_bytes:
                total = held + stages[j].output_bytes
                if j not in least or total < least[j][0]:
                    least[j] = (total, [*kept, j])
            ### END SOLUTION
    ### BEGIN SOLUTION
    for last, (held, kept) in sorted(least.items()):  # an earlier last index recomputes less
        if held + segment_bytes(last + 1, n - 1) <= budget_bytes:
            return kept
    raise ValueError(f"no plan fits {budget_bytes} bytes")
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab04-plan-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 4.7, unequal layers, and a budget
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    forward_time: float
    saved_bytes: int
    output_bytes: int


def plan_peak(stages, kept):
    """Return the peak of a plan, by the rule above."""
    peaks, first, held = [], 0, 0
    for last in [*kept, len(stages) - 1]:
        peaks.append(held + sum(stage.saved_bytes for stage in stages[first : last + 1]))
        held += stages[last].output_bytes
        first = last + 1
    return max(peaks)


def plan_time(stages, kept):
    """Return the time of a plan, by the rule above."""
    again = stages[: kept[-1] + 1] if len(kept) else []
    return sum(s.forward_time for s in stages) + sum(s.forward_time for s in again)


def time_of_plan(stages, budget):
    """Return the time that your plan takes, or "too large" if its peak is above the budget."""
    try:
        kept = list(plan(stages, budget))
    except ValueError as error:  # a subclass counts too, such as peakmem.Infeasible
        raise ValueError(str(error)) from None
    return plan_time(stages, kept) if plan_peak(stages, kept) <= budget else "too large"


image_net = [Stage(*numbers) for numbers in lab04.UNEQUAL_STAGES]
three = [Stage(1, 4, 2), Stage(1, 4, 1), Stage(1, 4, 2)]
others = [Stage(1, 2, 2), Stage(1, 4, 1), Stage(5, 3, 2)]
huge = [Stage(1, 4 * 10**10, output * 10**10) for output in (2, 1, 2)]
quick = [Stage(0.125, 4, output) for output in (2, 1, 1, 2)]
too_large = {"too large": "A segment joins a plan only if it fits with the outputs kept before it."}
# Here two small outputs cost less than a large one.
detour = [
    Stage(*row) for row in ((1, 8, 1), (1, 9, 5), (1, 6, 1), (0, 6, 1), (20, 2, 1), (1, 14, 1))
]
self_check(
    time_of_plan,
    [
        Case(
            (three, 12),
            3,
            "Everything fits: nothing is recomputed.",
            label="the example, 12 bytes",
            wrong={4: "A peak that equals the budget fits."},
        ),
        Case((three, 9), 5, "The plan [1] takes 5.", label="the example, 9 bytes", wrong=too_large),
        Case(
            (others, 9),
            7,
            "Everything fits. Does your function remember a plan for other stages?",
            label="three other stages, 9 bytes",
            wrong=too_large,
        ),
        *(
            Case(
                (huge, budget),
                5,
                "Sizes are in bytes, and may be gigabytes.",
                label="three huge stages",
            )
            for budget in (9 * 10**10, 8 * 10**10 - 1)
        ),
        Case((quick, 12), 0.75, "Times needn't be whole numbers.", label="four quick stages"),
        Case((three, 8), 5, "A peak that equals the budget fits.", label="the example, 8 bytes"),
        Case((three, 3), hint="No plan fits.", raises=ValueError, label="the example, 3 bytes"),
        Case(
            (detour, 20),
            27,
            "Of two plans ending with j, remember the one that keeps less, even if it cuts more often.",
            label="a detour",
            wrong=too_large,
        ),
        *(
            Case(
                (image_net, budget),
                best,
                "A segment's peak is what it saves plus the outputs kept before it, not its own.",
                label=f"{budget} MiB",
                wrong=too_large,
            )
            for budget, best in lab04.KEPT_SET_OPTIMUM
        ),
    ],
)
if predicted(predicted_time, question="how long does the best plan take?"):
    print(f"592 MiB: a time of {time_of_plan(image_net, 592)}; you predicted {predicted_time}.")

# %% nbgrader={"grade": true, "grade_id": "lab04-plan", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.7, 5 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-plan", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-tradeoff-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### The price of memory
#
# Here is the least time for each budget: equal segments, your plans, and two optima. The *nested optimum* may
# cut a recomputed segment again, and keep all of some stages (Beaumont and others, 2019).


# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab04-tradeoff", "locked": true, "schema_version": 3, "solution": false, "task": false}
def staircase(make, budgets):
    """Return (budget, time) wherever the time of make's plan changes."""
    steps = []
    for budget in budgets:
        try:
            kept = make(image_net, budget)
        except ValueError:
            continue
        took = plan_time(image_net, kept)
        if not steps or steps[-1][1] != took:
            steps.append((budget, took))
    return steps


def equal_segments(stages, budget):
    plans = [list(range(k - 1, len(stages) - 1, k)) for k in range(1, len(stages) + 1)]
    fitting = [kept for kept in plans if plan_peak(stages, kept) <= budget]
    if not fitting:
        raise ValueError("no segments of equal length fit")
    return min(fitting, key=lambda kept: plan_time(stages, kept))


if predicted(predicted_time, question="how long does the best plan take?"):
    budgets = range(200, 1160, 2)
    curves = {
        "equal segments": staircase(equal_segments, budgets),
        "your plan": staircase(plan, budgets),
        "kept-set optimum": lab04.KEPT_SET_OPTIMUM,
        "nested optimum": lab04.NESTED_OPTIMUM,
    }
    fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    plots.time_against_memory(ax, curves, unit="MiB")
    show_figure(
        fig,
        "Time over budget, four falling staircases. Equal segments are far above the others. Your "
        "plan and the kept-set optimum are one line; the nested optimum reaches smaller budgets.",
    )

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-tradeoff-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* With 592 MiB, equal segments take 202, your plan 142: it recomputes only the first
# four stages, where the bytes are. The nested optimum fits from 256 MiB on.
#
# ### Does it hold?
#
# Try 12 real stages: your `saved_bytes` measures, your `plan` decides, your `checkpoint` runs, and the meter
# stops what exceeds its budget. Gradients get extra room: the parameters', and three of the widest result's.

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab04-real", "locked": true, "schema_version": 3, "solution": false, "task": false}
WIDTHS = [64, 512, 384, 512, 96, 256, 320, 256, 64, 160, 128, 96, 32]
ROWS = 3072


class Widen(nn.Module):
    """Two linear layers with tanh; the layer between them is as wide as the wider end."""

    def __init__(self, before, after):
        super().__init__()
        inner = max(before, after)
        self.layers = nn.Sequential(
            nn.Linear(before, inner), nn.Tanh(), nn.Linear(inner, after), nn.Tanh()
        )

    def forward(self, x):
        return self.layers(x)


def new_stack():
    torch.manual_seed(0)
    layers = nn.ModuleList(Widen(a, b) for a, b in itertools.pairwise(WIDTHS)).to(DEVICE)
    return layers, torch.randn(ROWS, WIDTHS[0], device=DEVICE, requires_grad=True)


def as_stages(layers, x):
    """Measure each stage: its flops for time, its bytes by your saved_bytes, less its input."""
    stages = []
    for layer in layers:
        flops = sum(2 * ROWS * p.numel() for p in layer.parameters() if p.ndim == 2)
        y = layer(x)
        stages.append(Stage(flops, saved_bytes(layer, x) - x.nbytes, y.nbytes))
        x = y.detach().requires_grad_()
    return stages


def run_plan(layers, x, kept):
    first = 0
    for last in kept:
        x = checkpoint(keep_all, layers[first : last + 1], x)
        first = last + 1
    return keep_all(layers[first:], x)


forward_and_backward(keep_all, *new_stack())  # so that libraries allocate their workspaces now
stages = as_stages(*new_stack())
layers, _ = new_stack()
gradient_bytes = sum(p.nbytes for p in layers.parameters()) + 3 * ROWS * max(WIDTHS) * 4
for_activations = sum(stage.saved_bytes for stage in stages) // 2
print(f"{for_activations / MIB:.1f} MiB for activations, {gradient_bytes / MIB:.1f} for gradients")
arms = {
    "keep all": [],
    "segments of 3": [2, 5, 8],
    "your plan": list(plan(stages, for_activations)),
}
for name, kept in arms.items():
    try:
        meter = forward_and_backward(
            lambda layers, x, kept=kept: run_plan(layers, x, kept),
            *new_stack(),
            extra_bytes=for_activations + gradient_bytes,
        )
        outcome = f"fits, {(meter.peak_bytes - meter.baseline_bytes) / MIB:.1f} MiB at its peak"
    except peakmem.OutOfMemory:
        outcome = "out of memory"
    more = plan_time(stages, kept) / plan_time(stages, []) - 1
    planned = plan_peak(stages, kept) / MIB
    print(f"{name:14} {kept!s:10} {planned:5.1f} MiB planned, forward + {more:4.0%}: {outcome}")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-recompute_attention-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.8 Attention only (stretch, 3 points, 8 minutes)
#
# The best cut may be *inside* a layer. Standard attention keeps its probabilities: $a\,b\,s^2$ values for $a$
# heads, batch $b$ and $s$ tokens. Recomputing them is cheap: for GPT-3, Korthikanti and others (2022) save
# 70% of the activations for 2.7% more operations. They call it *selective recomputation*.
#
# A block has `norm1`, `attention`, `norm2` and `mlp`. `block(x)` computes `a = x + attention(norm1(x))` and returns
# `a + mlp(norm2(a))`. Write `recompute_attention_only(block, x)`: it returns the same result, keeps none of
# attention's probabilities, and runs the MLP once. Call the block's parts, and leave the block unchanged. Use
# your `checkpoint`, or `torch.utils.checkpoint.checkpoint` by its full name.
#
# *Points:* gradients 1, kept bytes 1, what is recomputed 1.
#
# *Example:* $b = 1$, $s = 128$, 8 heads: the probabilities are $8 \cdot 128^2$ float32 values, 512 KiB.
#
# **Predict first.** How many times fewer bytes does a block with width 64, 8 heads and 512 tokens keep?

# %%
predicted_ratio = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab04-recompute_attention-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def recompute_attention_only(block: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Run a transformer block; backward recomputes attention's tensors."""
    ### BEGIN SOLUTION
    attended = x + checkpoint(block.attention, block.norm1(x))
    return attended + block.mlp(block.norm2(attended))
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab04-recompute_attention-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 4.8, attention only
def block_run(run, length=512, d_model=64, n_heads=8):
    """Return a dict of kept bytes, softmax and gelu calls, the result, gradients, and settings."""
    torch.manual_seed(0)
    block = lab04.attention_block(d_model, n_heads, length)
    before = lab04.settings_of(block)
    x = torch.randn(1, length, d_model, requires_grad=True)
    with MemoryMeter("cpu").track(block, x) as meter:
        out = run(block, x)
        kept = meter.live_bytes - meter.baseline_bytes - out.nbytes
        out.square().sum().backward()
    names = [name for name, _ in meter.timeline]
    return {
        "kept": kept,
        "softmax": names.count("aten::_softmax"),
        "gelu": names.count("aten::gelu"),
        "result": out.detach(),
        "gradients": [x.grad, *(p.grad for p in block.parameters())],
        "unchanged": lab04.settings_of(block) == before,
    }


def own(key):
    return block_run(recompute_attention_only)[key]


assert checkpoint.__module__ != "torch.utils.checkpoint", (
    "torch's checkpoint has replaced yours, in 4.2 too: import it under another name"
)
plain = block_run(lambda block, x: block(x))
self_check(
    own,
    [
        Case(("result",), plain["result"], "The result must equal the block's."),
        Case(
            ("gradients",),
            plain["gradients"],
            "Gradients of x and all parameters.",
            label="gradients",
        ),
        Case(
            ("unchanged",),
            True,
            "Leave the block's settings as they are, and leave no hooks on it.",
        ),
        Case(("gelu",), 1, "The MLP runs once."),
        Case(("softmax",), 2, "Attention runs in forward, and again in backward."),
        Case(
            (),
            True,
            "Attention's probabilities are still kept after forward.",
            function=lambda: own("kept") < 8 * 512 * 512 * 4,
            label="no probabilities kept",
        ),
    ],
    equal=close(1e-3, 1e-3),
)
if predicted(predicted_ratio, question="How many times fewer bytes?"):
    print(f"{plain['kept'] / own('kept'):.1f} times fewer; you predicted {predicted_ratio}.")
    for length in (64, 128, 256, 512, 1024):
        kept, less = (
            block_run(run, length)["kept"] / MIB
            for run in (lambda block, x: block(x), recompute_attention_only)
        )
        print(f"{length:5} tokens: {kept:6.2f} MiB kept by the block, {less:5.2f} by yours")

# %% nbgrader={"grade": true, "grade_id": "lab04-recompute_attention", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.8, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-recompute_attention", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-gpu_tradeoff-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *Flash attention*, torch's `scaled_dot_product_attention`, does this in one fused operation.
#
# ## 4.9 Time against memory on a GPU (stretch, 2 points, 8 minutes, GPU)
#
# `lab04.gpu_stack()` returns 16 transformer blocks on the GPU, and an input: width 1024, 8 sequences of 1024 tokens,
# float32. It takes up to 10 GiB. Write `measure(segment_length)`: run the stack through your
# `run_in_segments` and `.sum().backward()`, and return `(seconds, peak_bytes)` of one such step.
# - First make the stack and run two steps. Free the gradients after each: `layers.zero_grad()`, `x.grad =
#   None`.
# - Call `torch.cuda.synchronize()` before you read the clock, at the start and at the end.
# - Read the peak with `torch.cuda.reset_peak_memory_stats()` and `torch.cuda.max_memory_allocated()`; parameters
#   count.
#
# *Points:* for segments of 16, 8, 4 and 1, peaks within 15% and times within a factor of 1.35 of the grader's
# own, and the fastest checkpointed length under 1.45 times a step without checkpoints. *Example:*
# `measure(16)` keeps everything.
#
# **Predict first.** How much longer, in percent, does a step take with segments of 4?

# %%
predicted_overhead = None  # your prediction, in percent


# %% nbgrader={"grade": false, "grade_id": "lab04-gpu_tradeoff-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def measure(segment_length: int) -> tuple[float, int]:
    """Return the seconds and the peak bytes of one step of the GPU's stack."""
    ### BEGIN SOLUTION
    layers, x = lab04.gpu_stack()

    def step():
        run_in_segments(layers, x, segment_length).sum().backward()
        layers.zero_grad()
        x.grad = None

    for _ in range(2):
        step()
    torch.cuda.reset_peak_memory_stats()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    repeats = 3
    start.record()
    for _ in range(repeats):
        step()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000 / repeats, torch.cuda.max_memory_allocated()
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab04-gpu_tradeoff-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 4.9, time against memory on a GPU
def relative(k):
    """Return whether seconds and bytes are plausible, and whether the peak is at most measure(16)'s."""
    seconds, peak_bytes = measure(k)
    whole = found.setdefault(16, measure(16))
    found[k] = seconds, peak_bytes
    print(f"segments of {k:2}: {seconds * 1000:6.1f} ms, {peak_bytes / 2**30:5.2f} GiB")
    return 1e-3 < seconds < 30 and peak_bytes > 2**28, peak_bytes <= whole[1]


found = {}
if torch.cuda.is_available():
    self_check(
        relative,
        [
            Case((k,), (True, True), "Are these seconds and bytes? Did you reset the peak?")
            for k in (16, 8, 4, 2, 1)
        ],
    )
    if predicted(predicted_overhead, question="How much longer, in percent?"):
        overhead = 100 * (found[4][0] / found[16][0] - 1)
        print(f"Segments of 4 take {overhead:.0f}% longer; you predicted {predicted_overhead}.")
else:
    print("Skipped: exercise 4.9 needs a CUDA GPU. Its 2 points are left out of your total.")
    if predicted(predicted_overhead, question="How much longer, in percent?"):
        share = 100 * recomputed_layers(16, 4) / (3 * 16)  # a step takes the time of three forwards
        print(
            f"On paper, segments of 4 take {share:.0f}% longer; you predicted {predicted_overhead}."
        )
        print_checkpoints()

# %% nbgrader={"grade": true, "grade_id": "lab04-gpu_tradeoff", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.9, 2 points: hidden cases are run here when your instructor grades the lab on a GPU.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-gpu_tradeoff", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - What is saved depends on each operation's derivative, and on how operations are fused.
# - Unequal layers need a plan: cut after small outputs, recompute where the bytes are, and only as much as
#   the budget asks for.
# - Attention's probabilities are the cheapest bytes to get back: $s^2$ of memory for a few percent of work.
