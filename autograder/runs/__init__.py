"""Grading a whole class: the graders, their attempts, and the class run."""
