# %% right: compute_first
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


# %% right: side_stream
"""A stream of its own for the copies."""
import torch


def overlapped(compute, copies):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for source, target in copies:
            target.copy_(source, non_blocking=True)
    compute()
    torch.cuda.current_stream().wait_stream(stream)


# %% right: thread
"""A thread that copies, and waits for its stream."""
import threading

import torch


def overlapped(compute, copies):
    def copy():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for source, target in copies:
                target.copy_(source, non_blocking=True)
        stream.synchronize()

    thread = threading.Thread(target=copy)
    thread.start()
    compute()
    thread.join()


# %% wrong: compute_left_out
"""Forgets to compute."""
import torch


def overlapped(compute, copies):
    with torch.cuda.stream(torch.cuda.Stream()):
        for source, target in copies:
            target.copy_(source, non_blocking=True)


# %% wrong: copies_left_out
"""Copies the first pair only."""
import torch


def overlapped(compute, copies):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for source, target in copies:
            target.copy_(source, non_blocking=True)
            break
    compute()


# %% wrong: one_after_the_other
"""All on one stream."""
def overlapped(compute, copies):
    for source, target in copies:
        target.copy_(source, non_blocking=True)
    compute()


# %% wrong: unpinned
"""Copies from a pageable clone of each source."""
import torch


def overlapped(compute, copies):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for source, target in copies:
            target.copy_(torch.empty_like(source, pin_memory=False).copy_(source))
    compute()


# %% wrong: waits_for_the_copies
"""Synchronizes between the copies and compute."""
import torch


def overlapped(compute, copies):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for source, target in copies:
            target.copy_(source, non_blocking=True)
    stream.synchronize()
    compute()
