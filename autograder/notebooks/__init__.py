"""Notebooks as files: parsed, put in order, marked with points, and redacted of hidden tests."""
