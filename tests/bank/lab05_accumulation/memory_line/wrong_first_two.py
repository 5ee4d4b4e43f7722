"""The line through the first two points."""
def memory_line(batch_sizes, peaks):
    slope = (peaks[1] - peaks[0]) / (batch_sizes[1] - batch_sizes[0])
    return peaks[0] - slope * batch_sizes[0], slope
