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
