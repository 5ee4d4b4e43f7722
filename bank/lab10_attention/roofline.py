# %% right: two_times
"""Both times are compared."""


def bound_by(flops, bytes, accelerator):
    compute = flops / accelerator.flops_per_s("fp16")
    memory = bytes / accelerator.bandwidth_bytes_per_s
    return "compute" if compute > memory else "memory"


def least_seconds(flops, bytes, accelerator):
    compute = flops / accelerator.flops_per_s("fp16")
    memory = bytes / accelerator.bandwidth_bytes_per_s
    return max(compute, memory)


# %% right: by_intensity
"""Flops a byte are compared with the ridge."""


def ridge(accelerator):
    return accelerator.flops_per_s("fp16") / accelerator.bandwidth_bytes_per_s


def bound_by(flops, bytes, accelerator):
    return "memory" if flops / bytes < ridge(accelerator) else "compute"


def least_seconds(flops, bytes, accelerator):
    if bound_by(flops, bytes, accelerator) == "memory":
        return bytes / accelerator.bandwidth_bytes_per_s
    return flops / accelerator.flops_per_s("fp16")


# %% right: numpy
"""numpy's numbers, and the table of rates itself."""

import numpy as np


def least_seconds(flops, bytes, accelerator):
    rates = np.array([accelerator.tflops["fp16"] * 1e12, accelerator.bandwidth_bytes_per_s])
    return np.max(np.array([flops, bytes]) / rates)


def bound_by(flops, bytes, accelerator):
    names = ["compute", "memory"]
    rates = np.array([accelerator.tflops["fp16"] * 1e12, accelerator.bandwidth_bytes_per_s])
    return names[np.argmax(np.array([flops, bytes]) / rates)]


# %% wrong: sum_of_both
"""One after the other."""


def bound_by(flops, bytes, accelerator):
    compute = flops / accelerator.flops_per_s("fp16")
    memory = bytes / accelerator.bandwidth_bytes_per_s
    return "compute" if compute > memory else "memory"


def least_seconds(flops, bytes, accelerator):
    compute = flops / accelerator.flops_per_s("fp16")
    memory = bytes / accelerator.bandwidth_bytes_per_s
    return compute + memory


# %% wrong: shorter_one
"""The shorter time."""


def bound_by(flops, bytes, accelerator):
    compute = flops / accelerator.flops_per_s("fp16")
    memory = bytes / accelerator.bandwidth_bytes_per_s
    return "compute" if compute > memory else "memory"


def least_seconds(flops, bytes, accelerator):
    compute = flops / accelerator.flops_per_s("fp16")
    memory = bytes / accelerator.bandwidth_bytes_per_s
    return min(compute, memory)


# %% wrong: names_swapped
"""The other name."""


def bound_by(flops, bytes, accelerator):
    compute = flops / accelerator.flops_per_s("fp16")
    memory = bytes / accelerator.bandwidth_bytes_per_s
    return "compute" if compute < memory else "memory"


def least_seconds(flops, bytes, accelerator):
    compute = flops / accelerator.flops_per_s("fp16")
    memory = bytes / accelerator.bandwidth_bytes_per_s
    return max(compute, memory)


# %% wrong: always_compute
"""Bytes play no part."""


def bound_by(flops, bytes, accelerator):
    compute = flops / accelerator.flops_per_s("fp16")
    memory = 0.0
    return "compute" if compute > memory else "memory"


def least_seconds(flops, bytes, accelerator):
    compute = flops / accelerator.flops_per_s("fp16")
    memory = 0.0
    return max(compute, memory)


# %% wrong: always_memory
"""Flops play no part."""


def bound_by(flops, bytes, accelerator):
    compute = 0.0
    memory = bytes / accelerator.bandwidth_bytes_per_s
    return "compute" if compute > memory else "memory"


def least_seconds(flops, bytes, accelerator):
    compute = 0.0
    memory = bytes / accelerator.bandwidth_bytes_per_s
    return max(compute, memory)


# %% wrong: rate_of_fp32
"""The rate of another format."""


def bound_by(flops, bytes, accelerator):
    compute = flops / accelerator.flops_per_s("fp32")
    memory = bytes / accelerator.bandwidth_bytes_per_s
    return "compute" if compute > memory else "memory"


def least_seconds(flops, bytes, accelerator):
    compute = flops / accelerator.flops_per_s("fp32")
    memory = bytes / accelerator.bandwidth_bytes_per_s
    return max(compute, memory)


# %% right: sorted_pairs
"""max of pairs."""


def times(flops, bytes, accelerator):
    return [
        (flops / accelerator.flops_per_s("fp16"), "compute"),
        (bytes / accelerator.bandwidth_bytes_per_s, "memory"),
    ]


def bound_by(*args):
    return max(times(*args))[1]


def least_seconds(flops, bytes, accelerator):
    return max(times(flops, bytes, accelerator))[0]


# %% right: attainable
"""From the attainable rate."""


def bound_by(flops, bytes, accelerator) -> str:
    attainable = min(
        accelerator.flops_per_s("fp16"), flops / bytes * accelerator.bandwidth_bytes_per_s
    )
    return "memory" if attainable < accelerator.flops_per_s("fp16") else "compute"


def least_seconds(flops, bytes, accelerator) -> float:
    return flops / min(
        accelerator.flops_per_s("fp16"), flops / bytes * accelerator.bandwidth_bytes_per_s
    )


# %% right: torch_max
"""torch.maximum, a tensor back."""

import torch


def least_seconds(flops, bytes, accelerator):
    a = torch.tensor(flops, dtype=torch.float64) / accelerator.flops_per_s("fp16")
    b = torch.tensor(bytes, dtype=torch.float64) / accelerator.bandwidth_bytes_per_s
    return torch.maximum(a, b).item()


def bound_by(flops, bytes, accelerator):
    moving = bytes / accelerator.bandwidth_bytes_per_s
    return ["compute", "memory"][least_seconds(flops, bytes, accelerator) <= moving]


# %% wrong: a100_always
"""The ridge of an A100 for all boards."""


def bound_by(flops, bytes, accelerator):
    return "compute" if flops / bytes >= 153 else "memory"


def least_seconds(flops, bytes, accelerator):
    return max(flops / accelerator.flops_per_s("fp16"), bytes / accelerator.bandwidth_bytes_per_s)


# %% wrong: milliseconds
"""Milliseconds."""


def bound_by(flops, bytes, accelerator):
    return (
        "compute"
        if flops / accelerator.flops_per_s("fp16") >= bytes / accelerator.bandwidth_bytes_per_s
        else "memory"
    )


def least_seconds(flops, bytes, accelerator):
    return 1000 * max(
        flops / accelerator.flops_per_s("fp16"), bytes / accelerator.bandwidth_bytes_per_s
    )


# %% wrong: bits
"""Bandwidth in bits."""


def bound_by(flops, bytes, accelerator):
    return (
        "compute"
        if flops / accelerator.flops_per_s("fp16") >= bytes / accelerator.bandwidth_bytes_per_s
        else "memory"
    )


def least_seconds(flops, bytes, accelerator):
    return max(
        flops / accelerator.flops_per_s("fp16"), bytes / (8 * accelerator.bandwidth_bytes_per_s)
    )


# %% wrong: capitalised
"""Capital letters."""


def bound_by(flops, bytes, accelerator):
    return (
        "Compute"
        if flops / accelerator.flops_per_s("fp16") >= bytes / accelerator.bandwidth_bytes_per_s
        else "Memory"
    )


def least_seconds(flops, bytes, accelerator):
    return max(flops / accelerator.flops_per_s("fp16"), bytes / accelerator.bandwidth_bytes_per_s)


# %% wrong: tie_within_5_percent
"""Near the ridge it's compute."""


def bound_by(flops, bytes, accelerator):
    return (
        "compute"
        if flops / accelerator.flops_per_s("fp16")
        >= 0.95 * bytes / accelerator.bandwidth_bytes_per_s
        else "memory"
    )


def least_seconds(flops, bytes, accelerator):
    return max(flops / accelerator.flops_per_s("fp16"), bytes / accelerator.bandwidth_bytes_per_s)


# %% wrong: hypot
"""The root of squares."""


def bound_by(flops, bytes, accelerator):
    return (
        "compute"
        if flops / accelerator.flops_per_s("fp16") >= bytes / accelerator.bandwidth_bytes_per_s
        else "memory"
    )


def least_seconds(flops, bytes, accelerator):
    return (lambda a, b: (a * a + b * b) ** 0.5)(
        flops / accelerator.flops_per_s("fp16"), bytes / accelerator.bandwidth_bytes_per_s
    )


# %% right: torch_float32
"""torch's default float32."""

import torch


def times(flops, bytes, accelerator):
    return torch.tensor([flops / accelerator.flops_per_s("fp16"), bytes / accelerator.bandwidth_bytes_per_s])


def bound_by(flops, bytes, accelerator):
    return ("compute", "memory")[times(flops, bytes, accelerator).argmax()]


def least_seconds(flops, bytes, accelerator):
    return times(flops, bytes, accelerator).max().item()


# %% right: decimal
"""Decimal, and max of a dict."""

from decimal import Decimal

def _both(flops, bytes, accelerator):
    return {"compute": Decimal(flops) / Decimal(accelerator.flops_per_s("fp16")), "memory": Decimal(bytes) / Decimal(accelerator.bandwidth_bytes_per_s)}

def bound_by(flops, bytes, accelerator):
    times = _both(flops, bytes, accelerator)
    return max(times, key=times.get)

def least_seconds(flops, bytes, accelerator):
    return float(max(_both(flops, bytes, accelerator).values()))


# %% wrong: tie_within_a_percent
"""Up to 1% above the ridge it's memory."""

def bound_by(flops, bytes, accelerator):
    c = flops / accelerator.flops_per_s("fp16")
    m = bytes / accelerator.bandwidth_bytes_per_s
    return "compute" if c > 1.01 * m else "memory"

def least_seconds(flops, bytes, accelerator):
    return max(flops / accelerator.flops_per_s("fp16"), bytes / accelerator.bandwidth_bytes_per_s)


# %% wrong: whole_intensity
"""Flops per byte, and the ridge, in whole numbers."""

def bound_by(flops, bytes, accelerator):
    c = flops / accelerator.flops_per_s("fp16")
    m = bytes / accelerator.bandwidth_bytes_per_s
    return "compute" if flops // bytes > accelerator.flops_per_s("fp16") // accelerator.bandwidth_bytes_per_s else "memory"

def least_seconds(flops, bytes, accelerator):
    return max(flops / accelerator.flops_per_s("fp16"), bytes / accelerator.bandwidth_bytes_per_s)
