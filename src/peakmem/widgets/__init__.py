"""Calculators for lectures and for students at home: one factory function each.

    from peakmem.widgets import pipelines
    pipelines(predict=True)

They are thin views of the library that the labs use. Importing one imports no torch.
"""

from peakmem.widgets.accumulation import accumulation
from peakmem.widgets.adam import adam_state
from peakmem.widgets.floats import float_explorer
from peakmem.widgets.memory import memory
from peakmem.widgets.pipelines import pipelines
from peakmem.widgets.scaling import scaling
from peakmem.widgets.zero import zero

__all__ = ["accumulation", "adam_state", "float_explorer", "memory", "pipelines", "scaling", "zero"]
