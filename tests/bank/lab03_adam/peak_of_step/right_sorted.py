"""The larger of two labelled peaks, as a list."""
from math import prod


def peak_of_step(shapes, activation_bytes, optimizer):
    n = [prod(s) for s in shapes]
    pairs = list(zip([0] + n[:-1], n))
    extra = {"for-loop": max(a + 2 * b for a, b in pairs), "foreach": sum(n), "fused": 0}[optimizer]
    peaks = {"backward": 16 * sum(n) + activation_bytes, "step": 16 * sum(n) + 4 * extra}
    phase = max(peaks, key=peaks.get)
    return [peaks[phase], phase]
