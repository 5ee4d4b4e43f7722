"""Sums in a loop of plain Python."""
def memory_line(batch_sizes, peaks):
    n = len(batch_sizes)
    mean_x, mean_y = sum(batch_sizes) / n, sum(peaks) / n
    over = under = 0.0
    for x, y in zip(batch_sizes, peaks):
        over += (x - mean_x) * (y - mean_y)
        under += (x - mean_x) ** 2
    slope = over / under
    return mean_y - slope * mean_x, slope
