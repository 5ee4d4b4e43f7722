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
