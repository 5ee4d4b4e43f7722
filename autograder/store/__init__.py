"""What is kept of a grading: the journal, fingerprints, nbgrader's database.

`database`, `gradebook_file`, `manual_backup` and `published` are imported by name alone, where they
are needed: nbgrader takes a second to load, and a worker does without it.
"""

from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder

__all__ = ["Journal", "OutFolder"]
