"""What a lab's notebook calls: its first line, self-checks, predictions and figures."""

from peakmem.labs.compare import close, same, whole
from peakmem.labs.figures import show_figure
from peakmem.labs.predictions import predicted
from peakmem.labs.self_check import Case, SelfCheckFailed, self_check

__all__ = [
    "Case",
    "SelfCheckFailed",
    "close",
    "predicted",
    "same",
    "self_check",
    "show_figure",
    "whole",
]
