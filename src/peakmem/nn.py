"""The students' name for `peakmem.measure.reference_models`."""

from peakmem.measure.reference_models import *  # noqa: F403
from peakmem.measure.reference_models import __all__ as __all__
