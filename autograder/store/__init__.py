"""What is stored of a grading: the journal, fingerprints, nbgrader's database.

Import `database`, `gradebook_file`, `manual_backup` and `published` by name where they are needed:
they load nbgrader, which takes a second, and workers don't need it.
"""

from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder

__all__ = ["Journal", "OutFolder"]
