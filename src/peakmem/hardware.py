"""The students' name for `peakmem.specs.hardware`."""

from peakmem.specs.hardware import *  # noqa: F403
from peakmem.specs.hardware import __all__ as __all__
