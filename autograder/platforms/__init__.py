"""Other places to grade on: Dask clusters and Gradescope, each an extra."""
