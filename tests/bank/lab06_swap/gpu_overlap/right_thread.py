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
