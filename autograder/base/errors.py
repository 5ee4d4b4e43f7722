"""The errors that the grader raises beside Python's own, as one tree.

AutograderError
    BuildError - sources that must not be released as they are
    Damaged - a file of a results folder is missing, cut off or replaced
    IsolationError - students' code can't be shut in here
    ProcessLost - a student's process is no more
        MachineBusy - the machine kept it waiting too long to tell
    Quarantine - a submission can't be read as this lab's notebook
        Missing - a file or a folder of it is not there
"""

from __future__ import annotations

__all__ = ["AutograderError"]


class AutograderError(Exception):
    """The base of all errors of the grader's own. Its message is a whole sentence."""
