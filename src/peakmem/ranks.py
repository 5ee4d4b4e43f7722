"""The students' name for `peakmem.measure.ranks`."""

from peakmem.measure.ranks import *  # noqa: F403
from peakmem.measure.ranks import __all__ as __all__
