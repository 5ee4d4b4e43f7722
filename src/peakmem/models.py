"""The students' name for `peakmem.specs.models`."""

from peakmem.specs.models import *  # noqa: F403
from peakmem.specs.models import __all__ as __all__
