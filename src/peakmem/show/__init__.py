"""The visible side of the library: plots, calculators, and the command `peakmem`."""
