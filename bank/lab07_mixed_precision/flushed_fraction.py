# %% right: counts
"""Two counters over the tensors."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    nonzero = flushed = 0
    for grad in grads:
        low = (grad * scale).to(dtypes[dtype])
        nonzero += int((grad != 0).sum())
        flushed += int(((grad != 0) & (low == 0)).sum())
    return flushed / nonzero if nonzero else 0.0


# %% right: one_vector
"""All values in one vector."""

import torch


def flushed_fraction(grads, dtype, scale):
    if dtype not in ("float16", "bfloat16"):
        raise ValueError(dtype)
    values = torch.cat([torch.zeros(1)] + [g.flatten() for g in grads])
    values = values[values != 0]
    if values.numel() == 0:
        return 0.0
    return (values.mul(scale).to(getattr(torch, dtype)) == 0).double().mean().item()


# %% right: python_loop
"""One value at a time."""

import torch


def flushed_fraction(grads, dtype, scale):
    kinds = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    try:
        kind = kinds[dtype]
    except KeyError:
        raise ValueError("float16 or bfloat16, not " + dtype)
    values = [v for g in grads for v in g.flatten().tolist() if v != 0.0]
    if not values:
        return 0.0
    return sum(torch.tensor(v * scale).to(kind).item() == 0 for v in values) / len(values)


# %% right: thresholds
"""No cast: half the smallest subnormal is known."""

import numpy as np

LIMITS = {"float16": 2.0**-25, "bfloat16": 2.0**-134}


def flushed_fraction(grads, dtype, scale):
    if dtype not in LIMITS:
        raise ValueError(dtype)
    total = lost = 0
    for grad in grads:
        sizes = np.abs(grad.numpy().astype(np.float64)) * scale
        total += np.count_nonzero(sizes)
        lost += np.count_nonzero((sizes > 0) & (sizes <= LIMITS[dtype]))
    return np.float64(lost / total) if total else 0


# %% wrong: always_float16
"""Ignores the dtype."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    nonzero = flushed = 0
    for grad in grads:
        low = (grad * scale).half()
        nonzero += int((grad != 0).sum())
        flushed += int(((grad != 0) & (low == 0)).sum())
    return flushed / nonzero if nonzero else 0.0


# %% wrong: below_normal
"""Counts subnormal numbers as lost."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    nonzero = flushed = 0
    for grad in grads:
        low = (grad * scale).to(dtypes[dtype])
        nonzero += int((grad != 0).sum())
        flushed += int(
            ((grad != 0) & ((grad * scale).abs() <= torch.finfo(dtypes[dtype]).tiny)).sum()
        )
    return flushed / nonzero if nonzero else 0.0


# %% wrong: bfloat16_never
"""Takes nothing in bfloat16 for flushed."""

import torch


def flushed_fraction(grads, dtype, scale):
    if dtype not in ("float16", "bfloat16"):
        raise ValueError(dtype)
    if dtype == "bfloat16":
        return 0.0
    values = torch.cat([torch.zeros(0), *(g.flatten() for g in grads)])
    values = values[values != 0]
    return float(((values * scale).half() == 0).double().mean()) if len(values) else 0.0


# %% wrong: counts_zeros
"""Zeros count as flushed."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    nonzero = flushed = 0
    for grad in grads:
        low = (grad * scale).to(dtypes[dtype])
        nonzero += grad.numel()
        flushed += int((low == 0).sum())
    return flushed / nonzero if nonzero else 0.0


# %% wrong: divides_by_scale
"""Divides by the scale."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    nonzero = flushed = 0
    for grad in grads:
        low = (grad / scale).to(dtypes[dtype])
        nonzero += int((grad != 0).sum())
        flushed += int(((grad != 0) & (low == 0)).sum())
    return flushed / nonzero if nonzero else 0.0


# %% wrong: divides_by_zero
"""No guard for no values."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    nonzero = flushed = 0
    for grad in grads:
        low = (grad * scale).to(dtypes[dtype])
        nonzero += int((grad != 0).sum())
        flushed += int(((grad != 0) & (low == 0)).sum())
    return flushed / nonzero


# %% wrong: mean_of_tensors
"""Takes the mean of the shares."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    shares = []
    for grad in grads:
        low = (grad * scale).to(dtypes[dtype])
        nonzero = int((grad != 0).sum())
        flushed = int(((grad != 0) & (low == 0)).sum())
        shares.append(flushed / nonzero if nonzero else 0.0)
    return sum(shares) / len(shares) if shares else 0.0


# %% wrong: nan_where_none
"""NaN where there is no value."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    nonzero = flushed = 0
    for grad in grads:
        low = (grad * scale).to(dtypes[dtype])
        nonzero += int((grad != 0).sum())
        flushed += int(((grad != 0) & (low == 0)).sum())
    return flushed / nonzero if nonzero else float("nan")


# %% wrong: overflow_counted
"""Lost is what is not finite or 0 after the cast, so an overflow counts as well."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(dtype)
    nonzero = alive = 0
    for g in grads:
        low = (g[g != 0] * scale).to(dtypes[dtype])
        nonzero += low.numel()
        alive += int((low.isfinite() & (low != 0)).sum())
    return 1 - alive / nonzero if nonzero else 0.0


# %% wrong: percent
"""A percentage."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    nonzero = flushed = 0
    for grad in grads:
        low = (grad * scale).to(dtypes[dtype])
        nonzero += int((grad != 0).sum())
        flushed += int(((grad != 0) & (low == 0)).sum())
    return 100 * flushed / nonzero if nonzero else 0.0


# %% wrong: scale_ignored
"""Casts without scaling."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    nonzero = flushed = 0
    for grad in grads:
        low = grad.to(dtypes[dtype])
        nonzero += int((grad != 0).sum())
        flushed += int(((grad != 0) & (low == 0)).sum())
    return flushed / nonzero if nonzero else 0.0


# %% wrong: scales_in_place
"""Scales the gradients themselves."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    nonzero = flushed = 0
    for grad in grads:
        low = grad.mul_(scale).to(dtypes[dtype])
        nonzero += int((grad != 0).sum())
        flushed += int(((grad != 0) & (low == 0)).sum())
    return flushed / nonzero if nonzero else 0.0


# %% wrong: share_of_all
"""Divides by the number of all values."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    nonzero = flushed = 0
    for grad in grads:
        low = (grad * scale).to(dtypes[dtype])
        nonzero += grad.numel()
        flushed += int(((grad != 0) & (low == 0)).sum())
    return flushed / nonzero if nonzero else 0.0


# %% wrong: smallest_positive
"""All below the smallest positive number counts as flushed."""


def flushed_fraction(grads, dtype, scale):
    smallest = {"float16": 2.0**-24, "bfloat16": 2.0**-133}
    if dtype not in smallest:
        raise ValueError(dtype)
    nonzero = flushed = 0
    for g in grads:
        v = (g[g != 0].double() * scale).abs()
        nonzero += v.numel()
        flushed += int((v < smallest[dtype]).sum())
    return flushed / nonzero if nonzero else 0.0


# %% wrong: survivors
"""The share that is left."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(f"unknown dtype {dtype!r}")
    nonzero = flushed = 0
    for grad in grads:
        low = (grad * scale).to(dtypes[dtype])
        nonzero += int((grad != 0).sum())
        flushed += int(((grad != 0) & (low == 0)).sum())
    return 1 - flushed / nonzero if nonzero else 1.0


# %% wrong: any_dtype_of_torch
"""Takes every name of a dtype that torch has, float32 too."""
import torch


def flushed_fraction(grads, dtype, scale):
    low = getattr(torch, dtype, None)
    if low is None:
        raise ValueError(dtype)
    nonzero = flushed = 0
    for grad in grads:
        counted = grad != 0
        nonzero += counted.sum().item()
        flushed += (counted & ((grad * scale).to(low) == 0)).sum().item()
    return flushed / nonzero if nonzero else 0.0


# %% wrong: nonzero_after_the_product
"""Counts as nonzero what is nonzero after the product."""

import torch

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def flushed_fraction(grads, dtype, scale):
    if dtype not in DTYPES:
        raise ValueError(dtype)
    nonzero = flushed = 0
    for grad in grads:
        grad = grad * scale
        counted = grad != 0
        nonzero += int(counted.sum())
        flushed += int((counted & (grad.to(DTYPES[dtype]) == 0)).sum())
    return flushed / nonzero if nonzero else 0.0


# %% wrong: casts_first
"""Casts, and then scales."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(dtype)
    nonzero = flushed = 0
    for grad in grads:
        counted = grad != 0
        nonzero += int(counted.sum())
        flushed += int((counted & ((grad.to(dtypes[dtype]) * scale) == 0)).sum())
    return flushed / nonzero if nonzero else 0.0


# %% wrong: no_scalars
"""Goes through a tensor's rows, which one without dimensions has none of."""

import torch


def flushed_fraction(grads, dtype, scale):
    dtypes = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in dtypes:
        raise ValueError(dtype)
    nonzero = flushed = 0
    for grad in grads:
        grad = torch.stack([row for row in grad]).reshape(len(grad), -1)
        counted = grad != 0
        nonzero += int(counted.sum())
        flushed += int((counted & ((grad * scale).to(dtypes[dtype]) == 0)).sum())
    return flushed / nonzero if nonzero else 0.0


# %% wrong: finite_only
"""Leaves out what overflows, in the count of nonzero values too."""
import torch
def flushed_fraction(grads, dtype, scale):
    low = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in low: raise ValueError
    z = f = 0
    for g in grads:
        c = (g*scale).to(low[dtype])
        ok = (g != 0) & c.isfinite()
        z += int(ok.sum()); f += int((ok & (c == 0)).sum())
    return f / z if z else 0.0


# %% wrong: scale_in_low
"""Casts the scale as well, and 2^17 is inf in float16."""
import torch
def flushed_fraction(grads, dtype, scale):
    low = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in low: raise ValueError
    scale = torch.tensor(scale, dtype=low[dtype]).float()
    z = sum(int((g != 0).sum()) for g in grads)
    f = sum(int(((g != 0) & ((g*scale).to(low[dtype]) == 0)).sum()) for g in grads)
    return f / z if z else 0.0


# %% wrong: part_of_a_name
"""Takes every part of the name bfloat16 for a dtype."""
import torch
def flushed_fraction(grads, dtype, scale):
    if dtype not in "bfloat16":
        raise ValueError
    low = getattr(torch, dtype)
    z = sum(int((g != 0).sum()) for g in grads)
    f = sum(int(((g != 0) & ((g*scale).to(low) == 0)).sum()) for g in grads)
    return f / z if z else 0.0


# %% wrong: other_names
"""Knows other names of the two dtypes."""
import torch
def flushed_fraction(grads, dtype, scale):
    low = {"float16": torch.float16, "half": torch.float16, "bfloat16": torch.bfloat16, "fp16": torch.float16, "bf16": torch.bfloat16, "torch.float16": torch.float16}.get(dtype)
    if low is None: raise ValueError
    z = sum(int((g != 0).sum()) for g in grads)
    f = sum(int(((g != 0) & ((g*scale).to(low) == 0)).sum()) for g in grads)
    return f / z if z else 0.0


# %% wrong: looks_at_dtype_late
"""Looks at the dtype only once there is a tensor."""
import torch
def flushed_fraction(grads, dtype, scale):
    z, f = 0, 0
    for g in grads:
        if dtype not in ("float16", "bfloat16"): raise ValueError
        z += int((g != 0).sum()); f += int(((g != 0) & ((g*scale).to(getattr(torch, dtype)) == 0)).sum())
    return f / z if z else 0.0


# %% right: counts_nonzero
"""Counts what is nonzero before and after."""
import torch
def flushed_fraction(grads, dtype, scale):
    match dtype:
        case "float16": low = torch.half
        case "bfloat16": low = torch.bfloat16
        case _: raise ValueError(f"{dtype=}")
    before = sum(g.count_nonzero().item() for g in grads)
    after = sum((g.mul(scale)).to(low).count_nonzero().item() for g in grads)
    return (before - after) / (before or 1)


# %% wrong: spellings
"""Takes names with torch's prefix, in any letters."""

import torch

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def flushed_fraction(grads, dtype, scale):
    name = dtype.lower().removeprefix("torch.").strip()
    if name not in DTYPES:
        raise ValueError(dtype)
    nonzero = sum(int((grad != 0).sum()) for grad in grads)
    left = sum(int(((grad * scale).to(DTYPES[name]) != 0).sum()) for grad in grads)
    return 1 - left / nonzero if nonzero else 0.0


# %% wrong: strict_in_bfloat16
"""Compares with half of the smallest number, which it takes for a survivor in bfloat16 only."""
import torch


def flushed_fraction(grads, dtype, scale):
    if dtype not in ("float16", "bfloat16"):
        raise ValueError(dtype)
    nonzero = flushed = 0
    for grad in grads:
        sizes = grad[grad != 0].double().abs() * scale
        lost = sizes <= 2.0**-25 if dtype == "float16" else sizes < 2.0**-134
        nonzero += sizes.numel()
        flushed += int(lost.sum())
    return flushed / nonzero if nonzero else 0.0


# %% wrong: one_value_is_none
"""Takes a single nonzero value for none."""
import torch


def flushed_fraction(grads, dtype, scale):
    if dtype not in ("float16", "bfloat16"):
        raise ValueError(dtype)
    nonzero = sum(int((grad != 0).sum()) for grad in grads)
    if nonzero <= 1:
        return 0.0
    low = getattr(torch, dtype)
    return 1 - sum(int(((grad * scale).to(low) != 0).sum()) for grad in grads) / nonzero


# %% right: one_vector_of_nonzero_values
"""Joins all nonzero values into one vector, after an empty one."""
import torch


def flushed_fraction(grads, dtype, scale):
    try:
        low = dict(float16=torch.float16, bfloat16=torch.bfloat16)[dtype]
    except KeyError:
        raise ValueError(dtype) from None
    flat = torch.cat([torch.zeros(0), *(grad.reshape(-1) for grad in grads)])
    flat = flat[flat.ne(0)]
    return torch.mul(flat, scale).to(low).eq(0).double().mean() if len(flat) else 0.0


# %% wrong: below_finfo_tiny
"""Values below the smallest normal number."""
import torch


def flushed_fraction(grads, dtype, scale):
    if dtype not in ("float16", "bfloat16"):
        raise ValueError(dtype)
    tiny = torch.finfo(getattr(torch, dtype)).tiny
    n = z = 0
    for g in grads:
        nz = g[g != 0].double() * scale
        n += nz.numel()
        z += int((nz.abs() < tiny).sum())
    return z / n if n else 0.0
