"""The students' name for `peakmem.core.errors`."""

from peakmem.core.errors import *  # noqa: F403
from peakmem.core.errors import __all__ as __all__
