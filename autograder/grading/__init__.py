"""Grades one submission: a submission in, a result out."""
