"""What is kept of a grading: the journal, fingerprints, nbgrader's database."""
