# %% right: bytes_state
"""The state of the generator is kept as bytes, and torch.Generator is not touched otherwise."""

import torch


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    state = bytes(torch.get_rng_state().numpy())
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
        torch.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
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


# %% right: fork_rng
"""An autograd.Function with torch.random.fork_rng around the second call."""

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
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(ctx.state)
            out = ctx.fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


# %% right: function
"""An autograd.Function that runs backward through a second graph."""

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


# %% right: hooks
"""saved_tensors_hooks: forward packs numbers, the first unpack calls the function again."""

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


# %% right: tensors_apart
"""An autograd.Function that saves tensors with save_for_backward and the rest apart."""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.state = fn, torch.get_rng_state()
        ctx.rest = [None if torch.is_tensor(a) else a for a in args]
        ctx.where = [i for i, a in enumerate(args) if torch.is_tensor(a)]
        ctx.save_for_backward(*[args[i] for i in ctx.where])
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = list(ctx.rest)
        for i, a in zip(ctx.where, ctx.saved_tensors):
            args[i] = a.detach().requires_grad_(a.requires_grad)
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


# %% wrong: all_float_outputs
"""Runs backward from every float result, one without a gradient included. [earns 5]"""

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
        pairs = [(o, g) for o, g in zip(several, gradients) if o.is_floating_point()]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


# %% wrong: arguments_left_out
"""Gives a gradient to the first tensor alone. [earns 3]"""

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
        first = next(a for a in args if torch.is_tensor(a))
        return None, *[a.grad if a is first else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


# %% wrong: calls
"""Calls the function once more to see whether it returns a tuple. [earns 4]"""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        state = torch.get_rng_state()
        with torch.no_grad():
            several = fn(*args)
        torch.set_rng_state(state)
        several = several if isinstance(several, tuple) else (several,)
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


# %% wrong: detached
"""Forward without a graph, and no backward. [earns 0]"""

import torch


def checkpoint(fn, *args):
    with torch.no_grad():
        return fn(*args)


# %% wrong: forward_rewinds
"""Forward sets the generator back after its call. [earns 5]"""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        torch.set_rng_state(ctx.state)
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


# %% wrong: hook_on_the_result
"""A hook on the result calls the function again, and runs backward from there. [earns 2]"""

import torch


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    state = torch.get_rng_state()
    with torch.no_grad():
        result = fn(*args)
    results = result if isinstance(result, tuple) else (result,)
    done = []

    def again(place):
        def hook(gradient):
            if not done:
                now = torch.get_rng_state()
                torch.set_rng_state(state)
                with torch.enable_grad():
                    second = fn(*args)
                torch.set_rng_state(now)
                done.extend(second if isinstance(second, tuple) else (second,))
            torch.autograd.backward(done[place], gradient, retain_graph=len(results) > 1)

        return hook

    for place, tensor in enumerate(results):
        if tensor.is_floating_point():
            tensor.requires_grad_().register_hook(again(place))
    return result


# %% wrong: integer_arguments
"""Asks for gradients of all tensors, integers among them. [earns 4]"""

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
            a.detach().requires_grad_() if torch.is_tensor(a) else a
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


# %% wrong: keeps_everything
"""Calls the function and leaves it at that. [earns 4]"""


def checkpoint(fn, *args):
    return fn(*args)


# %% wrong: keeps_something
"""Keeps a copy of the input beside it. [earns 4]"""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        ctx.copies = [a.clone() for a in args if torch.is_tensor(a)]
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


# %% wrong: no_enable_grad
"""Passes results without a graph to backward, which refuses them."""

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
        out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        torch.autograd.backward(several, gradients)
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


# %% wrong: no_graph_in_backward
"""Calls the function in backward as torch runs backward: without a graph."""

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
        out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        if pairs:
            torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


# %% wrong: not_detached
"""Calls the function on the arguments themselves. [earns 4]"""

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
        args = ctx.args
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None,) * (1 + len(args))  # they have their gradients


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


# %% wrong: not_detached_but_retained
"""As wrong_not_detached, with the graphs before it retained. [earns 4]"""

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
        args = ctx.args
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        roots, given = [o for o, _ in pairs], [g for _, g in pairs]
        torch.autograd.backward(roots, given, retain_graph=True)
        return (None,) * (1 + len(args))  # they have their gradients


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


# %% wrong: one_backward_each
"""Runs a backward for each result. [earns 5]"""

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
        for result, gradient in zip(several, gradients):
            if result.requires_grad:
                result.backward(gradient)
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


# %% wrong: one_output
"""Takes the output for one tensor. [earns 5]"""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
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
        out.backward(gradients[0])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


# %% wrong: one_output_only
"""Backward goes through the first result only. [earns 5]"""

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
        several[0].backward(gradients[0])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


# %% wrong: other_random_numbers
"""The second call draws other random numbers. [earns 5]"""

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


# %% wrong: outputs
"""Returns the first of several tensors alone. [earns 5]"""

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
    out = Checkpoint.apply(fn, *args)
    return out[0] if isinstance(out, tuple) else out


# %% wrong: parameters_left_out
"""Asks for the arguments' gradients only, by torch.autograd.grad. [earns 2]"""

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
        asked = [a for a in args if torch.is_tensor(a) and a.requires_grad]
        found = iter(torch.autograd.grad([o for o, _ in pairs], asked, [g for _, g in pairs]))
        return None, *[next(found) if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


# %% wrong: results_without_gradient
"""Hands every result to backward. [earns 5]"""

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
        torch.autograd.backward(several, gradients)
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


# %% wrong: state_not_put_back
"""The generator stays where the second call left it. [earns 5]"""

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
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


# %% wrong: state_of_the_class
"""Function and arguments are attributes of the class, so the next call replaces them. [earns 2]"""

import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        Checkpoint.fn, Checkpoint.args, Checkpoint.state = fn, args, torch.get_rng_state()
        with torch.no_grad():
            out = fn(*args)
        several = out if isinstance(out, tuple) else (out,)
        ctx.mark_non_differentiable(*[o for o in several if not o.is_floating_point()])
        return out

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in Checkpoint.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(Checkpoint.state)
        with torch.enable_grad():
            out = Checkpoint.fn(*args)
        torch.set_rng_state(now)
        several = out if isinstance(out, tuple) else (out,)
        pairs = [(o, g) for o, g in zip(several, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, *[a.grad if torch.is_tensor(a) else None for a in args]


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    return Checkpoint.apply(fn, *args)


# %% wrong: torchs_own
"""Calls torch.utils.checkpoint."""

from torch.utils.checkpoint import checkpoint as torchs


def checkpoint(fn, *args):
    return torchs(fn, *args, use_reentrant=False)


# %% wrong: torchs_own_by_data
"""Calls torch.utils.checkpoint, which it finds by a name that no constant holds."""

from functools import reduce

import torch


def checkpoint(fn, *args):
    torchs = reduce(getattr, "utils checkpoint checkpoint".split(), torch)
    return torchs(fn, *args, use_reentrant=False)



# %% wrong: used_again
"""Detaches each tensor once, and returns its whole gradient in each of its places. [earns 4]"""

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
        copies = {
            id(a): a.detach().requires_grad_(a.requires_grad)
            for a in ctx.args
            if torch.is_tensor(a)
        }
        args = [copies.get(id(a), a) for a in ctx.args]
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


# %% right: autograd_grad
"""torch.autograd.grad over the arguments and the graph's leaves, added to .grad by hand."""
import torch


def leaves_of(results):
    todo, seen, leaves = [r.grad_fn for r in results], set(), []
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        todo += [before for before, _ in node.next_functions]
    return leaves


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        return fn(*args)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(ctx.state)
            results = ctx.fn(*args)
        results = results if isinstance(results, tuple) else (results,)
        ways = [(r, g) for r, g in zip(results, gradients) if r.requires_grad]
        results, gradients = zip(*ways)
        asked = [a for a in args if torch.is_tensor(a) and a.requires_grad]
        others = [leaf for leaf in leaves_of(results) if all(leaf is not a for a in asked)]
        found = torch.autograd.grad(results, asked + others, gradients, allow_unused=True)
        for leaf, gradient in zip(others, found[len(asked) :]):
            leaf.grad = gradient if leaf.grad is None else leaf.grad + gradient
        mine = iter(found)
        return None, *(
            next(mine) if torch.is_tensor(a) and a.requires_grad else None for a in args
        )


def checkpoint(fn, *args):
    return Again.apply(fn, *args)


# %% right: setup_context
"""forward without ctx; the RNG state is an argument; a result that is not used has no gradient."""
import torch


class Again(torch.autograd.Function):
    @staticmethod
    def forward(fn, state, *args):
        return fn(*args)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.fn, ctx.state, *ctx.given = inputs
        ctx.set_materialize_grads(False)
        results = output if isinstance(output, tuple) else (output,)
        ctx.mark_non_differentiable(*(r for r in results if not r.is_floating_point()))

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.given
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            results = ctx.fn(*args)
        torch.set_rng_state(now)
        results = results if isinstance(results, tuple) else (results,)
        ways = [(r, g) for r, g in zip(results, gradients) if g is not None and r.requires_grad]
        torch.autograd.backward(*zip(*ways))
        return None, None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Again.apply(fn, torch.get_rng_state(), *args)


# %% wrong: arguments_changed
"""Makes the caller's own float tensors require a gradient. [earns 4]"""
import torch


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        return fn(*args)

    @staticmethod
    def backward(ctx, *gradients):
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        for a in ctx.args:
            if torch.is_tensor(a) and a.is_leaf and a.is_floating_point():
                a.requires_grad_()
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        out = out if isinstance(out, tuple) else (out,)
        ways = [(o, g) for o, g in zip(out, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in ways], [g for _, g in ways])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Again.apply(fn, *args)


# %% wrong: seeds
"""Seeds with 0 before both calls, which draws the same numbers twice. [earns 5]"""
import torch


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        torch.manual_seed(0)
        return fn(*args)

    @staticmethod
    def backward(ctx, *gradients):
        now = torch.get_rng_state()
        torch.manual_seed(0)
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        out = out if isinstance(out, tuple) else (out,)
        ways = [(o, g) for o, g in zip(out, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in ways], [g for _, g in ways])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Again.apply(fn, *args)


# %% wrong: state_after_the_call
"""Keeps the state from after the first call. [earns 5]"""
import torch


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args, ctx.state = fn, args, torch.get_rng_state()
        result = fn(*args)
        ctx.state = torch.get_rng_state()
        return result

    @staticmethod
    def backward(ctx, *gradients):
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
            for a in ctx.args
        ]
        with torch.enable_grad():
            out = ctx.fn(*args)
        torch.set_rng_state(now)
        out = out if isinstance(out, tuple) else (out,)
        ways = [(o, g) for o, g in zip(out, gradients) if o.requires_grad]
        torch.autograd.backward([o for o, _ in ways], [g for _, g in ways])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Again.apply(fn, *args)


# %% wrong: state_on_the_class
"""The RNG state is an attribute of the class: the next checkpoint replaces it. [earns 5]"""

import torch
from peakmem.labs.lab04 import keep_arguments, kept_arguments


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn = fn
        keep_arguments(ctx, args)
        Recompute.state = torch.get_rng_state()
        return fn(*args)

    @staticmethod
    def backward(ctx, *gradients):
        args = kept_arguments(ctx)
        now = torch.get_rng_state()
        torch.set_rng_state(Recompute.state)
        with torch.enable_grad():
            result = ctx.fn(*args)
        torch.set_rng_state(now)
        results = result if isinstance(result, tuple) else (result,)
        ways = [(r, g) for r, g in zip(results, gradients) if r.requires_grad]
        torch.autograd.backward([r for r, _ in ways], [g for _, g in ways])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Recompute.apply(fn, *args)


# %% wrong: initial_seed
"""Goes back to the seed, not to the state. [earns 5]"""

import torch
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
        torch.manual_seed(torch.initial_seed())
        with torch.enable_grad():
            result = ctx.fn(*args)
        torch.set_rng_state(now)
        results = result if isinstance(result, tuple) else (result,)
        ways = [(r, g) for r, g in zip(results, gradients) if r.requires_grad]
        torch.autograd.backward([r for r, _ in ways], [g for _, g in ways])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Recompute.apply(fn, *args)


# %% wrong: keeps_result
"""The result stays on ctx. [earns 5]"""

import torch
from peakmem.labs.lab04 import keep_arguments, kept_arguments


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn = fn
        keep_arguments(ctx, args)
        ctx.state = torch.get_rng_state()
        ctx.result = fn(*args)
        return ctx.result

    @staticmethod
    def backward(ctx, *gradients):
        args = kept_arguments(ctx)
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            result = ctx.fn(*args)
        torch.set_rng_state(now)
        results = result if isinstance(result, tuple) else (result,)
        ways = [(r, g) for r, g in zip(results, gradients) if r.requires_grad]
        torch.autograd.backward([r for r, _ in ways], [g for _, g in ways])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Recompute.apply(fn, *args)


# %% wrong: ones
"""Backward begins with ones, as for a sum. [earns 2]"""

import torch
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
        ways = [(r, g) for r, g in zip(results, gradients) if r.requires_grad]
        torch.autograd.backward([r for r, _ in ways], [torch.ones_like(r) for r, _ in ways])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Recompute.apply(fn, *args)


# %% wrong: keeps_second_call
"""The second call's graph is retained, and its results stay on ctx. [earns 4]"""

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
        for r, g in zip(results, gradients):
            if r.requires_grad:
                torch.autograd.backward(r, g, retain_graph=True)
        ctx.results = results
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Recompute.apply(fn, *args)


# %% wrong: state_by_function
"""The RNG state is kept in a dict by function: a second call of the same replaces it. [earns 5]"""

import torch
from torch import nn
from peakmem.labs.lab04 import keep_arguments, kept_arguments

STATES = {}


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn = fn
        keep_arguments(ctx, args)
        STATES[fn] = torch.get_rng_state()
        return fn(*args)

    @staticmethod
    def backward(ctx, *gradients):
        args = kept_arguments(ctx)
        now = torch.get_rng_state()
        torch.set_rng_state(STATES[ctx.fn])
        with torch.enable_grad():
            result = ctx.fn(*args)
        torch.set_rng_state(now)
        results = result if isinstance(result, tuple) else (result,)
        ways = [(r, g) for r, g in zip(results, gradients, strict=True) if r.requires_grad]
        torch.autograd.backward([r for r, _ in ways], [g for _, g in ways])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Recompute.apply(fn, *args)


# %% wrong: one_in_a_tuple
"""Takes the only tensor out of a tuple of one. [earns 5]"""

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
    result = Recompute.apply(fn, *args)
    if isinstance(result, tuple) and len(result) == 1:
        return result[0]
    return result


# %% wrong: first_argument_decides
"""No checkpoint if the first argument requires no gradient. [earns 4]"""

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
    if not any(torch.is_tensor(a) and a.requires_grad for a in args[:1]):
        return fn(*args)
    return Recompute.apply(fn, *args)


# %% wrong: numbers_and_none_only
"""Detaches every argument but numbers and None, so a module has none. [earns 4]"""
import torch


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args = fn, args
        ctx.state = torch.get_rng_state()
        return fn(*args)

    @staticmethod
    def backward(ctx, *gradients):
        plain = (int, float, bool, type(None))
        args = [
            a if isinstance(a, plain) else a.detach().requires_grad_(a.requires_grad)
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            result = ctx.fn(*args)
        torch.set_rng_state(now)
        results = result if isinstance(result, tuple) else (result,)
        ways = [(r, g) for r, g in zip(results, gradients) if r.requires_grad]
        torch.autograd.backward([r for r, _ in ways], [g for _, g in ways])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Recompute.apply(fn, *args)


# %% wrong: copies_of_modules
"""Copies all arguments that aren't tensors, modules among them. [earns 4]"""
import copy

import torch


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args = fn, args
        ctx.state = torch.get_rng_state()
        return fn(*args)

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else copy.deepcopy(a)
            for a in ctx.args
        ]
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            result = ctx.fn(*args)
        torch.set_rng_state(now)
        results = result if isinstance(result, tuple) else (result,)
        ways = [(r, g) for r, g in zip(results, gradients) if r.requires_grad]
        torch.autograd.backward([r for r, _ in ways], [g for _, g in ways])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Recompute.apply(fn, *args)


# %% right: weighted_sum
"""Backward from the sum of results times gradients; the RNG is forked."""
import torch


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn, ctx.args = fn, args
        ctx.state = torch.get_rng_state()
        return fn(*args)

    @staticmethod
    def backward(ctx, *gradients):
        args = [
            a.detach().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a for a in ctx.args
        ]
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(ctx.state)
            result = ctx.fn(*args)
            results = result if isinstance(result, tuple) else (result,)
            total = sum((r * g).sum() for r, g in zip(results, gradients) if r.requires_grad)
        total.backward()
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Recompute.apply(fn, *args)


# %% wrong: stack_of_states
"""All checkpoints share a stack of RNG states. [earns 5]"""

import torch
from peakmem.labs.lab04 import keep_arguments, kept_arguments

states = []


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn = fn
        keep_arguments(ctx, args)
        states.append(torch.get_rng_state())
        return fn(*args)

    @staticmethod
    def backward(ctx, *gradients):
        args = kept_arguments(ctx)
        now = torch.get_rng_state()
        torch.set_rng_state(states.pop())
        with torch.enable_grad():
            result = ctx.fn(*args)
        torch.set_rng_state(now)
        results = result if isinstance(result, tuple) else (result,)
        ways = [(r, g) for r, g in zip(results, gradients) if r.requires_grad]
        torch.autograd.backward([r for r, _ in ways], [g for _, g in ways])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)


def checkpoint(fn, *args):
    return Recompute.apply(fn, *args)

# %% wrong: result_on_ctx
"""Keeps the result on ctx, a cycle that is never freed. [earns 4]"""


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, fn, *args):
        ctx.fn = fn
        keep_arguments(ctx, args)
        ctx.rng = torch.get_rng_state()
        ctx.out = fn(*args)
        return ctx.out
    @staticmethod
    def backward(ctx, *gradients):
        args = kept_arguments(ctx)
        now = torch.get_rng_state()
        torch.set_rng_state(ctx.rng)
        with torch.enable_grad():
            results = ctx.fn(*args)
        torch.set_rng_state(now)
        if torch.is_tensor(results):
            results = (results,)
        pairs = [(r, g) for r, g in zip(results, gradients) if r.requires_grad]
        torch.autograd.backward([r for r, _ in pairs], [g for _, g in pairs])
        return None, *(a.grad if torch.is_tensor(a) else None for a in args)
def checkpoint(fn, *args):
    return Recompute.apply(fn, *args)

# %% right: saved_tensors_hooks
"""Hooks that pack a number and recompute at the first unpack."""

import torch
class _Again:
    def __init__(self, fn, args):
        self.fn, self.state, self.count, self.found = fn, torch.get_rng_state(), 0, None
        self.args = [(a.detach(), a.requires_grad) if torch.is_tensor(a) else a for a in args]
    def pack(self, tensor):
        self.count += 1
        return self.count - 1
    def unpack(self, index):
        if self.found is None:
            self.found = {}
            args = [a[0].detach().requires_grad_(a[1]) if isinstance(a, tuple) else a for a in self.args]
            found = []
            def keep(tensor):
                found.append(tensor.detach())
                return len(found) - 1
            now = torch.get_rng_state()
            torch.set_rng_state(self.state)
            with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda i: found[i]):
                self.fn(*args)
            torch.set_rng_state(now)
            self.found = dict(enumerate(found))
        return self.found.pop(index)
def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    again = _Again(fn, args)
    with torch.autograd.graph.saved_tensors_hooks(again.pack, again.unpack):
        return fn(*args)
