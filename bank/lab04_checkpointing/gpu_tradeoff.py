# %% right: clock
"""Wall clock between two synchronizations."""

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


import time

from peakmem.probes.lab04 import gpu_stack


def measure(segment_length):
    layers, x = gpu_stack()

    def step():
        run_in_segments(layers, x, segment_length).sum().backward()
        layers.zero_grad()
        x.grad = None

    for _ in range(2):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 3, torch.cuda.max_memory_allocated()


# %% right: events
"""The GPU's own events around one step."""

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


from peakmem.probes.lab04 import gpu_stack


def measure(segment_length):
    layers, x = gpu_stack()

    def step():
        run_in_segments(layers, x, segment_length).sum().backward()
        layers.zero_grad()
        x.grad = None

    for _ in range(2):
        step()
    torch.cuda.reset_peak_memory_stats()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    step()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000, torch.cuda.max_memory_allocated()


# %% right: meter
"""Peak by the meter, time by measure_call."""

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


from peakmem.meter import measure_call
from peakmem.probes.lab04 import gpu_stack


def measure(segment_length):
    layers, x = gpu_stack()

    def step():
        run_in_segments(layers, x, segment_length).sum().backward()
        layers.zero_grad()
        x.grad = None

    found = measure_call(step, device="cuda", warm_up=2)
    return found.seconds, found.peak_bytes


# %% wrong: first_step_too
"""Times the making of the stack and the first steps."""

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


import time

from peakmem.probes.lab04 import gpu_stack


def measure(segment_length):
    start = time.perf_counter()
    layers, x = gpu_stack()

    def step():
        run_in_segments(layers, x, segment_length).sum().backward()
        layers.zero_grad()
        x.grad = None

    for _ in range(2):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start), torch.cuda.max_memory_allocated()


# %% wrong: gibibytes
"""Returns the peak in GiB."""

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


import time

from peakmem.probes.lab04 import gpu_stack


def measure(segment_length):
    layers, x = gpu_stack()

    def step():
        run_in_segments(layers, x, segment_length).sum().backward()
        layers.zero_grad()
        x.grad = None

    for _ in range(2):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 3, torch.cuda.max_memory_allocated() / 2**30


# %% wrong: live_after
"""Reads the bytes after the step."""

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


import time

from peakmem.probes.lab04 import gpu_stack


def measure(segment_length):
    layers, x = gpu_stack()

    def step():
        run_in_segments(layers, x, segment_length).sum().backward()
        layers.zero_grad()
        x.grad = None

    for _ in range(2):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 3, torch.cuda.memory_allocated()


# %% wrong: milliseconds
"""Returns milliseconds."""

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


from peakmem.probes.lab04 import gpu_stack


def measure(segment_length):
    layers, x = gpu_stack()

    def step():
        run_in_segments(layers, x, segment_length).sum().backward()
        layers.zero_grad()
        x.grad = None

    for _ in range(2):
        step()
    torch.cuda.reset_peak_memory_stats()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    step()
    end.record()
    end.synchronize()
    return start.elapsed_time(end), torch.cuda.max_memory_allocated()


# %% wrong: no_checkpoint
"""Runs the layers without segments."""

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


import time

from peakmem.probes.lab04 import gpu_stack


def measure(segment_length):
    layers, x = gpu_stack()

    def step():
        run_in_segments(layers, x, len(layers)).sum().backward()
        layers.zero_grad()
        x.grad = None

    for _ in range(2):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 3, torch.cuda.max_memory_allocated()


# %% wrong: not_synchronized
"""Does not wait for the GPU."""

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


import time

from peakmem.probes.lab04 import gpu_stack


def measure(segment_length):
    layers, x = gpu_stack()

    def step():
        run_in_segments(layers, x, segment_length).sum().backward()
        layers.zero_grad()
        x.grad = None

    for _ in range(2):
        step()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    for _ in range(3):
        step()
    return (time.perf_counter() - start) / 3, torch.cuda.max_memory_allocated()


# %% wrong: peak_not_reset
"""Never resets the peak."""

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


import time

from peakmem.probes.lab04 import gpu_stack


def measure(segment_length):
    layers, x = gpu_stack()

    def step():
        run_in_segments(layers, x, segment_length).sum().backward()
        layers.zero_grad()
        x.grad = None

    for _ in range(2):
        step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 3, torch.cuda.max_memory_allocated()
