"""What a grading stores: the journal, fingerprints, and nbgrader's database.

Import `database`, `gradebook_file`, `manual_backup` and `published` only where they are needed:
they load nbgrader, which takes a second, and workers don't need it.
"""

from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder

__all__ = ["Journal", "OutFolder"]
