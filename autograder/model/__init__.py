"""The grader's vocabulary, as data: tasks, submissions, results, restrictions, scoring."""

from autograder.model.note import Note
from autograder.model.result import Result
from autograder.model.submission import Quarantine, Submission, SubmissionKey
from autograder.model.task import Lab, Task, Verdict

__all__ = ["Lab", "Note", "Quarantine", "Result", "Submission", "SubmissionKey", "Task", "Verdict"]
