"""The students' name for `peakmem.measure.meter`."""

from peakmem.measure.meter import *  # noqa: F403
from peakmem.measure.meter import __all__ as __all__
