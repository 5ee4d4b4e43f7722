# %% right: indices
"""Segments by the index of their first layer."""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


def run_in_segments(layers, x, segment_length):
    layers = list(layers)
    last = (len(layers) - 1) // segment_length * segment_length

    def run(first, x):
        for layer in layers[first : first + segment_length]:
            x = layer(x)
        return x

    for first in range(0, last, segment_length):
        x = checkpoint(run, first, x)
    return run(last, x)


# %% right: recursion
"""The first segment, and the rest by recursion."""

import torch


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    state = torch.get_rng_state()
    saved = {}
    count = 0

    def pack(tensor):
        nonlocal count
        count += 1
        return count - 1

    def again():
        def keep(tensor):
            saved[len(saved)] = tensor.detach()
            return len(saved) - 1

        now = torch.get_rng_state()
        torch.set_rng_state(state)
        with torch.enable_grad():
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda index: saved[index]):
                fn(*args)
        torch.set_rng_state(now)

    def unpack(index):
        if not saved:
            again()
        return saved[index]

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        return fn(*args)


def run_in_segments(layers, x, segment_length):
    layers = list(layers)
    if len(layers) <= segment_length:
        return run(layers, x)
    x = checkpoint(run, layers[:segment_length], x)
    return run_in_segments(layers[segment_length:], x, segment_length)


def run(layers, x):
    for layer in layers:
        x = layer(x)
    return x


# %% right: sequential
"""A Sequential a segment, popped from a queue."""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


from torch import nn


def run_in_segments(layers, x, segment_length):
    queue = [layers[i] for i in range(len(layers))]
    while len(queue) > segment_length:
        segment, queue = queue[:segment_length], queue[segment_length:]
        x = checkpoint(nn.Sequential(*segment), x)
    return nn.Sequential(*queue)(x)


# %% wrong: cut_from_the_back
"""The first segment is the short one."""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


def run_in_segments(layers, x, segment_length):
    layers = list(layers)
    last = max(len(layers) - segment_length, 0)
    ends = list(range(last, 0, -segment_length))[::-1]

    def run(first, end, x):
        for layer in layers[first:end]:
            x = layer(x)
        return x

    for end in ends:
        x = checkpoint(run, max(end - segment_length, 0), end, x)
    return run(last, len(layers), x)


# %% wrong: first_segment_kept
"""Keeps the first segment and recomputes the rest."""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


def run_in_segments(layers, x, segment_length):
    layers = list(layers)
    last = (len(layers) - 1) // segment_length * segment_length

    def run(first, x):
        for layer in layers[first : first + segment_length]:
            x = layer(x)
        return x

    x = run(0, x)
    for first in range(segment_length, len(layers), segment_length):
        x = checkpoint(run, first, x)
    return x


# %% wrong: keeps_outputs
"""Keeps every layer's output in a list."""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


outputs = []


def run_in_segments(layers, x, segment_length):
    layers = list(layers)
    last = (len(layers) - 1) // segment_length * segment_length

    def run(first, x):
        for layer in layers[first : first + segment_length]:
            x = layer(x)
            outputs.append(x)
        return x

    for first in range(0, last, segment_length):
        x = checkpoint(run, first, x)
    return run(last, x)


# %% wrong: last_segment_too
"""Checkpoints the last segment too."""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


def run_in_segments(layers, x, segment_length):
    layers = list(layers)
    last = (len(layers) - 1) // segment_length * segment_length

    def run(first, x):
        for layer in layers[first : first + segment_length]:
            x = layer(x)
        return x

    for first in range(0, len(layers), segment_length):
        x = checkpoint(run, first, x)
    return x


# %% wrong: late_closure
"""Its function reads the loop's variable, which is another one in backward."""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


def run_in_segments(layers, x, segment_length):
    for first in range(0, len(layers), segment_length):

        def run(x):
            for layer in layers[first : first + segment_length]:
                x = layer(x)
            return x

        x = checkpoint(run, x) if first + segment_length < len(layers) else run(x)
    return x


# %% wrong: layer_by_layer
"""Each layer but those of the last segment has a checkpoint of its own."""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


def run_in_segments(layers, x, segment_length):
    layers = list(layers)
    last = (len(layers) - 1) // segment_length * segment_length

    def run(first, x):
        for layer in layers[first : first + segment_length]:
            x = layer(x)
        return x

    for first in range(0, last, segment_length):
        for layer in layers[first : first + segment_length]:
            x = checkpoint(layer, x)
    return run(last, x)


# %% wrong: never_recomputed
"""Runs all layers without checkpoints."""


def run_in_segments(layers, x, segment_length):
    for layer in layers:
        x = layer(x)
    return x


# %% wrong: number_for_length
"""Takes segment_length for the number of segments."""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


def run_in_segments(layers, x, segment_length):
    layers = list(layers)
    segment_length = -(-len(layers) // segment_length)
    last = (len(layers) - 1) // segment_length * segment_length

    def run(first, x):
        for layer in layers[first : first + segment_length]:
            x = layer(x)
        return x

    for first in range(0, last, segment_length):
        x = checkpoint(run, first, x)
    return run(last, x)


# %% wrong: one_layer_each
"""Checkpoints each layer by itself, whatever the length."""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


def run_in_segments(layers, x, segment_length):
    layers = list(layers)
    segment_length = 1
    last = (len(layers) - 1) // segment_length * segment_length

    def run(first, x):
        for layer in layers[first : first + segment_length]:
            x = layer(x)
        return x

    for first in range(0, last, segment_length):
        x = checkpoint(run, first, x)
    return run(last, x)


# %% wrong: rest_left_out
"""Leaves out what is behind the last whole segment."""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


def run_in_segments(layers, x, segment_length):
    layers = list(layers)
    segments = max(len(layers) // segment_length, 0)

    def run(number, x):
        for layer in layers[number * segment_length : (number + 1) * segment_length]:
            x = layer(x)
        return x

    for number in range(segments - 1):
        x = checkpoint(run, number, x)
    return run(segments - 1, x) if segments else x


# %% wrong: torchs_own
"""Uses torch.utils.checkpoint."""

import torch.utils.checkpoint


def run_in_segments(layers, x, segment_length):
    layers = list(layers)

    def run(x, first):
        for layer in layers[first : first + segment_length]:
            x = layer(x)
        return x

    for first in range(0, len(layers) - segment_length, segment_length):
        x = torch.utils.checkpoint.checkpoint(run, x, first, use_reentrant=False)
    return run(x, (len(layers) - 1) // segment_length * segment_length)


# %% wrong: torchs_own_by_data
"""Calls torch.utils.checkpoint, which it finds by a name that no constant holds."""

from functools import reduce

import torch


def run_in_segments(layers, x, segment_length):
    torchs = reduce(getattr, "utils checkpoint checkpoint".split(), torch)
    layers = list(layers)

    def run(segment, x):
        for layer in segment:
            x = layer(x)
        return x

    last = (len(layers) - 1) // segment_length * segment_length
    for start in range(0, last, segment_length):
        x = torchs(run, layers[start : start + segment_length], x, use_reentrant=False)
    return run(layers[last:], x)



# %% wrong: takes_layers_out
"""Takes the layers out of the container that it was given."""
import torch


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, segment, x):
        ctx.segment = segment
        ctx.save_for_backward(x)
        return run(segment, x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            out = run(ctx.segment, x)
        out.backward(gradient)
        return None, x.grad


def run(segment, x):
    for layer in segment:
        x = layer(x)
    return x


def run_in_segments(layers, x, segment_length):
    while len(layers) > segment_length:
        segment = [layers[i] for i in range(segment_length)]
        del layers[:segment_length]
        x = Again.apply(segment, x)
    return run(layers, x)


# %% wrong: about_equal
"""Segments of about equal length."""

import torch


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        return fn(*args)

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(ctx.state)
            out = ctx.fn(*args)
        torch.autograd.backward(out, gradients[0])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Recompute.apply(fn, *args)


def run(layers, x):
    for layer in layers:
        x = layer(x)
    return x



import math


def run_in_segments(layers, x, segment_length):
    layers = list(layers)
    count = math.ceil(len(layers) / segment_length)
    even = math.ceil(len(layers) / count)
    segments = [layers[i : i + even] for i in range(0, len(layers), even)]
    for segment in segments[:-1]:
        x = checkpoint(run, segment, x)
    return run(segments[-1], x)


# %% right: layers_as_arguments
"""The layers are arguments of a checkpoint of its own, behind x."""

import torch


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        return fn(*args)

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(ctx.state)
            out = ctx.fn(*args)
        torch.autograd.backward(out, gradients[0])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def recomputed(fn, *args):
    return Recompute.apply(fn, *args)


def run(x, *layers):
    for layer in layers:
        x = layer(x)
    return x


def run_in_segments(layers, x, segment_length):
    waiting = []
    for layer in layers:
        if len(waiting) == segment_length:
            x = recomputed(run, x, *waiting)
            waiting = []
        waiting.append(layer)
    return run(x, *waiting)


# %% wrong: remembers_segments
"""Remembers the segments by number of layers and length, and runs those of an earlier chain."""

import torch
from torch import nn
from peakmem.labs.lab04 import keep_arguments, kept_arguments


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn = fn
        keep_arguments(ctx, args)
        ctx.state = torch.get_rng_state()
        return fn(*args)

    @staticmethod
    def backward(ctx, *gradients):
        args = kept_arguments(ctx)
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            result = ctx.fn(*args)
        torch.set_rng_state(now)
        results = result if isinstance(result, tuple) else (result,)
        ways = [(r, g) for r, g in zip(results, gradients, strict=True) if r.requires_grad]
        torch.autograd.backward([r for r, _ in ways], [g for _, g in ways])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Recompute.apply(fn, *args)


CUTS = {}


def run_in_segments(layers, x, segment_length):
    def run(x, part):
        for layer in part:
            x = layer(x)
        return x

    key = len(layers), segment_length
    if key not in CUTS:
        CUTS[key] = [
            list(layers)[i : i + segment_length] for i in range(0, len(layers), segment_length)
        ]
    for part in CUTS[key][:-1]:
        x = checkpoint(run, x, part)
    return run(x, CUTS[key][-1])
