"""All that leaves: gradebook, feedback, exports, review queue, audit, statistics."""
