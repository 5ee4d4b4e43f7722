"""The students' name for `peakmem.core.units`."""

from peakmem.core.units import *  # noqa: F403
from peakmem.core.units import __all__ as __all__
