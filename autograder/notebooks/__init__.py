"""Notebooks as files: parsed, put back in order, marked, and kept free of hidden tests."""
