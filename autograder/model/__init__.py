"""What grading is about, as data: tasks, submissions, results, restrictions, scoring."""
