"""Calculators for lectures and for students at home: one factory function for each.

    from peakmem.show.widgets import pipelines
    pipelines(predict=True)

Calculators are thin views of the library that the labs use. Importing them doesn't load torch.
"""

from peakmem.show.widgets.accumulation import accumulation
from peakmem.show.widgets.adam import adam_state
from peakmem.show.widgets.checkpointing import checkpointing
from peakmem.show.widgets.floats import float_explorer
from peakmem.show.widgets.memory import memory
from peakmem.show.widgets.memory_snapshot import memory_snapshot
from peakmem.show.widgets.mixed import mixed_precision
from peakmem.show.widgets.pipelines import pipelines
from peakmem.show.widgets.quantization import quantization
from peakmem.show.widgets.scaling import scaling
from peakmem.show.widgets.swap import swap
from peakmem.show.widgets.zero import zero

__all__ = [
    "accumulation",
    "adam_state",
    "checkpointing",
    "float_explorer",
    "memory",
    "memory_snapshot",
    "mixed_precision",
    "pipelines",
    "quantization",
    "scaling",
    "swap",
    "zero",
]
