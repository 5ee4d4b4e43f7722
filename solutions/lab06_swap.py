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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 6: use the lower tier
#
# A GPU with 80 GB sits in a computer with 1000 GB. What the GPU does not need right now could wait
# there, one floor below. Nothing has to be computed twice and nothing gets less precise. The price
# is the way: the stairs between the two floors are 50 to 100 times narrower than the GPU's own
# memory. So the question of this lab is not *can it be moved*, but *can it be moved while nobody
# waits for it*.
#
# **You will be able to**
# - move optimizer state, weights and saved activations to the host, and count every byte;
# - measure what stays on the device, and live within a budget;
# - say from bandwidth and compute whether a tensor is better swapped, recomputed or kept;
# - write a schedule of copies that hides behind compute, and read its Gantt chart.
#
# | exercise | minutes | points |
# |---|---|---|
# | 6.1 Adam with its moments downstairs | 25 | 4 |
# | 6.2 A model that streams through | 15 | 3 |
# | 6.3 Swap what autograd saves | 55 | 5 |
# | 6.4 Swap, recompute or keep? | 15 | 2 |
# | 6.5 A schedule for the link | 45 | 5 |
# | 6.6 Copies behind compute, on a GPU | 20 | 2 |
# | 6.7 In your own words | 10 | 2 |
#
# In all, 3 h to 3 h 20, and 23 points. Without a GPU, 6.6 and its 2 points are left out.

# %% nbgrader={"grade": false, "grade_id": "lab06-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import itertools
import math
import time
import weakref
from contextlib import contextmanager
from types import SimpleNamespace

import matplotlib.pyplot as plt
import torch
from torch import nn
from tqdm.auto import tqdm

import peakmem
from peakmem import plots
from peakmem.meter import MemoryMeter, measure_call
from peakmem.rehearsal import Work, rehearse
from peakmem.swapping import Stage, simulate
from peakmem.tiers import HostTier, layout_of, rebuild, whole_storage

peakmem.lab("lab06_swap")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MIB = 2**20
if DEVICE == "cuda":
    print("The device is the GPU's memory, the host is pinned memory, and the link is PCIe.")
else:
    print("Here memory that the meter counts stands for the device, a file for the host.")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-host-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## Two floors
#
# A `HostTier` is the lower floor. It knows four things:
#
# | call | what it does |
# |---|---|
# | `handle = host.put(tensor)` | copies the values down, returns a *handle* (a claim ticket) |
# | `tensor = host.get(handle)` | copies them up, into a **new** tensor on the device |
# | `host.write(handle, tensor)` | overwrites the values below, in place |
# | `host.free(handle)` | gives up the values below |
#
# `put` does not take the tensor away. It goes when nothing in Python holds it any more. So the
# pattern is: put, then let go. The counters `bytes_out`, `bytes_in`, `live_bytes` and `peak_bytes`
# tell what moved and what lies below.
#
# **Predict first.** A tensor of 4 MiB is put, let go, and got back. How many MiB are on the device
# after each of the three?

# %%
predicted_device_mib = (None, None, None)  # your prediction: after put, after del, after get

# %% nbgrader={"grade": false, "grade_id": "lab06-host", "locked": true, "schema_version": 3, "solution": false, "task": false}
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
print(f"you predicted {predicted_device_mib}")
host.free(handle)
print(
    f"{host.bytes_out / MIB:.0f} MiB went out, {host.bytes_in / MIB:.0f} MiB came in; below: {host}"
)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-offloaded_adam-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.1 Adam with its moments downstairs (4 points, 25 minutes)
#
# Adam's two moments take 8 bytes a parameter, twice what the weights take. And they are idle almost
# all the time: forward and backward never look at them. In the step, each parameter's moments are
# needed for a moment, and only that parameter's. Nothing is a better candidate for the lower floor.
#
# Write the class `OffloadedAdam(params, host, lr, betas, eps)`. Its method `step()` makes one step of
# Adam on all parameters from their `.grad`; `zero_grad()` sets each `.grad` to `None`. `params` may
# be a generator, as `model.parameters()` is. As in lab 3, for the $t$-th step of a parameter with
# gradient $g$:
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\, g \qquad v \leftarrow \beta_2 v + (1 - \beta_2)\, g^2
# \qquad \theta \leftarrow \theta - \mathrm{lr}\,
# \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}$$
#
# - `m` and `v` live on the `host`, in the parameter's dtype. They are made in the first step that
#   the parameter takes; between steps the device keeps handles only.
# - **Write back** what you changed: `get` gives a copy.
# - A gradient of `None` means that this parameter took no part: leave it, its moments and its own
#   step count alone. Gradients are not changed by the step.
# - **Convention:** during a step the device may hold parameters, gradients and 4 times the largest
#   parameter. Doing the arithmetic in numpy does not get round the budget: its arrays are counted
#   too. After the first step `host.live_bytes` is 8 bytes for each float32 parameter. Not allowed:
#   `torch.optim`.
#
# You get 2 points for Adam's results, 1 for the bytes on the device, 1 for those on the host.
#
# *Example:* parameters of 1,000 and 500 float32 values. After the first step 12,000 bytes are on
# the host, and during a step at most 16,000 beside parameters and gradients are on the device.
#
# **Predict first.** A model of 1 billion float32 parameters, over a link of 32 GB/s in each
# direction: how many seconds does one step take, if the two directions do not overlap?

# %%
predicted_step_seconds = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab06-offloaded_adam-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
class OffloadedAdam:
    """Adam whose moments wait on the host."""

    def __init__(self, params, host, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        ### BEGIN SOLUTION
        self.params, self.host = list(params), host
        self.lr, self.betas, self.eps = lr, betas, eps
        self.state = {}  # number of a parameter -> [steps, handle of m, handle of v]
        ### END SOLUTION

    def step(self) -> None:
        """Make one step of Adam on every parameter that has a gradient."""
        ### BEGIN SOLUTION
        beta1, beta2 = self.betas
        with torch.no_grad():
            for i, param in enumerate(self.params):
                if param.grad is None:
                    continue
                if i not in self.state:
                    zeros = torch.zeros_like(param)
                    self.state[i] = [0, self.host.put(zeros), self.host.put(zeros)]
                    del zeros
                self.state[i][0] += 1
                t, m_handle, v_handle = self.state[i]
                m = self.host.get(m_handle).mul_(beta1).add_(param.grad, alpha=1 - beta1)
                self.host.write(m_handle, m)
                v = self.host.get(v_handle).mul_(beta2)
                v.addcmul_(param.grad, param.grad, value=1 - beta2)
                self.host.write(v_handle, v)
                root = v.div_(1 - beta2**t).sqrt_().add_(self.eps)  # v is written, so use it up
                param.addcdiv_(m, root, value=-self.lr / (1 - beta1**t))
                del m, v, root
        ### END SOLUTION

    def zero_grad(self) -> None:
        """Let go of the gradients."""
        ### BEGIN SOLUTION
        for param in self.params:
            param.grad = None
        ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab06-offloaded_adam-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 6.1, Adam with its moments downstairs
def values_after(gradients, **options):
    """Return one parameter's values after each step; it begins at 1, with lr = 0.1."""
    param = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    optimizer, values = OffloadedAdam(iter([param]), HostTier(), lr=0.1, **options), []
    for gradient in gradients:
        given = None if gradient is None else torch.tensor([gradient], dtype=torch.float64)
        param.grad = None if given is None else given.clone()
        optimizer.step()
        values.append(param.item())
        assert given is None or (param.grad is not None and torch.equal(param.grad, given)), (
            "step() changed or dropped a gradient: only zero_grad() lets go of it"
        )
    return values


def check_value(right, hints, gradients, **options):
    """Compare the last value with the right one, and with what usual mistakes make of it."""
    value = values_after(gradients, **options)[-1]
    for wrong, hint in hints.items():
        assert abs(value - wrong) > 1e-5, hint
    assert abs(value - right) < 1e-5, (
        f"after gradients {gradients} and with {options or 'the defaults'} the value is {right}, "
        f"not {value:.6f}"
    )


BACK = "so host.write both in every step"
hints = {
    1.0: "the parameter did not move: change it in place, under torch.no_grad()",
    1.1: "the parameter moved uphill: subtract the update",
    0.999: "lr = 0.1 was given, but the step is one of 0.001",
    0.683772: "the bias correction is missing: divide m and v by 1 - beta ** t",
}
check_value(0.9, hints, [0.5])
hints = {
    0.9: "the second step moved nothing: a generator can be gone through once, so keep a list",
    0.974414: f"m and v are 0 again in step 2, {BACK}",
    0.957671: f"v is 0 again in step 2, {BACK}",
    0.972194: f"m is 0 again in step 2, {BACK}",
    0.975188: "the step count stays 1: in step 2 divide by 1 - beta ** 2",
}
check_value(0.955950, hints, [0.5, -2.0])
hints = {
    0.873093: f"step 3 finds m and v of step 1, {BACK}",
    0.978522: f"step 3 finds v of step 1, {BACK}",
    0.915507: f"step 3 finds m of step 1, {BACK}",
}
check_value(0.966968, hints, [0.5, -2.0, 1.0])
hints = {
    0.915485: "eps is inside the root: add it to the root",
    0.986347: "eps is divided, too: first v / (1 - beta2 ** t), then the root, then add eps",
}
check_value(0.916667, hints, [0.5], eps=0.1)
check_value(0.978237, {0.955950: "betas are not used"}, [0.5, -2.0], betas=(0.5, 0.9))
values = values_after([0.5, None, -2.0])
assert values[1] == values[0], "a gradient of None must leave the parameter alone"
assert abs(values[2] - 0.955950) < 1e-5, "None must leave moments and step count alone"

pair = [torch.ones(1, dtype=torch.float64, requires_grad=True) for _ in range(2)]
for param in pair:
    param.grad = torch.full_like(param, 0.5)
host = HostTier()
OffloadedAdam(pair, host, lr=0.1).step()
assert torch.allclose(*pair), "each parameter counts its own steps: equal gradients, equal steps"
assert host.live_bytes == 32, (
    f"m and v of two float64 values are 32 bytes on the host, but {host.live_bytes} are there: "
    "put both, in the parameter's dtype"
)

params = [torch.ones(500_000, device=DEVICE, requires_grad=True) for _ in range(6)]
for param in params:
    param.grad = torch.ones_like(param)
host = HostTier()
optimizer = OffloadedAdam(params, host)
assert host.live_bytes == 0, "make the moments in the first step, not before"
optimizer.step()
P, largest = sum(param.nbytes for param in params), params[0].nbytes
assert host.live_bytes == 2 * P, f"on the host: {host.live_bytes:,} bytes, expected {2 * P:,}"
found = measure_call(
    optimizer.step, device=DEVICE, track=[params, [param.grad for param in params]]
)
kept = found.live_after_bytes - found.live_before_bytes
print(f"parameters {P / MIB:.1f} MiB, moments on the host {host.live_bytes / MIB:.1f} MiB")
print(f"above parameters and gradients: {found.rise_bytes / MIB:.1f} MiB on the device at the peak")
print(f"the budget:                     {4 * largest / MIB:.1f} MiB, plain Adam: {2 * P / MIB:.1f}")
assert host.live_bytes == 2 * P, (
    "the second step left more on the host: write() into the same place"
)
assert kept <= 2**16, f"{kept:,} bytes stay on the device between steps: let go of m and v"
assert found.rise_bytes <= 4 * largest + 2**16, (
    "over the budget: take one parameter at a time, work in place, and let go of its m and v (del) "
    "before the next ones come up"
)
optimizer.zero_grad()
assert all(param.grad is None for param in params), "zero_grad sets each .grad to None"
print(f"1e9 parameters: 8 GB up and 8 GB down at 32 GB/s take {2 * 8 / 32:.2f} s; ", end="")
print(f"you predicted {predicted_step_seconds}.")

# %% nbgrader={"grade": true, "grade_id": "lab06-offloaded_adam", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 6.1, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab06-offloaded_adam", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-stream_forward-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.2 A model that streams through (3 points, 15 minutes)
#
# Weights can wait below as well. In a forward pass only one layer computes at a time. So a model
# that is larger than the device can run on it, if its layers come up one after another and go
# again.
#
# Write `stream_forward(host_layers, x)`, which returns what the layers make of `x`, one after
# another. Each entry of `host_layers` has
# - `load()`, which copies the layer's weights up and returns a module on the device, ready to call;
# - `weight_bytes`, how many bytes these are.
#
# **Convention:** no gradients are wanted. At most two layers' weights are on the device at any time:
# the one that computes, and perhaps the next. Mind that `layer = next.load()` still holds the old
# layer while it loads. No layers: `x` itself.
#
# You get 1 point for the output, 2 for the memory, which is measured at grading.
#
# *Example:* three layers of 10, 30 and 20 MB. With two at a time, at most 50 MB of weights are on
# the device; with one at a time, 30 MB.
#
# **Predict first.** Eight layers of 4 MiB. A colleague writes the loop without `torch.no_grad()`. How
# many MiB of weights are on the device when the loop ends?

# %%
predicted_weights_mib = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab06-stream_forward-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stream_forward(host_layers: list, x: torch.Tensor) -> torch.Tensor:
    """Run layers that wait on the host, at most two of them on the device at once."""
    ### BEGIN SOLUTION
    with torch.no_grad():
        for host_layer in host_layers:
            x = host_layer.load()(x)  # nothing keeps the layer once it has computed
    return x
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab06-stream_forward-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 6.2, a model that streams through
class HostLinear:
    """A linear layer whose weight waits on a host."""

    def __init__(self, weight, host):
        self.weight_bytes = weight.nbytes
        self.host, self.handle = host, host.put(weight)

    def load(self):
        weight = self.host.get(self.handle)
        layer = nn.Linear(*weight.T.shape, bias=False, device="meta")
        layer.weight = nn.Parameter(weight)
        return layer


host = HostTier()
upper = torch.tensor([[1.0, 1.0], [0.0, 1.0]], device=DEVICE)  # (a, b) becomes (a + b, b)
ones = torch.ones(1, 2, device=DEVICE)
output = stream_forward([HostLinear(weight, host) for weight in (upper, upper.T)], ones)
assert isinstance(output, torch.Tensor), "return the last layer's output, one tensor"
assert torch.equal(ones, torch.ones_like(ones)), "x was changed: others may still need it"
assert output.tolist() != [[3.0, 2.0]], "the last layer ran first: begin with the first one"
assert output.tolist() == [[2.0, 3.0]], (
    f"one layer makes (2, 1) of (1, 1), and the next (2, 3) of that, but you return {output}"
)
assert torch.equal(stream_forward([], ones), ones), "without layers the output is x"
assert torch.is_grad_enabled(), (
    "gradients stay switched off after your function: write `with torch.no_grad():`. To switch "
    "them on again, restart the kernel"
)

layers = [HostLinear(torch.eye(1024, device=DEVICE), host) for _ in range(8)]
x = torch.ones(4, 1024, device=DEVICE)
found = measure_call(stream_forward, layers, x, device=DEVICE)
one = layers[0].weight_bytes
print(
    f"eight layers take {8 * one / MIB:.0f} MiB; at the peak {found.rise_bytes / MIB:.1f} MiB rose"
)
assert found.rise_bytes <= 2 * one + 2**18, (
    "more than two layers were on the device at once. Does a list or a variable hold them? Or "
    "autograd, which keeps weights for a backward? Compute under torch.no_grad()"
)


def colleague(host_layers, x):
    for layer in host_layers:
        x = layer.load()(x)
    return x


left = measure_call(colleague, layers, x, device=DEVICE)
print(f"without no_grad: {left.rise_bytes / MIB:.1f} MiB; you predicted {predicted_weights_mib}.")

# %% nbgrader={"grade": true, "grade_id": "lab06-stream_forward", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 6.2, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab06-stream_forward", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-swap_saved_tensors-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.3 Swap what autograd saves (5 points, 55 minutes)
#
# In training it is mostly activations that fill the device. Each one waits from its forward to its
# backward, the first ones longest. Here is a chain that does not fit: twelve blocks on a device
# whose budget has room for about seven activations, `x` among them.

# %% tags=["raises-exception"] nbgrader={"grade": false, "grade_id": "lab06-does-not-fit", "locked": true, "schema_version": 3, "solution": false, "task": false}
ROWS, WIDTH, BLOCKS = 8192, 64, 12
ACTIVATION = ROWS * WIDTH * 4  # bytes
BUDGET = 7 * ACTIVATION


@contextmanager
def keep_all(host):
    """Swap nothing: what autograd saves stays on the device."""
    yield


def train_chain(swap, host, budget=None):
    """Run forward under `swap(host)` and then backward, within a budget; return the meter."""
    room = torch.cuda.memory_allocated() if DEVICE == "cuda" else 0
    weights = [nn.Parameter(torch.eye(WIDTH, device=DEVICE)) for _ in range(BLOCKS)]
    x = torch.ones(ROWS, WIDTH, device=DEVICE)
    meter = MemoryMeter(DEVICE, None if budget is None else budget + room).track(x, weights)
    with meter:
        with swap(host):
            y = x
            for weight in weights:
                y = torch.tanh(y @ weight)
            loss = y.sum()
        del y
        loss.backward()
    return meter


try:
    train_chain(keep_all, HostTier(), BUDGET)
except peakmem.OutOfMemory as error:
    print("Out of memory:", error)
print(f"one activation is {ACTIVATION / MIB:.0f} MiB, the budget {BUDGET / MIB:.0f} MiB")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-swap_saved_tensors-how", "locked": true, "schema_version": 3, "solution": false, "task": false}
# torch has a place to step in. Within
#
# ```python
# with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
#     ...forward...
# ```
#
# autograd calls `pack(tensor)` for every tensor that it saves, and keeps what `pack` returns
# **instead of the tensor**. When backward needs it, autograd calls `unpack(what_pack_returned)`,
# which has to return the tensor. After backward it lets go of what `pack` returned.
#
# Write `swap_saved_tensors(host)`, a context manager for forward. `keep_all` above has the form of
# one: forward runs at its `yield`, so the hooks have to be around that. Backward runs after it,
# outside.
#
# A first version takes four lines: `pack` returns `host.put(tensor)`, and `unpack` is `host.get`. It
# gives right gradients. But it moves too much, and leaves everything below for ever. Four rules make
# it good:
#
# 1. **Parameters stay.** They are on the device anyway. Return them from `pack` as they are. A
#    *view* of a parameter, such as `weight.t()`, has the parameter as its `tensor._base`. (Only
#    `nn.Parameter` counts as a parameter here.)
# 2. **Each storage goes out once.** Often several saved tensors share one storage: `tanh` saves its
#    output, and the next product saves the same tensor as its input. So put a storage as a whole,
#    and remember where it is: make an **entry** for it, an object of a small class of yours that
#    keeps the handle. `pack` returns the storage's entry together with the tensor's layout. Coming
#    back, once for each saved tensor is fine.
# 3. **Nothing is left.** Bytes below are freed once autograd has let go of all that need them: after
#    backward, or when the graph is dropped without one. Not at the first `unpack`: with
#    `retain_graph=True` backward comes twice.
# 4. **Hold nothing.** A dict that keeps tensors or storages keeps their memory. Let the dict from
#    storages to entries hold both weakly; autograd holds the entry, and nobody else.
#
# Your tools:
# - `whole_storage(tensor)` gives all bytes of a tensor's storage as a flat tensor, `layout_of(tensor)`
#   its dtype, shape and strides, and `rebuild(flat, layout)` puts both together again. So integers,
#   empty tensors, slices, transposed and expanded tensors all come back as they were.
# - `tensor.untyped_storage()` is the same Python object for all tensors of a storage, as long as that
#   lives. Its `data_ptr()` is *not* a lasting name: once memory is freed, the next storage may get
#   the same address.
# - `weakref.WeakKeyDictionary()` is a dict that forgets a key when it dies. `weakref.ref(thing)()`
#   is the thing, or `None` once it is gone. `weakref.finalize(thing, function, *args)` calls the
#   function when `thing` dies; a method `__del__` of the thing does the same.
#
# You get 1 point for the gradients, 2 for the device's peak, 1 for rules 1 and 2, 1 for rule 3.
#
# **Convention:** a chain of any length may take 6 activations and half a MiB at a time on the device
# beside `x` and the weights, in forward and backward. A buffer that is changed in place between two
# saves is left out of this exercise.
#
# *Example:* `y = torch.exp(x)` and then `(y * y).sum()`, where `x` is the first tensor that needs a
# gradient. `exp` saves its output `y`, and the product saves `y` twice. One storage goes out.
#
# **Predict first.** In the chain above, each block saves its input (for the product) and its output
# (for tanh). How many activations go out in all twelve blocks?

# %%
predicted_activations_out = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab06-swap_saved_tensors-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
@contextmanager
def swap_saved_tensors(host: HostTier):
    """Within the block, move what autograd saves to the host; backward brings it back."""
    ### BEGIN SOLUTION

    class Parcel:
        """A storage on the host, which goes when the last saved tensor of it does."""

        def __init__(self, tensor):
            self.handle = host.put(whole_storage(tensor))
            weakref.finalize(self, host.free, self.handle)

    parcels = weakref.WeakKeyDictionary()  # storage -> weak reference to its parcel

    def pack(tensor):
        owner = tensor if tensor._base is None else tensor._base
        if isinstance(owner, nn.Parameter):
            return tensor
        storage = tensor.untyped_storage()
        reference = parcels.get(storage)
        parcel = None if reference is None else reference()
        if parcel is None:
            parcel = Parcel(tensor)
            parcels[storage] = weakref.ref(parcel)
        return parcel, layout_of(tensor)

    def unpack(packed):
        if isinstance(packed, torch.Tensor):
            return packed
        parcel, layout = packed
        return rebuild(host.get(parcel.handle), layout)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab06-swap_saved_tensors-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 6.3, swap what autograd saves
def gradients(swap, host, backwards=1, integers=True):
    """Return the gradients of a small model with views, and the bytes below after forward."""
    torch.manual_seed(0)
    x = torch.randn(20, 20, device=DEVICE, requires_grad=True)
    weight = nn.Parameter(torch.randn(20, 20, device=DEVICE) / 4)
    with swap(host):
        y = x
        for _ in range(4):
            y = torch.tanh(y @ weight.t()) * torch.sigmoid(y)
        loss = (y[:5] * y[5:10]).sum() + (y.T[0] * y[:3, ::1].expand(3, 20)).sum()
        if integers:
            loss = loss + y.T[torch.tensor([3, 1, 2], device=DEVICE)].square().sum()
    below = host.live_bytes
    for i in range(backwards):
        loss.backward(retain_graph=i + 1 < backwards)
    return x.grad, weight.grad, below


for integers in (False, True):
    host = HostTier()
    expected = gradients(keep_all, HostTier(), integers=integers)
    found = gradients(swap_saved_tensors, host, integers=integers)
    assert found[2] > 0, "nothing went to the host: enter saved_tensors_hooks(pack, unpack)"
    for right, yours in zip(expected[:2], found[:2], strict=True):
        assert torch.allclose(right, yours), (
            "the gradients differ from those without swapping. Is data_ptr() or an id() your key? "
            "Both are given away again. Or was a slice put, and not its whole storage?"
        )
    assert host.live_bytes == 0, (
        f"{host.live_bytes:,} bytes were left on the host after backward: free a storage's handle "
        "when its entry dies"
    )
twice = gradients(swap_saved_tensors, HostTier(), backwards=2)
assert torch.allclose(twice[0], 2 * expected[0]), "with retain_graph backward may come twice"

x = torch.ones(2, 5, device=DEVICE, requires_grad=True)
for name, use in {"y * y": lambda y: y * y, "y @ y.T": lambda y: y @ y.T}.items():
    host = HostTier()
    with swap_saved_tensors(host):
        y = torch.exp(x)
        loss = use(y).sum()
    assert host.bytes_out == 40, (
        f"of y = torch.exp(x) and {name} one storage of 40 bytes goes out, but {host.bytes_out} "
        "bytes went. A view shares its tensor's storage"
    )
    del y, loss
    assert host.live_bytes == 0, (
        "the graph was dropped without a backward: free then, too. Does an entry or a list hold a "
        "tensor? A tensor holds its graph, and the graph your entry"
    )
(torch.exp(x) ** 2).sum()
assert host.bytes_out == 40, (
    "after the block nothing is to be swapped any more: `with saved_tensors_hooks(...): yield`. "
    "These hooks are still there, so restart the kernel"
)
host = HostTier()
with swap_saved_tensors(host):  # the product saves its input and a view of the weight
    inputs = torch.ones(2, 3, requires_grad=True)  # without a gradient no weight would be saved
    loss = nn.functional.linear(inputs, nn.Parameter(torch.ones(4, 3))).sum()
assert host.bytes_out <= 24, "a parameter, or a view of one, went to the host"

host = HostTier()
HOLDS = "more than 6 activations at once beside x and the weights: what still holds them?"
try:
    meter = train_chain(swap_saved_tensors, host, BUDGET)
except peakmem.OutOfMemory as error:
    raise AssertionError(f"{HOLDS} ({error})") from None
plain = train_chain(keep_all, HostTier())
rise, plain_rise = (m.peak_bytes - m.baseline_bytes for m in (meter, plain))
print(
    f"without swapping the peak is {plain_rise / ACTIVATION:.1f} activations, and with it ", end=""
)
print(f"{rise / ACTIVATION:.1f}: it fits")
assert rise <= 6 * ACTIVATION + 2**19, HOLDS
print(f"{host.bytes_out / ACTIVATION:.0f} activations went out; ", end="")
print(f"you predicted {predicted_activations_out}.")

# %% nbgrader={"grade": true, "grade_id": "lab06-swap_saved_tensors", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
# Exercise 6.3, 5 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab06-swap_saved_tensors", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-swap-see-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### See it work
#
# The meter's timeline has the bytes live after every operator. Without swapping they climb through
# forward and fall in backward. Under your manager the mountain is cut off.

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab06-swap-see", "locked": true, "schema_version": 3, "solution": false, "task": false}
runs = {"all on the device": train_chain(keep_all, HostTier())}
runs["swapped"] = train_chain(swap_saved_tensors, HostTier())
curves = {
    name: [(live - meter.baseline_bytes) / MIB for _, live in meter.timeline]
    for name, meter in runs.items()
}
# Swapping adds operators of its own, so each curve is drawn over its own share of the way.
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for (name, levels), colour, dashes in zip(
    curves.items(), ("#0072B2", "#D55E00"), ("-", "--"), strict=True
):
    share = [100 * i / (len(levels) - 1) for i in range(len(levels))]
    axes.plot(share, levels, color=colour, linestyle=dashes, label=name)
above = BUDGET - ACTIVATION - BLOCKS * WIDTH * WIDTH * 4  # x and the weights take the rest
axes.axhline(above / MIB, color="black", linestyle=":", label="budget beside x and weights")
axes.set(xlabel="operators run (percent of all)", ylabel="live beside x and weights (MiB)")
axes.set_ylim(bottom=0)
axes.legend()
plt.show()

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-swap-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* Without swapping, a mountain: it rises by one activation of 2 MiB a block,
# to 26 MiB at the turn from forward to backward, and the budget cuts it off half way up. Swapped,
# the curve stays at two or three activations all the way: only what the running operator needs is
# there.
#
# ### In practice: torch's own, and DeepSpeed's keys
#
# torch ships the four-line version as `torch.autograd.graph.save_on_cpu(pin_memory=...)`. **Predict:**
# how many times as many bytes as your manager does it move on this chain, where each block's output
# is saved twice?

# %%
predicted_ratio = None  # your prediction, a number

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab06-save-on-cpu", "locked": true, "schema_version": 3, "solution": false, "task": false}
weights = [nn.Parameter(torch.eye(WIDTH, device=DEVICE)) for _ in range(BLOCKS)]
names = {weight.untyped_storage().data_ptr() for weight in weights}
moved = {"activations": 0, "parameters": 0}


def count(tensor):
    """Add what save_on_cpu would copy, and keep the tensor where it is."""
    kind = "parameters" if tensor.untyped_storage().data_ptr() in names else "activations"
    moved[kind] += tensor.nbytes
    return tensor


with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
    y = torch.ones(ROWS, WIDTH, device=DEVICE)
    for weight in weights:
        y = torch.tanh(y @ weight)
host = HostTier()
train_chain(swap_saved_tensors, host)
for kind, moved_bytes in moved.items():
    print(f"save_on_cpu copies {moved_bytes / MIB:6.2f} MiB of {kind}")
print(f"yours copies       {host.bytes_out / MIB:6.2f} MiB of activations")
ratio = sum(moved.values()) / host.bytes_out
print(f"that is {ratio:.2f} times as much; you predicted {predicted_ratio}")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-deepspeed", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Why not 2? The chain makes 24 saves of 13 storages: `x` and the last output are saved once, the 11
# outputs between them twice.
#
# In a large model most saved tensors are saved once, and the ratio is nearer to 1; but the parameters
# weigh more there.
#
# What you wrote in 6.1 and 6.2 has names in DeepSpeed's configuration, too:
#
# ```json
# {"zero_optimization": {
#     "stage": 3,
#     "offload_optimizer": {"device": "cpu", "pin_memory": true},
#     "offload_param": {"device": "cpu", "pin_memory": true}}}
# ```
#
# - `offload_optimizer` is 6.1, with one more idea: the step itself runs on the host's processor
#   (ZeRO-Offload). Then moments need not move at all; gradients go down and new weights come up,
#   2 + 2 bytes a parameter in 16 bits instead of 8 + 8. It works from stage 1 on; `"nvme"` as a device
#   is one floor further down.
# - `offload_param` is 6.2: a layer's weights come up when it is its turn. It needs stage 3.
# - `pin_memory` asks for host memory that the operating system may not move. Only from such memory
#   can the GPU copy by itself while Python goes on. Exercise 6.6 is about that.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-worth_swapping-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.4 Swap, recompute or keep? (2 points, 15 minutes)
#
# Everything *can* be swapped. The slides ask: when will it work, and when not? Lab 4 had another way to
# get rid of an activation: compute it again. Now both have a price in seconds, so they can be
# compared.
#
# - **Recompute** costs the stage's forward once more: `forward_flops / flops_per_s`.
# - **Swap** costs two copies, out and in: `2 * saved_bytes / link_bytes_per_s`. But a copy needs no
#   arithmetic. Between the stage's forward and its backward the device computes other things,
#   `hidden_flops` in all, and the copies can hide behind that. Only what sticks out is extra time:
#
# $$\text{extra} = \max\left(0,\; \frac{2 \cdot \text{saved bytes}}{\text{link}} -
# \frac{\text{hidden flops}}{\text{flops per second}}\right)$$
#
# Write `worth_swapping(stage, link_bytes_per_s, flops_per_s)`. `stage` has the attributes
# `saved_bytes`, `forward_flops` and `hidden_flops`. Return
# - `"keep"` where `saved_bytes` is 0: there is nothing to move;
# - `"swap"` where the extra time of swapping is **no more** than that of recomputing;
# - `"recompute"` otherwise.
#
# *Example:* 1 GB saved, a link of 32 GB/s: the copies take 62.5 ms. With 15 Tflop to hide behind at
# 300 Tflop/s, 50 ms of them are hidden, and 12.5 ms are extra. Recomputing 6 Tflop takes 20 ms. So
# swap.
#
# **Predict first.** The same stage on a GPU that computes twice as fast, over the same link: swap or
# recompute?

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
# Self-check of 6.4, swap, recompute or keep?
def choice(saved_gb, forward_tflop, hidden_tflop, link_gb_per_s, tflop_per_s):
    """Call worth_swapping in handier units."""
    stage = SimpleNamespace(
        saved_bytes=int(saved_gb * 1e9),
        forward_flops=int(forward_tflop * 1e12),
        hidden_flops=int(hidden_tflop * 1e12),
    )
    return worth_swapping(stage, link_gb_per_s * 1e9, tflop_per_s * 1e12)


def check_choice(right, why, *stage):
    """Compare the choice for a stage with the right one."""
    found = choice(*stage)
    assert found == right, f"{why}: {right!r}, but you return {found!r}"


check_choice("swap", "the example's 12.5 ms are less than 20 ms", 1, 6, 15, 32, 300)
check_choice("recompute", "12.5 ms of extra time against 10 ms", 1, 3, 15, 32, 300)
check_choice("recompute", "a link half as fast: 75 ms against 13 ms", 1, 4, 15, 16, 300)
check_choice("keep", "nothing is saved, so there is nothing to move", 0, 6, 15, 32, 300)
check_choice("swap", "hidden with time to spare, so the extra time is 0", 1, 0.5, 900, 32, 300)
check_choice("swap", "62.5 ms against 62.5 ms, and at equal cost it is swap", 1, 18.75, 0, 32, 300)
check_choice("recompute", "recomputing costs nothing here", 1, 0, 0, 32, 300)
faster = choice(1, 6, 15, 32, 600)
print(f"On a GPU twice as fast: {faster}; you predicted {predicted_choice}.")
print("Compute gets faster from one GPU to the next, and with it the hiding place gets shorter.")

# %% nbgrader={"grade": true, "grade_id": "lab06-worth_swapping", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 6.4, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab06-worth_swapping", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-break-even-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Which link makes a swap free?
#
# Set the extra time to 0: 2 x saved bytes / link = hidden flops / flops per second. So the link is
# `2 * flops_per_s / intensity`, where the *intensity* is hidden flops / saved bytes, the operations
# to hide behind for each saved byte. From this bandwidth on the extra time is 0. A transformer's
# layer of width $h$ computes about $24 h^2$ operations a token in forward and saves about $34 h$
# bytes a token, at 16 bits a value (lab 2, without attention's square). So each layer that stands
# between a stage's forward and backward, with its own forward and its backward of twice that,
# brings about $72 h^2 / 34 h$, or $2.1 h$ operations a saved byte. For $h$ = 4096 that is 8,674.
#
# Then there is your own machine: its link and its compute are measured below. **Predict first.**
# How many GB/s does the way to your host have?

# %%
predicted_link_gb_per_s = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab06-break-even", "locked": true, "schema_version": 3, "solution": false, "task": false}
def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def best_seconds(work, repeats=5):
    """The shortest time of several runs: what the machine can do when nothing disturbs it."""
    times = []
    for _ in range(repeats):
        synchronize()
        begin = time.perf_counter()
        work()
        synchronize()
        times.append(time.perf_counter() - begin)
    return min(times)


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab06-break-even-here", "locked": true, "schema_version": 3, "solution": false, "task": false}
def round_trip():
    handle = host.put(block)
    host.get(handle)
    host.free(handle)


host = HostTier()
block = torch.ones(32 * MIB // 4, device=DEVICE)
matrix = torch.randn(1024, 1024, device=DEVICE)
own_link = 2 * block.nbytes / best_seconds(round_trip)
own_flops = 2 * 1024**3 / best_seconds(lambda: matrix @ matrix)
print(f"this machine: link {own_link / 1e9:.2f} GB/s, compute {own_flops / 1e12:.3f} Tflop/s")
print(f"for the link you predicted {predicted_link_gb_per_s} GB/s")
print(f"a swap is free here from an intensity of {2 * own_flops / own_link:,.0f} on")

intensities = [10 ** (1 + i / 10) for i in range(41)]
gpus = {"V100": 125e12, "A100": 312e12, "H100": 989.4e12, "this machine": own_flops}
curves = {name: [2 * f / x / 1e9 for x in intensities] for name, f in gpus.items()}
links = {"PCIe 3": 16, "PCIe 5": 64, "NVLink-C2C": 450}
figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
plots.break_even(axes, intensities, curves, links)
layer = 72 / 34 * 4096
axes.axvline(layer, color="black", linewidth=1, linestyle="--")
axes.annotate(
    "behind 1 layer, h = 4096",
    (layer, 0.98),
    xycoords=("data", "axes fraction"),
    xytext=(4, 0),
    textcoords="offset points",
    va="top",
    fontsize=11,
)
point = (2 * own_flops / own_link, own_link / 1e9)
axes.plot(*point, marker="o", color="black")
axes.annotate("its own link", point, xytext=(8, 2), textcoords="offset points", fontsize=11)
plt.show()
for name in ("V100", "A100", "H100"):
    print(f"{name}: behind 1 layer of h = 4096, {2 * gpus[name] / layer / 1e9:.0f} GB/s")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-break-even-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* Each falling line is a device: above it, a swap costs no time; below it,
# compute waits for the link. The faster the device, the higher its line. The dot is where your own
# machine's link meets its line: to the right of it, a swap is free here. Behind one single layer of
# width 4096, an A100 would need 72 GB/s, more than PCIe 4 or 5 has in one direction. Behind three
# such layers, 24 GB/s are enough. **That is the answer to "when does it work":** when there is enough
# compute *between* forward and backward of what is swapped. So the first layers are the best ones to
# swap, and the last ones the worst.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-schedule-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.5 A schedule for the link (5 points, 45 minutes)
#
# There is one link, and many stages that want it. Which ones leave, when, and when are they fetched?
# That list is a *schedule*, and you write the function that makes it. First, the rules of the game.
#
# A chain of n stages runs 2n **compute steps**: forward 0, 1, ..., n-1, then backward n-1, ..., 1,
# 0. Steps are numbered in this order, from 0 to 2n-1: backward i is step 2n-1-i. They run one at a
# time, each as soon as it can.
# - Forward i takes `saved_bytes` on the device as it **starts**.
# - Backward i needs them on the device, and frees them as it **ends**.
#
# A schedule is a list of **copies** `(kind, stage, after)`. The link makes them one at a time, in the
# order of the list. Each takes `saved_bytes / link_bytes_per_s`.
# - `("out", i, after)` frees the stage's bytes on the device as it **ends**.
# - `("in", i, after)` takes them again as it **starts**.
# - `after`: the copy may start once compute step number `after` is done; -1 means at once.
#
# A copy waits until its bytes are where it begins and no step is using them. Nothing may exceed the
# budget: a step or copy that does not fit waits. Where a step and a copy could start at the same
# moment, the step goes first. The **makespan** is when the last compute step ends.
#
# `simulate(stages, budget_bytes, link_bytes_per_s, schedule)` plays this game. It returns a run with
# `makespan`, `steps` and `copies`, or raises `peakmem.Infeasible` and says who waits for what. Each
# stage has `forward_time`, `backward_time` and `saved_bytes`. Three stages, and room for two:

# %% nbgrader={"grade": false, "grade_id": "lab06-schedule-rules", "locked": true, "schema_version": 3, "solution": false, "task": false}
three = [Stage(2, 4, 100), Stage(2, 4, 100), Stage(2, 4, 100)]


def lanes(run, factor=1.0):
    """Return what ran when, as plots.gantt takes it."""
    rows = {"compute": run.steps, "link": run.copies}
    return {
        name: [(s.kind, str(s.stage), factor * s.start, factor * s.end) for s in spans]
        for name, spans in rows.items()
    }


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab06-schedule-tried", "locked": true, "schema_version": 3, "solution": false, "task": false}
attempts = {
    "nothing": [],
    "out only": [("out", 0, 0)],
    "out and in": [("out", 0, 0), ("in", 0, 3)],
    "in one step later": [("out", 0, 0), ("in", 0, 4)],
}
for name, attempt in attempts.items():
    try:
        print(f"{name:18} makespan {simulate(three, 200, 100, attempt).makespan:g}")
    except peakmem.Infeasible as error:
        print(f"{name:18} infeasible: {error}")

figure, axes = plt.subplots(figsize=(8, 2.8), layout="constrained")
plots.gantt(axes, lanes(simulate(three, 200, 100, attempts["out and in"])), unit="s")
plt.show()

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-schedule-how", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* Step 2 (forward 2) has no room until stage 0 is out, at 3 s: it begins at
# 4 s, when forward 1 is done, so nothing waits. Stage 0 comes back while backward 1 runs. All copies
# are hidden, and the makespan is that of compute alone, 18. One step later, and backward 0 waits for
# its copy.
#
# Write `schedule(stages, budget_bytes, link_bytes_per_s)`, which returns a list of copies. Raise
# `ValueError` where one stage alone exceeds the budget; otherwise a schedule always exists.
#
# You get 2 points if your schedules finish on every hidden chain, 2 if they also take at most 1.25
# times the least makespan there is, and 1 for at most 1.05 times, on chains where that takes some
# thought. Hidden chains have at most 8 stages.
#
# **A way up, in two steps.** Each is a few lines; `simulate` tells you how far you are.
# 1. *Feasible.* Send the first k stages out, each after its own forward: `("out", i, i)`. Fetch them
#    in the order in which backward needs them, the last one first: `("in", i, n - 1)` lets the link
#    begin as soon as forward is over, and wait for room by itself. Take the smallest k that does not
#    raise `Infeasible`. (Why not swap all? A copy out that backward gets to first never starts, and
#    everything behind it in the list waits for ever.) This begins every fetch as early as there is
#    room, which is most of the way already.
# 2. *Quicker.* Why the *first* k? One large stage in the middle may free as much as three small ones,
#    in fewer copies. With at most 8 stages there are at most 256 sets of stages. A computer can try
#    them all.
#
# *Example:* for the three stages above, a budget of 200 and a link of 100 bytes/s,
# `[("out", 0, 0), ("in", 0, 2)]` is a right answer, with a makespan of 18.
#
# **Predict first.** The same three stages, but a link of 25 bytes/s, so each copy takes 4 s. By how
# many seconds does the makespan grow?

# %%
predicted_growth = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab06-schedule-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def schedule(stages: list, budget_bytes: int, link_bytes_per_s: float) -> list[tuple]:
    """Return copies (kind, stage, after) under which the chain fits, and takes little time."""
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
# Self-check of 6.5, a schedule for the link
def makespan(stages, budget, link):
    """Play the student's schedule; an infeasible one raises, and says why."""
    given = list(stages)
    copies = schedule(given, budget, link)
    assert copies is not None, (
        f"schedule(stages, {budget}, {link}) returned None where a schedule exists. Did nothing "
        "that you tried finish? Print what simulate says of it"
    )
    assert given == stages, "your function changed the list of stages"
    return simulate(stages, budget, link, copies).makespan


assert makespan(three, 300, 100) == 18, "all fits: an empty list is the best schedule"
assert makespan(three, 300, 1) == 18, (
    "all fits, and the link is slow: what goes out without need makes backward wait for it"
)
assert makespan(three, 200, 100) <= 20, "feasible, but slow: fetch a stage before it is needed"
try:
    schedule(three, 99, 100)
except ValueError:
    pass
else:
    raise AssertionError("a stage of 100 bytes never fits into 99: raise ValueError")
assert makespan(three, 100, 100) <= 22 * 1.25, "one stage at a time on the device: 22 is possible"
one_large = [Stage(3, 2, 10), Stage(1, 2, 30), Stage(2, 4, 60), Stage(1, 4, 10), Stage(1, 6, 30)]
found = makespan(one_large, 90, 10)
print(f"five stages, one large: {found:g}. Swapping the first ones takes 34; the least is 29")
print("On such chains 34 earns 4 of the 5 points, as it is within 1.25 times 29; 29 earns all 5.")
assert found <= 1.25 * 29, f"{found:g} is more than 1.25 times the least, 29"
slow = makespan(three, 200, 25)
print(f"with a link of 25 bytes/s: {slow:g}, so {slow - 18:g} s more; ", end="")
print(f"you predicted {predicted_growth}")

# %% nbgrader={"grade": true, "grade_id": "lab06-schedule", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
# Exercise 6.5, 5 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab06-schedule", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-gantt-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Does the paper clock tell the truth?
#
# The simulator believes whatever times it is given. So here is a real chain of six stages, with
# matrix products for compute and `host.put` and `host.get` for copies, on a thread of their own. First
# each is timed alone; then your schedule is made from these times and played twice: on paper, and
# for real. `rehearse` keeps the same rules and the same budget.
#
# **Predict first.** By how many percent does the real makespan differ from the simulated one?

# %%
predicted_percent = None  # your prediction, a number

# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab06-gantt", "locked": true, "schema_version": 3, "solution": false, "task": false}
SIZE = 512 if DEVICE == "cpu" else 8192
factor = torch.randn(SIZE, SIZE, device=DEVICE) / SIZE**0.5
saved_mib = [24, 16, 24, 8, 16, 8]


def compute(products):
    """Keep the device busy."""
    y = factor
    for _ in range(products):
        y = torch.tanh(factor @ y)


def stage_of(mib):
    """Return a stage that saves so many MiB; its backward computes twice as much as its forward."""

    def forward():
        compute(3)
        return torch.ones(mib * MIB // 4, device=DEVICE)

    return Work(forward, lambda saved: compute(6), mib * MIB)


work = [stage_of(mib) for mib in saved_mib]
forward_s = [best_seconds(stage.forward, 3) for stage in tqdm(work, desc="timing stages")]
backward_s = best_seconds(lambda: compute(6), 3)
stages = [Stage(f, backward_s, w.saved_bytes) for f, w in zip(forward_s, work, strict=True)]
budget = 40 * MIB
copies = schedule(stages, budget, own_link)
paper = simulate(stages, budget, own_link, copies)
rehearse(work, budget, copies, HostTier())  # a first run, in which everything is slower
real = min((rehearse(work, budget, copies, HostTier()) for _ in range(3)), key=lambda r: r.makespan)

figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 5.6), sharex=True, layout="constrained")
plots.gantt(top, lanes(paper, 1000), unit="ms")
plots.gantt(bottom, lanes(real, 1000), unit="ms")
top.set_xlabel("")
top.set_ylabel("on paper")
bottom.set_ylabel("for real")
bottom.get_legend().remove()
bottom.set_xlim(0, 1030 * max(paper.makespan, real.makespan))
plt.show()
alone = sum(forward_s) + backward_s * len(stages)
print(f"compute alone {1000 * alone:.0f} ms, on paper {1000 * paper.makespan:.0f} ms, ", end="")
print(
    f"for real {1000 * real.makespan:.0f} ms: {100 * (real.makespan / paper.makespan - 1):+.0f} %"
)
print(f"you predicted {predicted_percent} %")
for run, name in ((paper, "on paper"), (real, "for real")):
    print(f"{name}: at most {run.peak_bytes / MIB:.0f} of {budget / MIB:.0f} MiB on the device")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-gantt-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the pictures show.* Above, your schedule as the simulator plays it; below, with real
# timestamps. The upper lane of each is compute, the lower one the link, and the numbers are stages.
# The order is the same. Real bars vary from run to run, and on a CPU compute and copies share
# processors and memory, so both get longer where they overlap. Both pictures keep the same budget:
# it is bytes that the schedule promises, and time that it hopes for.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-gpu_overlap-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.6 Copies behind compute, on a GPU (2 points, 20 minutes, GPU)
#
# A GPU has engines for copies beside its processors for compute. They work at the same time, under two
# conditions:
# - The host's memory is **pinned**: the operating system may not move it, so the engine can read it
#   without help. `tensor.pin_memory()` returns such a copy.
# - Copy and compute are in different **streams**. A stream is a queue; what is in one queue runs one
#   after another. `torch.cuda.Stream()` makes a new one, and what is called within
#   `with torch.cuda.stream(stream):` is queued there.
#
# Write `overlapped(compute, copies)`. `compute()` queues products of matrices on the current stream.
# `copies` is a list of pairs `(source, target)`: a tensor in pinned memory, and one of the same shape
# on the GPU. Do both, at the same time: call `compute()` once, and copy each source into its target
# with `target.copy_(source, non_blocking=True)` on a stream of your own. Before the copies let your
# stream wait for what is queued already, `stream.wait_stream(torch.cuda.current_stream())`: a target
# may be in use until then. Return nothing. At the end
# let the current stream wait for yours, `torch.cuda.current_stream().wait_stream(stream)`, so that
# whoever reads a target later finds it filled.
#
# *Points:* the whole takes at most 1.15 times the longer of the two, compute alone and copies alone,
# which the grader's probe measures a moment before.
#
# *Example:* copies alone take 10 ms and compute 12 ms. One after the other they take 22 ms;
# 12 x 1.15 = 13.8 ms earn the points.
#
# **Predict first.** How many times faster than from pageable memory is a copy from pinned memory?

# %%
predicted_pinned_ratio = None  # your prediction, a number


# %% nbgrader={"grade": false, "grade_id": "lab06-gpu_overlap-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def overlapped(compute, copies) -> None:
    """Compute, and copy from pinned memory to the GPU at the same time."""
    ### BEGIN SOLUTION
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())  # the targets may be in use until now
    with torch.cuda.stream(stream):
        for source, target in copies:
            target.copy_(source, non_blocking=True)
    compute()
    torch.cuda.current_stream().wait_stream(stream)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab06-gpu_overlap-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 6.6, copies behind compute
if torch.cuda.is_available():
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    sources = [torch.full((16 * MIB,), float(i)).pin_memory() for i in range(1, 5)]
    targets = [torch.zeros_like(source, device="cuda") for source in sources]

    def products(count):
        for _ in range(count):
            a @ a

    def copy_all(sources):
        for source, target in zip(sources, targets, strict=True):
            target.copy_(source, non_blocking=True)

    products(3)
    pinned = best_seconds(lambda: copy_all(sources))
    pageable = best_seconds(lambda: copy_all([source.clone() for source in sources]))
    count = max(1, round(pinned / best_seconds(lambda: products(1))))
    alone = best_seconds(lambda: products(count))
    for target in targets:
        target.zero_()
    pairs = list(zip(sources, targets, strict=True))
    both = best_seconds(lambda: overlapped(lambda: products(count), pairs))
    print(f"pinned copies are {pageable / pinned:.1f} times as fast; ", end="")
    print(f"you predicted {predicted_pinned_ratio}")
    print(
        f"compute {alone * 1000:.1f} ms, copies {pinned * 1000:.1f} ms, both {both * 1000:.1f} ms"
    )
    assert all(bool((t == i).all()) for i, t in enumerate(targets, 1)), "a target was not filled"
    assert both <= 1.15 * max(alone, pinned), "compute and copies do not run at the same time"
else:
    print("Skipped: exercise 6.6 needs a CUDA GPU, and there is none here.")
    print("Its 2 points are left out of your total. You may still write overlapped().")

# %% nbgrader={"grade": true, "grade_id": "lab06-gpu_overlap", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 6.6, 2 points: hidden cases are run here when your instructor grades the lab on a GPU.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab06-gpu_overlap", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-copy-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### What one copy costs, by its size
#
# So far a copy took bytes / bandwidth. Is that true of small ones? On a GPU the next cell copies from
# pinned and from pageable memory, without one to the file and back: from 4 KiB to 16 MiB.
#
# **Predict first.** From 4 KiB to 64 KiB a copy gets 16 times as large. How many times as long does
# it take?

# %%
predicted_times_as_long = None  # your prediction, a number

# %% tags=["demo"] nbgrader={"grade": false, "grade_id": "lab06-copy", "locked": true, "schema_version": 3, "solution": false, "task": false}
sizes = [2**k for k in range(12, 25, 2)]
host = HostTier()


def ways(nbytes):
    """Return the ways to copy so many bytes, each as a function to be timed."""
    source = torch.zeros(nbytes, dtype=torch.uint8)
    if DEVICE == "cuda":
        target, pinned = source.to(DEVICE), source.pin_memory()
        return {
            "from pinned memory": lambda: target.copy_(pinned, non_blocking=True),
            "from pageable memory": lambda: target.copy_(source),
        }
    handle = host.put(source)
    return {
        "to the file": lambda: host.write(handle, source),
        "from the file": lambda: host.get(handle),
    }


seconds = {}
for nbytes in tqdm(sizes, desc="timing copies"):
    for name, way in ways(nbytes).items():
        seconds.setdefault(name, []).append(best_seconds(way, 7))
host.close()

figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
for (name, taken), colour, mark in zip(
    seconds.items(), ("#0072B2", "#D55E00"), ("o", "s"), strict=True
):
    rate = sizes[-1] / taken[-1]
    axes.plot(sizes, [1e3 * t for t in taken], color=colour, marker=mark, label=name)
    axes.plot(
        sizes,
        [1e3 * n / rate for n in sizes],
        color=colour,
        linestyle=":",
        label=f"bytes / ({rate / 1e9:.1f} GB/s)",
    )
    print(
        f"{name}: 4 KiB in {1e6 * taken[0]:.0f} µs, 64 KiB in {1e6 * taken[2]:.0f} µs, "
        f"{taken[2] / taken[0]:.1f} times as long; 16 MiB at {rate / 1e9:.1f} GB/s"
    )
print(f"you predicted {predicted_times_as_long} times")
if DEVICE == "cpu":
    print("With a GPU the two curves are pinned and pageable memory, and pinned is the lower one.")
axes.set(xscale="log", yscale="log", xlabel="size of the copy", ylabel="time (ms)")
axes.set_xticks(sizes, [f"{n // 2**10} KiB" if n < MIB else f"{n // MIB} MiB" for n in sizes])
axes.minorticks_off()
axes.grid(alpha=0.3)
axes.legend()
plt.show()

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-copy-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* Two curves of measured times, each with a dotted line of bytes / bandwidth.
# The line is drawn through the largest copy, whose time is all bytes. On the left the curve leaves
# its line and flattens out, for every copy has a fixed price too: to ask the system, to find the
# place, to start. (Where a curve runs below its line, the bytes were still in a cache.) On a CPU both
# bandwidths tend to be above the link of 6.4: there `put` makes a new place each time, here `write`
# reuses one. So a thousand
# small tensors are slow to swap, even if they are few bytes together. Practice puts them into one
# large buffer first, or leaves them where they are.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 6.7 In your own words (2 points, 10 minutes)
#
# A friend swaps the saved tensors of *every* layer of a small network to the host. Memory is fine, but
# a training step takes three times as long. In three or four sentences: why, how could you have
# predicted it from two figures of the machine, and what would you swap instead?
#
# And in one sentence: why is it the optimizer's state, of all things, that DeepSpeed offloads first?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab06-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# The copies take longer than the compute that they could hide behind: a small network computes few
# operations for each saved byte. The link's bandwidth and the device's operations a second tell:
# the copies take 2 x saved bytes / link, compute takes operations / rate, and what sticks out is
# waited for. Swap only as many stages as the budget asks for, and those whose backward comes latest,
# the first ones; recompute what is cheap to compute, and keep the last stages.
#
# The state is the largest part of what parameters need (8 of 16 bytes), and it is used only once a
# step, so one round trip a step is enough, however many micro-batches there are.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab06-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - The host is large and far: bytes there do not count against the device, but each trip takes the
#   link's time. What is used rarely, or has much compute around it, may go.
# - Moments go first, weights next, activations with care: parameters stay, each storage goes once,
#   and nothing is left when the graph is gone.
# - A swap costs no time from a bandwidth of 2 x flops / intensity on. Below that, compare it with
#   recomputing.
# - A schedule keeps a budget by waiting. It is quick if copies begin as soon as they can, come back
#   in the order of need, and are as few as the budget allows.
# - Pinned memory and a stream of its own are what lets a copy hide on a GPU.
