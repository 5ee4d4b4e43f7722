"""Compute is queued first; an event says when the copies are done."""
import torch


def overlapped(compute, copies):
    side = torch.cuda.Stream()
    compute()
    with torch.cuda.stream(side):
        for source, target in copies:
            target.copy_(source, non_blocking=True)
        done = torch.cuda.Event()
        done.record(side)
    torch.cuda.current_stream().wait_event(done)
