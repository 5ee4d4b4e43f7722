"""The base of the grader's own errors, and their tree.

AutograderError
    BuildError - the sources can't be released as they are
    Damaged - a file of a results folder is missing, cut off or replaced
    IsolationError - this machine can't isolate students' code
    ProcessLost - a student's process has ended
        MachineBusy - the machine delayed the process for too long to judge its speed
    Quarantine - a submission can't be read as this lab's notebook
        Missing - a file or a folder of the submission doesn't exist
"""

from __future__ import annotations

__all__ = ["AutograderError"]


class AutograderError(Exception):
    """The base of the grader's own errors. Each message is a complete sentence."""
