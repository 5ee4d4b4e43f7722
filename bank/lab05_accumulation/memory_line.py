# %% right: loop
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


# %% right: lstsq
"""A system of equations, as an array."""
import numpy as np


def memory_line(batch_sizes, peaks):
    rows = np.stack([np.ones(len(batch_sizes)), batch_sizes], axis=1)
    return np.linalg.lstsq(rows, np.asarray(peaks, float), rcond=None)[0]


# %% right: polyfit
"""numpy's polyfit, lowest power last."""
import numpy as np


def memory_line(batch_sizes, peaks):
    slope, fixed = np.polyfit(batch_sizes, peaks, 1)
    return fixed, slope


# %% right: statistics
"""Python's own linear regression."""
import statistics


def memory_line(batch_sizes, peaks):
    line = statistics.linear_regression([int(b) for b in batch_sizes], [int(p) for p in peaks])
    return line.intercept, line.slope


# %% right: torch
"""torch's lstsq, as a list."""
import torch


def memory_line(batch_sizes, peaks):
    x = torch.tensor([[1.0, float(b)] for b in batch_sizes], dtype=torch.float64)
    y = torch.tensor([[float(p)] for p in peaks], dtype=torch.float64)
    return torch.linalg.lstsq(x, y).solution.flatten().tolist()


# %% wrong: each_size_once
"""Keeps one peak of each size."""
import numpy as np


def memory_line(batch_sizes, peaks):
    peak_of = dict(zip(batch_sizes, peaks))
    slope, fixed = np.polyfit(list(peak_of), list(peak_of.values()), 1)
    return fixed, slope


# %% wrong: extremes
"""The line through the smallest and the largest size."""
def memory_line(batch_sizes, peaks):
    points = sorted(zip(batch_sizes, peaks))
    (a, low), (b, high) = points[0], points[-1]
    slope = (high - low) / (b - a)
    return float(low - slope * a), float(slope)


# %% wrong: first_and_last
"""The line through two points."""
def memory_line(batch_sizes, peaks):
    slope = (peaks[-1] - peaks[0]) / (batch_sizes[-1] - batch_sizes[0])
    return peaks[0] - slope * batch_sizes[0], slope


# %% wrong: first_two
"""The line through the first two points."""
def memory_line(batch_sizes, peaks):
    slope = (peaks[1] - peaks[0]) / (batch_sizes[1] - batch_sizes[0])
    return peaks[0] - slope * batch_sizes[0], slope


# %% wrong: float32
"""Least squares in float32."""
import numpy as np


def memory_line(batch_sizes, peaks):
    x, y = np.asarray(batch_sizes, np.float32), np.asarray(peaks, np.float32)
    dx = x - x.mean()
    slope = (dx * (y - y.mean())).sum() / (dx * dx).sum()
    return float(y.mean() - slope * x.mean()), float(slope)


# %% wrong: float32_torch
"""Least squares in torch's default dtype."""
import torch


def memory_line(batch_sizes, peaks):
    x, y = torch.tensor([float(s) for s in batch_sizes]), torch.tensor([float(p) for p in peaks])
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return (y.mean() - slope * x.mean()).item(), slope.item()


# %% wrong: mean_slope
"""The mean of the slopes between neighbours."""
import numpy as np


def memory_line(batch_sizes, peaks):
    slope = np.mean(np.diff(peaks) / np.diff(batch_sizes))
    return np.mean(peaks) - slope * np.mean(batch_sizes), slope


# %% wrong: rounded
"""Rounds to whole bytes."""
import numpy as np


def memory_line(batch_sizes, peaks):
    slope, fixed = np.polyfit(batch_sizes, peaks, 1)
    return round(fixed), round(slope)


# %% wrong: sizes_by_position
"""Fits over 0, 1, 2, ..."""
import numpy as np


def memory_line(batch_sizes, peaks):
    slope, fixed = np.polyfit(range(len(peaks)), peaks, 1)
    return fixed, slope


# %% wrong: swapped
"""polyfit's own order."""
import numpy as np


def memory_line(batch_sizes, peaks):
    return tuple(np.polyfit(batch_sizes, peaks, 1))


# %% wrong: through_the_origin
"""No fixed part."""
def memory_line(batch_sizes, peaks):
    return 0.0, sum(x * y for x, y in zip(batch_sizes, peaks)) / sum(x * x for x in batch_sizes)


# %% wrong: whole_bytes
"""Rounds to whole MiB."""
import numpy as np


def memory_line(batch_sizes, peaks):
    slope, fixed = np.polyfit(batch_sizes, peaks, 1)
    return round(fixed / 2**20) * 2**20, round(slope / 2**20) * 2**20


# %% wrong: whole_division
"""Divides whole numbers with //."""
def memory_line(batch_sizes, peaks):
    n = len(batch_sizes)
    sizes, peaks = [int(s) for s in batch_sizes], [int(p) for p in peaks]
    above = n * sum(s * p for s, p in zip(sizes, peaks)) - sum(sizes) * sum(peaks)
    slope = above // (n * sum(s * s for s in sizes) - sum(sizes) ** 2)
    return float((sum(peaks) - slope * sum(sizes)) // n), float(slope)


# %% right: normal_equations
"""Solves the two normal equations in float64."""
import numpy as np


def memory_line(batch_sizes, peaks):
    x, y = np.asarray(batch_sizes, float), np.asarray(peaks, float)
    left = np.array([[len(x), x.sum()], [x.sum(), (x * x).sum()]])
    return np.linalg.solve(left, [y.sum(), (x * y).sum()])


# %% right: pairs_weighted
"""The slope as a mean of all pairs' slopes, weighted by squared distances."""
from itertools import combinations


def memory_line(batch_sizes, peaks):
    points = list(zip(map(int, batch_sizes), map(int, peaks)))
    up = sum((b[0] - a[0]) * (b[1] - a[1]) for a, b in combinations(points, 2))
    across = sum((b[0] - a[0]) ** 2 for a, b in combinations(points, 2))
    n = len(points)
    return (sum(p[1] for p in points) * across - up * sum(p[0] for p in points)) / (n * across), up / across


# %% wrong: covariance_by_one_less
"""np.cov divides by n - 1, np.var by n."""
import numpy as np


def memory_line(batch_sizes, peaks):
    slope = np.cov(batch_sizes, peaks)[0, 1] / np.var(batch_sizes)
    return float(np.mean(peaks) - slope * np.mean(batch_sizes)), float(slope)


# %% wrong: variance_by_one_less
"""A mean of products, and torch.var, which divides by one less."""
import torch


def memory_line(batch_sizes, peaks):
    x = torch.tensor([float(size) for size in batch_sizes], dtype=torch.float64)
    y = torch.tensor([float(peak) for peak in peaks], dtype=torch.float64)
    slope = ((x - x.mean()) * (y - y.mean())).mean() / x.var()
    return (y.mean() - slope * x.mean()).item(), slope.item()


# %% right: polynomial
"""numpy's Polynomial, converted to powers of x; a named tuple."""
from collections import namedtuple

import numpy as np

Line = namedtuple("Line", "fixed_bytes bytes_per_sample")


def memory_line(batch_sizes, peaks):
    return Line(*np.polynomial.Polynomial.fit(batch_sizes, peaks, 1).convert().coef)


# %% wrong: sorted_apart
"""Sorts sizes and peaks, each by itself."""
import numpy as np


def memory_line(batch_sizes, peaks):
    slope, fixed = np.polyfit(np.sort(batch_sizes), np.sort(peaks), 1)
    return fixed, slope


# %% wrong: never_below_zero
"""No fixed bytes below 0."""
import numpy as np


def memory_line(batch_sizes, peaks):
    slope, fixed = np.polyfit(batch_sizes, peaks, 1)
    return max(0.0, fixed), slope


# %% wrong: pairs_once
"""Equal measurements count once."""
import numpy as np


def memory_line(batch_sizes, peaks):
    pairs = sorted({(int(size), int(peak)) for size, peak in zip(batch_sizes, peaks)})
    slope, fixed = np.polyfit([size for size, _ in pairs], [peak for _, peak in pairs], 1)
    return float(fixed), float(slope)


# %% right: running_moments
"""Welford's running means and sums, in one pass over both."""


def memory_line(batch_sizes, peaks):
    count = mean_x = mean_y = squares = products = 0.0
    for x, y in zip(map(float, batch_sizes), map(float, peaks)):
        count += 1
        off = x - mean_x
        mean_x += off / count
        mean_y += (y - mean_y) / count
        squares += off * (x - mean_x)
        products += off * (y - mean_y)
    slope = products / squares
    return mean_y - slope * mean_x, slope
