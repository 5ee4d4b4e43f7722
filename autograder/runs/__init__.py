"""A whole class: the pool of grading processes, attempts, the class run."""
