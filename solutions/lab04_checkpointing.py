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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 4: recompute instead of keep
#
# Training needs memory that inference does not. Forward makes a result in every layer, and backward
# wants many of them again. So they wait: the first layer's result for the whole way to the loss and
# back. With a long sequence or a large batch, this waiting room is most of the memory.
#
# But nobody has to wait who can be made again. *Checkpointing* throws results away in forward and
# computes them once more in backward. It pays memory with time. In this lab you build it from
# nothing, find out how much to throw away, and learn when to leave it alone.
#
# **You will be able to**
# - measure what a function keeps for backward, byte by byte;
# - write `checkpoint`, with right gradients and right random numbers;
# - cut a chain of equal layers into segments, and predict its peak;
# - plan for layers that are *not* equal, under a budget, in the least time;
# - recompute attention only, and say why large models do just that;
# - use torch's and DeepSpeed's switches for the same thing, and say when not to.
#
# | exercise | minutes | points |
# |---|---|---|
# | 4.1 What does backward wait for? | 25 | 3 |
# | 4.2 Checkpoint | 40 | 6 |
# | 4.3 Segments | 15 | 2 |
# | 4.4 The square-root rule | 20 | 3 |
# | 4.5 Unequal layers, and a budget | 40 | 5 |
# | 4.6 Attention only | 15 | 3 |
# | 4.7 Time against memory on a GPU | 20 | 2 |
# | 4.8 In your own words | 10 | 2 |
#
# In all, about three hours, and 26 points. You need Lab 2's idea of a tensor's lifetime, and some
# experience with `loss.backward()`. `MemoryMeter` is explained where it is used first.

# %% nbgrader={"grade": false, "grade_id": "lab04-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import itertools
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn
from tqdm.auto import tqdm

import peakmem
from peakmem import plots
from peakmem.meter import MemoryMeter
from peakmem.probes import lab04

peakmem.lab("lab04_checkpointing")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 2**20
if DEVICE == "cuda":
    torch.ones(64, 64, device=DEVICE) @ torch.ones(64, 64, device=DEVICE)  # libraries' workspace
    print("Demonstrations measure the GPU's allocator and the GPU's clock.")
else:
    print(
        "In demonstrations, live tensors stand for a GPU's memory, this CPU's clock for its clock."
    )

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-saved_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.1 What does backward wait for? (3 points, 25 minutes)
#
# Take $y = x^2$. Its derivative is $2x$, so backward needs $x$: autograd *saves* it. Take
# $y = e^x$. Its derivative is $e^x$ again, which is $y$: autograd saves the result. Take $y = x + 1$.
# Its derivative is 1, and nothing is saved at all. What is saved hangs on the *graph* of $y$, and it
# stays as long as the graph does.
#
# Before we save memory, we measure what there is to save. torch lets us look on:
#
# ```python
# with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
#     y = fn(x)
# ```
#
# Each time an operation in the block saves a tensor, torch calls `pack(tensor)`, and puts *what `pack`
# returns* on the graph instead. When backward wants it, it calls `unpack` on that.
#
# Write `saved_bytes(fn, *inputs)`: call `fn(*inputs)`, and return the bytes that its graph holds *once
# `fn` has returned*, while its result is still there.
#
# **Convention:**
# - Count whole *storages*: `tensor.untyped_storage().nbytes()`. A view keeps all of its storage alive.
# - Count each storage once, however many saved tensors share it.
#   (`tensor.untyped_storage().data_ptr()` tells storages apart; `tensor.data_ptr()` doesn't: each slice
#   of a tensor begins elsewhere.) It counts as long as *any* of the operations that saved it is left.
# - Inputs, results and buffers count, if they were saved.
# - Parameters (`nn.Parameter`) and views of them do not count: they are there anyway. `fn` may be a
#   lambda that uses a parameter, so do not look for `fn.parameters()`.
# - If part of the graph was dropped before `fn` returned, what it had saved is gone, and does not count.
# - A number in your program, such as the 2.5 in `2.5 * x`, does not count. (The hooks never see it.)
#
# *Points:* all or nothing.
#
# Three hints. A view knows what it is a view of: `view._base`; it is None for a tensor that is no view.
# A linear layer saves a view of its weight; ask before you detach, since a detached tensor has lost its
# `_base`. And to learn what the graph *still* holds, let `pack` return a
# small object of your own with the tensor in it, and keep only a *weak reference* to that object
# (`weakref.ref(thing)`; calling the reference gives the thing, or None once it is gone). Put
# `tensor.detach()` into your object: the tensor itself may hold the graph that holds the object, and
# then neither goes away.
#
# *Example:* `x` has 1000 float32 values and requires a gradient. `x * x` saves `x` twice, which is one
# storage: 4000 bytes. `torch.exp(2.5 * x)` saves the result: 4000.
#
# **Predict first.** GELU, the function between the two linear layers of most transformers, can be written
# out with `tanh` in one line of Python, or called as `F.gelu`. How many times the bytes of `x` does each
# of them save?

# %%
predicted_written_out = None  # your prediction, a number
predicted_fused = None  # your prediction, a number

# %% nbgrader={"grade": false, "grade_id": "lab04-saved_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
import weakref


def saved_bytes(fn, *inputs) -> int:
    """Return the bytes of storages that the graph of fn(*inputs) holds, parameters left out."""
    ### BEGIN SOLUTION

    class Saved:
        def __init__(self, tensor):
            root = tensor if tensor._base is None else tensor._base
            self.tensor = tensor.detach()
            self.is_parameter = isinstance(root, nn.Parameter)

    references = []

    def pack(tensor):
        saved = Saved(tensor)
        references.append(weakref.ref(saved))
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
        result = fn(*inputs)
    alive = [saved for saved in (reference() for reference in references) if saved is not None]
    storages = [saved.tensor.untyped_storage() for saved in alive if not saved.is_parameter]
    sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
    del result  # it had to live until now
    return sum(sizes.values())
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab04-saved_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 4.1, what does backward wait for?
x = torch.randn(1000, requires_grad=True)
found = saved_bytes(lambda x: x * x, x)
assert found != 8000, "x is saved twice, but it is one storage: count it once"
assert found == 4000, f"x * x saves x, 4000 bytes, not {found}"
found = saved_bytes(lambda x: torch.exp(2.5 * x), x)
assert found == 4000, f"exp saves its result, 4000 bytes, not {found}"
found = saved_bytes(lambda x: x + 1, x)
assert found == 0, f"x + 1 saves nothing, but you find {found} bytes"
found = saved_bytes(lambda x: x[:10] ** 2, x)
assert found != 40, "a view keeps its whole storage: ask untyped_storage().nbytes()"
assert found == 4000, f"x[:10] ** 2 keeps all of x, 4000 bytes, not {found}"
square = x.view(100, 10)
found = saved_bytes(lambda x: x[:, :2] ** 2 + x[:, 2:4] ** 2, square)
assert found != 8000, "two slices of one storage: tell them apart by untyped_storage().data_ptr()"
assert found == 4000, f"both slices keep all of x, 4000 bytes, not {found}"
weight = nn.Parameter(torch.randn(50, 20))
rows = torch.randn(8, 20, requires_grad=True)
found = saved_bytes(lambda rows: F.linear(rows, weight), rows)
assert found != 4640, "a linear layer saves a view of its weight: look at ._base, before you detach"
assert found == 640, f"a linear layer saves its input, 640 bytes, not {found}"


weight.requires_grad_(False)
found = saved_bytes(lambda rows: F.linear(rows, weight), rows)
assert found == 0, f"a Parameter stays one when it is frozen: 0 bytes, not {found}"
scale = torch.ones(20)
found = saved_bytes(lambda rows: rows * scale, rows)
assert found == 80, f"a tensor that is no parameter counts, as buffers do: 80 bytes, not {found}"
found = saved_bytes(torch.sin, x.detach().double().requires_grad_())
assert found == 8000, f"1000 float64 values take 8000 bytes, not {found}"


def drops_a_branch(x):
    unused = torch.exp(x).sum()
    del unused
    return torch.tanh(x)


def saves_x_twice(x, drop_last):
    kept = x**3 if drop_last else None
    unused = x**2  # saves x too
    del unused
    return x**3 if kept is None else kept


found = saved_bytes(drops_a_branch, x)
assert found != 0, "tanh's result is still there: hold on to fn's result until you have counted"
assert found != 8000, "the graph of exp(x) is gone: count what is held once fn has returned"
assert found == 4000, f"only tanh's result is held, 4000 bytes, not {found}"
for drop_last in (True, False):
    found = saved_bytes(saves_x_twice, x, drop_last)
    assert found == 4000, (
        f"two operations save x and one of them is dropped; the other holds 4000 bytes, not {found}"
    )


def gelu_written_out(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


written_out = saved_bytes(gelu_written_out, x) / x.nbytes
fused = saved_bytes(lambda x: F.gelu(x, approximate="tanh"), x) / x.nbytes
print(f"GELU written out saves {written_out:g} times x; you predicted {predicted_written_out}.")
print(f"F.gelu saves           {fused:g} times x; you predicted {predicted_fused}.")

# %% nbgrader={"grade": true, "grade_id": "lab04-saved_bytes", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.1, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-saved_bytes", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-saved_bytes-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# The same function, a quarter of the bytes. Written out, each factor of each product is saved by itself.
# A *fused* operation saves its input alone and computes the rest again in its backward. So `F.gelu` is
# a small checkpoint already. Now we do the same for any function.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-checkpoint-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.2 Checkpoint (6 points, 40 minutes)
#
# The plan takes four sentences. In forward, call the function *without a graph*, so that it saves
# nothing. Keep its arguments. In backward, call it again, this time with a graph. Then run backward
# through that graph, and hand on what arrives at the arguments.
#
# Write `checkpoint(fn, *args)`, which returns what `fn(*args)` returns.
# - `args` may hold anything: tensors, numbers, None, modules. What is no tensor is passed through. At least
#   one tensor among them requires a gradient.
# - `fn` may use parameters that are not among `args`, as a module does. After `loss.backward()`, they and
#   all tensor arguments must have the same gradients as without `checkpoint`. An argument may be the
#   result of an earlier layer, or of another checkpoint, and it may be used again outside of `fn`.
# - The result is a tensor, or a tuple of tensors. Some may be integers, and some may never be used.
# - `fn` is called **twice**: once in forward, once in backward. Under `torch.no_grad()` there is no
#   backward to come, so it is called once.
# - After forward, at most 8 KiB may be live that was not before, the result left out. (Your arguments are
#   there anyway.)
# - Not allowed: `torch.utils.checkpoint`. It is what you are writing.
#
# **Mind the dice.** If `fn` has a dropout, the second call would drop *other* values than the first, and
# the gradients would belong to another function. `torch.get_rng_state()` notes where the CPU's random
# generator stands (5 KiB), and `torch.set_rng_state(state)` sets it. Other code draws random numbers
# too: whatever is drawn after your forward, and after your backward, must be what it would have been
# without a checkpoint.
#
# You get 2 points for gradients, 2 for kept bytes and calls, 1 for random numbers, and 1 for several
# tensors. Kept bytes are measured: live storages after forward minus those before.
#
# There are two good ways. One is a `torch.autograd.Function`; this is its outline:
#
# ```python
# class Recompute(torch.autograd.Function):
#     @staticmethod
#     def forward(ctx, fn, *args):  # already runs without a graph
#         ctx.fn = fn  # what you put on ctx is there in backward
#         ...
#
#     @staticmethod
#     def backward(ctx, *gradients):  # one for each output, in order
#         with torch.enable_grad():
#             ...
#         return None, ...  # one for fn, and one for each of args: None where there is none
# ```
#
# The cell below begins with it; delete the class if you go the other way. Call it as `Recompute.apply(fn, *args)`. Five things help: `ctx.save_for_backward(*tensors)` keeps tensors,
# `ctx.saved_tensors` gives them back, and they go as soon as this backward is over (what you put on `ctx` yourself stays
# to the end of the whole backward); `tensor.detach().requires_grad_()` gives an
# argument that is the start of a new graph; `torch.autograd.backward(outputs, gradients)` runs
# backward through it, parameters included; `ctx.mark_non_differentiable(*tensors)` marks integer outputs,
# which backward cannot pass; and some outputs of `fn` may not require a gradient, so leave those out.
#
# The other way are the hooks of 4.1: let `pack` keep nothing but a number, and let the first `unpack`
# call the function again.
#
# *Example:* `y = checkpoint(torch.exp, x)` and `y.sum().backward()`: `x.grad` equals `exp(x)`, and `exp` ran
# twice.
#
# **Predict first.** A chain of 16 layers, each of which saves one result of 1 MiB. You checkpoint it in
# four segments of four layers. How many MiB are live at the peak, about?

# %%
predicted_peak_mib = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab04-checkpoint-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Recompute(torch.autograd.Function):
    """Forward without a graph; backward through a second run of the function."""

    @staticmethod
    def forward(ctx, fn, *args):
        ### BEGIN SOLUTION
        ctx.fn, ctx.state = fn, torch.get_rng_state()
        ctx.rest = [None if torch.is_tensor(a) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if torch.is_tensor(a)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        result = fn(*args)
        results = result if isinstance(result, tuple) else (result,)
        ctx.mark_non_differentiable(*(r for r in results if not r.is_floating_point()))
        return result
        ### END SOLUTION

    @staticmethod
    def backward(ctx, *gradients):
        ### BEGIN SOLUTION
        args = list(ctx.rest)
        for i, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[i] = tensor.detach().requires_grad_(tensor.requires_grad)
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            result = ctx.fn(*args)
        torch.set_rng_state(now)
        results = result if isinstance(result, tuple) else (result,)
        ways = [(r, g) for r, g in zip(results, gradients, strict=True) if r.requires_grad]
        torch.autograd.backward([r for r, _ in ways], [g for _, g in ways])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)
        ### END SOLUTION


def checkpoint(fn, *args):
    """Return fn(*args), keeping only the arguments; backward calls fn again."""
    ### BEGIN SOLUTION
    if not torch.is_grad_enabled():
        return fn(*args)
    return Recompute.apply(fn, *args)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab04-checkpoint-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 4.2, checkpoint
def counted(fn):
    """Return fn with a count of its calls."""

    def call(*args):
        call.count += 1
        return fn(*args)

    call.count = 0
    return call


def gradients_with(run, fn, *args):
    """Return the gradients of all tensors among args after run(fn, *args) and backward."""
    args = [a.detach().clone().requires_grad_() if torch.is_tensor(a) else a for a in args]
    result = run(fn, *args)
    (result[0] if isinstance(result, tuple) else result).sum().backward()
    return [a.grad for a in args if torch.is_tensor(a)]


def plainly(fn, *args):
    return fn(*args)


def same(found, expected):
    return all(f is not None and torch.allclose(f, e) for f, e in zip(found, expected, strict=True))


x, y = torch.randn(5), torch.randn(5)
fn = counted(lambda x: x.tanh().exp().tanh())  # three results would be saved
out = checkpoint(fn, x.clone().requires_grad_())
assert fn.count == 1, f"forward calls the function once, but yours called it {fn.count} times"
assert out.requires_grad, "the result must require a gradient, or backward never comes here"
out.sum().backward()
assert fn.count != 1, "backward has to call the function again: nothing was kept in forward"
assert fn.count == 2, f"backward calls the function once more, but yours did {fn.count - 1} times"
assert same(gradients_with(checkpoint, torch.exp, x), [x.exp()]), "the gradient of exp is exp(x)"

power = lambda x, n, y, nothing: x**n * y  # noqa: E731
expected = gradients_with(plainly, power, x, 3, y, None)
assert same(gradients_with(checkpoint, power, x, 3, y, None), expected), (
    "every tensor among the arguments gets its gradient, and numbers are passed through"
)
pick = lambda x, places: x[places] ** 2  # noqa: E731
z = x.clone().requires_grad_()
checkpoint(pick, z, torch.tensor([4, 3, 2, 1, 0])).sum().backward()
assert same([z.grad], [2 * x]), "integer tensors among the arguments have no gradient, others do"
grown = []
for run in (plainly, checkpoint):
    z = x.clone().requires_grad_()
    h = run(torch.exp, z)
    (h * run(lambda a, b: a.tanh() * b, h, h)).sum().backward()
    grown.append(z.grad)
assert torch.allclose(*grown), "an argument that is used again, outside or twice, is off"
layer = nn.Linear(5, 5)
checkpoint(layer, x.clone().requires_grad_()).sum().backward()
assert layer.weight.grad is not None, "parameters that fn uses get gradients too"

with torch.no_grad():
    fn = counted(torch.exp)
    checkpoint(fn, x)
assert fn.count == 1, "under no_grad there is no backward, so one call is enough"

several = lambda x, y: (x * y, x.argmax(), x.exp())  # noqa: E731
expected = gradients_with(plainly, several, x, y)
assert isinstance(checkpoint(several, x.requires_grad_(), y), tuple), "a tuple stays a tuple"
assert same(gradients_with(checkpoint, several, x, y), expected), "with several results"
z = x.detach().clone().requires_grad_()
checkpoint(several, z, y)[2].sum().backward()
assert same([z.grad], [x.exp()]), "of several results, only the last one is used"

drop = lambda x: F.dropout(x, 0.5) * torch.rand_like(x)  # noqa: E731
drawn = {}
for run in (plainly, checkpoint):
    torch.manual_seed(1)
    z = torch.ones(1000, requires_grad=True)
    out = run(drop, z)
    between = torch.rand(3)
    out.sum().backward()
    drawn[run] = (z.grad, between, torch.rand(3))
own, right = drawn[checkpoint], drawn[plainly]
assert same(own[1:2], right[1:2]), "forward must leave the random generator where fn left it"
assert same(own[:1], right[:1]), "the second call must draw the same random numbers as the first"
assert same(own[2:], right[2:]), "after the second call, put the random generator back"

wide = torch.randn(512, 512, requires_grad=True)  # 1 MiB
with MemoryMeter("cpu").track(wide) as meter:
    out = checkpoint(lambda x: x.tanh().exp().tanh().sigmoid(), wide)
kept = meter.live_bytes - meter.baseline_bytes - out.nbytes
print(f"After forward {kept:,} bytes are live beside the argument and the result.")
assert kept <= 8 * 1024, "something is kept: look for results in closures, lists and on ctx"

# %% nbgrader={"grade": true, "grade_id": "lab04-checkpoint", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.2, 6 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-checkpoint", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-budget-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Out of memory
#
# Time to need it. Here is a chain of 16 layers whose results take 1 MiB each. `MemoryMeter` counts live
# bytes while a block of code runs: `track` hands it what is there already, and with a `budget_bytes`, the
# first operation that takes more stops the run, as a full GPU would. The budget is 12 MiB beside the
# parameters and the input. First all is kept, then each four layers go through *your* `checkpoint`. Each arm
# gets a fresh model.


# %% nbgrader={"grade": false, "grade_id": "lab04-budget", "locked": true, "schema_version": 3, "solution": false, "task": false}
class Layer(nn.Module):
    """tanh(x * scale): it saves its input, which the layer before made, and its result."""

    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return torch.tanh(x * self.scale)


def new_chain(n_layers):
    """Return layers and an input; the input and each layer's result take 1 MiB."""
    layers = nn.ModuleList(Layer(512) for _ in range(n_layers)).to(DEVICE)
    return layers, torch.randn(512, 512, device=DEVICE, requires_grad=True)


def forward_and_backward(run, n_layers, extra_bytes=None):
    """Return the meter on one pass of run(layers, x); `extra_bytes` is its budget."""
    layers, x = new_chain(n_layers)
    with MemoryMeter(DEVICE).track(layers, x) as before:
        pass
    budget = None if extra_bytes is None else before.baseline_bytes + extra_bytes
    with MemoryMeter(DEVICE, budget_bytes=budget).track(layers, x) as meter:
        run(layers, x).sum().backward()
    return meter


def keep_all(layers, x):
    for layer in layers:
        x = layer(x)
    return x


def in_fours(layers, x):
    for first in range(0, len(layers), 4):
        x = checkpoint(keep_all, layers[first : first + 4], x)
    return x


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab04-budget-run", "locked": true, "schema_version": 3, "solution": false, "task": false}
for name, run in (("keep all", keep_all), ("your checkpoint", in_fours)):
    try:
        meter = forward_and_backward(run, 16, extra_bytes=12 * MIB)
    except peakmem.OutOfMemory as error:
        print(f"{name}: out of memory. {error}")
    else:
        rise = meter.peak_bytes - meter.baseline_bytes
        print(f"{name}: fits, at a peak of {rise / MIB:.1f} MiB beside what was there before")
print(f"You predicted a peak of {predicted_peak_mib} MiB.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-dynamics-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# The same two runs without a budget, operator by operator. Keeping all climbs to its peak at the end of
# forward and comes down in backward. Before you run the cell, draw in your mind what the other one does.

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab04-dynamics", "locked": true, "schema_version": 3, "solution": false, "task": false}
curves = {}
for name, run in (("keep all", keep_all), ("your checkpoint, segments of 4", in_fours)):
    meter = forward_and_backward(run, 16)
    curves[name] = [(live - meter.baseline_bytes) / MIB for _, live in meter.timeline]
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
plots.live_timelines(ax, curves, unit="MiB")
plt.show()

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-dynamics-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* Keeping all is one mountain: up by 1 MiB a layer in forward, down again in
# backward. With your checkpoint forward climbs in four low steps only, one for each segment's result. Then
# come four small mountains, from right to left through the model: each segment is computed again, its
# four results pile up, and its backward takes them away. It is a longer walk, since more operators run, and
# its highest point is about half as high.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-run_in_segments-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.3 Segments (2 points, 15 minutes)
#
# One thing in the last run was wasted. When forward ends, backward begins with the *last* segment, and
# computes it again, although it ran a moment ago. So the last segment should not be checkpointed.
#
# Write `run_in_segments(layers, x, segment_length)`: run the layers one after another, and return the
# result of the last.
# - Cut the layers into segments of `segment_length` from the front. What is left over makes the last segment:
#   it may be shorter. (It is a whole one if the division leaves nothing over.)
# - Each segment but the last goes through `checkpoint`, as one function. The last runs plainly.
# - `layers` is a list of modules, an `nn.ModuleList` or an `nn.Sequential`. `x` requires a gradient.
# - Use your own `checkpoint`, not `torch.utils.checkpoint`.
#
# *Points:* all or nothing. With $n$ layers and segments of $k$, there are $s = \lceil n/k \rceil$ segments;
# layers are called $n$ times in forward and $(s - 1)\,k$ times more in backward. After forward, $s - 1$
# segments' results and the last segment's own are live.
#
# *Example:* 8 layers, segments of 3: layers 0 to 2, 3 to 5, and 6 and 7. Backward calls layers 0 to 5 again.
#
# **Predict first.** 16 layers in segments of 4: how many layer calls are there in all, forward and
# backward together?

# %%
predicted_calls = None  # your prediction, a number


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
# Self-check of 4.3, segments
def numbered_layers(n, calls):
    """Return n layers that note their numbers in `calls`."""

    class Layer(nn.Module):
        def __init__(self, number):
            super().__init__()
            self.number = number

        def forward(self, x):
            calls.append(self.number)
            return torch.tanh(x) + self.number

    return [Layer(number) for number in range(n)]


for n, k, again in ((8, 3, 6), (6, 2, 4), (4, 4, 0), (3, 9, 0), (3, 1, 2)):
    calls = []
    layers = numbered_layers(n, calls)
    x = torch.ones(3, requires_grad=True)
    out = run_in_segments(layers, x, k)
    assert calls == list(range(n)), f"{n} layers in segments of {k}: forward called {calls}"
    calls.clear()
    out.sum().backward()
    assert len(calls) != n, "the last segment runs plainly: it is not called again"
    assert sorted(calls) == list(range(again)), (
        f"{n} layers in segments of {k}: backward called {sorted(calls)}, not 0 to {again - 1}"
    )
    plain = torch.ones(3, requires_grad=True)
    expected = plain
    for layer in layers:
        expected = layer(expected)
    expected.sum().backward()
    assert torch.equal(out, expected), "the result is not that of the layers one after another"
    assert torch.allclose(x.grad, plain.grad), "the gradient of x is not right"
run_in_segments(nn.Sequential(nn.Linear(2, 2), nn.Tanh()), torch.ones(1, 2, requires_grad=True), 1)
x = torch.ones(512, 512, requires_grad=True)  # 1 MiB
with MemoryMeter("cpu").track(x) as meter:
    out = run_in_segments(numbered_layers(8, []), x, 4)
kept = round((meter.live_bytes - meter.baseline_bytes) / MIB)
assert kept != 8, "each layer's input is kept: a whole segment goes through checkpoint at once"
assert kept <= 6, f"after forward of 8 layers by 4, {kept} MiB are live; 5 or 6 would do"
calls = []
run_in_segments(numbered_layers(16, calls), torch.ones(1, requires_grad=True), 4).sum().backward()
print(f"16 layers in segments of 4: {len(calls)} calls; you predicted {predicted_calls}.")

# %% nbgrader={"grade": true, "grade_id": "lab04-run_in_segments", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.3, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-run_in_segments", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-sqrt_rule-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.4 The square-root rule (3 points, 20 minutes)
#
# How long should a segment be? Short segments: many inputs of segments wait. Long segments: few inputs wait,
# but whenever one is recomputed, all of its results are live. Somewhere between is the best.
#
# Let the unit be one layer's output. The chain's input takes 1 unit too. Gradients are not counted. There
# are $n$ layers in segments of $k$ (a $k$ above $n$ means $n$), $s = \lceil n/k \rceil$ segments, and the last
# has $r = n - (s-1)\,k$ layers.
# - *At the end of forward*, the input of each of the $s$ segments is live (the chain's input is the
#   first of them), and all $r$ outputs of the last segment: $s + r$.
# - *In backward*, last segment first: the last segment's outputs go, and its input too once it is done.
#   The segment before is recomputed: now $s - 1$ inputs are live, and all $k$ outputs of this segment (its
#   last output is the input that the segment behind had, so it is not counted there).
#   After its backward they go, and so on.
# - With one segment only, $s = 1$, there is no recomputing: $n + 1$.
#
# Write three functions of whole numbers:
# - `peak_activations(n_layers, segment_length)`: the peak in units;
# - `recomputed_layers(n_layers, segment_length)`: how many layers are run again;
# - `best_segment_length(n_layers)`: a length whose peak is the least. Where several are equally good, any of them.
#
# *Points:* one each.
#
# *Example:* $n = 8$, $k = 3$: $s = 3$ and $r = 2$. Forward ends at 3 + 2 = 5. The second segment is recomputed
# with 2 inputs and 3 outputs: 5. The peak is 5, and 6 layers run again.
#
# **Predict first.** A chain of 100 layers peaks at 101 units without checkpoints. To how many units does the best
# length bring it down? And how many layers does that run again?

# %%
predicted_least_peak = None  # your prediction, in units
predicted_again = None  # your prediction, in layers


# %% nbgrader={"grade": false, "grade_id": "lab04-sqrt_rule-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def peak_activations(n_layers: int, segment_length: int) -> int:
    """Return the most layer outputs that are live at once, the chain's input among them."""
    ### BEGIN SOLUTION
    k = min(segment_length, n_layers)
    segments = math.ceil(n_layers / k)
    last = n_layers - (segments - 1) * k
    if segments == 1:
        return n_layers + 1
    return max(segments + last, segments - 1 + k)
    ### END SOLUTION


def recomputed_layers(n_layers: int, segment_length: int) -> int:
    """Return how many layers run a second time, in backward."""
    ### BEGIN SOLUTION
    k = min(segment_length, n_layers)
    return (math.ceil(n_layers / k) - 1) * k
    ### END SOLUTION


def best_segment_length(n_layers: int) -> int:
    """Return a segment length whose peak is the least."""
    ### BEGIN SOLUTION
    return min(range(1, n_layers + 1), key=lambda k: peak_activations(n_layers, k))
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab04-sqrt_rule-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 4.4, the square-root rule
assert peak_activations(8, 3) == 5, f"the example's peak is 5, not {peak_activations(8, 3)}"
assert peak_activations(5, 5) == 6, "one segment: five outputs and the chain's input"
assert peak_activations(5, 9) == 6, "a segment is never longer than the chain"
assert peak_activations(6, 1) == 7, "segments of one layer: six inputs and one output"
assert peak_activations(10, 4) == 6, (
    f"10 layers in segments of 4: two inputs and four outputs are 6, not {peak_activations(10, 4)}"
)
assert recomputed_layers(8, 3) == 6, "the example runs 6 layers again"
assert recomputed_layers(8, 4) == 4, "of two whole segments, the last one is not recomputed"
assert recomputed_layers(5, 9) == 0, "one segment: nothing runs again"
assert peak_activations(8, best_segment_length(8)) == 5, "for 8 layers the least peak is 5"
assert peak_activations(15, best_segment_length(15)) == 7, (
    f"for 15 layers the least peak is 7; with segments of {best_segment_length(15)} it is more"
)
k = best_segment_length(100)
least, again = peak_activations(100, k), recomputed_layers(100, k)
print(f"100 layers, segments of {k}: a peak of {least}; you predicted {predicted_least_peak}.")
print(f"{again} layers run again; you predicted {predicted_again}.")
for n in (16, 100, 1000, 10_000):
    least = peak_activations(n, best_segment_length(n))
    print(f"{n:6} layers: peak {least:4} = {least / math.sqrt(n):.2f} times the square root")

# %% nbgrader={"grade": true, "grade_id": "lab04-sqrt_rule", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.4, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-sqrt_rule", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-u-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# The peak grows with $2\sqrt{n}$ instead of $n$, for less than one more forward pass. That is the square-root
# rule: $n/k + k$ is least where $k = \sqrt n$.
#
# Slides often put it as $O(N/K) + O(K)$ and pick $K = \sqrt N$. That is right as it stands, but three things
# are lost in the $O$: the root need not be whole (for 15 layers 4 is best, and 3 is not), the last segment may be
# short, and it is not recomputed. So the answer to "what is the total recomputation cost?" is not a whole
# forward pass, but $n - r$ layers.
#
# **Now measured.** 36 layers of 1 MiB, through your `run_in_segments`, on a fresh model each time, beside what you
# predict. How far apart will the two be?

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab04-u", "locked": true, "schema_version": 3, "solution": false, "task": false}
lengths = [1, 2, 3, 4, 6, 9, 12, 18, 36]
predicted = [peak_activations(36, k) for k in lengths]
measured = []
for k in tqdm(lengths, desc="segment lengths"):
    meter = forward_and_backward(lambda layers, x, k=k: run_in_segments(layers, x, k), 36)
    # The input was there before: it is the chain's own unit.
    measured.append((meter.peak_bytes - meter.baseline_bytes) / MIB + 1)
for k, p, m in zip(lengths, predicted, measured, strict=True):
    print(f"segments of {k:2}: predicted {p:2}, measured {m:5.2f}, {m - p:.2f} more")
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
plots.peak_over_segments(ax, lengths, {"predicted": predicted, "measured": measured})
plt.show()

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-u-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* A **U**: 37 units at both ends, 12 at the bottom, and the measured curve two or three
# units above the predicted one all along. The prediction leaves out gradients. In backward an operation takes the
# gradient of its output and makes that of its input, so two of them are live beside the activations: two units of 1 MiB
# here. A checkpoint made with `autograd.Function` holds a third: the gradient that came in at its end stays until its
# backward has returned. With hooks there is no such frame, and it is two. The few hundredths are generator states and the
# parameters' gradients. Where the bottom is does not change.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-plan-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.5 Unequal layers, and a budget (5 points, 40 minutes)
#
# The square-root rule has two silent assumptions: all layers are equal, and the least memory is what we want.
# Neither holds. In a network for images, the first layers have huge outputs and the last ones tiny ones. And a GPU
# has the memory it has. **The goal is not the least memory, but the least time that fits.**
#
# A chain of stages, each with three attributes:
# - `forward_time`: what one run costs;
# - `saved_bytes`: all that it keeps for backward, its output included;
# - `output_bytes`: its output alone.
#
# A *plan* is a list of strictly increasing indices: the stages whose outputs are kept. Each index **ends** a
# segment. `[2, 5]` of 8 stages means the segments 0 to 2, 3 to 5, and 6 to 7. The last one is not recomputed. `[]`
# is one segment: nothing is recomputed.
#
# - **Peak:** while the segment from $a$ to $b$ has its turn, the kept outputs *before* $a$ are live, and all
#   that the segment saves: the sum of `output_bytes` over kept indices below $a$, plus the sum of `saved_bytes`
#   over $a \ldots b$. The peak is the most of these over all segments.
# - **Time:** `forward_time` of every stage, and once more of every stage up to the last kept index.
#
# Write `plan(stages, budget_bytes)`: a plan whose peak is at most the budget, in the least time. Where no plan
# fits, raise `ValueError`.
#
# You get 2 points if all your plans fit (and ValueError comes where none does), 2 if none takes more than 1.2
# times the least time, 1 if all take the least. There are at most 24 stages. Trying all sets of
# indices is $2^{24}$ plans, which takes too long.
#
# *Example:* stages (time, saved, output): (1, 4, 2), (1, 4, 1), (1, 4, 2), and a budget of 9. All in one segment
# is 12. `[0]` peaks at max(4, 2 + 8) = 10, too much. `[1]` peaks at max(8, 1 + 4) = 8, and takes
# 3 + 2 = 5. So `[1]`.
#
# A hint for the way there. Time only depends on the *last* kept index, so you want it as early as possible.
# Ask of each index $j$: of all plans that end with $j$ and fit up to there, which holds the *least sum of kept
# outputs*? Less is never worse for what follows. Go from front to back, and find the answer for $j$ from the
# answers for all $i < j$. It is a few lines once you see it. If you do not: any feasible plan is worth two
# points.
#
# **Predict first.** The chain of the pictures below has 16 stages and would save 1158 MiB in all. Segments of 4
# stages, the root of 16, need 592 MiB and take 202 units of time; without checkpoints it takes 114. In which time
# can the best plan do it with the same 592 MiB?

# %%
predicted_time = None  # your prediction, between 114 and 202


# %% nbgrader={"grade": false, "grade_id": "lab04-plan-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def plan(stages, budget_bytes: int) -> list[int]:
    """Return the indices whose outputs to keep: a plan of least time within the budget."""
    ### BEGIN SOLUTION
    n = len(stages)

    def segment_bytes(first, last):
        return sum(stage.saved_bytes for stage in stages[first : last + 1])

    # For each index j: the least sum of kept outputs of a feasible plan that ends with j.
    least = {-1: (0, [])}
    for j in range(n):
        for i, (held, kept) in list(least.items()):
            if held + segment_bytes(i + 1, j) <= budget_bytes:
                total = held + stages[j].output_bytes
                if j not in least or total < least[j][0]:
                    least[j] = (total, [*kept, j])
    for last, (held, kept) in sorted(least.items()):  # the earlier the last, the less is recomputed
        if held + segment_bytes(last + 1, n - 1) <= budget_bytes:
            return kept
    raise ValueError(f"no plan fits {budget_bytes} bytes")
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab04-plan-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 4.5, unequal layers, and a budget
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


image_net = [Stage(*numbers) for numbers in lab04.UNEQUAL_STAGES]
stages = [Stage(1, 4, 2), Stage(1, 4, 1), Stage(1, 4, 2)]
assert list(plan(stages, 12)) == [], "with a budget of 12 nothing needs to be recomputed"
kept = list(plan(stages, 9))
assert plan_peak(stages, kept) <= 9, f"{kept} peaks at {plan_peak(stages, kept)}, and 9 is allowed"
assert plan_time(stages, kept) == 5, f"{kept} takes {plan_time(stages, kept)}, and [1] only 5"
kept = list(plan(stages, 8))
assert plan_peak(stages, kept) <= 8, f"{kept} peaks at {plan_peak(stages, kept)}, and 8 is allowed"
assert plan_time(stages, kept) == 5, "[1] peaks at 8, and a peak that equals the budget fits"
try:
    found = plan(stages, 3)
except ValueError:
    pass
else:
    raise AssertionError(f"no plan fits 3 bytes, but yours returns {found}: raise ValueError")

for budget, best in lab04.KEPT_SET_OPTIMUM:
    kept = list(plan(image_net, budget))
    assert plan_peak(image_net, kept) <= budget, f"{kept} peaks above the budget of {budget}"
    took = plan_time(image_net, kept)
    note = "" if took == best else f": {took / best:.2f} times the least"
    print(f"budget {budget:4} MiB: keep {kept!s:24} time {took}, least {best}{note}")
# Here two small outputs cost less than a large one.
detour = [
    Stage(*row) for row in ((1, 8, 1), (1, 9, 5), (1, 6, 1), (1, 6, 1), (20, 2, 1), (1, 14, 1))
]
took = plan_time(detour, list(plan(detour, 20)))
print(f"a detour: time {took}, least 29" + ("" if took == 29 else f": {took / 29:.2f} times that"))
took = plan_time(image_net, plan(image_net, 592))
print(f"With 592 MiB your plan takes {took}; you predicted {predicted_time}.")

# %% nbgrader={"grade": true, "grade_id": "lab04-plan", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.5, 5 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-plan", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-tradeoff-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### The price of memory
#
# Below is the least time for each budget: for segments of equal length, for your plans, and for two optima. The
# *kept-set optimum* is the best there is under the rules of the exercise. The *nested optimum* has one freedom more:
# a segment that is recomputed may be cut into segments in its turn, and a stage may keep all it saves while its
# neighbours do not. (Beaumont and others describe how to find it, in "Optimal checkpointing for heterogeneous
# chains", 2019; the library's planners do so. Here only its times are shown.)


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab04-tradeoff", "locked": true, "schema_version": 3, "solution": false, "task": false}
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


budgets = range(200, 1160, 2)
curves = {
    "equal segments": staircase(equal_segments, budgets),
    "your plan": staircase(plan, budgets),
    "kept-set optimum": lab04.KEPT_SET_OPTIMUM,
    "nested optimum": lab04.NESTED_OPTIMUM,
}
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
plots.time_against_memory(ax, curves, unit="MiB")
plt.show()
for name, steps in curves.items():
    budget, took = steps[0]
    print(
        f"{name:17} fits from {budget} MiB on, in a time of {took}; all kept takes {steps[-1][1]}"
    )

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-tradeoff-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* Four staircases from the upper left (little memory, much time) to the lower right. The
# one of equal segments lies far above the others. With 592 MiB it takes 202 units, your plan 142: two thirds of
# the time that recomputing cost come back, because the plan recomputes the first four stages only, where the bytes are. Your plan
# and the kept-set optimum are one line, drawn one above the other, if your plan is the best. The nested optimum goes on to the left where the others
# have no plan any more, down to 256 MiB, and saves a little in between. It pays where memory is really short.
#
# ### Does it hold?
#
# A model is no table. Here is a chain of 12 real stages of unequal width. Your own `saved_bytes` measures what each one
# saves, your own `plan` decides, your own `checkpoint` runs it, and the meter has a budget that stops a run that is
# over it. Gradients are no part of the plan, so the budget allows for them on top: those of the parameters, and three
# of the widest result.

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab04-real", "locked": true, "schema_version": 3, "solution": false, "task": false}
WIDTHS = [64, 512, 384, 512, 96, 256, 320, 256, 64, 160, 128, 96, 32]
ROWS = 3072


class Widen(nn.Module):
    """Two linear layers with tanh; the inner one is as wide as the wider end."""

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


stages = as_stages(*new_stack())
everything = sum(stage.saved_bytes for stage in stages)
layers, _ = new_stack()
gradients = sum(p.nbytes for p in layers.parameters()) + 3 * ROWS * max(WIDTHS) * 4
for_activations = everything // 2
print(f"All kept would be {everything / MIB:.1f} MiB; the plan gets {for_activations / MIB:.1f}.")
print(f"Gradients get {gradients / MIB:.1f} MiB on top.")
arms = {
    "keep all": [],
    "segments of 3": [2, 5, 8],
    "your plan": list(plan(stages, for_activations)),
}
for name, kept in arms.items():
    layers, x = new_stack()
    with MemoryMeter(DEVICE).track(layers, x) as before:
        pass
    budget = before.baseline_bytes + for_activations + gradients
    try:
        with MemoryMeter(DEVICE, budget_bytes=budget).track(layers, x) as meter:
            run_plan(layers, x, kept).sum().backward()
    except peakmem.OutOfMemory:
        outcome = "out of memory"
    else:
        outcome = f"fits, {(meter.peak_bytes - meter.baseline_bytes) / MIB:.1f} MiB at its peak"
    more = plan_time(stages, kept) / plan_time(stages, []) - 1
    predicted = plan_peak(stages, kept) / MIB
    print(f"{name:14} {kept!s:10} {predicted:5.1f} MiB predicted, forward + {more:4.0%}: {outcome}")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-recompute_attention-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.6 Attention only (3 points, 15 minutes)
#
# The best cut may lie *inside* a layer. Standard attention compares every token with every other, and keeps
# the weights: for $a$ heads, a batch of $b$ and $s$ tokens, that is $a\,b\,s^2$ values. Lab 2 counted $5as^2b$
# bytes for it in 16 bits, softmax and dropout included. With long sequences nothing else in the layer comes near. And
# to compute them again is cheap: for GPT-3, Korthikanti and others (2022) report 70 % of the activations saved for
# 2.7 % more operations. They call it *selective recomputation*.
#
# A block has four parts, `norm1`, `attention`, `norm2` and `mlp`. `block(x)` computes `a = x + attention(norm1(x))`,
# and returns `a + mlp(norm2(a))`.
#
# Write `recompute_attention_only(block, x)`. It returns what `block(x)` returns, but of attention it keeps none of
# the weights: they are made again in backward. The MLP's tensors are kept, and the MLP runs once.
# - You may use your `checkpoint` or, here, torch's own. If so, import it under another name
#   (`from torch.utils.checkpoint import checkpoint as torchs_checkpoint`): under its own it would replace yours in 4.3 too.
# - Leave the block as it is: call its parts, set no switches.
#
# You get 1 point for gradients, 1 for kept bytes, 1 for what is recomputed: attention once, the MLP not at all. The
# block is one of `peakmem.nn.GPT`, without dropout.
#
# *Example:* $b = 1$, $s = 128$, 8 heads: the weights are $8 \cdot 128^2$ float32 values, 512 KiB. Your function keeps
# none of them.
#
# **Predict first.** Take a block with $d = 64$, 8 heads and a sequence of 512 tokens. How many times fewer bytes does
# it keep, if attention is recomputed?

# %%
predicted_ratio = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab04-recompute_attention-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def recompute_attention_only(block: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Run a transformer block; attention's tensors are made again in backward."""
    ### BEGIN SOLUTION
    attended = x + checkpoint(block.attention, block.norm1(x))
    return attended + block.mlp(block.norm2(attended))
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab04-recompute_attention-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 4.6, attention only
def block_run(run, length, d_model=64, n_heads=8):
    """Return kept bytes, how often softmax and gelu ran in all, result, and gradients."""
    torch.manual_seed(0)
    block = lab04.attention_block(d_model, n_heads, length)
    x = torch.randn(1, length, d_model, requires_grad=True)
    with MemoryMeter("cpu").track(block, x) as meter:
        out = run(block, x)
        kept = meter.live_bytes - meter.baseline_bytes - out.nbytes
        out.square().sum().backward()
    names = [name for name, _ in meter.timeline]
    counts = names.count("aten::_softmax"), names.count("aten::gelu")
    return kept, counts, out.detach(), [x.grad, *(p.grad for p in block.parameters())]


assert checkpoint.__module__ != "torch.utils.checkpoint", (
    "torch's checkpoint has replaced yours, in 4.3 too: import it under another name"
)
kept, _, expected, gradients = block_run(lambda block, x: block(x), 512)
own_kept, (softmax, gelu), out, own_gradients = block_run(recompute_attention_only, 512)
assert torch.allclose(out, expected, atol=1e-5), "the result is not the block's"
assert all(g is not None for g in own_gradients), "some parameter, or x, has no gradient"
assert all(
    torch.allclose(own, g, rtol=1e-3, atol=1e-3)
    for own, g in zip(own_gradients, gradients, strict=True)
), "some gradient is not the block's"
assert gelu == 1, f"the MLP runs once, but yours ran {gelu} times"
assert softmax == 2, f"attention runs in forward and again in backward, but yours ran {softmax}"
assert own_kept < 8 * 512 * 512 * 4, "attention's weights are still kept after forward"
print(f"The block keeps {kept / MIB:.2f} MiB, with your function {own_kept / MIB:.2f} MiB:")
print(f"{kept / own_kept:.1f} times fewer bytes; you predicted {predicted_ratio}.")

# %% nbgrader={"grade": true, "grade_id": "lab04-recompute_attention", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.6, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-recompute_attention", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-attention-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# The longer the sequence, the more it is worth. What is left grows with $s$, what is gone grew with $s^2$:

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab04-attention", "locked": true, "schema_version": 3, "solution": false, "task": false}
for length in (64, 128, 256, 512, 1024):
    kept, own = (
        block_run(run, length)[0] / MIB
        for run in (lambda block, x: block(x), recompute_attention_only)
    )
    print(f"{length:5} tokens: {kept:6.2f} MiB kept by the block, {own:5.2f} by yours")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-attention-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Today this cut is mostly made for you: *flash attention*, torch's `scaled_dot_product_attention`, never
# writes the weights to memory and recomputes them inside its backward. It is selective recomputation as one fused
# operation, as `F.gelu` was in 4.1.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-gpu_tradeoff-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.7 Time against memory on a GPU (2 points, 20 minutes, GPU)
#
# One forward more, and backward is about twice a forward: so recomputing everything should cost a third more time. Does
# it, on **your** GPU?
#
# `lab04.gpu_stack()` returns 16 transformer blocks on the GPU and an input for them: width 1024, 8 sequences of 1024
# tokens, float32. Write `measure(segment_length)`: run the stack with your `run_in_segments` and `.sum().backward()`, and
# return `(seconds, peak_bytes)` of one such step.
# - Make the stack, and run two steps, before you measure: the first are slower. After each step free the gradients:
#   `layers.zero_grad()`, and `x.grad = None`.
# - The GPU works on its own. Call `torch.cuda.synchronize()` before you read the clock, at the start and at the end. Or use
#   `torch.cuda.Event(enable_timing=True)`, whose `elapsed_time` is in milliseconds.
# - `torch.cuda.reset_peak_memory_stats()` sets the peak back, `torch.cuda.max_memory_allocated()` reads it, in bytes. All
#   that is live counts, parameters too.
#
# *Points:* for segments of 16, 8, 4 and 1, all peaks within 15 % and all times within a factor of 1.35 of those that the
# grader's probe takes on the same GPU a moment before, and the cheapest checkpointing costs less than 45 % more time
# than none.
#
# *Example:* `measure(16)` keeps all: one segment.
#
# **Predict first.** By how many percent does a step take longer with segments of 4?

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
# Self-check of 4.7, time against memory on a GPU
if torch.cuda.is_available():
    lengths = [16, 8, 4, 2, 1]
    found = [measure(k) for k in tqdm(lengths, desc="segment lengths")]
    for k, (seconds, peak_bytes) in zip(lengths, found, strict=True):
        overhead = seconds / found[0][0] - 1
        print(
            f"segments of {k:2}: {seconds * 1000:6.1f} ms ({overhead:+4.0%}), "
            f"{peak_bytes / 2**30:5.2f} GiB"
        )
        assert seconds > 1e-3, f"{seconds:.1e} s is very short; did you wait for the GPU?"
        assert seconds < 30, f"{seconds} s is very long; are these seconds?"
        assert peak_bytes > 2**28, f"{peak_bytes} is very little; are these bytes?"
    assert found[2][1] < 0.7 * found[0][1], "the peak does not fall; is it reset for each length?"
    overhead = 100 * (found[2][0] / found[0][0] - 1)
    print(f"Segments of 4 take {overhead:.0f} % longer; you predicted {predicted_overhead}.")
else:
    print("Skipped: exercise 4.7 needs a CUDA GPU, and there is none here.")
    print("Its 2 points are left out of your total. You may still write measure().")

# %% nbgrader={"grade": true, "grade_id": "lab04-gpu_tradeoff", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 4.7, 2 points: hidden cases are run here when your instructor grades the lab on a GPU.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab04-gpu_tradeoff", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-practice-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## In practice
#
# You will rarely write `checkpoint` again. This is what you use instead, and what each switch of it means to
# you now.
#
# - **`torch.utils.checkpoint.checkpoint(fn, *args, use_reentrant=False)`.** There are two ways to build it, and you have
#   seen both in 4.2. `use_reentrant=True` is the `autograd.Function`: backward starts a second backward within itself. It
#   needs an argument that requires a gradient, or the parameters get none, silently. `use_reentrant=False` are the
#   hooks: it works with any arguments and stops recomputing as soon as it has all that it needs. Take that one.
# - **`preserve_rng_state=True`** (the default) notes and restores the random generators, the GPU's too, as you did. It
#   costs a little time. If nothing in `fn` is random, False saves it.
# - **`checkpoint_sequential(layers, segments, x, use_reentrant=False)`** is your `run_in_segments`; mind that it takes the
#   *number* of segments.
# - **Hugging Face:** `model.gradient_checkpointing_enable()` checkpoints every layer: segments of 1.
# - **DeepSpeed** has a section `activation_checkpointing` in its configuration. Checkpoints are made where the model calls
#   `deepspeed.checkpointing.checkpoint`; these keys say what becomes of the inputs that they keep:
#
# | key | what it does |
# |---|---|
# | `partition_activations` | splits each kept input over the GPUs that share the model, instead of a copy on each |
# | `cpu_checkpointing` | moves the kept inputs to the CPU's memory (Lab 6); needs the key above |
# | `contiguous_memory_optimization` | copies them into one buffer, against fragmentation; needs `number_checkpoints` |
# | `number_checkpoints` | how many there will be, to size that buffer |
# | `synchronize_checkpoint_boundary` | waits for the GPU at each boundary, to find faults |
# | `profile` | times forward and backward of each checkpoint |
#
# Here is torch's own beside yours, on the same chain of 16 layers. It is made with hooks; if yours is a `Function`, it holds
# one gradient more.

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab04-practice", "locked": true, "schema_version": 3, "solution": false, "task": false}
from torch.utils.checkpoint import checkpoint_sequential


def torchs_own(layers, x):
    return checkpoint_sequential(list(layers), 4, x, use_reentrant=False)


for name, run in (
    ("keep all", keep_all),
    ("run_in_segments", lambda layers, x: run_in_segments(layers, x, 4)),
    ("torch, 4 segments", torchs_own),
):
    meter = forward_and_backward(run, 16)
    print(f"{name:18} {(meter.peak_bytes - meter.baseline_bytes) / MIB:5.2f} MiB at the peak")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-when-not", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### When not to checkpoint
#
# - **It fits.** Then checkpointing costs up to a third of your time and buys nothing. Memory that is left over has no value.
# - **Activations are not the problem.** Checkpointing cannot shrink parameters, gradients or the optimizer's
#   state (Lab 3). If those alone exceed the memory, no segment length helps.
# - **A smaller micro-batch would do.** Accumulating gradients (Lab 5) shrinks activations too, with no second forward. Only
#   if the micro-batch is so small already that the GPU idles, recompute.
# - **The kernels are fused.** Flash attention and fused GELU have done the best part already.
# - **The function is not repeatable.** If it counts its calls, updates running statistics (batch norm!) or reads data, the
#   second call changes more than memory.
#
# If you do: the cheapest bytes first. Recompute what is large and quick (attention's weights, GELU, norms) before whole
# layers, and only as much as the budget asks for.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 4.8 In your own words (2 points, 10 minutes)
#
# A friend trains a transformer with full checkpointing, every layer a segment of its own. Her GPU is 40 % full, and a step
# takes 1.3 seconds. "It was out of memory once," she says, "so I switched it on." In three or four sentences: what do
# you advise, in which order would you try it, and about how long may a step take in the end?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab04-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# More than half of the memory lies idle, and about a quarter of each step is recomputation: one forward of
# four parts of work (forward, recomputed forward, and backward, which is two). So recompute less. First only attention, or use
# flash attention; if that fits, nothing else is needed. Otherwise checkpoint every second layer, or only as many layers as
# the budget asks for. Without any recomputing a step would take about 1 second; selective recomputation comes close to
# that. (Or use the idle memory for a larger batch, if the GPU is not busy.)
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab04-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - Backward waits for what forward *saved*. What is saved depends on each operation's derivative and on how operations are
#   fused, not on the formula alone.
# - Checkpointing keeps the inputs of segments and computes the rest again: right only if the second run is the same as the
#   first, dice included.
# - For equal layers the peak falls from $n$ to about $2\sqrt n$, for less than one more forward. The last segment is never
#   recomputed.
# - Layers are not equal. The right question is the least *time* within the budget, and the answer cuts behind small
#   outputs and recomputes where the bytes are.
# - Attention's weights are the cheapest bytes to get back: $s^2$ of memory for a few percent of work.
# - Where it fits without, leave it off.
