"""Grading on other platforms: Dask clusters and Gradescope, each an optional extra."""
