"""Peak Memory: does the training fit? Predict a training step's peak memory, then measure it."""

from peakmem.errors import Infeasible, OutOfMemory

__all__ = ["Infeasible", "OutOfMemory", "__version__"]

__version__ = "0.1.0"
