"""Catches the error of torch, which is another one."""
import torch


def largest_micro_batch(run, upper):
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
            fits = middle
        except torch.cuda.OutOfMemoryError:
            too_large = middle
    return fits
