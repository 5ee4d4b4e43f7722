"""Peak Memory: does the training fit? Predict a training step's peak memory, then measure it."""

from peakmem.core.errors import Infeasible, OutOfMemory
from peakmem.core.lazy import loader

__all__ = ["Infeasible", "OutOfMemory", "__version__", "check", "lab", "trace"]

__version__ = "0.3.0"

# Late, as these load torch and numpy, which many commands don't need.
_PLACES = {"check": "labs.check", "lab": "labs.session", "trace": "measure.tracing"}
__getattr__ = loader("peakmem", _PLACES)
