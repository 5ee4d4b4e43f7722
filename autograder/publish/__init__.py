"""Everything that leaves the grader: gradebook, feedback, exports, review queue, statistics."""
