"""What everything stands on: files, cleaning, limits, where a course lies."""
