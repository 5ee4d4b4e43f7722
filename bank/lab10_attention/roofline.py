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
