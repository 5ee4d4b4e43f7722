"""Calculators for lectures and for students at home: one factory function each.

    from peakmem.widgets import pipelines
    pipelines(predict=True)

They are thin views of the library that the labs use. Importing one imports no torch.
"""

from peakmem.widgets.pipelines import pipelines

__all__ = ["pipelines"]
