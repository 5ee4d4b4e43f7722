"""Divides whole numbers with //."""
def memory_line(batch_sizes, peaks):
    n = len(batch_sizes)
    sizes, peaks = [int(s) for s in batch_sizes], [int(p) for p in peaks]
    above = n * sum(s * p for s, p in zip(sizes, peaks)) - sum(sizes) * sum(peaks)
    slope = above // (n * sum(s * s for s in sizes) - sum(sizes) ** 2)
    return float((sum(peaks) - slope * sum(sizes)) // n), float(slope)
