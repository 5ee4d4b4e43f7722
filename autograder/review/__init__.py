"""Grades looked at again: rejudge, regrade, changes, explain."""
