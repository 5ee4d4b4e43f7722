"""Second looks at grades: rejudge, regrade, changes, explain, repair."""
