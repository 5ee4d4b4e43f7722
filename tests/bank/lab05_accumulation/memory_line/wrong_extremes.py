"""The line through the smallest and the largest size."""
def memory_line(batch_sizes, peaks):
    points = sorted(zip(batch_sizes, peaks))
    (a, low), (b, high) = points[0], points[-1]
    slope = (high - low) / (b - a)
    return float(low - slope * a), float(slope)
