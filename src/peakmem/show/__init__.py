"""What people look at: plots, calculators, and the command `peakmem`."""
