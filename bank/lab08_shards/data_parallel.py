# %% right: by_hooks
"""A hook on each parameter, after its gradient is added up."""

from contextlib import contextmanager

import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
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

    def forward(self, x):
        return self.module(x)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        try:
            yield
        finally:
            self.syncs = True


# %% right: no_module
"""A plain class; divides before it sums; a flag kept on a stack."""

from contextlib import contextmanager

import torch
import torch.distributed as dist


class DataParallel:
    def __init__(self, module):
        self.module, self.quiet = module, [False]
        with torch.no_grad():
            for tensor in module.state_dict().values():
                dist.broadcast(tensor, src=0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.exchange)

    def exchange(self, p):
        if not self.quiet[-1]:
            p.grad.div_(dist.get_world_size())
            dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)

    def __call__(self, *inputs):
        return self.module(*inputs)

    @contextmanager
    def no_sync(self):
        self.quiet.append(True)
        try:
            yield
        finally:
            self.quiet.pop()


# %% right: once_at_the_end
"""One exchange of all gradients, when backward is done."""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.enabled, self.waiting = module, True, False
        for tensor in module.state_dict().values():
            self.send(tensor)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.note)

    def send(self, tensor):
        if dist.get_rank() == 0:
            for other in range(1, dist.get_world_size()):
                dist.send(tensor.detach(), other)
        else:
            dist.recv(tensor.detach(), 0)

    def note(self, p):
        if self.enabled and not self.waiting:
            self.waiting = True
            torch.autograd.Variable._execution_engine.queue_callback(self.exchange)

    def exchange(self):
        self.waiting = False
        there = [p.grad for p in self.module.parameters() if p.grad is not None]
        flat = torch.cat([g.flatten() for g in there])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for g, part in zip(there, flat.split([g.numel() for g in there])):
            g.copy_(part.view_as(g))

    def forward(self, *args, **options):
        return self.module(*args, **options)

    @contextmanager
    def no_sync(self):
        before, self.enabled = self.enabled, False
        yield
        self.enabled = before


# %% wrong: own_start
"""Nothing is sent at the start. [earns 3]"""

from contextlib import contextmanager

import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.syncs = True
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if self.syncs:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

    def forward(self, x):
        return self.module(x)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        try:
            yield
        finally:
            self.syncs = True


# %% wrong: own_buffers
"""Buffers are not sent. [earns 3]"""

from contextlib import contextmanager

import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.syncs = True
        for tensor in module.parameters():
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if self.syncs:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

    def forward(self, x):
        return self.module(x)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        try:
            yield
        finally:
            self.syncs = True


# %% wrong: own_frozen
"""Only what is trained is sent, and the buffers. [earns 3]"""

from contextlib import contextmanager

import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.syncs = True
        for tensor in [*(p for p in module.parameters() if p.requires_grad), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if self.syncs:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

    def forward(self, x):
        return self.module(x)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        try:
            yield
        finally:
            self.syncs = True


# %% wrong: last_rank
"""The last rank's tensors are sent. [earns 3]"""

from contextlib import contextmanager

import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.syncs = True
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, dist.get_world_size() - 1)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if self.syncs:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

    def forward(self, x):
        return self.module(x)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        try:
            yield
        finally:
            self.syncs = True


# %% wrong: sums
"""Gradients are summed and not averaged. [earns 1]"""

from contextlib import contextmanager

import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
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

    def forward(self, x):
        return self.module(x)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        try:
            yield
        finally:
            self.syncs = True


# %% wrong: own
"""No exchange. [earns 1]"""

from contextlib import contextmanager

import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.syncs = True
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        pass

    def forward(self, x):
        return self.module(x)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        try:
            yield
        finally:
            self.syncs = True


# %% wrong: divided_twice
"""Divided before and after. [earns 1]"""

from contextlib import contextmanager

import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.syncs = True
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if self.syncs:
            p.grad /= dist.get_world_size()
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

    def forward(self, x):
        return self.module(x)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        try:
            yield
        finally:
            self.syncs = True


# %% wrong: last_pass
"""Each pass's gradient takes the place of the last. [earns 1]"""

from contextlib import contextmanager

import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.syncs, self.added = True, {}
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if self.syncs:
            before = self.added.get(p, 0)
            self.added[p] = p.grad.clone()
            p.grad -= before
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
            self.added[p] = p.grad.clone()

    def forward(self, x):
        return self.module(x)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        try:
            yield
        finally:
            self.syncs = True


# %% wrong: talks_always
"""no_sync() changes nothing. [earns 3]"""

from contextlib import contextmanager

import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
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

    def forward(self, x):
        return self.module(x)

    @contextmanager
    def no_sync(self):
        self.syncs = True
        try:
            yield
        finally:
            self.syncs = True


# %% wrong: quiet_left_out
"""Only the part that comes in is averaged. [earns 3]"""

from contextlib import contextmanager

import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.syncs = True
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_hook(self.average)

    def average(self, gradient):
        if self.syncs:
            gradient = gradient.clone()
            dist.all_reduce(gradient)
            gradient /= dist.get_world_size()
        return gradient

    def forward(self, x):
        return self.module(x)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        try:
            yield
        finally:
            self.syncs = True


# %% wrong: never_again
"""After no_sync() it never talks again. [earns 3]"""

from contextlib import contextmanager

import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
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

    def forward(self, x):
        return self.module(x)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        try:
            yield
        finally:
            pass


# %% wrong: unused_not_there
"""A parameter that no input passes has no gradient to send. [earns 1]"""

from contextlib import contextmanager

import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.syncs = True
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                pass

    def forward(self, x):
        output = self.module(x)
        output.register_hook(self.later)
        return output

    def later(self, gradient):
        import torch

        torch.autograd.Variable._execution_engine.queue_callback(self.average)

    def average(self):
        for p in self.module.parameters():
            if self.syncs:
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()

    @contextmanager
    def no_sync(self):
        self.syncs = False
        try:
            yield
        finally:
            self.syncs = True


# %% wrong: wraps
"""torch's own. [earns 0]"""

from torch.nn.parallel import DistributedDataParallel


class DataParallel(DistributedDataParallel):
    pass


# %% right: flags
"""state_dict for the start; a flag in a list; averages by ReduceOp.SUM of a divided gradient."""

from contextlib import contextmanager
import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        for t in module.state_dict().values():
            dist.broadcast(t, src=0)
        self.flags = [True]
        for p in filter(lambda p: p.requires_grad, module.parameters()):
            p.register_post_accumulate_grad_hook(self._mean)

    def _mean(self, p):
        if self.flags[-1]:
            p.grad /= dist.get_world_size()
            dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)

    def forward(self, *inputs, **options):
        return self.module(*inputs, **options)

    @contextmanager
    def no_sync(self):
        self.flags.append(False)
        yield
        self.flags.pop()


# %% right: context_class
"""no_sync returns an object with __enter__ and __exit__; no subclass of nn.Module."""

import torch
import torch.distributed as dist


class Quiet:
    def __init__(self, owner):
        self.owner = owner

    def __enter__(self):
        self.owner.talk = False

    def __exit__(self, *error):
        self.owner.talk = True


class DataParallel:
    def __init__(self, module):
        self.module, self.talk = module, True
        with torch.no_grad():
            for t in [*module.parameters(), *module.buffers()]:
                dist.broadcast(t, 0)

        def hook(p, self=self):
            if self.talk:
                g = p.grad.clone()
                dist.all_reduce(g)
                p.grad = g / dist.get_world_size()

        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(hook)

    def __call__(self, *inputs):
        return self.module(*inputs)

    def no_sync(self):
        return Quiet(self)


# %% right: gathered_means
"""all_gather and a mean over a stack."""

from contextlib import contextmanager
import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    quiet = False

    def __init__(self, module):
        super().__init__()
        self.inner = module
        for t in list(module.parameters()) + list(module.buffers()):
            dist.broadcast(t.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.exchange)

    def exchange(self, p):
        if self.quiet:
            return
        every = [torch.empty_like(p.grad) for _ in range(dist.get_world_size())]
        dist.all_gather(every, p.grad)
        p.grad.copy_(torch.stack(every).mean(0))

    def forward(self, *xs):
        return self.inner(*xs)

    @contextmanager
    def no_sync(self):
        before, self.quiet = self.quiet, True
        try:
            yield
        finally:
            self.quiet = before


# %% wrong: tensor_hook
"""A hook on the tensor: it sees the pass's gradient before it is added; what is quiet is never exchanged. [earns 3]"""

from contextlib import contextmanager
import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.sync = module, True
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_hook(self.f)

    def f(self, g):
        if self.sync:
            g = g.clone()
            dist.all_reduce(g)
            g /= dist.get_world_size()
        return g

    def forward(self, *x):
        return self.module(*x)

    @contextmanager
    def no_sync(self):
        self.sync = False
        yield
        self.sync = True


# %% wrong: two_as_world
"""The world is taken to have two ranks. [earns 1]"""

from contextlib import contextmanager
import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.sync = module, True
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.f)

    def f(self, p):
        if self.sync:
            dist.all_reduce(p.grad)
            p.grad /= 2

    def forward(self, *x):
        return self.module(*x)

    @contextmanager
    def no_sync(self):
        self.sync = False
        yield
        self.sync = True


# %% wrong: through_float32
"""Gradients travel in float32. [earns 1]"""

from contextlib import contextmanager
import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.sync = module, True
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.f)

    def f(self, p):
        if self.sync:
            g = p.grad.float()
            dist.all_reduce(g)
            p.grad.copy_(g / dist.get_world_size())

    def forward(self, *x):
        return self.module(*x)

    @contextmanager
    def no_sync(self):
        self.sync = False
        yield
        self.sync = True


# %% wrong: a_copy_of_the_module
"""A deep copy of the module is trained: the module's own gradients stay None. [earns 1]"""

import copy
from contextlib import contextmanager
import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.data, 0)
        self.module, self.sync = copy.deepcopy(module), True
        for p in self.module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.f)

    def f(self, p):
        if self.sync:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

    def forward(self, *x):
        return self.module(*x)

    @contextmanager
    def no_sync(self):
        self.sync = False
        yield
        self.sync = True


# %% wrong: quiet_discards
"""Quiet passes' gradients are dropped. [earns 3]"""

from contextlib import contextmanager
import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.sync = module, True
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.f)

    def f(self, p):
        if self.sync:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

    def forward(self, *x):
        return self.module(*x)

    @contextmanager
    def no_sync(self):
        self.sync = False
        yield
        self.sync = True
        self.module.zero_grad()


# %% right: hook_with_both
"""A tensor hook on p, and what was quiet is in p.grad: both are exchanged together."""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.is_on = [True]
        for t in module.state_dict().values():
            dist.broadcast(t, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_hook(self.make(p))

    def make(self, p):
        def hook(g):
            if not self.is_on[0]:
                return None
            held = g if p.grad is None else g + p.grad
            held = held / dist.get_world_size()
            dist.all_reduce(held)
            return held if p.grad is None else held - p.grad

        return hook

    def forward(self, *i, **k):
        return self.module(*i, **k)

    @contextmanager
    def no_sync(self):
        self.is_on[0] = False
        try:
            yield
        finally:
            self.is_on[0] = True


# %% wrong: unused_filled
"""Parameters that nobody used get gradients of zeros. [earns 2]"""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
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

    def forward(self, *inputs):
        for p in self.module.parameters():
            if p.grad is None and p.requires_grad:
                p.grad = torch.zeros_like(p)
        return self.module(*inputs)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        yield
        self.syncs = True


# %% wrong: first_pass_of_a_block
"""no_sync() silences one pass, not a block: the first backward resets the flag. [earns 3]"""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.syncs, self.waiting = True, False
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if not self.waiting:
            self.waiting = True
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        if self.syncs:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

    def finish(self):
        self.waiting, self.syncs = False, True

    def forward(self, *inputs):
        return self.module(*inputs)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        yield
        self.syncs = True


# %% wrong: exchange_at_the_end_of_the_block
"""The end of no_sync() exchanges what was added up, and so does the next pass. [earns 3]"""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
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

    def forward(self, *inputs):
        return self.module(*inputs)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        yield
        self.syncs = True
        for p in self.module.parameters():
            if p.grad is not None:
                self.average(p)


# %% wrong: quiet_first_pass_talks
"""The first pass ever is exchanged, even in no_sync(). [earns 3]"""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.syncs, self.passes = True, 0
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if self.syncs or self.passes == 1:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

    def forward(self, *inputs):
        self.passes += 1
        return self.module(*inputs)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        yield
        self.syncs = True


# %% wrong: mean_over_passes
"""The next pass outside divides by the number of passes, too. [earns 3]"""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.syncs, self.quiet = True, 0
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if self.syncs:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size() * (1 + self.quiet)

    def forward(self, *inputs):
        return self.module(*inputs)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        self.quiet += 1
        yield
        self.syncs = True


# %% wrong: mean_of_the_start
"""All start from the mean of the ranks. [earns 3]"""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.syncs = True
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.all_reduce(tensor.data)
            tensor.data /= dist.get_world_size()
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if self.syncs:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

    def forward(self, *inputs):
        return self.module(*inputs)

    @contextmanager
    def no_sync(self):
        self.syncs = False
        yield
        self.syncs = True


# %% wrong: torchs_own_by_data
"""Wraps torch's own, which it finds by a name that no constant holds."""

from contextlib import contextmanager
from functools import reduce

import torch
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        make = reduce(getattr, "nn parallel DistributedDataParallel".split(), torch)
        self.inner = make(module, find_unused_parameters=True)
        self.module = module

    def forward(self, *inputs):
        return self.inner(*inputs)

    @contextmanager
    def no_sync(self):
        with self.inner.no_sync():
            yield


# %% right: reduced_and_broadcast
"""Reduce to rank 0, divide, broadcast; an ExitStack for no_sync."""

from contextlib import ExitStack

import torch
import torch.distributed as dist


class DataParallel(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.net = module
        self.depth = 0
        with torch.no_grad():
            for t in list(module.parameters()) + list(module.buffers()):
                if dist.get_rank():
                    t.zero_()
                dist.all_reduce(t)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.mean)

    def mean(self, p):
        if self.depth:
            return
        dist.reduce(p.grad, 0)
        if dist.get_rank() == 0:
            p.grad.div_(dist.get_world_size())
        dist.broadcast(p.grad, 0)

    def forward(self, *args, **kwargs):
        return self.net(*args, **kwargs)

    def no_sync(self):
        self.depth += 1
        stack = ExitStack()
        stack.callback(lambda: setattr(self, "depth", self.depth - 1))
        return stack


# %% wrong: stash_stays
"""What was quiet is kept beside, and added to every later exchange. [earns 3]"""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.quiet, self.stash = module, False, {}
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_hook(self.make(p))

    def make(self, p):
        def hook(g):
            if self.quiet:
                self.stash[p] = self.stash.get(p, 0) + g
                return torch.zeros_like(g)
            g = g + self.stash.get(p, 0)
            dist.all_reduce(g)
            return g / dist.get_world_size()

        return hook

    def forward(self, *inputs):
        return self.module(*inputs)

    @contextmanager
    def no_sync(self):
        self.quiet = True
        yield
        self.quiet = False


# %% right: less_the_last_mean
"""Exchanges the difference from the last mean, which is the same on all ranks."""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.quiet, self.base = module, False, {}
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if self.quiet:
            return
        new = p.grad - self.base.get(p, 0)
        dist.all_reduce(new)
        p.grad = self.base.get(p, 0) + new / dist.get_world_size()
        self.base[p] = p.grad.clone()

    def forward(self, *inputs):
        return self.module(*inputs)

    @contextmanager
    def no_sync(self):
        self.quiet = True
        yield
        self.quiet = False


# %% wrong: totals_stay
"""Adds up the means itself, and goes on with old ones after zero_grad(). [earns 1]"""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.quiet = module, False
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.total, p.new = torch.zeros_like(p), torch.zeros_like(p)
                p.register_hook(lambda g, new=p.new: self.note(new, g))
                p.register_post_accumulate_grad_hook(self.average)

    def note(self, new, g):
        new += g

    def average(self, p):
        if self.quiet:
            return
        dist.all_reduce(p.new)
        p.total += p.new / dist.get_world_size()
        p.new.zero_()
        p.grad = p.total.clone()

    def forward(self, *inputs):
        return self.module(*inputs)

    @contextmanager
    def no_sync(self):
        self.quiet = True
        yield
        self.quiet = False


# %% wrong: float_buffers
"""Only floating-point buffers are sent. [earns 3]"""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.quiet = module, False
        for tensor in [*module.parameters(), *module.buffers()]:
            if tensor.is_floating_point():
                dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if not self.quiet:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

    def forward(self, *inputs):
        return self.module(*inputs)

    @contextmanager
    def no_sync(self):
        self.quiet = True
        yield
        self.quiet = False


# %% wrong: first_pass_after_a_block
"""Exchanges in the first pass after no_sync() only. [earns 3]"""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.quiet, self.done = module, None, set()
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if self.quiet is None or (not self.quiet and p not in self.done):
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
            if self.quiet is not None:
                self.done.add(p)

    def forward(self, *inputs):
        return self.module(*inputs)

    @contextmanager
    def no_sync(self):
        self.quiet = True
        yield
        self.quiet = False
        self.done.clear()


# %% wrong: top_level
"""Only tensors of the module itself and of its children are sent, not deeper ones. [earns 3]"""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module, self.quiet = module, False
        for part in [module, *module.children()]:
            for tensor in [*part.parameters(recurse=False), *part.buffers(recurse=False)]:
                dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if not self.quiet:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

    def forward(self, *inputs):
        return self.module(*inputs)

    @contextmanager
    def no_sync(self):
        self.quiet = True
        yield
        self.quiet = False


# %% wrong: shares_its_state
"""All replicas share a switch, which is the class's. [earns 3]"""

from contextlib import contextmanager

import torch.distributed as dist
from torch import nn


class DataParallel(nn.Module):
    syncs = True

    def __init__(self, module):
        super().__init__()
        self.module = module
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)
        for p in module.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.average)

    def average(self, p):
        if DataParallel.syncs:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

    def forward(self, *inputs):
        return self.module(*inputs)

    @contextmanager
    def no_sync(self):
        DataParallel.syncs = False
        yield
        DataParallel.syncs = True
