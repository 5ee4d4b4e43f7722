"""All on one stream."""
def overlapped(compute, copies):
    for source, target in copies:
        target.copy_(source, non_blocking=True)
    compute()
