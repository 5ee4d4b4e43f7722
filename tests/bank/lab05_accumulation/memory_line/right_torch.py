"""torch's lstsq, as a list."""
import torch


def memory_line(batch_sizes, peaks):
    x = torch.tensor([[1.0, float(b)] for b in batch_sizes], dtype=torch.float64)
    y = torch.tensor([[float(p)] for p in peaks], dtype=torch.float64)
    return torch.linalg.lstsq(x, y).solution.flatten().tolist()
