"""Peak Memory: does the training fit? Predict a training step's peak memory, then measure it."""

from peakmem.core.errors import Infeasible, OutOfMemory
from peakmem.core.lazy import loader
from peakmem.labs.check import check
from peakmem.labs.session import lab

__all__ = ["Infeasible", "OutOfMemory", "__version__", "check", "lab", "trace"]

__version__ = "0.2.0"

__getattr__ = loader("peakmem", {"trace": "measure.tracing"})  # late, as it loads torch
