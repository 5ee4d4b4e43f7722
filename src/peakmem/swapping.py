"""The students' name for `peakmem.plan.swapping`."""

from peakmem.plan.swapping import *  # noqa: F403
from peakmem.plan.swapping import __all__ as __all__
