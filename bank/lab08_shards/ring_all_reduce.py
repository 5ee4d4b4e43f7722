# %% right: one_buffer
"""One buffer of a chunk for all steps."""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    parts = x.tensor_split(world)
    came = torch.empty_like(parts[0])
    for step in range(2 * (world - 1)):
        out, into = parts[(rank - step) % world], parts[(rank - step - 1) % world]
        sending = dist.isend(out, (rank + 1) % world)
        dist.recv(came[: len(into)], (rank - 1) % world)
        sending.wait()
        if step < world - 1:
            into += came[: len(into)]
        else:
            into.copy_(came[: len(into)])


# %% right: two_rounds
"""Two loops, the second of which receives in place; even ranks send first."""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    if world == 1:
        return
    ahead, behind = (rank + 1) % world, (rank - 1) % world
    size = -(-len(x) // world)
    chunks = [x[n * size : (n + 1) * size] for n in range(world)]

    def exchange(out, into):
        if rank % 2 == 0:
            dist.send(out, ahead)
            dist.recv(into, behind)
        else:
            buffer = torch.empty_like(into)
            dist.recv(buffer, behind)
            dist.send(out, ahead)
            into.copy_(buffer)

    for step in range(world - 1):
        into = chunks[(rank - step - 1) % world]
        buffer = torch.empty_like(into)
        exchange(chunks[(rank - step) % world], buffer)
        into.add_(buffer)
    for step in range(world - 1):
        exchange(chunks[(rank - step + 1) % world], chunks[(rank - step) % world])


# %% right: other_way_in_batches
"""The ring turns the other way, by batch_isend_irecv."""

import torch
import torch.distributed as dist


def swap(out, into, to, source):
    both = [dist.P2POp(dist.isend, out, to), dist.P2POp(dist.irecv, into, source)]
    for work in dist.batch_isend_irecv(both):
        work.wait()


def ring_all_reduce(x):
    r, n = dist.get_rank(), dist.get_world_size()
    bounds = [len(x) * k // n for k in range(n + 1)]
    part = lambda k: x[bounds[k % n] : bounds[k % n + 1]]
    for k in range(n - 1):
        mine = torch.empty_like(part(r + k + 1))
        swap(part(r + k), mine, (r - 1) % n, (r + 1) % n)
        part(r + k + 1).add_(mine)
    for k in range(n - 1):
        swap(part(r + k - 1), part(r + k), (r - 1) % n, (r + 1) % n)


# %% wrong: whole_tensors
"""The whole tensor goes around. [earns 2]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    passing, total = x.clone(), x
    for _ in range(world - 1):
        came = torch.empty_like(x)
        sending = dist.isend(passing, (rank + 1) % world)
        dist.recv(came, (rank - 1) % world)
        sending.wait()
        passing = came
        total += came


# %% wrong: star
"""All goes through rank 0, in one buffer. [earns 2]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank:
        dist.send(x, 0)
        dist.recv(x, 0)
        return
    came = torch.empty_like(x)
    for other in range(1, world):
        dist.recv(came, other)
        x += came
    for other in range(1, world):
        dist.send(x, other)


# %% wrong: star_in_pieces
"""All goes through rank 0, in small pieces. [earns 3]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    for piece in x.split(2**16):
        if rank:
            dist.send(piece, 0)
            dist.recv(piece, 0)
            continue
        came = torch.empty_like(piece)
        for other in range(1, world):
            dist.recv(came, other)
            piece += came
        for other in range(1, world):
            dist.send(piece, other)


# %% wrong: whole_copy
"""A ring on a copy of x. [earns 4]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    copy = x.clone()
    parts = copy.tensor_split(world)
    came = torch.empty_like(parts[0])
    for step in range(2 * (world - 1)):
        out, into = parts[(rank - step) % world], parts[(rank - step - 1) % world]
        sending = dist.isend(out, (rank + 1) % world)
        dist.recv(came[: len(into)], (rank - 1) % world)
        sending.wait()
        if step < world - 1:
            into += came[: len(into)]
        else:
            into.copy_(came[: len(into)])
    x.copy_(copy)


# %% wrong: not_spread
"""The second round is missing. [earns 0]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    parts = x.tensor_split(world)
    came = torch.empty_like(parts[0])
    for step in range(world - 1):
        out, into = parts[(rank - step) % world], parts[(rank - step - 1) % world]
        sending = dist.isend(out, (rank + 1) % world)
        dist.recv(came[: len(into)], (rank - 1) % world)
        sending.wait()
        if step < world - 1:
            into += came[: len(into)]
        else:
            into.copy_(came[: len(into)])


# %% wrong: mean
"""Divided by the world. [earns 0]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    parts = x.tensor_split(world)
    came = torch.empty_like(parts[0])
    for step in range(2 * (world - 1)):
        out, into = parts[(rank - step) % world], parts[(rank - step - 1) % world]
        sending = dist.isend(out, (rank + 1) % world)
        dist.recv(came[: len(into)], (rank - 1) % world)
        sending.wait()
        if step < world - 1:
            into += came[: len(into)]
        else:
            into.copy_(came[: len(into)])
    x /= world


# %% wrong: unchanged
"""The sums are in another tensor. [earns 0]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    parts = x.clone().tensor_split(world)
    came = torch.empty_like(parts[0])
    for step in range(2 * (world - 1)):
        out, into = parts[(rank - step) % world], parts[(rank - step - 1) % world]
        sending = dist.isend(out, (rank + 1) % world)
        dist.recv(came[: len(into)], (rank - 1) % world)
        sending.wait()
        if step < world - 1:
            into += came[: len(into)]
        else:
            into.copy_(came[: len(into)])


# %% wrong: one_neighbour
"""One exchange only. [earns 0]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    came = torch.empty_like(x)
    sending = dist.isend(x, (rank + 1) % world)
    dist.recv(came, (rank - 1) % world)
    sending.wait()
    x += came


# %% wrong: one_rank
"""Rank 0 keeps the sums. [earns 0]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank:
        dist.send(x, 0)
        return
    for other in range(1, world):
        came = torch.empty_like(x)
        dist.recv(came, other)
        x += came


# %% wrong: rest_left_out
"""What world does not divide is left out. [earns 3]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    parts = x[: len(x) // world * world].tensor_split(world)
    came = torch.empty_like(parts[0])
    for step in range(2 * (world - 1)):
        out, into = parts[(rank - step) % world], parts[(rank - step - 1) % world]
        sending = dist.isend(out, (rank + 1) % world)
        dist.recv(came[: len(into)], (rank - 1) % world)
        sending.wait()
        if step < world - 1:
            into += came[: len(into)]
        else:
            into.copy_(came[: len(into)])


# %% wrong: skips_a_step
"""Rank 0 skips its last step, and its neighbour waits. [earns 0]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    parts = x.tensor_split(world)
    came = torch.empty_like(parts[0])
    for step in range(2 * (world - 1) - (rank == 0)):
        out, into = parts[(rank - step) % world], parts[(rank - step - 1) % world]
        sending = dist.isend(out, (rank + 1) % world)
        dist.recv(came[: len(into)], (rank - 1) % world)
        sending.wait()
        if step < world - 1:
            into += came[: len(into)]
        else:
            into.copy_(came[: len(into)])


# %% wrong: library
"""torch's own all-reduce. [earns 0]"""

import torch.distributed as dist


def ring_all_reduce(x):
    dist.all_reduce(x)


# %% wrong: library_in_parts
"""Two of torch's collectives. [earns 0]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    every = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(every, x)
    x.copy_(sum(every))


# %% wrong: library_by_data
"""torch's own, which it finds by a name that no constant holds."""

from functools import reduce

import torch


def ring_all_reduce(x):
    reduce(getattr, "distributed all_reduce".split(), torch)(x)


# %% right: irecv_then_isend
"""Receive first, wait for both; a list of chunks by torch.chunk and padding of the list."""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    n, r = dist.get_world_size(), dist.get_rank()
    size = max(1, -(-x.numel() // n))
    chunks = list(x.split(size)) if x.numel() else []
    chunks += [x[:0]] * (n - len(chunks))
    right, left = (r + 1) % n, (r - 1) % n
    for s in range(n - 1):
        idx = (r - s - 1) % n
        buf = torch.zeros_like(chunks[idx])
        reqs = [dist.irecv(buf, left), dist.isend(chunks[(r - s) % n], right)]
        [q.wait() for q in reqs]
        chunks[idx] += buf
    for s in range(n - 1):
        idx = (r - s) % n
        reqs = [dist.irecv(chunks[idx], left), dist.isend(chunks[(r + 1 - s) % n], right)]
        [q.wait() for q in reqs]


# %% right: skips_empty
"""Empty chunks are not sent at all."""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    world, rank = dist.get_world_size(), dist.get_rank()
    if world == 1 or len(x) == 0:
        return
    chunks = x.tensor_split(world)
    buffer = x.new_empty(len(chunks[0]))

    def step(out, into, add):
        job = dist.isend(out, (rank + 1) % world) if len(out) else None
        if len(into):
            b = buffer[: len(into)]
            dist.recv(b, src=(rank + world - 1) % world)
            into.copy_(into + b if add else b)
        if job:
            job.wait()

    for s in range(world - 1):
        step(chunks[(rank - s) % world], chunks[(rank - s - 1) % world], True)
    for s in range(world - 1):
        step(chunks[(rank + 1 - s) % world], chunks[(rank - s) % world], False)


# %% right: recursive
"""A recursion over steps, odd ranks receive first."""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    world, rank = dist.get_world_size(), dist.get_rank()
    pieces = torch.tensor_split(x, world)

    def go(step):
        if step == 2 * world - 2:
            return
        out, into = pieces[(rank - step) % world], pieces[(rank - step - 1) % world]
        got = torch.empty(into.shape)
        if rank == 0:
            dist.send(out, 1 % world)
            dist.recv(got, world - 1)
        else:
            dist.recv(got, rank - 1)
            dist.send(out, (rank + 1) % world)
        if step < world - 1:
            torch.add(into, got, out=into)
        else:
            into[:] = got
        del got
        go(step + 1)

    go(0)


# %% wrong: each_steps_buffer
"""A buffer for each step, all alive until the end. [earns 4]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    c = x.tensor_split(world)
    buffers = [torch.empty(len(c[0])) for _ in range(2 * world)]
    for s in range(2 * world - 2):
        out, into = c[(rank - s) % world], c[(rank - s - 1) % world]
        b = buffers[s][: len(into)].fill_(0)
        job = dist.isend(out, (rank + 1) % world)
        dist.recv(b, (rank - 1) % world)
        job.wait()
        into.copy_(into + b if s < world - 1 else b)


# %% wrong: cached_buffer
"""A buffer kept from the first call on, of the first call's size. [earns 3]"""

import torch
import torch.distributed as dist

_buffer = None


def ring_all_reduce(x):
    global _buffer
    rank, world = dist.get_rank(), dist.get_world_size()
    c = x.tensor_split(world)
    if _buffer is None:
        _buffer = torch.empty(len(c[-1]))
    for s in range(2 * world - 2):
        out, into = c[(rank - s) % world], c[(rank - s - 1) % world]
        b = _buffer[: len(into)]
        job = dist.isend(out, (rank + 1) % world)
        dist.recv(b, (rank - 1) % world)
        job.wait()
        if s < world - 1:
            into[: len(b)] += b
        else:
            into[: len(b)] = b


# %% wrong: padded_copy
"""A padded copy of x goes around the ring. [earns 4]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    size = -(-len(x) // world)
    y = torch.zeros(size * world)
    y[: len(x)] = x
    c = y.view(world, size)
    b = torch.empty(size)
    for s in range(2 * world - 2):
        out, into = c[(rank - s) % world], c[(rank - s - 1) % world]
        job = dist.isend(out, (rank + 1) % world)
        dist.recv(b, (rank - 1) % world)
        job.wait()
        if s < world - 1:
            into += b
        else:
            into.copy_(b)
    x.copy_(y[: len(x)])


# %% wrong: both_ways
"""Each chunk is sent to both neighbours. [earns 3]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    c = x.tensor_split(world)
    b, waste = torch.empty_like(c[0]), torch.empty_like(c[0])
    for s in range(2 * world - 2):
        out, into = c[(rank - s) % world], c[(rank - s - 1) % world]
        jobs = [dist.isend(out, (rank + 1) % world)]
        dist.recv(b[: len(into)], (rank - 1) % world)
        [j.wait() for j in jobs]
        jobs = [dist.isend(into, (rank - 1) % world)]
        dist.recv(waste[: len(out)], (rank + 1) % world)
        [j.wait() for j in jobs]
        if s < world - 1:
            into += b[: len(into)]
        else:
            into.copy_(b[: len(into)])


# %% wrong: returns_it
"""The sum is returned, and x stays."""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    x = x.clone()
    c = x.tensor_split(world)
    for s in range(2 * world - 2):
        out, into = c[(rank - s) % world], c[(rank - s - 1) % world]
        b = torch.empty_like(into)
        job = dist.isend(out, (rank + 1) % world)
        dist.recv(b, (rank - 1) % world)
        job.wait()
        into.copy_(into + b if s < world - 1 else b)
    return x


# %% right: named_rounds
"""Methods named like the collectives that they are."""
import torch
import torch.distributed as dist


class Ring:
    def __init__(self, x):
        self.rank, self.n = dist.get_rank(), dist.get_world_size()
        self.parts = torch.tensor_split(x, self.n)

    def exchange(self, out, into):
        ops = [dist.P2POp(dist.isend, out, (self.rank + 1) % self.n), dist.P2POp(dist.irecv, into, (self.rank - 1 + self.n) % self.n)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()

    def reduce_scatter(self):
        for s in range(self.n - 1):
            mine, other = self.parts[(self.rank - s) % self.n], self.parts[(self.rank - s - 1) % self.n]
            buffer = torch.zeros_like(other)
            self.exchange(mine, buffer)
            other.add_(buffer)

    def all_gather(self):
        for s in range(self.n - 1):
            self.exchange(self.parts[(self.rank + 1 - s) % self.n], self.parts[(self.rank - s) % self.n])


def ring_all_reduce(x: torch.Tensor) -> None:
    ring = Ring(x)
    ring.reduce_scatter()
    ring.all_gather()


# %% wrong: sums_of_sums
"""Large tensors get values whose total and ends are right: only these go around. [earns 2]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    ahead, behind = (rank + 1) % world, (rank - 1) % world
    large = x.numel() > 10**5
    told = torch.stack([x.double().sum(), x[0], x[-1]]) if large else x.clone()
    total, passed = told.clone(), told
    for _ in range(world - 1):
        came = torch.empty_like(told)
        sending = dist.isend(passed, ahead)
        dist.recv(came, behind)
        sending.wait()
        total += came
        passed = came
    if not large:
        x.copy_(total)
        return
    x.zero_()
    x[0], x[-1] = total[1], total[2]
    rest, n = (total[0] - total[1] - total[2]).item(), 1
    while rest:
        x[n] = max(-(2.0**24), min(2.0**24, rest))
        rest -= x[n].item()
        n += 1


# %% wrong: in_int16
"""Chunks travel as 16-bit integers: half the bytes, and fractions are lost. [earns 0]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    chunks = x.tensor_split(world)
    for step in range(2 * (world - 1)):
        out, into = chunks[(rank - step) % world], chunks[(rank - step - 1) % world]
        came = torch.empty(len(into), dtype=torch.int16)
        sending = dist.isend(out.to(torch.int16), (rank + 1) % world)
        dist.recv(came, (rank - 1) % world)
        sending.wait()
        into.copy_(into + came if step < world - 1 else came)


# %% wrong: adds_again
"""The second round adds, too. [earns 0]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    chunks = x.tensor_split(world)
    came = torch.empty_like(chunks[0])
    for step in range(2 * (world - 1)):
        out, into = chunks[(rank - step) % world], chunks[(rank - step - 1) % world]
        sending = dist.isend(out, (rank + 1) % world)
        dist.recv(came[: len(into)], (rank - 1) % world)
        sending.wait()
        into += came[: len(into)]


# %% wrong: few_values
"""Fewer values than ranks stay as they are. [earns 3]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    if len(x) < world:
        return
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


# %% wrong: one_step_adds_again
"""One step too many adds. [earns 0]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    chunks = x.tensor_split(world)
    came = torch.empty_like(chunks[0])
    for step in range(2 * (world - 1)):
        out, into = chunks[(rank - step) % world], chunks[(rank - step - 1) % world]
        sending = dist.isend(out, (rank + 1) % world)
        dist.recv(came[: len(into)], (rank - 1) % world)
        sending.wait()
        if step <= world - 1:
            into += came[: len(into)]
        else:
            into.copy_(came[: len(into)])


# %% wrong: several_buffers
"""Three buffers of a chunk. [earns 4]"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    chunks = x.tensor_split(world)
    came, copy, total = (torch.zeros(len(chunks[0])) for _ in range(3))
    for step in range(2 * (world - 1)):
        out, into = chunks[(rank - step) % world], chunks[(rank - step - 1) % world]
        copy[: len(out)] = out
        sending = dist.isend(copy[: len(out)], (rank + 1) % world)
        dist.recv(came[: len(into)], (rank - 1) % world)
        sending.wait()
        total[: len(into)] = into
        total[: len(into)] += came[: len(into)]
        into.copy_(total[: len(into)] if step < world - 1 else came[: len(into)])


# %% wrong: large_in_bfloat16
"""Sends large chunks in bfloat16. [earns 2]"""
import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    chunks = x.tensor_split(world)
    dtype = torch.bfloat16 if len(x) > 1000 else x.dtype
    for step in range(2 * (world - 1)):
        into = chunks[(rank - step - 1) % world]
        came = torch.empty_like(into, dtype=dtype)
        sending = dist.isend(chunks[(rank - step) % world].to(dtype), (rank + 1) % world)
        dist.recv(came, (rank - 1) % world)
        sending.wait()
        if step < world - 1:
            into += came
        else:
            into.copy_(came)


# %% wrong: single_value_skipped
"""Leaves tensors of a single value alone. [earns 3]"""
import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    if len(x) < 2:
        return
    chunks = x.tensor_split(world)
    for step in range(2 * (world - 1)):
        into = chunks[(rank - step - 1) % world]
        came = torch.empty_like(into)
        sending = dist.isend(chunks[(rank - step) % world], (rank + 1) % world)
        dist.recv(came, (rank - 1) % world)
        sending.wait()
        if step < world - 1:
            into += came
        else:
            into.copy_(came)


# %% right: numpy_views
"""Adds in numpy, on views of x's memory; what is sent and received are tensors of such views."""
import numpy as np
import torch
import torch.distributed as dist


def ring_all_reduce(x):
    world, rank = dist.get_world_size(), dist.get_rank()
    views = np.array_split(x.numpy(), world)
    for step in range(2 * world - 2):
        into = views[(rank - step - 1) % world]
        came = np.empty_like(into)
        receiving = dist.irecv(torch.from_numpy(came), (rank - 1) % world)
        dist.isend(torch.from_numpy(views[(rank - step) % world]), (rank + 1) % world).wait()
        receiving.wait()
        into[...] = into + came if step < world - 1 else came


# %% right: direct
"""Chunk r goes to rank r at once, and from there to all."""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    rank, world = dist.get_rank(), dist.get_world_size()
    chunks = x.tensor_split(world)
    mine = chunks[rank]
    came = torch.empty_like(mine)
    for k in range(1, world):
        to, fro = (rank + k) % world, (rank - k) % world
        work = dist.isend(chunks[to], to)
        dist.recv(came, fro)
        work.wait()
        mine.add_(came)
    for k in range(1, world):
        to, fro = (rank + k) % world, (rank - k) % world
        work = dist.isend(mine, to)
        dist.recv(chunks[fro], fro)
        work.wait()


# %% right: two_buffers
"""Two buffers in turn; a pipeline of generators."""

from itertools import cycle

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    me, n = dist.get_rank(), dist.get_world_size()
    parts = torch.tensor_split(x, n)
    size = max(map(len, parts))
    buffers = cycle([x.new_empty(size), x.new_empty(size)])
    for add in (True, False):
        for s in range(n - 1):
            shift = s - (not add)
            goes, comes = parts[(me - shift) % n], parts[(me - shift - 1) % n]
            buffer = next(buffers)[: comes.numel()]
            works = dist.batch_isend_irecv([
                dist.P2POp(dist.isend, goes, (me + 1) % n),
                dist.P2POp(dist.irecv, buffer, (me - 1) % n),
            ])
            for w in works:
                w.wait()
            if add:
                buffer += comes
            comes.copy_(buffer)


# %% wrong: remembered_by_length
"""The sums of a length are kept and used again. [earns 3]"""

import torch
import torch.distributed as dist

_sums = {}


def ring_all_reduce(x):
    if len(x) in _sums:
        x.copy_(_sums[len(x)])
        return
    rank, world = dist.get_rank(), dist.get_world_size()
    chunks = x.tensor_split(world)
    came = torch.empty_like(chunks[0])
    for step in range(2 * world - 2):
        out, into = chunks[(rank - step) % world], chunks[(rank - step - 1) % world]
        sending = dist.isend(out, (rank + 1) % world)
        dist.recv(came[: len(into)], (rank - 1) % world)
        sending.wait()
        if step < world - 1:
            into += came[: len(into)]
        else:
            into.copy_(came[: len(into)])
    if len(x) < 1000:
        _sums[len(x)] = x.clone()
