"""The students' name for `peakmem.show.plots`."""

from peakmem.show.plots import *  # noqa: F403
from peakmem.show.plots import __all__ as __all__
