"""Peak Memory: does the training fit? Predict a training step's peak memory, then measure it."""

from peakmem.errors import Infeasible, OutOfMemory
from peakmem.session import lab

__all__ = ["Infeasible", "OutOfMemory", "__version__", "lab"]

__version__ = "0.1.0"
