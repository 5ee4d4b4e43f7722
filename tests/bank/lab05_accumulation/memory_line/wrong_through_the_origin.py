"""No fixed part."""
def memory_line(batch_sizes, peaks):
    return 0.0, sum(x * y for x, y in zip(batch_sizes, peaks)) / sum(x * x for x in batch_sizes)
