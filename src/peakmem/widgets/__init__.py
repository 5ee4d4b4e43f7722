"""Calculators for lectures and for students at home: one factory function each.

    from peakmem.widgets import pipelines
    pipelines(predict=True)

They are thin views of the library that the labs use. Importing one imports no torch.
"""

from peakmem.widgets.accumulation import accumulation
from peakmem.widgets.adam import adam_state
from peakmem.widgets.checkpointing import checkpointing
from peakmem.widgets.floats import float_explorer
from peakmem.widgets.memory import memory
from peakmem.widgets.mixed import mixed_precision
from peakmem.widgets.pipelines import pipelines
from peakmem.widgets.scaling import scaling
from peakmem.widgets.swap import swap
from peakmem.widgets.zero import zero

__all__ = [
    "accumulation",
    "adam_state",
    "checkpointing",
    "float_explorer",
    "memory",
    "mixed_precision",
    "pipelines",
    "scaling",
    "swap",
    "zero",
]
