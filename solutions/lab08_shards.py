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

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab08-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 8: one model on many processes
#
# Training a model with 7.5 billion parameters takes 120 GB before the first activation. In 2019, ZeRO's
# authors had GPUs with 32 GB each. But together, 64 of them have 2 TB. So ZeRO gives each GPU one share of
# the model, and gathers the other shares just before they're needed.
#
# In this lab you write ZeRO's three stages. They run on real processes, called *ranks*, which share no memory and
# communicate through `torch.distributed`.
#
# **You will be able to**
# - say what a rank holds at each stage of ZeRO, and check it with a meter in each rank;
# - sum a tensor over all ranks while each rank sends less than twice the tensor's bytes;
# - keep replicas equal while they train on different data, and shard Adam's moments;
# - (stretch) shard gradients and weights, and measure how much traffic this costs.
#
# | exercise | part | minutes | points |
# |---|---|---|---|
# | 8.1 What a rank holds | core | 7 | 2 |
# | 8.2 All-reduce around a ring | core | 20 | 5 |
# | 8.3 Replicas | core | 15 | 4 |
# | 8.4 Sharded Adam | core | 20 | 5 |
# | 8.5 Find the leak | core | 8 | 2 |
# | 8.6 In your own words | core | 5 | 2 |
# | 8.7 Sharded gradients | stretch | 15 | 3 |
# | 8.8 Sharded layers | stretch | 30 | 6 |
# | **core** | | **75** | **20** |
# | **stretch** | | **45** | **9** |

# %% nbgrader={"grade": false, "grade_id": "lab08-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import dis
import itertools
import math
from contextlib import contextmanager
from functools import cache

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call

import peakmem
from peakmem.labs import Case, close, predicted, self_check, show_figure, whole
from peakmem.labs.lab08 import OwnersAdam, held_mib, rank_memory_mib, sent_times, stages_sliders
from peakmem.probes import lab08
from peakmem.ranks import launch
from peakmem.show.plots.lab08 import draw_rank_memory, draw_stages, draw_traffic

peakmem.lab("lab08_shards")
MIB = 2**20

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab08-ranks-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ### Ranks
#
# `launch(function, world_size, *args)` starts `world_size` processes, calls the function in each, and returns their results as a list. Inside a rank,
# `dist.get_rank()` is its number, counted from 0, and `dist.get_world_size()` is the number of ranks. If a rank raises an
# error, or all ranks wait for each other, `launch` stops them and reports which rank failed, or where each one waits.


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab08-ranks", "locked": true, "schema_version": 3, "solution": false, "task": false}
def around():
    """Each rank sends its number to the next rank, and returns what it receives."""
    rank, world = dist.get_rank(), dist.get_world_size()
    sending = dist.isend(torch.tensor([rank]), (rank + 1) % world)
    came = torch.empty(1, dtype=torch.int64)
    dist.recv(came, (rank - 1) % world)
    sending.wait()
    return f"rank {rank} of {world} got {came.item()}"


for said in launch(around, 4):
    print(said)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab08-ranks-seen", "locked": true, "schema_version": 3, "solution": false, "task": false}
# `isend` returns at once, and `wait()` waits until it has finished. `send` and `recv` block until the other
# side takes part: if every rank called `send` first, they could all wait forever. That's why this ring starts
# with `isend`.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab08-model_state_bytes-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 8.1 What a rank holds (core, 2 points, 7 minutes)
#
# The *model states* are weights, gradients and optimizer state. In plain data parallelism (stage 0), every rank holds a full copy of
# all three. Each stage of ZeRO (Rajbhandari and others, 2019) *shards* one more of them: each rank keeps only
# one share.
#
# | stage | sharded |
# |---|---|
# | 1 | optimizer |
# | 2 | optimizer, gradients |
# | 3 | optimizer, gradients, weights |
#
# A share can't have half an element. So if $P$ elements are sharded over $N$ ranks, each rank holds
# $\lceil P/N \rceil$.
#
# Write `model_state_bytes(n_params, world, stage, recipe)`. Return a dict with the bytes of `weights`, `gradients` and `optimizer` on one rank, as
# whole numbers. With the recipe `"mixed"`, they take 2, 2 and 12 bytes per parameter: master weights and both
# moments, 4 bytes each, count as optimizer. With `"fp32"`, they take 4, 4 and 8.
#
# *Points:* all or nothing. *Example:* with 10 parameters on 4 ranks at stage 1 in mixed precision, a share is
# 3 elements, so the bytes are 20, 20 and 36.
#
# **Predict first.** How many GB does each of 64 ranks hold at stage 3, for 7.5 billion parameters in mixed
# precision?

# %%
predicted_stage3_gb = None  # your prediction, in GB


# %% nbgrader={"grade": false, "grade_id": "lab08-model_state_bytes-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def model_state_bytes(n_params, world, stage, recipe) -> dict:
    """Return what one rank holds, in bytes."""
    ### BEGIN SOLUTION
    sizes = {"mixed": (2, 2, 12), "fp32": (4, 4, 8)}[recipe]
    share = -(-n_params // world)
    parts = zip(("weights", "gradients", "optimizer"), sizes, (3, 2, 1), strict=True)
    return {name: size * (share if stage >= first else n_params) for name, size, first in parts}
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab08-model_state_bytes-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 8.1, what a rank holds
def held(weights, gradients, optimizer):
    return {"weights": weights, "gradients": gradients, "optimizer": optimizer}


self_check(
    model_state_bytes,
    [
        Case((10, 4, 1, "mixed"), held(20, 20, 36), "The example: round the share up."),
        Case((10, 4, 0, "mixed"), held(20, 20, 120), "Stage 0 shards nothing."),
        Case((10, 4, 1, "fp32"), held(40, 40, 24), "Use the recipe given in each call."),
        Case((10, 5, 1, "mixed"), held(20, 20, 24), "Use the number of ranks given in each call."),
        Case((10, 4, 2, "mixed"), held(20, 6, 36), "Stage 2 shards gradients, too."),
        Case((10, 4, 3, "mixed"), held(6, 6, 36), "Stage 3 shards all three."),
        Case(
            (5_000_000_001, 2, 1, "fp32"),
            held(20_000_000_004, 20_000_000_004, 20_000_000_008),
            "Use Python's integers: int32 and float32 can't hold billions exactly.",
        ),
        Case((7, 1, 3, "mixed"), held(14, 14, 84), "One rank alone holds everything."),
        Case((3, 8, 2, "fp32"), held(12, 4, 8), "fp32 has 4, 4 and 8 bytes; a share is 1 element."),
        Case(
            (8, 4, 3, "mixed"),
            held(4, 4, 24),
            "Each share has two elements. Return whole numbers: 4, not 4.0.",
        ),
    ],
    equal=whole(),
)
if predicted(predicted_stage3_gb, question="How many GB does a rank hold at stage 3?"):
    for stage in range(4):
        total = sum(model_state_bytes(7_500_000_000, 64, stage, "mixed").values())
        print(f"stage {stage}: {total / 1e9:6.2f} GB")
    print(f"You predicted {predicted_stage3_gb} GB for stage 3.")

# %% nbgrader={"grade": true, "grade_id": "lab08-model_state_bytes", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 8.1, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab08-model_state_bytes", globals())
### END HIDDEN TESTS

# %% tags=["demo", "raises-exception"] jupyter={"source_hidden": true} nbgrader={"grade": false, "grade_id": "lab08-sliders", "locked": true, "schema_version": 3, "solution": false, "task": false}
stages_sliders(model_state_bytes)

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab08-ring_all_reduce-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# The sliders call your function. Beyond how many ranks does stage 1 save hardly any more, and why?
#
# ## 8.2 All-reduce around a ring (core, 5 points, 20 minutes)
#
# Ranks that train on different data need the *sum* of all their gradients. If each rank sent its tensor to
# all others, it would send $N - 1$ times the tensor's bytes, which grows with the number of ranks.
#
# A ring avoids that. Each rank cuts its tensor into $N$ chunks, sends only to the next rank, and receives
# only from the previous one.
# 1. *Reduce-scatter*, $N - 1$ steps: each rank sends a chunk, receives another, and adds it to its own. In step $s = 0, 1, \dots$ rank $r$ sends chunk
#    $(r - s) \bmod N$. A chunk collects one more rank's values in each step, so in the end chunk $(r + 1) \bmod N$ of rank $r$ is the full sum.
# 2. *All-gather*, $N - 1$ more steps: the finished chunks travel around, and replace the unfinished ones.
#
# With three ranks, rank 0 does this:
#
# | step | sends chunk | receives chunk | then |
# |---|---|---|---|
# | 0 | 0 | 2 | adds it |
# | 1 | 2 | 1 | adds it: chunk 1 is finished |
# | 2 | 1 | 0 | replaces its own |
# | 3 | 0 | 2 | replaces its own |
#
# So each rank sends $2 (N - 1)$ chunks of an $N$-th of its tensor: less than twice the tensor, for any number
# of ranks.
#
# Write `ring_all_reduce(x)`. In place, the 1-D tensor `x` becomes the sum over all ranks. Return nothing.
# - Use only `dist.send`, `recv`, `isend`, `irecv` and `batch_isend_irecv`.
# - `x` may have any length: 0, less than $N$, not divisible by $N$. `x.tensor_split(N)` makes a tuple of $N$
#   chunks, which are views: `c = chunks[0]; c += y` and `c.copy_(y)` write into `x`.
# - *Points:* sums 2. Bytes 2: each rank sends at most $2 (N-1)/N$ of the bytes of `x`, plus 1 KiB per step.
#   Memory 1: on top of `x`, at most $2/N$ of its bytes. Bytes and memory need correct sums.
#
# *Example:* three ranks with `[1., 1.]`, `[2., 5.]` and `[3., 0.]` all end with `[6., 6.]`.
#
# **Predict first.** How many MiB does each of four ranks with 24 MiB send?

# %%
predicted_sent_mib = None  # your prediction, in MiB


# %% nbgrader={"grade": false, "grade_id": "lab08-ring_all_reduce-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ring_all_reduce(x: torch.Tensor) -> None:
    """Make x the sum over all ranks, chunk by chunk around a ring."""
    ### BEGIN SOLUTION
    rank, world = dist.get_rank(), dist.get_world_size()
    chunks = x.tensor_split(world)
    came = torch.empty_like(chunks[0])
    for step in range(2 * (world - 1)):
        out, into = chunks[(rank - step) % world], chunks[(rank - step - 1) % world]
        sending = dist.isend(out, (rank + 1) % world)
        dist.recv(came[: len(into)], (rank - 1) % world)
        sending.wait()
        if step < world - 1:
            into += came[: len(into)]
        else:
            into.copy_(came[: len(into)])
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab08-ring_all_reduce-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 8.2, all-reduce around a ring
LENGTHS = [12, 13, 3, 1, 0, 14, 14]


@cache
def after_ring(world):
    return lab08.run_all_reduce(ring_all_reduce, world, LENGTHS, seed=0)["ranks"]


def wrong_chunks(world, length):
    """Return the chunks whose values aren't the sums."""
    number = len(LENGTHS) - 1 - LENGTHS[::-1].index(length)  # the last of this length
    given = [lab08.ring.given(LENGTHS, rank, 0)[number] for rank in range(world)]
    right = sum(given).tensor_split(world)
    found = [torch.tensor(x[number]).tensor_split(world) for x in after_ring(world)]
    return [
        f"chunk {number} of rank {rank}"
        for rank, chunks in enumerate(found)
        for number, chunk in enumerate(chunks)
        if not torch.equal(chunk, right[number])
    ]


@cache
def large_ring():
    return lab08.run_all_reduce(ring_all_reduce, 4, [2**20], seed=0, large=True)


def ring_large():
    """Tell whether each rank's large tensor is the sum."""
    right = sum(lab08.values(2**20, rank, 0) for rank in range(4))
    return all(found == [lab08.ring.checksums(right)] for found in large_ring()["ranks"])


def ring_extra():
    extra = (large_ring()["rise_bytes"] - 4 * MIB) / (4 * MIB)
    return "at most half of x" if extra <= 0.5 else f"{extra:.1f} times x"


def ring_sent():
    sent = [each for each in large_ring()["sent_bytes"] if each is not None]
    times = max(sent, default=0) / (4 * MIB)
    return "at most 1.5 times x" if times <= 1.502 else f"{times:.1f} times x"


def to_everyone(x):
    """Each rank sends all of x to every other rank."""
    rank, world = dist.get_rank(), dist.get_world_size()
    mine, came = x.clone(), torch.empty_like(x)
    for step in range(1, world):
        sending = dist.isend(mine, (rank + step) % world)
        dist.recv(came, (rank - step) % world)
        sending.wait()
        x += came


def collectives_in(function):
    """Return the functions of `dist` in the code that call all ranks at once."""
    parts = ("all_reduce", "all_gather", "all_to_all", "reduce_scatter", "broadcast")
    code = getattr(function, "__code__", None)  # a partial or a decorated function may not have one
    steps = [step.argval for step in dis.get_instructions(code)] if code else []
    return [b for a, b in itertools.pairwise(steps) if a == "dist" and str(b).startswith(parts)]


def ring_case(world, length, hint):
    return Case((world, length), [], hint, label=f"no wrong chunks, {world} ranks, {length} values")


self_check(
    wrong_chunks,
    [
        ring_case(
            2,
            12,
            "Step 0 adds the received chunk, step 1 overwrites with it. Chunk sizes may differ by one.",
        ),
        ring_case(3, 12, "Compare the chunk of each step with the table."),
        ring_case(
            3, 13, "Chunk sizes differ by one: cut the buffer to the size of the received chunk."
        ),
        ring_case(4, 3, "Some chunks are empty. Either send them too, or skip them on both sides."),
        ring_case(3, 3, "Each chunk has a single value."),
        ring_case(4, 1, "All but one of the chunks are empty."),
        ring_case(3, 0, "All chunks are empty."),
        ring_case(
            2,
            14,
            "This length came before with other values: don't keep anything from an earlier call.",
        ),
        Case(
            (),
            True,
            "Treat long tensors like short ones.",
            function=ring_large,
            label="a long tensor",
        ),
        Case(
            (),
            "at most 1.5 times x",
            "Send one chunk per step.",
            function=ring_sent,
            label="sent, 4 ranks",
        ),
        Case(
            (),
            "at most half of x",
            "A buffer of one chunk is enough.",
            function=ring_extra,
            label="memory, 4 ranks",
        ),
        Case(
            (ring_all_reduce,),
            [],
            "The exercise allows only send, recv, isend, irecv and batch_isend_irecv.",
            function=collectives_in,
            label="no other calls",
        ),
    ],
)
if predicted(predicted_sent_mib, question="How many MiB does each rank send?"):
    print(f"{2 * 3 / 4 * 24:.0f} MiB; you predicted {predicted_sent_mib}.")
    worlds = range(2, 9)
    show_figure(
        draw_traffic(
            worlds,
            {"ring": [2 * (n - 1) / n for n in worlds], "to everyone": [n - 1 for n in worlds]},
            {
                "ring": sent_times(ring_all_reduce, [2, 3, 4]),
                "to everyone": sent_times(to_everyone, [2, 3, 4]),
            },
        ),
        "What a rank sends, in multiples of x, over 2 to 8 ranks. Sending to everyone is a line from 1 to "
        "7. The ring rises from 1 and stays below 2. Metered marks at 2, 3 and 4 ranks are on both "
        "curves.",
    )

# %% nbgrader={"grade": true, "grade_id": "lab08-ring_all_reduce", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
# Exercise 8.2, 5 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab08-ring_all_reduce", globals())
### END HIDDEN TESTS


# %% [markdown] nbgrader={"grade": false, "grade_id": "lab08-data_parallel-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* Each rank of a ring sends less than twice `x`, for any number of ranks. So you can
# afford to sum every gradient in every step.
#
# ## 8.3 Replicas (core, 4 points, 15 minutes)
#
# In *data parallelism*, each rank has a full copy of the model and its own samples. If the copies start equal and always update with the same
# gradient, they stay equal. And if each rank's loss is the mean over equally many samples, the mean of the ranks' gradients
# is the gradient of the mean over all samples. So averaging is all you have to add to ordinary training.
#
# Write `class DataParallel(module)`, which is called like the module.
# - In `__init__`, copy all parameters and buffers from rank 0: `dist.broadcast(tensor.data, 0)`.
# - When `backward()` returns, each `.grad` is the mean over ranks. All ranks use the same parameters; if no
#   rank used a parameter, its `.grad` stays `None`. Gradients add up over passes, as always.
# - Passes inside `with model.no_sync():` add up gradients on each rank and send nothing. The next pass
#   outside the block averages everything that has added up.
#
# *Hint:* `p.register_post_accumulate_grad_hook(f)` calls `f(p)` during backward, as soon as `p.grad` is
# ready. Registering it fails for parameters that don't require a gradient. You may use `dist.all_reduce`
# here.
#
# *Points:* start 1, gradients 2, `no_sync` 1 (values and bytes). *Example:* if two ranks have gradients 1 and 3, both end with 2.
#
# **Predict first.** Before each update you run four passes, three of them in `no_sync()`. Compared with
# averaging after every pass, what percentage of the bytes is sent?

# %%
predicted_percent_sent = None  # your prediction, in percent


# %% nbgrader={"grade": false, "grade_id": "lab08-data_parallel-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
class DataParallel(nn.Module):
    """A replica of a model that starts equal to rank 0's and averages its gradients over ranks."""

    def __init__(self, module: nn.Module):
        super().__init__()
        ### BEGIN SOLUTION
        self.module = module
        self.syncs = True
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if self.syncs:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
        ### END SOLUTION

    def forward(self, *inputs):
        ### BEGIN SOLUTION
        return self.module(*inputs)
        ### END SOLUTION

    @contextmanager
    def no_sync(self):
        ### BEGIN SOLUTION
        self.syncs = False
        yield
        self.syncs = True
        ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab08-data_parallel-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 8.3, replicas
@cache
def replicas(passes, quiet):
    return lab08.run_replicas(DataParallel, 3, 4, passes, 0, quiet, measure=False)["ranks"]


def start_differs():
    """Return the names of tensors that differ from rank 0's own."""
    right = lab08.replicas.Branches(4, 0).state_dict()
    ranks = [rank["start"] for rank in replicas(1, 0)]
    return sorted({n for rank in ranks for n, x in rank.items() if (x != right[n].numpy()).any()})


def scale_gradients(passes, quiet):
    """Return each rank's gradient of one parameter."""
    return [round(rank["gradients"]["scale"].item(), 9) for rank in replicas(passes, quiet)]


def unused_gradients():
    found = [rank["gradients"]["unused.bias"] for rank in replicas(1, 0)]
    return all(gradient is None for gradient in found)


def gradients_beside():
    """Return each rank's gradient of another replica, after a pass in no_sync() of the first."""
    return [rank["beside"] for rank in replicas(4, 2)]


def by_one_process(passes):
    """Return the gradient of the same parameter with the samples of all ranks."""
    model = lab08.replicas.Branches(4, 0)
    for number in range(passes):
        x = torch.cat([lab08.replicas.batch(4, number, rank, 0) for rank in range(3)])
        lab08.replicas.loss(model(x)).backward()
    return [round(model.scale.grad.item(), 9)] * 3


@cache
def metered_replicas(quiet):
    return lab08.run_replicas(DataParallel, 2, 128, 4, 0, quiet, brief=True)


def kib_sent(quiet, figure="sent_bytes"):
    sent = metered_replicas(quiet)[figure]
    return max(0 if each is None else each for each in sent) / 2**10


def quiet_sends():
    sent = kib_sent(3, "quiet_sent_bytes")
    return "nothing" if sent <= 16 else f"{sent:.0f} KiB"


self_check(
    scale_gradients,
    [
        Case(
            (),
            [],
            "Broadcast buffers and frozen parameters, too.",
            function=start_differs,
            label="tensors that differ at the start",
        ),
        Case(
            (1, 0),
            by_one_process(1),
            "Sum over ranks, then divide. The model is in float64, and so are its gradients.",
            label="one pass, each rank's gradient",
        ),
        Case((2, 0), by_one_process(2), "The second pass adds to the first.", label="two passes"),
        Case(
            (4, 2),
            by_one_process(4),
            "Average .grad: it holds everything added up so far. Then start over.",
            label="four passes, the first two in no_sync()",
        ),
        Case(
            (),
            True,
            "Its gradient is None on all ranks: don't send it, and don't fill it.",
            function=unused_gradients,
            label="unused parameter left alone",
        ),
        Case(
            (),
            [1.0, 1.0, 1.0],
            "Keep the switch of no_sync() in self: another replica has its own.",
            function=gradients_beside,
            label="another replica in no_sync() of the first",
        ),
        Case(
            (),
            "nothing",
            "Don't send anything during a no_sync() block or when it ends.",
            function=quiet_sends,
            label="sent in no_sync()",
        ),
    ],
    equal=close(1e-8),
)
if predicted(predicted_percent_sent, question="What percentage of the bytes is sent?"):
    print(f"25%; you predicted {predicted_percent_sent}%.")
    print(f"Metered, including the start: {kib_sent(3):.0f} of {kib_sent(0):.0f} KiB.")

# %% nbgrader={"grade": true, "grade_id": "lab08-data_parallel", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 8.3, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab08-data_parallel", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab08-sharded_adam-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# Accumulation and replicas work together: run lab 5's micro-batches as passes in `no_sync()`.
#
# ## 8.4 Sharded Adam (core, 5 points, 20 minutes)
#
# After 8.3, all ranks have the same gradients, and each computes the same update: $N$ times the work, and $N$
# copies of both moments. At stage 1, each rank keeps moments only for its share of each tensor. It updates
# that share and receives the other shares from the other ranks.
#
# Write `class ShardedAdam(params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8)` with `step()` and `zero_grad()`. For a tensor's step number $t$,
#
# $$m \leftarrow \beta_1 m + (1-\beta_1)\, g, \quad v \leftarrow \beta_2 v + (1-\beta_2)\, g^2, \quad
# w \leftarrow w - \text{lr}\, \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}$$
#
# - Gradients are the same on all ranks, and `step()` doesn't change them. If a tensor's grad is `None` (on all ranks), skip it: neither the tensor nor its $t$ changes.
# - Between steps, a rank keeps at most $8P/N$ bytes for $P$ float32 parameters, plus 1 KiB per tensor. One tensor may be larger than all others together, so shard each tensor, not the list.
# - Parameters change in place. Afterwards, they have the same bits on all ranks.
#
# *Hint:* `dist.all_gather(list_of_tensors, mine)` fills the list with every rank's `mine`. All must have the same size, so pad each tensor to $N \lceil n/N \rceil$ values. The list may be the chunks of one tensor.
#
# *Points:* equals Adam 2, state 2, ranks equal 1. *Example:* of 10 values on 4 ranks, rank 0 updates values 0
# to 2, rank 3 only value 9, and each keeps $2 \cdot 3$ moments.
#
# **Predict first.** The model below has 2 MiB of float32 weights. With Adam on 2 ranks, how many MiB of model states does each rank hold at stage 1?

# %%
predicted_stage1_mib = None  # your prediction, in MiB


# %% nbgrader={"grade": false, "grade_id": "lab08-sharded_adam-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
class ShardedAdam:
    """Adam with its moments sharded over the ranks."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        ### BEGIN SOLUTION
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.steps = [0] * len(self.params)
        self.moments = [torch.zeros(2, self.share(p)) for p in self.params]

    def share(self, tensor):
        return math.ceil(tensor.numel() / self.world)

    def mine(self, tensor):
        n = self.share(tensor)
        part = tensor.flatten()[self.rank * n : (self.rank + 1) * n]
        return torch.cat([part, part.new_zeros(n - len(part))])
        ### END SOLUTION

    @torch.no_grad()
    def step(self):
        ### BEGIN SOLUTION
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.steps[i] += 1
            t, (m, v), g = self.steps[i], self.moments[i], self.mine(p.grad)
            m.mul_(b1).add_(g, alpha=1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            root = (v / (1 - b2**t)).sqrt() + self.eps
            new = self.mine(p) - self.lr * (m / (1 - b1**t)) / root
            gathered = torch.empty(self.world * len(new))
            dist.all_gather(list(gathered.chunk(self.world)), new)
            p.copy_(gathered[: p.numel()].view_as(p))
        ### END SOLUTION

    def zero_grad(self):
        ### BEGIN SOLUTION
        for p in self.params:
            p.grad = None
        ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab08-sharded_adam-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 8.4, sharded Adam
def in_mib(stage):
    found = model_state_bytes(8 * 256 * 256, 2, stage, "fp32")
    return {part: held / MIB for part, held in found.items()}


def stage0(layers):
    model = nn.Sequential(*layers)
    return DataParallel(model), torch.optim.Adam(model.parameters())


def stage1(layers):
    model = nn.Sequential(*layers)
    return DataParallel(model), ShardedAdam(model.parameters())


SHAPES = [[], [5], [3, 3], [17, 6], [5]]
OPTIONS = {"lr": 0.1, "betas": (0.8, 0.9), "eps": 0.01}
MISSING = [[1], [2], []]  # tensors without a gradient, for each of three steps
RUNS = {2: (OPTIONS, 1.0), 3: ({}, 1e-8)}  # 3 ranks: the defaults, and values as small as eps


@cache
def stepped(world):
    options, gain = RUNS[world]
    return lab08.run_adam(
        ShardedAdam, world, SHAPES, MISSING, options, seed=0, gain=gain, measure=False
    )


def off_by(number, world):
    """Return the largest difference from torch's Adam on any rank, in units of lr."""
    options, gain = RUNS[world]
    _, right = lab08.adam.updated(torch.optim.Adam, SHAPES, MISSING, options, 0, gain)
    found = [torch.tensor(rank["params"][number]) for rank in stepped(world)["ranks"]]
    most = max((x - right[number]).abs().max().item() for x in found)
    return round(most / options.get("lr", 1e-3), 4)


def bits_differ(world):
    first, *others = [[x.tobytes() for x in rank["params"]] for rank in stepped(world)["ranks"]]
    return [number for number, rank in enumerate(others, 1) if rank != first]


def gradients_changed(world):
    return sorted({n for rank in stepped(world)["ranks"] for n in rank["changed"]})


def zero_grad_leaves(world):
    return [number for number, rank in enumerate(stepped(world)["ranks"]) if rank["left"]]


def records(world):
    return all(rank["records"] for rank in stepped(world)["ranks"])


def kept(world):
    shapes, steps = [[512, 512], [513]], [[], []]
    found = lab08.run_adam(ShardedAdam, world, shapes, steps, {}, 0, large=True)
    _, right = lab08.adam.updated(torch.optim.Adam, shapes, steps, {}, 0, 1.0)
    sums = torch.tensor([p.sum().item() for p in right])
    if any((torch.tensor(rank["params"]) - sums).abs().max() > 0.1 for rank in found["ranks"]):
        return "other values after two steps"
    most = 8 * (512 * 512 + 513) // world + 2 * 1024 + 2**16
    held = max(found["held_bytes"])
    return "its share" if held <= most else f"{held >> 10} KiB, of {most >> 10} allowed"


self_check(
    off_by,
    [
        Case(
            (3, 2),
            0.0,
            "Each rank updates its share, padded if it is short; then gather.",
            label="the largest tensor, 2 ranks",
        ),
        Case(
            (3, 3),
            0.0,
            "Round a share up, and pad it. This run uses the defaults of lr, betas and eps.",
            label="the largest tensor, 3 ranks",
        ),
        Case(
            (0, 3), 0.0, "With one value, two ranks have only padding.", label="one value, 3 ranks"
        ),
        Case(
            (1, 2),
            0.0,
            "The tensor's first gradient comes in step 2, where its t is 1.",
            label="a late gradient",
        ),
        Case((4, 2), 0.0, "Tensors of the same shape have separate moments.", label="equal shapes"),
        Case(
            (2, 2),
            0.0,
            "Without a gradient, nothing changes: neither tensor, moments nor t.",
            label="a missing gradient",
        ),
        Case(
            (3,),
            [],
            "All ranks must take the values that a share's owner computed.",
            function=bits_differ,
            label="no bits that differ between ranks",
        ),
        Case(
            (2,),
            [],
            "Never write into p.grad, not even through a view.",
            function=gradients_changed,
            label="no gradients changed",
        ),
        Case(
            (2,),
            [],
            "Set each p.grad to None.",
            function=zero_grad_leaves,
            label="no gradients after zero_grad()",
        ),
        Case(
            (2,),
            True,
            "Use `with torch.no_grad():`, which ends with its block.",
            function=records,
            label="gradients are still recorded",
        ),
        Case(
            (2,),
            "its share",
            "Keep two moments, only for your share.",
            function=kept,
            label="kept, 2 ranks",
        ),
    ],
)


if predicted(predicted_stage1_mib, question="How many MiB does each rank hold at stage 1?"):
    metered = {0: held_mib(stage0, 2), 1: held_mib(stage1, 2)}
    print(f"stage 1: {metered[1]:.2f} MiB metered; you predicted {predicted_stage1_mib}.")
    show_figure(
        draw_stages({stage: in_mib(stage) for stage in range(4)}, "MiB", metered=metered),
        "Bars of what a rank holds at stages 0 to 3 with 2 ranks, in MiB: 8, 6, 5 and 4. Metered "
        "marks at stages 0 and 1 are as high as the bars.",
    )

# %% nbgrader={"grade": true, "grade_id": "lab08-sharded_adam", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
# Exercise 8.4, 5 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab08-sharded_adam", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab08-find_the_leak-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the picture shows.* The metered ranks hold what 8.1 predicts. With 2 ranks, no stage can save more
# than half; with 64, stage 3 leaves only a 64th.
#
# ## 8.5 Find the leak (core, 2 points, 8 minutes)
#
# At stage 3 the weights are sharded too. The forward pass below gathers each layer's weights from the ranks'
# shards, and records their diagonals. Its results are correct. But at the peak, each rank holds the weights
# of all layers, as at stage 0.
#
# Copy it as `replicated_by_mistake(x, shards)` and fix it. `shards` has one rank's shares of the layers'
# weights, flat and without padding; don't change them. With 8 layers of 2.25 MiB on 2 ranks, a rank's peak
# must not exceed 15.75 MiB: its shards (9 MiB) plus three full layers. *Points:* same results 1; peak 1,
# which requires correct results.
#
# **Predict first.** How many MiB does a rank hold at the peak of the code below?

# %%
predicted_leak_mib = None  # your prediction, in MiB


# %% tags=["demo", "raises-exception"] nbgrader={"grade": false, "grade_id": "lab08-leak", "locked": true, "schema_version": 3, "solution": false, "task": false}
def wasteful_layers(x, shards):
    """Return x after all layers, and each layer's diagonal, from this rank's shards."""
    world = dist.get_world_size()
    layers = []
    for shard in shards:
        flat = torch.empty(world * len(shard))
        dist.all_gather(list(flat.chunk(world)), shard)
        layers.append(flat.view(x.shape[1], x.shape[1]))
    diagonals = [w.diagonal() for w in layers]
    for w in layers:
        x = torch.relu(x @ w)
    return x, torch.stack(diagonals)


def leak_peak(function):
    """Return a rank's peak in MiB, including its shards."""
    return lab08.run_layers(function, 2, 8, 768, 0)["rise_bytes"] / MIB


# %% nbgrader={"grade": false, "grade_id": "lab08-find_the_leak-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def replicated_by_mistake(x, shards):
    """Return what wasteful_layers returns, with no layer's weights outliving their use."""
    ### BEGIN SOLUTION
    world = dist.get_world_size()
    diagonals = []
    for shard in shards:
        flat = torch.empty(world * len(shard))
        dist.all_gather(list(flat.chunk(world)), shard)
        w = flat.view(x.shape[1], x.shape[1])
        x = torch.relu(x @ w)
        diagonals.append(w.diagonal().clone())
    return x, torch.stack(diagonals)
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab08-find_the_leak-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 8.5, find the leak
@cache
def passed(function):
    return lab08.run_layers(function, 3, 3, 12, 0, measure=False)["results"]


def result(function, name, rank):
    return passed(function)[rank][name].astype(float).round(5).tolist()


def leak_bound(function):
    found = leak_peak(function)
    # The rows of x and the diagonals take 0.1 MiB more.
    return "at most 15.75 MiB" if found <= 15.85 else f"{found:.1f} MiB"


self_check(
    result,
    [
        *(
            Case(
                (replicated_by_mistake, name, 1),
                result(wasteful_layers, name, 1),
                "The results must be the same as those of the code above.",
                label=name,
            )
            for name in ("output", "diagonals")
        ),
        Case(
            (replicated_by_mistake,),
            "at most 15.75 MiB",
            "What still holds a layer: a list, or a view of it?",
            function=leak_bound,
            label="peak",
        ),
    ],
    equal=close(1e-4),
)
if predicted(predicted_leak_mib, question="How many MiB does a rank hold at the peak?"):
    print(f"{leak_peak(wasteful_layers):.1f} MiB; you predicted {predicted_leak_mib}.")
    print(f"Yours: {leak_peak(replicated_by_mistake):.1f} MiB.")

# %% nbgrader={"grade": true, "grade_id": "lab08-find_the_leak", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
# Exercise 8.5, 2 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab08-find_the_leak", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab08-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 8.6 In your own words (core, 2 points, 5 minutes)
#
# A friend trains on 8 GPUs with data parallelism and runs out of memory. "I'll add 8 more GPUs," she says. In
# three or four sentences: will that help with her model states? What would help, and what does it cost?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab08-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# No: in data parallelism each rank holds all weights, gradients and optimizer state, however many ranks
# there are. More ranks only shrink each one's part of the batch. ZeRO divides all three: stage 1 the optimizer,
# which is the largest part, stage 2 the gradients, stage 3 the weights, and then more GPUs do help, since a
# share is one N-th. Stages 1 and 2 send about as many bytes as before; stage 3 gathers the weights in
# forward and again in backward: 50% more.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab08-core-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# **The core ends here.** You should now be able to say:
# - Replicas hold everything $N$ times. ZeRO's stages shard the optimizer state, the gradients, the weights.
# - In a ring, ranks sum a tensor while each sends less than twice its bytes.
# - The mean of the ranks' gradients is the gradient of all their samples, and `no_sync` saves traffic.
# - Sharding saves memory only if nothing keeps the gathered tensors alive.

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab08-shard_gradients-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 8.7 Sharded gradients (stretch, 3 points, 15 minutes)
#
# At stage 2, each parameter has one *owner*. During backward, as soon as a gradient is ready, all ranks reduce it to its owner, and all others free it. So
# no rank ever holds all gradients at once.
#
# Write `shard_gradients(module)`. Return something that keeps your hooks alive, such as a list. From then on,
# when `backward()` returns, each gradient is on only one rank, as the mean over ranks; on all other ranks,
# `.grad` is `None`.
# - You choose the owners. All ranks must choose the same owners without communicating, and own about the same
#   number of bytes. Layers differ in size.
# - All gradients are `None` when backward begins. At any time, a rank holds at most $P/N$ bytes of gradients plus the two largest, for $P$ bytes of parameters.
#
# *Hint:* use 8.3's hook. `dist.reduce(tensor, owner)` leaves the sum on the owner, and nothing useful
# elsewhere. *Points:* gradients 2; memory 1, which requires correct gradients.
#
# *Example:* with two equal layers on two ranks, rank 0 keeps one layer's gradients and rank 1 the other's.
#
# **Predict first.** With eight layers of 4 MiB on four ranks, how many MiB of gradients does each rank hold
# after backward?

# %%
predicted_gradient_mib = None  # your prediction, in MiB


# %% nbgrader={"grade": false, "grade_id": "lab08-shard_gradients-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
def shard_gradients(module: nn.Module):
    """Reduce each gradient to its owner during backward, and free it elsewhere."""
    ### BEGIN SOLUTION
    loads, hooks = [0] * dist.get_world_size(), []
    for p in sorted(module.parameters(), key=torch.numel, reverse=True):
        owner = loads.index(min(loads))
        loads[owner] += p.numel()
        hooks.append(p.register_post_accumulate_grad_hook(keep_at(owner)))
    return hooks


def keep_at(owner):
    def reduce(p):
        p.grad /= dist.get_world_size()
        dist.reduce(p.grad, owner)
        if dist.get_rank() != owner:
            p.grad = None

    return reduce
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab08-shard_gradients-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 8.7, sharded gradients
@cache
def descended(world):
    sizes = {"widths": [4, 5, 3], "steps": 2, "seed": 0, "nested": True}
    return lab08.run_gradients(shard_gradients, world, **sizes, measure=False)["ranks"]


def keepers(world):
    """Return how many ranks keep each of the five gradients."""
    return [sum(n in rank["has"][1] for rank in descended(world)) for n in range(5)]


def updates_off_by(world):
    """Return by how much parameters differ from one process's, after two steps."""
    model = lab08.gradients.chain([4, 5, 3], 0, nested=True)
    for step in range(2):
        x = torch.cat([lab08.gradients.samples(4, step, rank, 0) for rank in range(world)])
        gradients = torch.autograd.grad(model(x).square().sum(1).mean(), list(model.parameters()))
        with torch.no_grad():
            for p, g in zip(model.parameters(), gradients, strict=True):
                p -= lab08.gradients.RATE * g
    found = [rank["params"] for rank in descended(world)]
    pairs = [(x, p) for params in found for x, p in zip(params, model.parameters(), strict=True)]
    return round(max((torch.tensor(x) - p).abs().max().item() for x, p in pairs), 5)


def gradients_alive():
    # Ten large layers: 0 to 5, 8, 12, 16 and 20.
    sizes = {"widths": lab08.gradients.uneven(256), "steps": 1, "seed": 0, "large": True}
    given = sum(p.nbytes for p in lab08.gradients.chain(sizes["widths"], 0).parameters())
    alive = lab08.run_gradients(shard_gradients, 4, **sizes)["rise_bytes"] - given
    # 2.6 owned, 2 in transit; and torch's thread releases the last one a little late.
    found = alive / (256 * 257 * 4)
    return "at most 5.8 large layers" if found <= 5.8 else f"{found:.1f} large layers"


self_check(
    keepers,
    [
        Case(
            (2,),
            [1, 1, 1, 1, 1],
            "The owner keeps a gradient; all other ranks set p.grad to None. Cover all of module.parameters().",
            label="one rank keeps each gradient",
        ),
        Case(
            (2,),
            0.0,
            "Divide by the number of ranks.",
            function=updates_off_by,
            label="updates off by 0, 2 ranks",
        ),
        Case(
            (3,),
            0.0,
            "Do all ranks choose the same owners?",
            function=updates_off_by,
            label="updates off by 0, 3 ranks",
        ),
        Case(
            (),
            "at most 5.8 large layers",
            "Reduce in a hook, and balance bytes, not layer counts.",
            function=gradients_alive,
            label="alive at once, 24 layers on 4 ranks",
        ),
    ],
)
if predicted(predicted_gradient_mib, question="How many MiB of gradients does each rank hold?"):
    print(f"{8 * 4 / 4:.0f} MiB; you predicted {predicted_gradient_mib}.")

# %% nbgrader={"grade": true, "grade_id": "lab08-shard_gradients", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
# Exercise 8.7, 3 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab08-shard_gradients", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab08-sharded_layers-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 8.8 Sharded layers (stretch, 6 points, 30 minutes)
#
# At stage 3, a rank stores one $N$-th of each layer: the layer's parameters are flattened into one tensor,
# padded, and cut into $N$ shards. PyTorch's FSDP works this way.
# - *Forward:* gather a layer's weights, run the layer, and free the weights.
# - *Backward:* gather the weights again, run the layer again with a graph (lab 4), reduce the gradient, and
#   keep your own chunk of it.
#
# Write `class ShardedLayers(layers)`, an `nn.Module` that runs its layers in order. `layers` is a list of modules, the same on all ranks, each with one input, such as a `Linear` or a `Sequential`.
# - `parameters()` yields this rank's shards, one for each layer that has parameters. After backward, a
#   shard's `.grad` is its part of the mean over ranks, so any optimizer works.
# - A layer that occurs twice in the list has only one shard. Some layers have no parameters.
# - *Points:* outputs and updates 3. Peak 2: at most the bytes of all layers, which you receive whole, plus three layers; unsharded states would take three times all layers. Traffic 1: in a step, a rank sends at most three times the parameters' bytes.
#
# *Plan:* write an `autograd.Function` for one layer, which gets `x` and the shard. Its `forward` runs without
# a graph, so save only `x` and the shard. In `backward`, `functional_call(layer, {name: tensor}, (x,))` runs
# the layer with gathered weights, and `torch.autograd.grad` gives all gradients. Once you have a layer's
# shard, note the shapes of its own parameters, and set `p.data = torch.empty(0)`.
#
# *Example:* a `Linear(3, 3)` has 12 values, so each of 5 ranks stores 3.
#
# **Predict first.** With weights, gradients and momentum of 12 layers on 4 ranks, how many layers' bytes does
# a rank hold between steps?

# %%
predicted_layers_held = None  # your prediction, in layers


# %% nbgrader={"grade": false, "grade_id": "lab08-sharded_layers-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
class ShardedLayers(nn.Module):
    """Layers run in order; each rank stores one share of their weights."""

    def __init__(self, layers):
        super().__init__()
        ### BEGIN SOLUTION
        made = {layer: ShardedLayer(layer) for layer in dict.fromkeys(layers)}
        self.layers = nn.ModuleList(made[layer] for layer in layers)
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        for layer in self.layers:
            x = layer(x)
        return x


class ShardedLayer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.shapes = {name: p.shape for name, p in layer.named_parameters()}
        self.run = [layer]  # in a list: its parameters aren't this module's
        if self.shapes:
            self.shard = nn.Parameter(chunks(list(layer.parameters()))[dist.get_rank()].clone())
            for p in layer.parameters():
                p.data = torch.empty(0)

    def forward(self, x):
        return Gathered.apply(x, self.shard, self) if self.shapes else self.run[0](x)

    def call(self, weights, x):
        return functional_call(self.run[0], weights, (x,))

    def gather(self, shard):
        flat = shard.new_empty(dist.get_world_size() * len(shard))
        dist.all_gather(list(flat.split(len(shard))), shard.detach())
        sizes = [math.prod(shape) for shape in self.shapes.values()]
        parts = flat[: sum(sizes)].split(sizes)
        return {n: p.view(s) for (n, s), p in zip(self.shapes.items(), parts, strict=True)}


def chunks(tensors):
    """Return all values of some tensors, padded with zeros, in one chunk per rank."""
    world, n = dist.get_world_size(), sum(t.numel() for t in tensors)
    padding = tensors[0].new_zeros(-n % world)
    return torch.cat([*(t.detach().flatten() for t in tensors), padding]).chunk(world)


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shard, layer):
        ctx.layer = layer
        ctx.save_for_backward(x, shard)
        return layer.call(layer.gather(shard), x)

    @staticmethod
    def backward(ctx, gradient):
        x, shard = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            weights = {n: w.requires_grad_() for n, w in ctx.layer.gather(shard).items()}
            output = ctx.layer.call(weights, x)
        of_x, *of_weights = torch.autograd.grad(output, (x, *weights.values()), gradient)
        del weights, output
        parts = chunks(of_weights)
        for owner, part in enumerate(parts):
            dist.reduce(part, owner)
        return of_x, parts[dist.get_rank()] / dist.get_world_size(), None
        ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab08-sharded_layers-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 8.8, sharded layers
def stage2(layers):
    model = nn.Sequential(*layers)
    model.hooks = shard_gradients(model)
    return model, OwnersAdam(model.parameters())


def stage3(layers):
    model = ShardedLayers(layers)
    layers.clear()
    return model, torch.optim.Adam(model.parameters())


ORDER = [0, 1, 0, 2]  # the first layer is used twice


@cache
def outputs_of(world):
    sizes = {"width": 5, "count": 3, "order": ORDER, "steps": 3, "seed": 0}
    return lab08.run_sharded(ShardedLayers, world, **sizes, nested=True, measure=False)["outputs"]


def outputs_off_by(world, step):
    """Return the difference between a rank's outputs and one process's on all samples."""
    model = nn.Sequential(*lab08.layers.layers_of(5, 3, ORDER, 0, nested=True))
    params = list(model.parameters())
    right = lab08.layers.trained(model, params, 5, range(world), 3, 0)
    found = torch.tensor([rank[step] for rank in outputs_of(world)])
    return round((found - torch.tensor(right[step])).abs().max().item(), 5)


@cache
def sharded_run():
    return lab08.run_sharded(ShardedLayers, 4, 256, 12, list(range(12)), 2, 0)


def layers_alive():
    alive = sharded_run()["rise_bytes"] / (256 * 257 * 4)
    return "at most 15.2 layers" if alive <= 15.2 else f"{alive:.1f} layers"


def shards_held():
    return sorted({len(of_rank) for of_rank in sharded_run()["shards"]})


def largest_shard():
    most = max((size for of_rank in sharded_run()["shards"] for size in of_rank), default=0)
    return "a fourth of a layer" if most <= 256 * 257 // 4 + 8 else f"{most} values"


def sent_a_step():
    sent = [each for each in sharded_run()["sent_bytes"] if each is not None]
    times = max(sent, default=0) / 2 / (12 * 256 * 257 * 4)
    return "at most 3.1 times" if times <= 3.1 else f"{times:.1f} times"


self_check(
    outputs_off_by,
    [
        Case(
            (2, 0), 0.0, "Gather and run the layers in the list's order.", label="outputs, 2 ranks"
        ),
        Case(
            (2, 1),
            0.0,
            "The update needs the mean over ranks, on the shards.",
            label="after one update",
        ),
        Case(
            (3, 2),
            0.0,
            "Pad the shards, and make one shard for a layer that occurs twice or contains others.",
            label="after two, 3 ranks",
        ),
        Case(
            (),
            "at most 15.2 layers",
            "Empty the layer's own parameters; keep nothing gathered.",
            function=layers_alive,
            label="alive, 12 layers on 4 ranks",
        ),
        Case(
            (),
            [12],
            "Make one shard for each layer: flatten its parameters, including the bias, into one tensor.",
            function=shards_held,
            label="parameters() of each rank, 12 layers",
        ),
        Case(
            (),
            "a fourth of a layer",
            "Cut each layer into one shard for each rank.",
            function=largest_shard,
            label="the largest shard, 4 ranks",
        ),
        Case(
            (),
            "at most 3.1 times",
            "Gather each layer twice, and reduce its gradient once.",
            function=sent_a_step,
            label="sent in a step",
        ),
    ],
)
if predicted(predicted_layers_held, question="How many layers' bytes does a rank hold?"):
    print(f"3 * 12 / 4 = 9; you predicted {predicted_layers_held}.")
    stages = {0: stage0, 1: stage1, 2: stage2, 3: stage3}
    show_figure(
        draw_stages(
            {stage: in_mib(stage) for stage in stages},
            "MiB",
            metered={stage: held_mib(prepare, 2) for stage, prepare in stages.items()},
        ),
        "Bars of what a rank holds at stages 0 to 3 with 2 ranks, in MiB: 8, 6, 5 and 4. The metered "
        "mark of each stage is as high as its bar.",
    )
    show_figure(
        draw_rank_memory({f"stage {n}": rank_memory_mib(stages[n], 4) for n in (0, 2, 3)}),
        "A rank's live MiB over the operations of forward and backward, with 4 ranks. Stage 0 begins "
        "at 2 MiB and rises to 4. Stage 2 begins at 2 and rises to less than 3. Stage 3 begins below 1, "
        "with a small tooth for each layer that is gathered, and ends at 1.",
    )

# %% nbgrader={"grade": true, "grade_id": "lab08-sharded_layers", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
# Exercise 8.8, 6 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.grading.stock import score

score("lab08-sharded_layers", globals())
### END HIDDEN TESTS


# %% [markdown] nbgrader={"grade": false, "grade_id": "lab08-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# *What the pictures show.* Each stage holds what 8.1 predicts. At stage 0, gradients pile up during backward. At stage 3, weights come and go layer by layer, twice: that's the traffic you pay for the memory.
#
# ## What you should now be able to say
#
# - Each gradient has an owner, and hooks reduce it there as soon as it's ready.
# - Weights are needed one layer at a time, so a rank can store a share and gather the rest.
# - ZeRO-3 sends up to three times the parameters' bytes per step; replicas, up to twice.
