"""The students' name for `peakmem.execute.host_memory`."""

from peakmem.execute.host_memory import *  # noqa: F403
from peakmem.execute.host_memory import __all__ as __all__
