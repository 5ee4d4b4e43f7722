"""The command `autograder`, grouped by task."""
