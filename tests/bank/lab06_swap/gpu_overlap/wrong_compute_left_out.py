"""Forgets to compute."""
import torch


def overlapped(compute, copies):
    with torch.cuda.stream(torch.cuda.Stream()):
        for source, target in copies:
            target.copy_(source, non_blocking=True)
