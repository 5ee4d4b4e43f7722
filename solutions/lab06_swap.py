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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 6: use the host's memory
#
# An 80 GB GPU sits in a computer with 1000 GB of memory, where data that the GPU doesn't need now can wait.
# Nothing is computed twice, and nothing loses precision. But the link carries 50 to 100 times fewer bytes per
# second than the GPU's memory. So the question is not *can it be moved*, but *can it be moved without making
# the GPU wait*.
#
# **You will be able to**
# - move optimizer state, weights and saved tensors to the host;
# - decide from bandwidth and compute whether to swap, recompute or keep;
# - schedule copies so that they hide behind compute.
#
# | exercise | part | minutes | points |
# |---|---|---|---|
# | 6.1 Adam with its moments on the host | core | 20 | 4 |
# | 6.2 A model that streams through | core | 8 | 3 |
# | 6.3 Swap, recompute or keep? | core | 13 | 2 |
# | 6.4 A schedule for the link | core | 21 | 5 |
# | 6.5 Find the leak | core | 6 | 2 |
# | 6.6 In your own words | core | 5 | 2 |
# | 6.7 Swap what autograd saves | stretch | 25 | 5 |
# | 6.8 One plan for all three | stretch | 12 | 4 |
# | 6.9 Copies behind compute | stretch | 8 | 2 |
# | **core** | | **73** | **18** |
# | **stretch** | | **45** | **11** |
#
# Without a CUDA GPU, 6.9 doesn't count.

# %% jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab06-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
# What this lab imports, and its device
import gc
import itertools
import math
import weakref
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace

import torch
from torch import nn
from tqdm.auto import tqdm

import peakmem
from peakmem.execute.rehearsal import Work, rehearse
from peakmem.labs import Case, close, predicted, self_check, show_figure
from peakmem.labs.lab06 import (
    ACTIVATION,
    BLOCKS,
    WIDTH,
    HostLinear,
    adam_update_,
    best_seconds,
    choice_sliders,
    link_and_compute,
    simulate_plan,
    train_chain,
)
from peakmem.labs.recorded import print_copies
from peakmem.meter import MemoryMeter, measure_call
from peakmem.show.plots.lab06 import draw_break_even, draw_live_bytes, draw_runs
from peakmem.swapping import Stage, simulate
from peakmem.tiers import HostTier, layout_of, rebuild, whole_storage

peakmem.lab("lab06_swap")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 2**20
if DEVICE == "cuda":
    print("The device is the GPU's memory, the host is main memory, and the link is PCIe.")
else:
    print("Here, memory that the meter counts stands in for the device, and a file for the host.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-host-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## Device and host
#
# A `HostTier` is the host's memory:
#
# | call | what it does |
# |---|---|
# | `handle = host.put(tensor)` | copies the values out and returns a handle |
# | `tensor = host.get(handle)` | copies them in, to a **new** tensor |
# | `host.write(handle, tensor)` | overwrites them on the host |
# | `host.free(handle)` | frees them |
#
# `put` doesn't free the tensor: Python does, once nothing refers to it. The counters `bytes_out`,
# `bytes_in` and `live_bytes` say how much has moved and how much is on the host.
#
# **Predict first.** You put a tensor of 4 MiB, delete it, and get it back. How many MiB are on the device
# after each of the three steps?

# %%
predicted_device_mib = None  # your prediction: (after put, after del, after get)

# %% nbgrader={"grade": false, "grade_id": "lab06-host", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_device_mib, question="how many MiB after put, del and get?"):
    host = HostTier()
    with MemoryMeter(DEVICE) as meter:
        tensor = torch.ones(1024, 1024, device=DEVICE)
        start = meter.baseline_bytes
        handle = host.put(tensor)
        seen = [meter.live_bytes - start]
        del tensor
        seen.append(meter.live_bytes - start)
        tensor = host.get(handle)
        seen.append(meter.live_bytes - start)
    print("on the device after put, del, get:", [f"{b / MIB:.0f} MiB" for b in seen])
    print(f"you predicted {predicted_device_mib}; on the host: {host}")
    host.free(handle)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-offloaded_adam-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.1 Adam with its moments on the host (core, 4 points, 20 minutes)
#
# Adam's moments take 8 bytes per parameter, twice as many as the weights, and forward and backward never use
# them.
#
# Lab 3's arithmetic is given: `adam_update_(param, m, v, t, lr, betas, eps)` makes step `t` (counted from 1)
# on one parameter from its `.grad`, and changes `param`, `m` and `v` in place. It makes one temporary.
#
# Write `step()` of `OffloadedAdam`, which steps all parameters. The rest of the class is given.
#
# - `m` and `v` live on the `host`, in the parameter's dtype. Make them as zeros in the parameter's first
#   step. Between steps, keep only handles.
# - **Write back** what you changed: `get` gives a copy.
# - If a gradient is `None`, leave the parameter, its moments and its own step count alone.
# - **Convention:** during a step, the device may hold parameters, gradients and 4 times the largest
#   parameter's bytes; numpy arrays count too. After the first step `host.live_bytes` is 8 bytes per float32
#   value. Don't use `torch.optim`.
#
# *Points:* Adam's results 2, bytes on the device 1, bytes on the host 1.
#
# *Example:* parameters of 1,000 and 500 float32 values take 12,000 bytes on the host, and at most 16,000 on
# the device on top of parameters and gradients.
#
# **Predict first.** How many seconds do one step's copies take for a billion float32 parameters and a link of
# 32 GB/s, if the two directions don't overlap?

# %%
predicted_step_seconds = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab06-offloaded_adam-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
class OffloadedAdam:
    """Adam with its moments on the host."""

    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.host = list(params), host
        self.options = {"lr": lr, "betas": betas, "eps": eps}
        self.state = {}  # a parameter's index -> [its steps, handle of m, handle of v]

    def step(self) -> None:
        """Make one step of Adam on every parameter that has a gradient."""
        ### BEGIN SOLUTION
        for i, param in enumerate(self.params):
            if param.grad is None:
                continue
            if i not in self.state:
                zeros = torch.zeros_like(param)
                self.state[i] = [0, self.host.put(zeros), self.host.put(zeros)]
                del zeros
            self.state[i][0] += 1
            t, m_handle, v_handle = self.state[i]
            m, v = self.host.get(m_handle), self.host.get(v_handle)
            adam_update_(param, m, v, t, **self.options)
            self.host.write(m_handle, m)
            self.host.write(v_handle, v)
            del m, v
        ### END SOLUTION

    def zero_grad(self) -> None:
        """Free the gradients."""
        for param in self.params:
            param.grad = None


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab06-offloaded_adam-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 6.1, Adam with its moments on the host
def values_after(gradients, **options):
    """Return one parameter's values after each step, from 1 with lr = 0.1."""
    param = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    optimizer, values = OffloadedAdam(iter([param]), HostTier(), lr=0.1, **options), []
    for gradient in gradients:
        given = None if gradient is None else torch.tensor([gradient], dtype=torch.float64)
        param.grad = None if given is None else given.clone()
        optimizer.step()
        values.append(round(param.item(), 6))
        if given is not None and (param.grad is None or not torch.equal(param.grad, given)):
            return "step() changed a gradient: only zero_grad() frees it"
    if not torch.is_grad_enabled():
        torch.set_grad_enabled(True)
        return "torch no longer records gradients: use `with torch.no_grad():`"
    return values


@cache  # one measurement for the cases below
def large_step():
    """Return the memory of two steps and zero_grad() on both sides, in units of the parameters' bytes."""
    params = [torch.ones(500_000, device=DEVICE, requires_grad=True) for _ in range(6)]
    for param in params:
        param.grad = torch.ones_like(param)
    P, host, made, below = 6 * params[0].nbytes, HostTier(), [], []

    def two_steps():
        made.append(OffloadedAdam(params, host))
        for _ in range(2):
            below.append(host.live_bytes / P)
            made[0].step()

    track = [params, [p.grad for p in params]]
    found = measure_call(two_steps, device=DEVICE, track=track, count_numpy=True)
    kept = found.live_after_bytes - found.live_before_bytes
    made[0].zero_grad()
    # The two peaks may come at different times, so their sum would be too much.
    rise = (max(found.rise_bytes, found.numpy_peak_bytes) - 2**16) / params[0].nbytes
    print(f"peak on top of parameters and gradients: {rise:.1f} times the largest parameter")
    return {
        "host": [*below, host.live_bytes / P],
        "kept": kept <= 2**16,
        "peak": rise <= 4,
        "cleared": all(p.grad is None for p in params),
    }


def after_large_step(which):
    """Return one of the results of `large_step`."""
    return large_step()[which]


def three_after_a_step(which):
    """Return three parameters' values after a step, or the host's bytes; one has no gradient."""
    params = [torch.ones(1, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    for param in params[1:]:
        param.grad = torch.full_like(param, 0.5)
    host = HostTier()
    OffloadedAdam(params, host, lr=0.1).step()
    return [round(param.item(), 6) for param in params] if which == "values" else host.live_bytes


WRITE = "write both m and v back in every step"
T = "t stays 1: count each parameter's own steps"
self_check(
    values_after,
    [
        Case(([0.5],), [0.9], "step 1 gives m and v of zeros to adam_update_, and t = 1"),
        Case(([0.5, -2.0],), [0.9, 0.95595], f"check two things: {WRITE}; {T}"),
        Case(([0.5, -2.0, 1.0],), [0.9, 0.95595, 0.966968], WRITE),
        Case(([0.5],), [0.916667], "pass eps on", kwargs={"eps": 0.1}),
        Case(([0.5, -2.0],), [0.9, 0.978237], "pass betas on", kwargs={"betas": (0.5, 0.9)}),
        Case(([0.5, None, -2.0],), [0.9, 0.9, 0.95595], "None leaves even the step count alone"),
        Case(([0.5, 0.0],), [0.9, 0.832994], "a gradient of zeros is not None: make the step"),
        Case(
            ("values",),
            [1, 0.9, 0.9],
            "each parameter counts its own steps; skip only gradients of None",
            function=three_after_a_step,
        ),
        Case(
            ("host bytes",),
            32,
            "two float64 moments for each of two parameters",
            function=three_after_a_step,
            wrong={
                0: "m and v live on the host: put them there, and keep their handles",
                16: "give m and v the parameter's dtype: torch.zeros_like(param)",
                48: "without a gradient, make no moments: `continue` first",
                64: "`put` makes a second copy: `write` to the handle that you have",
            },
        ),
        Case(
            ("host",),
            [0, 2, 2],
            "`put` m and v in the first step, 8 bytes per parameter; later, only `write`",
            label="host bytes per weights' bytes before step 1, before step 2, at the end",
            function=after_large_step,
        ),
        Case(
            ("kept",),
            True,
            "between steps keep only handles: no m, v or temporary",
            label="the device keeps at most 64 KiB",
            function=after_large_step,
        ),
        Case(
            ("peak",),
            True,
            "fetch one parameter's m and v at a time, and `del` them before the next",
            label="at most 4 times the largest parameter on the device",
            function=after_large_step,
        ),
        Case(
            ("cleared",),
            True,
            "use param.grad = None, not param.grad.zero_()",
            label="zero_grad() sets each .grad to None",
            function=after_large_step,
        ),
    ],
)
if predicted(predicted_step_seconds, question="how many seconds for one step's copies?"):
    print(f"8 GB in and 8 GB out at 32 GB/s take {2 * 8 / 32:.2f} s; ", end="")
    print(f"you predicted {predicted_step_seconds}.")

# %% nbgrader={"grade": true, "grade_id": "lab06-offloaded_adam", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 6.1, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab06-offloaded_adam", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-stream_forward-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.2 A model that streams through (core, 3 points, 8 minutes)
#
# In a forward pass, one layer computes at a time. So a model larger than the device's memory can run on it if
# its layers come and go one by one.
#
# Write `stream_forward(host_layers, x)`, which runs `x` through the layers and returns the result. Each
# entry of `host_layers` has `load()`, which returns the layer as a module on the device, and
# `weight_bytes`.
#
# **Convention:** record no graph, even if `x` requires a gradient, and leave gradients switched on
# afterwards. Keep at most two layers' weights on the device; `layer = next.load()` still holds the old layer
# while it loads. Without layers, return `x`.
#
# *Points:* the output 1, the memory 2.
#
# *Example:* two layers at a time out of 10, 30 and 20 MB take at most 50 MB.
#
# **Predict first.** A loop without `torch.no_grad()` runs eight layers of 4 MiB. How many MiB of weights are
# on the device when it ends?

# %%
predicted_weights_mib = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab06-stream_forward-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stream_forward(host_layers: list, x: torch.Tensor) -> torch.Tensor:
    """Run layers that wait on the host, at most two of them on the device at once."""
    ### BEGIN SOLUTION
    with torch.no_grad():
        for host_layer in host_layers:
            x = host_layer.load()(x)  # nothing keeps the layer alive once it has computed
    return x
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab06-stream_forward-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 6.2, a model that streams through
host = HostTier()
upper = torch.tensor([[1.0, 1.0], [0.0, 1.0]], device=DEVICE)  # (a, b) becomes (a + b, b)
two = [HostLinear(weight, host) for weight in (upper, upper.T)]
adds = HostLinear(torch.ones(1, 2, device=DEVICE), host)  # (a, b) becomes (a + b)
eight = [HostLinear(torch.eye(1024, device=DEVICE), host) for _ in range(8)]
x = torch.ones(4, 1024, device=DEVICE, requires_grad=True)


def output_of(layers):
    """Return what (1, 1) becomes, or what else went wrong."""
    ones = torch.ones(1, 2, device=DEVICE)
    output = stream_forward(layers, ones)
    if not torch.is_grad_enabled():
        torch.set_grad_enabled(True)
        return OFF
    if ones.tolist() != [[1, 1]]:
        return "x was changed: others may still need it"
    if not isinstance(output, torch.Tensor):
        return f"a {type(output).__name__}: return a tensor"
    return GRAPH if output.requires_grad else output.tolist()


def layers_at_once():
    """Return whether at most two of eight layers were on the device at any time."""
    rise = measure_call(stream_forward, eight, x, device=DEVICE).rise_bytes
    torch.set_grad_enabled(True)  # so that your next try starts as this one did
    print(f"eight layers take 32 MiB; memory rose by {rise / MIB:.1f} MiB at the peak")
    return rise <= 2 * eight[0].weight_bytes + 2**18


OFF, GRAPH = "gradients are switched off afterwards", "the output requires a gradient"
ENDS = {OFF: "use `with torch.no_grad():`, which ends with its block"}
ALL = {GRAPH: "compute each layer under torch.no_grad(), including the last one"}
HELD = "a list, a variable or autograd holds a layer; compute under torch.no_grad()"
self_check(
    output_of,
    [
        Case(([],), [[1, 1]], "without layers the output is x", label="no layers", wrong=ENDS),
        Case((two[:1],), [[2, 1]], "call what load() returns", label="one layer", wrong=ALL),
        Case((two,), [[2, 3]], "each layer takes the previous layer's output", label="two layers"),
        Case((two[1:] + two,), [[3, 5]], "run every entry, in order", label="three layers"),
        Case(
            ([adds],), [[2]], "an output may have another shape than x", label="one layer that adds"
        ),
        Case((), True, HELD, label="at most two layers at once", function=layers_at_once),
    ],
)
if predicted(predicted_weights_mib, question="how many MiB of weights without no_grad?"):

    def colleague(host_layers, x):
        for layer in host_layers:
            x = layer.load()(x)
        return x

    left = measure_call(colleague, eight, x, device=DEVICE)
    print(
        f"without no_grad: {left.rise_bytes / MIB:.1f} MiB; you predicted {predicted_weights_mib}."
    )

# %% nbgrader={"grade": true, "grade_id": "lab06-stream_forward", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 6.2, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab06-stream_forward", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-deepspeed", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **In practice** 6.1 and 6.2 are keys of DeepSpeed's configuration:
#
# ```json
# {"zero_optimization": {
#     "stage": 3,
#     "offload_optimizer": {"device": "cpu", "pin_memory": true},
#     "offload_param": {"device": "cpu", "pin_memory": true}}}
# ```
#
# ZeRO's `stage` says what the GPUs divide among themselves: from 1 on the optimizer's state, and in 3 also
# the weights. `offload_optimizer` works from stage 1 on, and runs the step itself on the host's processor, so
# moments never move: 16-bit gradients go out and weights come in, 2 + 2 bytes per parameter instead of 8 + 8.
# `offload_param` needs stage 3. `pin_memory` makes copies faster (6.9).

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-worth_swapping-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.3 Swap, recompute or keep? (core, 2 points, 13 minutes)
#
# Lab 4 dropped an activation and computed it again. Call a part of the network, such as a layer, a *stage*.
# A swap costs two copies; but a copy needs no arithmetic, so it can hide behind what the device computes
# between the stage's forward and its backward, `hidden_flops` in total. Only the rest is extra time:
#
# $$\text{swap} = \max\left(0,\; \frac{2 \cdot \text{saved bytes}}{\text{link}} -
# \frac{\text{hidden flops}}{\text{flops per second}}\right) \qquad
# \text{recompute} = \frac{\text{forward flops}}{\text{flops per second}}$$
#
# Write `worth_swapping(stage, link_bytes_per_s, flops_per_s)`. `stage` has the attributes `saved_bytes`,
# `forward_flops` and `hidden_flops`. Return `"keep"` if `saved_bytes` is 0, `"swap"` if swapping costs **no
# more** than recomputing, and `"recompute"` otherwise.
#
# *Points:* all or nothing.
#
# *Example:* 1 GB over 32 GB/s: two copies take 62.5 ms. 15 Tflop at 300 Tflop/s hide 50 ms of them. Recomputing
# 6 Tflop takes 20 ms, more than 12.5. So swap.
#
# **Predict first.** What about the same stage and link on a GPU that computes twice as fast?

# %%
predicted_choice = None  # your prediction, "swap" or "recompute"


# %% nbgrader={"grade": false, "grade_id": "lab06-worth_swapping-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def worth_swapping(stage, link_bytes_per_s: float, flops_per_s: float) -> str:
    """Return "swap", "recompute" or "keep", whichever costs the least time."""
    ### BEGIN SOLUTION
    if stage.saved_bytes == 0:
        return "keep"
    copies = 2 * stage.saved_bytes / link_bytes_per_s
    extra = max(0.0, copies - stage.hidden_flops / flops_per_s)
    return "swap" if extra <= stage.forward_flops / flops_per_s else "recompute"
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab06-worth_swapping-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 6.3, swap, recompute or keep?
def choice(saved_gb, forward_tflop, hidden_tflop, link_gb_per_s, tflop_per_s):
    """Call worth_swapping in handier units."""
    stage = SimpleNamespace(
        saved_bytes=int(saved_gb * 1e9),
        forward_flops=int(forward_tflop * 1e12),
        hidden_flops=int(hidden_tflop * 1e12),
    )
    given = dict(vars(stage))
    chosen = worth_swapping(stage, link_gb_per_s * 1e9, tflop_per_s * 1e12)
    return chosen if vars(stage) == given else "the stage was changed"


self_check(
    choice,
    [
        Case((1, 6, 15, 32, 300), "swap", "the example: 12.5 ms against 20 ms"),
        *(
            Case(changed, "recompute", "use every number: one differs from the example")
            for changed in [
                (2, 6, 15, 32, 300),
                (1, 6, 10, 32, 300),
                (1, 6, 15, 16, 300),
                (1, 6, 15, 32, 1000),
            ]
        ),
        Case((1, 3.72, 15, 32, 300), "recompute", "12.5 ms against 12.4 ms"),
        Case((1, 4, 15, 16, 300), "recompute", "half the link: two copies take 125 ms"),
        Case((0, 6, 15, 32, 300), "keep", "nothing is saved, so there is nothing to move"),
        Case(
            (1, 0, 900, 32, 300),
            "swap",
            "the copies hide with time to spare: the extra time is 0, not less",
        ),
        Case((1, 18.75, 0, 32, 300), "swap", "62.5 ms against 62.5 ms: at equal cost, swap"),
        Case((1, 18.7499, 0, 32, 300), "recompute", "62.5 ms against 62.4997: don't round"),
        Case((1e-6, 1.87e-5, 0, 32, 300), "recompute", "62.5 ns against 62.3: don't round"),
        Case((0.001, 0, 0, 32, 300), "recompute", "recomputing costs nothing here"),
        Case(
            (1e-6, 0, 0, 32, 300), "recompute", "1 kB isn't nothing: keep only if 0 bytes are saved"
        ),
    ],
)
if predicted(predicted_choice, question="swap or recompute on the faster GPU?"):
    print(
        f"On a GPU that is twice as fast: {choice(1, 6, 15, 32, 600)}; you predicted {predicted_choice}."
    )
    print("Its compute hides 25 ms of 62.5, and recomputing takes 10 ms.")

# %% nbgrader={"grade": true, "grade_id": "lab06-worth_swapping", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 6.3, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab06-worth_swapping", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-sliders-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Play
#
# When does recomputing a layer pay on an H100?

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab06-sliders", "locked": true, "schema_version": 3, "solution": false, "task": false}
choice_sliders(worth_swapping)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-break-even-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Which link makes a swap free?
#
# For an extra time of 0, the link has to carry $2 \cdot \text{flops per second} / \text{intensity}$,
# where *intensity* is hidden flops per saved byte. A transformer layer of width $h$ computes about $24 h^2$
# operations per token in forward and twice that in backward, and it saves about $34 h$ bytes. So each layer
# between a stage's forward and its backward adds $72 h^2 / (34 h) \approx 2.1 h$ to the intensity: 8,674 for
# $h = 4096$.
#
# **Predict first.** How many GB/s does *your* link carry?

# %%
predicted_link_gb_per_s = None  # your prediction, a number

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab06-break-even", "locked": true, "schema_version": 3, "solution": false, "task": false}
own_link, own_flops = link_and_compute(DEVICE)

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab06-break-even-here", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_link_gb_per_s, question="how many GB/s does your link carry?"):
    print(f"this machine: link {own_link / 1e9:.2f} GB/s, compute {own_flops / 1e12:.3f} Tflop/s")
    print(f"for the link you predicted {predicted_link_gb_per_s} GB/s")
    layer = 72 / 34 * 4096
    for name, peak in {"V100": 125e12, "A100": 312e12, "H100": 989.4e12}.items():
        print(f"{name}: behind 1 layer of h = 4096, {2 * peak / layer / 1e9:.0f} GB/s")
    show_figure(
        draw_break_even(own_link, own_flops, layer),
        "The bandwidth from which a swap is free falls with intensity, with a line for each device; the "
        "faster the device, the higher its line. Level lines mark PCIe 3, PCIe 5 and NVLink-C2C.",
    )

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-break-even-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* With a link above its line, a device swaps for free; the dot shows where your
# machine does. Behind one layer of width 4096, an A100 would need 72 GB/s, more than PCIe 4 or 5 has in one
# direction; behind three, 24 GB/s is enough. So the first stages, with the most compute between forward and
# backward, are the best to swap.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-schedule-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.4 A schedule for the link (core, 5 points, 21 minutes)
#
# Many stages want one link. Which ones go out, when, and when do they come back? These are the rules:
#
# A chain of $n$ stages runs $2n$ **compute steps**, numbered from 0: forward $0, \dots, n-1$, then backward
# $n-1, \dots, 0$, so backward i is step $2n-1-i$. They run one at a time, each as soon as it can. Forward i
# takes `saved_bytes` on the device when it **starts**; backward i needs them there, and frees them when it
# **ends**.
#
# A schedule is a list of **copies** `(kind, stage, after)`. The link makes them one at a time, in the order
# of the list, each in `saved_bytes / link_bytes_per_s` seconds:
# - `("out", i, after)` frees the stage's bytes on the device when it **ends**;
# - `("in", i, after)` takes them again when it **starts**;
# - `after`: the copy may start once compute step `after` is done; -1 means at once.
#
# A copy waits until its bytes are on the side it copies from, and no step uses them. Nothing may exceed the
# budget: a step or copy that doesn't fit waits. If a step and a copy could start at the same moment, the
# step goes first. The **makespan** is the time when the last step ends.
#
# `simulate(stages, budget_bytes, link_bytes_per_s, schedule)` plays this. It returns a run with a `makespan`,
# or raises `peakmem.Infeasible`, which says what waits for what.
#
# **Predict first.** Three stages of 100 bytes have forwards of 2 s and backwards of 4 s. The device has room
# for two; the link carries 100 bytes/s. Which of the four schedules below finish?

# %% nbgrader={"grade": false, "grade_id": "lab06-schedule-attempts", "locked": true, "schema_version": 3, "solution": false, "task": false}
three = [Stage(forward_time=2, backward_time=4, saved_bytes=100)] * 3
attempts = {
    "nothing": [],
    "out only": [("out", 0, 0)],
    "out and in": [("out", 0, 0), ("in", 0, 3)],
    "in one step later": [("out", 0, 0), ("in", 0, 4)],
}

# %%
predicted_schedules = None  # your prediction, such as "nothing, out only"

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab06-schedule-tried", "locked": true, "schema_version": 3, "solution": false, "task": false}
if predicted(predicted_schedules, question="which of the four finish?"):
    for name, attempt in attempts.items():
        try:
            print(f"{name:18} makespan {simulate(three, 200, 100, attempt).makespan:g}")
        except peakmem.Infeasible as error:
            print(f"{name:18} infeasible: {error}")
    show_figure(
        draw_runs({"out and in": simulate(three, 200, 100, attempts["out and in"])}),
        "Gantt chart: compute runs without a gap from 0 to 18 s; on the link, stage 0 goes out from "
        "2 to 3 s and comes in from 10 to 11 s.",
    )

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-schedule-how", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* Stage 0 goes out while forward 1 runs, and comes back while backward 1 runs. The
# makespan is the time of compute alone.
#
# Write `schedule(stages, budget_bytes, link_bytes_per_s)`, which returns a list of copies. Raise `ValueError`
# if one stage alone exceeds the budget; otherwise a schedule exists.
#
# *Points:* every schedule finishes 2, within 1.25 times the least makespan 2, within 1.05 times 1. Chains have at
# most 8 stages.
#
# **Step by step.** To swap a set of stages, send each out after its own forward, `("out", i, i)`, and fetch
# them in the order that backward needs, last one first: `("in", i, n - 1)` lets the link begin when forward
# ends, and it waits for room by itself.
# 1. *Feasible.* Swap the first $k$ stages, with the smallest $k$ that doesn't raise `Infeasible`. (Not all: a
#    copy out that backward overtakes never starts, and all later copies wait forever.)
# 2. *Faster.* One large stage may free as much as three small ones. Eight stages have 256 subsets: try them all.
#
# *Example:* above, `[("out", 0, 0), ("in", 0, 2)]` is correct, with a makespan of 18.


# %% nbgrader={"grade": false, "grade_id": "lab06-schedule-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def schedule(stages: list, budget_bytes: int, link_bytes_per_s: float) -> list[tuple]:
    """Return copies (kind, stage, after) that make the chain fit, in little time."""
    ### BEGIN SOLUTION
    n = len(stages)
    if max(stage.saved_bytes for stage in stages) > budget_bytes:
        raise ValueError("one stage alone exceeds the budget")
    compute = sum(stage.forward_time + stage.backward_time for stage in stages)
    best, best_makespan = [], math.inf
    for chosen in itertools.product((False, True), repeat=n):
        swapped = [i for i in range(n) if chosen[i]]
        copies = [("out", i, i) for i in swapped] + [("in", i, n - 1) for i in reversed(swapped)]
        try:
            makespan = simulate(stages, budget_bytes, link_bytes_per_s, copies).makespan
        except peakmem.Infeasible:
            continue
        if makespan < best_makespan:
            best, best_makespan = copies, makespan
        if best_makespan == compute:
            break  # no schedule is shorter than compute alone
    return best
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab06-schedule-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 6.4, a schedule for the link
def makespan(stages, budget, link):
    """Play the student's schedule; return its makespan, or what is wrong with it."""
    given = list(stages)
    try:
        copies = schedule(given, budget, link)
    except peakmem.Infeasible as error:
        if max(stage.saved_bytes for stage in stages) > budget:
            raise ValueError from None  # an Infeasible is a ValueError
        print(f"simulate's message for one of your tries: {error}")
        return UNCAUGHT
    if copies is None:
        return NONE
    if given != stages:
        return "stages changed"
    try:
        return simulate(stages, budget, link, copies).makespan
    except peakmem.Infeasible as error:
        print(f"simulate's message for your schedule: {error}")
        return NEVER


def near(least, *problem):
    """Return whether the makespan is within 1.05 times the least."""
    found = makespan(*problem)
    if not isinstance(found, (int, float)):
        return found
    if found > 1.05 * least:
        print(f"your makespan is {found:g}, the shortest {least:g}; up to 5% more earns all points")
    return found <= 1.05 * least


small = [Stage(2, 4, 1)] * 3
uneven = [Stage(1, 2, 20), Stage(2, 2, 10), Stage(1, 2, 20)]
room = [Stage(1, 1, saved_bytes) for saved_bytes in (8, 80, 80, 8)]
large = [Stage(3, 2, 10), Stage(1, 2, 30), Stage(2, 4, 60), Stage(1, 4, 10), Stage(1, 6, 30)]
NEVER, UNCAUGHT = "a schedule that never finishes", "Infeasible came out of schedule"
NONE = "None: did none of your tries finish?"
STUCK = {
    NONE: "print what simulate says about one. Does it fetch the last stage first, as backward needs?",
    NEVER: "read simulate's message above: which step or copy waits, and for what?",
    UNCAUGHT: "catch peakmem.Infeasible where you call simulate, and try the next schedule",
}
SLOW = "a stage that goes out needlessly makes backward wait for it"
KEPT = "does your function remember a schedule for other stages?"
EARLY = "after forward, let the link begin at once: it waits for room by itself"
PROBLEMS = {  # label: (least makespan, stages, budget, link, hint)
    "room for two": (18, three, 200, 100, f"{EARLY}; {KEPT}"),
    "room for one": (22, three, 100, 100, "only one stage at a time is on the device"),
    "one must go, the link is slow": (38, [Stage(1, 2, 8)] * 4, 31, 0.5, SLOW),
    "room for the last": (
        8,
        room,
        168,
        16,
        "copies in that start during forward take up the last stages' room",
    ),
    "fewer bytes, more time": (10, uneven, 40, 10, "compare makespans, not the bytes moved"),
    "5 stages": (29, large, 90, 10, "swapping the first stages gives 34: try all sets"),
}
self_check(
    makespan,
    [
        Case(
            (three, 300, 100),
            18,
            "everything fits: an empty list is best",
            label="room for all",
            wrong=STUCK,
        ),
        Case((three, 300, 1), 18, SLOW, label="room for all, slow link", wrong=STUCK),
        Case((small, 200, 100), 18, "everything fits", label="three small stages", wrong=STUCK),
        Case((three, 99, 100), raises=ValueError, hint="100 bytes never fit into 99", label="none"),
        *(
            Case(tuple(problem), True, hint, label=label, function=near, wrong=STUCK)
            for label, (*problem, hint) in PROBLEMS.items()
        ),
    ],
)

# %% nbgrader={"grade": true, "grade_id": "lab06-schedule", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
# Exercise 6.4, 5 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab06-schedule", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-find_the_leak-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.5 Find the leak (core, 2 points, 6 minutes)
#
# Batches of many lengths wait on the host. This function reduces each to one number. Its results are correct.
#
# **Predict first.** There are twelve batches, all of different lengths; the longest takes 2 MiB, the shortest 1.
# How many MiB are on the device at the peak, including temporaries?

# %%
predicted_leak_mib = None  # your prediction, a number


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab06-leak", "locked": true, "schema_version": 3, "solution": false, "task": false}
def wasteful_mean_squares(host, handles):
    """Return the mean square of each batch on the host."""
    buffers, means = {}, []
    for handle in handles:
        if handle.shape not in buffers:
            buffers[handle.shape] = host.get(handle)
        else:
            buffers[handle.shape].copy_(host.get(handle))
        batch = buffers[handle.shape]
        means.append((batch * batch).mean().item())
    return means


LENGTHS = [512 - 22 * i for i in range(12)]
leak_host = HostTier()  # its own name: other cells use `host` for theirs
leak_handles = [
    leak_host.put(torch.full((rows, 1024), float(rows), device=DEVICE)) for rows in LENGTHS
]
if predicted(predicted_leak_mib, question="how many MiB at the peak with twelve batches?"):
    for count in (1, 2, 6, 12):
        found = measure_call(wasteful_mean_squares, leak_host, leak_handles[:count], device=DEVICE)
        print(f"batches: {count:2}, {found.rise_bytes / MIB:5.1f} MiB at the peak")
    print(f"you predicted {predicted_leak_mib} MiB for twelve")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-find_the_leak-task", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Write `mean_squares(host, handles)`, with the same results in less memory. **Convention:** at most 3 times the
# largest batch plus 256 KiB are on the device at once, numpy arrays included. A shape may come twice, with
# different values, and so may a handle; there may be no batches. Leave the host as it is.
#
# *Points:* the results 1, the peak 1.
#
# *Example:* batches of 2, 1 and 2 MiB: at most 6.25 MiB at once.


# %% nbgrader={"grade": false, "grade_id": "lab06-find_the_leak-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mean_squares(host: HostTier, handles: list) -> list[float]:
    """Return the mean square of each batch on the host, one batch at a time on the device."""
    ### BEGIN SOLUTION
    means = []
    for handle in handles:
        batch = host.get(handle)  # a new tensor anyway, so a buffer saves nothing
        means.append((batch * batch).mean().item())
        del batch
    return means
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab06-find_the_leak-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 6.5, find the leak
def means_of(*values):
    """Return the means of batches whose rows are (0, value); the last two are one handle."""
    host = HostTier()
    batches = [torch.tensor([[0, v]] * n) for n, v in zip((2, 1, 2), values, strict=False)]
    handles = [host.put(batch) for batch in batches]
    handles += handles[-1:]
    given = list(handles)
    means = mean_squares(host, handles)
    return means if handles == given else "the list of handles was changed: it is the caller's"


def peak_of(times):
    """Return whether the device's peak is within the bound; the batches come `times` times."""
    host = HostTier()
    handles = [host.put(torch.ones(rows, 1024, device=DEVICE)) for rows in LENGTHS]
    before = (host.live_bytes, host.bytes_out)
    found = measure_call(mean_squares, host, handles * times, device=DEVICE, count_numpy=True)
    rise = found.rise_bytes + found.numpy_peak_bytes
    print(f"{12 * times} batches: {rise / MIB:.1f} MiB at the peak, and 6.25 are allowed")
    if (host.live_bytes, host.bytes_out) != before:
        return OTHER
    return rise <= 3 * handles[0].nbytes + 2**18


OTHER = "the host has changed"
KEEP = {OTHER: "don't put, write or free: the batches are the caller's"}
STALE = "return one number per handle; the second batch of a shape has its own values"
HELD = "what still holds the batches of other shapes?"
self_check(
    means_of,
    [
        Case((), [], "no batches, no numbers", label="no batches"),
        Case(
            (2.0, 2.0, 400.0),
            [2, 2, 80_000, 80_000],
            STALE,
            label="four handles, the last one twice",
        ),
        Case((1,), True, HELD, label="the peak of twelve", function=peak_of, wrong=KEEP),
        Case((2,), True, HELD, label="the peak of twice twelve", function=peak_of, wrong=KEEP),
    ],
    equal=close(1e-5),
)

# %% nbgrader={"grade": true, "grade_id": "lab06-find_the_leak", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 6.5, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab06-find_the_leak", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.6 In your own words (core, 2 points, 5 minutes)
#
# A friend swaps the saved tensors of *every* layer of a small network. Memory is fine, but a step takes three
# times as long. In two to four sentences: why, and which two figures of the machine would have predicted it
# (1 point)? What would you swap instead (1 point)?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab06-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# A small network computes few operations per saved byte, so its copies (2 x saved bytes / link) take longer
# than the compute (operations / rate) they could hide behind. Swap only what the budget asks for, the first
# stages; recompute what is cheap, and keep the last.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-core-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **The core ends here.** You should now be able to say:
#
# - Swap tensors that are rarely used, or have much compute between two uses: moments first, weights next.
# - A swap is free if the link carries at least $2 \cdot \text{flops per second} / \text{intensity}$. Below that,
#   compare it with recomputing.
# - A schedule is fast if its copies are few and begin as soon as they can.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-swap_saved_tensors-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.7 Swap what autograd saves (stretch, 5 points, 25 minutes)
#
# Here is a chain that doesn't fit: twelve blocks, and room for seven activations.

# %% tags=["raises-exception"] nbgrader={"grade": false, "grade_id": "lab06-does-not-fit", "locked": true, "schema_version": 3, "solution": false, "task": false}
# train_chain(swap, host, budget) runs y = tanh(y @ weight) for each block under `swap(host)`, then
# backward, and returns the meter.
BUDGET = 7 * ACTIVATION  # bytes


@contextmanager
def keep_all(host):
    """Swap nothing: what autograd saves stays on the device."""
    yield


try:
    train_chain(keep_all, HostTier(), BUDGET)
except peakmem.OutOfMemory as error:
    print("Out of memory:", error)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-swap_saved_tensors-how", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Within `with torch.autograd.graph.saved_tensors_hooks(pack, unpack):` autograd calls `pack(tensor)` for
# every tensor it saves, and keeps what `pack` returns **instead of the tensor**. When backward needs the
# tensor, `unpack(what_pack_returned)` has to return it; after use, autograd releases it.
#
# Write `swap_saved_tensors(host)`, a context manager in the form of `keep_all`: forward runs at its `yield`.
# If `pack` just puts and `unpack` gets, gradients are correct, but too much moves, and all of it stays on the
# host. Three rules fix that:
#
# 1. **Parameters stay.** Return them from `pack` unchanged, and their views too: a view's `tensor._base` is
#    the tensor it views. Only `nn.Parameter` counts.
# 2. **Each storage goes out once.** `tanh` saves its output, and the next product saves the same tensor as its
#    input.
# 3. **Nothing is left** on the host once autograd has released it: after backward, even within the block, or
#    when the graph is dropped without one. Don't free at the first `unpack`: with `retain_graph=True`,
#    backward runs twice.
#
# Here is a tool for 2 and 3. `Storages(host).entry(tensor)` returns the entry of the tensor's storage. The
# entry's `handle` is freed when nothing holds the entry. So let autograd be the only holder.


# %% nbgrader={"grade": false, "grade_id": "lab06-storages", "locked": true, "schema_version": 3, "solution": false, "task": false}
class Entry:
    """A storage's bytes on the host, freed when nothing holds this entry."""

    def __init__(self, tensor, host):
        self.handle = host.put(whole_storage(tensor))
        weakref.finalize(self, host.free, self.handle)


class Storages:
    """The entries of all storages on a host."""

    def __init__(self, host):
        self.host = host
        # Keyed by the storage itself, weakly: its data_ptr() may be reused.
        self.entries = weakref.WeakKeyDictionary()  # storage -> weak reference to its entry

    def entry(self, tensor):
        """Return the entry of a tensor's storage; put it on the host if there is none."""
        storage = tensor.untyped_storage()
        entry = self.entries.get(storage, lambda: None)()
        if entry is None:
            entry = Entry(tensor, self.host)
            self.entries[storage] = weakref.ref(entry)
        return entry


# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-swap_saved_tensors-rules", "locked": true, "schema_version": 3, "solution": false, "task": false}
# An entry holds the *whole* storage, of which a saved tensor may be a slice or a transpose. `layout_of(tensor)` is
# its dtype, shape and strides; `rebuild(host.get(entry.handle), layout)` is the tensor again.
#
# *Points:* gradients 1, the device's peak 2, rules 1 and 2 1, rule 3 1.
#
# **Convention:** a chain of any length may take 6 activations plus half a MiB on top of `x` and the weights.
# No tensor changes in place between two saves.
#
# *Example:* in `y = torch.exp(x)`, then `(y * y).sum()`, `exp` saves `y`, and the product saves it twice. One
# storage goes out.
#
# **Predict first.** In the chain above, each block saves its input (for the product) and its output (for tanh).
# How many activations go out for all twelve?

# %%
predicted_activations_out = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab06-swap_saved_tensors-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
@contextmanager
def swap_saved_tensors(host: HostTier):
    """Within the block, move what autograd saves to the host; backward brings it back."""
    ### BEGIN SOLUTION
    storages = Storages(host)

    def pack(tensor):
        owner = tensor if tensor._base is None else tensor._base
        if isinstance(owner, nn.Parameter):
            return tensor
        return storages.entry(tensor), layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        entry, layout = packed
        return rebuild(host.get(entry.handle), layout)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab06-swap_saved_tensors-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 6.7, swap what autograd saves
def gradients(swap, host, backwards=1):
    """Return the gradients of a small model with views, as one list."""
    torch.manual_seed(0)
    x = torch.randn(20, 20, device=DEVICE, requires_grad=True)
    weight = nn.Parameter(torch.randn(20, 20, device=DEVICE) / 4)
    with swap(host):
        y = x
        for _ in range(4):
            y = torch.tanh(y @ weight.t()) * torch.sigmoid(y)
        loss = (y[:5] * y[5:10]).sum() + (y.T[0] * y[:3, ::1].expand(3, 20)).sum()
        loss = loss + y.T[torch.tensor([3, 1, 2], device=DEVICE)].square().sum()
    for i in range(backwards):
        loss.backward(retain_graph=i + 1 < backwards)
    return torch.cat([x.grad.flatten(), weight.grad.flatten()])


def same_gradients(backwards):
    """Return whether gradients are the same as without swapping."""
    expected = backwards * gradients(keep_all, HostTier())
    return torch.allclose(expected, gradients(swap_saved_tensors, HostTier(), backwards))


def left_after(end):
    """Return bytes on the host after backward, after one in the block, or without a backward."""
    host = HostTier()
    if end == "backward":
        gradients(swap_saved_tensors, host)
    elif end == "in the block":
        with swap_saved_tensors(host):
            torch.exp(torch.ones(2, 5, device=DEVICE, requires_grad=True)).sum().backward()
            gc.collect()
            return host.live_bytes
    else:
        with swap_saved_tensors(host):
            loss = torch.exp(torch.ones(2, 5, device=DEVICE, requires_grad=True)).square().sum()
        del loss
    gc.collect()
    return host.live_bytes


def bytes_out(use, after=lambda y: None):
    """Return the bytes that go out for y = torch.exp(x), which has 40, and one use of it."""
    host, x = HostTier(), torch.ones(2, 5, device=DEVICE, requires_grad=True)
    with swap_saved_tensors(host):
        y = torch.exp(x)
        loss = use(y).sum()
    after(x)
    del loss
    return host.bytes_out


def out_to_two_hosts():
    """Return the bytes that go out for x * x under each of two hosts, while both graphs live."""
    hosts, x = (HostTier(), HostTier()), torch.ones(2, 5, device=DEVICE, requires_grad=True)
    losses = []
    for host in hosts:
        with swap_saved_tensors(host):
            losses.append((x * x).sum())
    return [host.bytes_out for host in hosts]


def few_bytes_in():
    """Return whether exp and y * y, which save y three times, fetch it three times at most."""
    host, x = HostTier(), torch.ones(2, 5, device=DEVICE, requires_grad=True)
    with swap_saved_tensors(host):
        y = torch.exp(x)
        loss = (y * y).sum()
    loss.backward()
    return host.bytes_in <= 3 * 40


def fits():
    """Return whether the chain takes 6 activations plus half a MiB at most."""
    meter = train_chain(swap_saved_tensors, HostTier())
    return meter.peak_bytes - meter.baseline_bytes <= 6 * ACTIVATION + 2**19


weight = nn.Parameter(torch.ones(4, 5, device=DEVICE))
frozen = nn.Parameter(torch.ones(5, 5, device=DEVICE), requires_grad=False)
leaf = torch.ones(2, 5, device=DEVICE, requires_grad=True)
SHARED = "use one `Storages` for the whole block, and one entry for a tensor and its views"
self_check(
    same_gradients,
    [
        Case(
            (1,),
            True,
            "yield under the hooks; keep the entry, not just its handle; rebuild from its whole storage",
        ),
        Case((2,), True, "backward may run twice: don't free in unpack"),
        Case(
            ("backward",),
            0,
            "nothing frees the handles, or something besides autograd holds the entries",
            function=left_after,
        ),
        Case(("in the block",), 0, "let autograd be the only holder", function=left_after),
        Case(("dropped",), 0, "free when the graph is dropped, too", function=left_after),
        Case((lambda y: y * y,), 40, SHARED, label="y * y", function=bytes_out),
        Case((lambda y: y @ y.T,), 40, SHARED, label="y @ y.T", function=bytes_out),
        Case(
            (lambda y: nn.functional.linear(y, weight),),
            40,
            "a parameter, or a view of one, went to the host",
            label="linear(y, parameter)",
            function=bytes_out,
        ),
        Case((lambda y: y @ frozen,), 40, "a frozen parameter stays", function=bytes_out),
        Case(  # y, a bool for each of its values, y + y, the row of squares, and the leaf
            (lambda y: torch.where(y > 0, (y + y)[:1].square() * leaf, 0),),
            40 + 10 + 40 + 20 + 40,
            "only parameters stay: views, bools, small tensors and other leaves go",
            label="where(y > 0, (y + y)[:1].square() * leaf, 0)",
            function=bytes_out,
        ),
        Case(
            (lambda y: y, lambda x: torch.exp(x).sum()),
            40,
            "hooks are still active after the block: restart the kernel, and use `with`",
            label="exp after the block",
            function=bytes_out,
        ),
        Case(
            (),
            [40, 40],
            "make a `Storages` in each call: what is on one host isn't on another",
            label="bytes out for x * x on each of two hosts",
            function=out_to_two_hosts,
        ),
        Case((), True, "call get once", label="at most 3 * 40 come back", function=few_bytes_in),
        Case((), True, "what still holds tensors that were put?", label="it fits", function=fits),
    ],
)
if predicted(predicted_activations_out, question="how many activations go out?"):
    host = HostTier()
    meters = {
        "all on the device": train_chain(keep_all, HostTier()),
        "swapped": train_chain(swap_saved_tensors, host),
    }
    print(f"{host.bytes_out / ACTIVATION:.0f} activations of 24 saved tensors went out; ", end="")
    print(f"you predicted {predicted_activations_out}.")
    # x and the weights take the rest of the budget.
    beside = BUDGET - ACTIVATION - BLOCKS * WIDTH * WIDTH * 4
    show_figure(
        draw_live_bytes(meters, beside),
        "Live bytes over a training step. Without swapping they climb to 26 MiB at the turn from "
        "forward to backward, over the budget; swapped, they stay at a few MiB all the way.",
    )

# %% nbgrader={"grade": true, "grade_id": "lab06-swap_saved_tensors", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
# Exercise 6.7, 5 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab06-swap_saved_tensors", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-swap-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* Without swapping, memory climbs to 26 MiB; with it, hardly more than the running
# operator needs. torch's own `torch.autograd.graph.save_on_cpu` moves all 24 saved tensors, plus the weights.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-plan_joint-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.8 One plan for all three (stretch, 4 points, 12 minutes)
#
# Exercise 6.3 treated a stage as if it were alone. In a chain, stages share the link and the memory, so the
# best choice for one depends on all others.
#
# Write `plan_joint(stages, budget_bytes, link_bytes_per_s)`. It returns the list with the shortest makespan,
# one of `"keep"`, `"recompute"` or `"swap"` per stage, and raises `ValueError` if no list fits.
#
# `simulate_plan(stages, plan, budget_bytes, link_bytes_per_s)` plays a list: it returns a run with a
# `makespan`, or raises `peakmem.Infeasible`. It times the copies itself; recomputed neighbours form one
# segment, as in lab 4.
#
# **Convention:** the last stage is kept, whatever your list says. There are at most 6 stages.
#
# *Points:* every plan fits 2, within 1.2 times the shortest 1, the shortest 1.
#
# *Example:* for two stages, each with 1 s of forward, 2 s of backward, 30 saved bytes and an output of 10,
# `["recompute", "keep"]` fits a budget of 40.
#
# **Predict first.** What is the makespan of that plan?

# %%
predicted_makespan = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab06-plan_joint-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def plan_joint(stages: list, budget_bytes: int, link_bytes_per_s: float) -> list[str]:
    """Return keep, recompute or swap for each stage: the fastest list that fits."""
    ### BEGIN SOLUTION
    best, best_makespan = None, math.inf
    for plan in itertools.product(("keep", "recompute", "swap"), repeat=len(stages)):
        try:
            run = simulate_plan(stages, plan, budget_bytes, link_bytes_per_s)
        except peakmem.Infeasible:
            continue
        if run.makespan < best_makespan:
            best, best_makespan = list(plan), run.makespan
    if best is None:
        raise ValueError(f"no plan fits into {budget_bytes} bytes")
    return best
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab06-plan_joint-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 6.8, one plan for all three
two = [Stage(1, 2, 30, 10)] * 2
# Forward time, backward time, saved bytes, output bytes: costly to recompute, or cheap.
costly, cheap = [Stage(10, 1, 24, 8)] * 4, [Stage(1, 2, 24, 8)] * 4
numbers = [(6, 2, 56), (4, 2, 48), (1, 4, 64), (1, 4, 32), (4, 2, 64), (1, 2, 64)]
# Each of the first five has to go.
six = [Stage(forward / 64, backward / 64, saved, 8) for forward, backward, saved in numbers]


def makespan_of(*problem):
    """Play the student's plan; say why if one doesn't fit."""
    stages, *limits = problem
    try:
        plan = plan_joint(*problem)
    except peakmem.Infeasible as error:
        if problem == HOPELESS:
            raise ValueError from None  # an Infeasible is a ValueError
        print(f"simulate_plan's message: {error}")
        return UNCAUGHT
    try:
        return simulate_plan(stages, plan, *limits).makespan
    except peakmem.Infeasible as error:
        print(f"simulate_plan's message: {error}")
        return "a plan that doesn't fit"


HOPELESS = (two, 39, 10)
UNCAUGHT = "Infeasible came out of plan_joint"
self_check(
    makespan_of,
    [
        Case((two, 60, 10), 6, "everything fits: keep it all", label="room for all"),
        Case(([Stage(1, 2, 1, 1)] * 2, 40, 10), 6, "everything fits", label="two small stages"),
        Case(
            (two, 40, 10),
            7,
            "the example: recompute the first stage; don't reuse a plan for other stages",
            label="the example",
            wrong={UNCAUGHT: "catch peakmem.Infeasible where you call simulate_plan, and go on"},
        ),
        Case((costly, 64, 1000), 44.096, "swaps are almost free here", label="a quick link"),
        Case((cheap, 60, 8), 14, "neighbours may also be recomputed", label="a slow link"),
        Case(
            HOPELESS,
            raises=ValueError,
            hint="each fits alone, but the second's backward also needs the first one's output",
            label="nothing fits",
        ),
        Case((six, 104, 1024), 59 / 64, "try all lists", label="six stages, half the link"),
        Case(
            (six, 104, 2048), 50.5 / 64, "try all lists, and don't round times", label="six stages"
        ),
    ],
    equal=close(1e-4),
)
if predicted(predicted_makespan, question="what is the example's makespan?"):
    print(f"the example: {makespan_of(two, 40, 10):g} s; you predicted {predicted_makespan}")
    print("the six stages' best plan:", plan_joint(six, 104, 2048))

# %% nbgrader={"grade": true, "grade_id": "lab06-plan_joint", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 6.8, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab06-plan_joint", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-gantt-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Does the simulated clock tell the truth?
#
# Here is a real chain, with matrix products for compute and `host.put` and `host.get` for copies, on their
# own thread. Your `schedule` from 6.4 plans it; the plan is simulated, then run for real.
#
# **Predict first.** By how many percent do the two makespans differ?

# %%
predicted_percent = None  # your prediction, a number

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab06-gantt", "locked": true, "schema_version": 3, "solution": false, "task": false}
SIZE, SCALE = (512, 1) if DEVICE == "cpu" else (2048, 8)
factor = torch.randn(SIZE, SIZE, device=DEVICE) / SIZE**0.5


def compute(products):
    """Keep the device busy."""
    y = factor
    for _ in range(products):
        y = torch.tanh(factor @ y)


def stage_of(mib):
    """Return a stage that saves `mib` MiB; its backward computes twice as much as its forward."""

    def forward():
        compute(3)
        return torch.ones(mib * MIB // 4, device=DEVICE)

    return Work(forward, lambda saved: compute(6), mib * MIB)


if predicted(predicted_percent, question="by how many percent do they differ?"):
    work = [stage_of(SCALE * mib) for mib in (24, 16, 24, 8, 16, 8)]
    forward_s = [best_seconds(w.forward, DEVICE, 3) for w in tqdm(work, desc="timing stages")]
    backward_s = best_seconds(lambda: compute(6), DEVICE, 3)
    stages = [Stage(f, backward_s, w.saved_bytes) for f, w in zip(forward_s, work, strict=True)]
    budget = SCALE * 40 * MIB
    copies = schedule(stages, budget, own_link)
    paper = simulate(stages, budget, own_link, copies)
    rehearse(work, budget, copies, HostTier())  # the first run is slower
    runs = [rehearse(work, budget, copies, HostTier()) for _ in range(3)]
    real = min(runs, key=lambda run: run.makespan)
    show_figure(
        draw_runs({"on paper": paper, "for real": real}, 1000, "ms"),
        "Two Gantt charts over one time axis, of your schedule as simulated and with real timestamps: "
        "compute above, the link below it, in the same order; real bars differ in length.",
    )
    alone = 1000 * (sum(forward_s) + backward_s * len(stages))
    print(f"compute alone {alone:.0f} ms, on paper {1000 * paper.makespan:.0f} ms, ", end="")
    difference = 100 * (real.makespan / paper.makespan - 1)
    print(f"for real {1000 * real.makespan:.0f} ms: {difference:+.0f}%")
    print(f"you predicted {predicted_percent}%")
    for name, run in (("on paper", paper), ("for real", real)):
        print(f"{name}: at most {run.peak_bytes / MIB:.0f} of {budget / MIB:.0f} MiB on the device")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-gantt-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the pictures show.* On a CPU, compute and copies share processors, so bars may grow where they
# overlap; on a busy machine, the difference means little. Both runs stay within the budget: a schedule
# guarantees bytes, but not time.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-gpu_overlap-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.9 Copies behind compute (stretch, 2 points, 8 minutes, GPU)
#
# A GPU copies and computes at the same time, under two conditions: the host's memory is **pinned**, so that the
# operating system can't move it (`tensor.pin_memory()` returns such a copy), and copy and compute are in
# different **streams**, queues whose entries run in order. Work that you start within `with
# torch.cuda.stream(stream):` is queued in that `torch.cuda.Stream()`.
#
# Write `overlapped(compute, copies)`: call `compute()` once, and copy each `(source, target)` with
# `target.copy_(source, non_blocking=True)` on your own stream, which first waits for the work queued so far:
# `stream.wait_stream(torch.cuda.current_stream())`. Finally, make the current stream wait for yours.
#
# *Points:* both together take at most 1.15 times the longer of compute alone and copies alone.
#
# *Example:* if copies alone take 10 ms and compute 12, both may take 13.8.
#
# **Predict first.** How many times faster is a copy from pinned than from pageable memory?

# %%
predicted_pinned_ratio = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab06-gpu_overlap-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def overlapped(compute, copies) -> None:
    """Compute, and copy from pinned memory to the GPU at the same time."""
    ### BEGIN SOLUTION
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())  # the targets may still be in use
    with torch.cuda.stream(stream):
        for source, target in copies:
            target.copy_(source, non_blocking=True)
    compute()
    torch.cuda.current_stream().wait_stream(stream)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab06-gpu_overlap-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 6.9, copies behind compute
if torch.cuda.is_available():
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    pageable = [torch.full((16 * MIB,), float(i)) for i in range(1, 5)]
    pinned = [source.pin_memory() for source in pageable]
    targets = [torch.zeros_like(source, device="cuda") for source in pinned]

    def products(count):
        """Queue some products."""
        for _ in range(count):
            a @ a

    def copy_all(sources):
        """Queue all copies."""
        for source, target in zip(sources, targets, strict=True):
            target.copy_(source, non_blocking=True)

    products(3)
    pinned_s = best_seconds(lambda: copy_all(pinned), DEVICE)
    pageable_s = best_seconds(lambda: copy_all(pageable), DEVICE)
    count = max(1, round(pinned_s / best_seconds(lambda: products(1), DEVICE)))
    alone_s = best_seconds(lambda: products(count), DEVICE)
    for target in targets:
        target.zero_()
    pairs = list(zip(pinned, targets, strict=True))
    both_s = best_seconds(lambda: overlapped(lambda: products(count), pairs), DEVICE)
    times = f"compute {alone_s * 1000:.1f} ms, copies {pinned_s * 1000:.1f} ms"
    print(f"{times}, both {both_s * 1000:.1f} ms")
    assert all(bool((t == i).all()) for i, t in enumerate(targets, 1)), "a target was not filled"
    assert both_s <= 1.15 * max(alone_s, pinned_s), "compute and copies don't run at the same time"
    if predicted(predicted_pinned_ratio, question="how many times faster are pinned copies?"):
        print(f"pinned copies are {pageable_s / pinned_s:.1f} times as fast; ", end="")
        print(f"you predicted {predicted_pinned_ratio}")
else:
    print("Skipped: exercise 6.9 needs a CUDA GPU, and there is none here.")
    print("Its 2 points are left out of your total. You may still write overlapped().")
    if predicted(predicted_pinned_ratio, question="how many times faster are pinned copies?"):
        print_copies()
        print(f"You predicted {predicted_pinned_ratio}.")

# %% nbgrader={"grade": true, "grade_id": "lab06-gpu_overlap", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 6.9, 2 points: hidden cases are run here when your instructor grades the lab on a GPU.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab06-gpu_overlap", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - Swapping and recomputing pay for the same bytes with different time: the link's and the device's.
