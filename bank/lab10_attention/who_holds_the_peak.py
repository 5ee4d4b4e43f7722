# %% right: one_pass
"""One pass, which copies what is taken at each new peak."""


def who_holds_the_peak(snapshot):
    taken, total, most, at_peak = {}, 0, 0, {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            taken[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in taken:
            total -= taken.pop(event["addr"])["size"]
        if total > most:
            most, at_peak = total, dict(taken)
    owners = {}
    for event in at_peak.values():
        own = [frame for frame in event["frames"] if "/torch/" not in frame["filename"]]
        owner = f"{own[0]['filename']}:{own[0]['line']}" if own else "unknown"
        owners[owner] = owners.get(owner, 0) + event["size"]
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))


# %% right: two_passes
"""A pass for the sums, and one up to the peak."""

from collections import Counter
from itertools import accumulate


def owner_of(event):
    for frame in event["frames"]:
        if "/torch/" not in frame["filename"]:
            return "{filename}:{line}".format(**frame)
    return "unknown"


def changes(events):
    taken = {}
    for event in events:
        if event["action"] == "alloc":
            taken[event["addr"]] = owner_of(event), event["size"]
            yield taken[event["addr"]]
        elif event["action"] == "free_completed":
            owner, size = taken.pop(event["addr"], ("unknown", 0))
            yield owner, -size
        else:
            yield "unknown", 0


def who_holds_the_peak(snapshot):
    steps = list(changes(snapshot["device_traces"][0]))
    sums = list(accumulate((size for _, size in steps), initial=0))
    peak = sums.index(max(sums))
    held = Counter()
    for owner, size in steps[:peak]:
        held[owner] += size
    found = [[owner, size] for owner, size in held.items() if size > 0]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))


# %% right: numpy
"""Births and deaths by index, with numpy's numbers."""

import numpy as np


def who_holds_the_peak(snapshot):
    events = snapshot["device_traces"][0]
    if not events:
        return []
    delta, born, spans = np.zeros(len(events), dtype=np.int64), {}, []
    for i, event in enumerate(events):
        if event["action"] == "alloc":
            born[event["addr"]] = i
            delta[i] = event["size"]
        elif event["action"] == "free_completed":
            j = born.pop(event["addr"], None)
            if j is not None:
                delta[i] = -events[j]["size"]
                spans.append((j, i))
    spans += [(j, len(events)) for j in born.values()]
    peak = int(np.argmax(np.cumsum(delta)))
    owners = {}
    for j, i in spans:
        if j <= peak < i:
            mine = (f for f in events[j]["frames"] if f["filename"].find("/torch/") < 0)
            frame = next(mine, None)
            name = "unknown" if frame is None else frame["filename"] + ":" + str(frame["line"])
            owners[name] = owners.get(name, np.int64(0)) + events[j]["size"]
    return [(name, owners[name]) for name in sorted(owners, key=lambda n: (-owners[n], n))]


# %% wrong: freed_when_requested
"""A request frees."""


def who_holds_the_peak(snapshot):
    taken, total, most, at_peak = {}, 0, 0, {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            taken[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_requested" and event["addr"] in taken:
            total -= taken.pop(event["addr"])["size"]
        if total > most:
            most, at_peak = total, dict(taken)
    owners = {}
    for event in at_peak.values():
        own = [frame for frame in event["frames"] if "/torch/" not in frame["filename"]]
        owner = f"{own[0]['filename']}:{own[0]['line']}" if own else "unknown"
        owners[owner] = owners.get(owner, 0) + event["size"]
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))


# %% wrong: never_freed
"""Nothing is taken off."""


def who_holds_the_peak(snapshot):
    taken, total, most, at_peak = {}, 0, 0, {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            taken[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free" and event["addr"] in taken:
            total -= taken.pop(event["addr"])["size"]
        if total > most:
            most, at_peak = total, dict(taken)
    owners = {}
    for event in at_peak.values():
        own = [frame for frame in event["frames"] if "/torch/" not in frame["filename"]]
        owner = f"{own[0]['filename']}:{own[0]['line']}" if own else "unknown"
        owners[owner] = owners.get(owner, 0) + event["size"]
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))


# %% wrong: live_at_the_end
"""What is left at the end."""


def who_holds_the_peak(snapshot):
    taken, total, most, at_peak = {}, 0, 0, {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            taken[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in taken:
            total -= taken.pop(event["addr"])["size"]
    at_peak = taken
    owners = {}
    for event in at_peak.values():
        own = [frame for frame in event["frames"] if "/torch/" not in frame["filename"]]
        owner = f"{own[0]['filename']}:{own[0]['line']}" if own else "unknown"
        owners[owner] = owners.get(owner, 0) + event["size"]
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))


# %% wrong: all_allocations
"""Every allocation is added up."""


def who_holds_the_peak(snapshot):
    owners = {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            own = [frame for frame in event["frames"] if "/torch/" not in frame["filename"]]
            owner = f"{own[0]['filename']}:{own[0]['line']}" if own else "unknown"
            owners[owner] = owners.get(owner, 0) + event["size"]
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))


# %% wrong: innermost_frame
"""The first frame, whosever it is."""


def who_holds_the_peak(snapshot):
    taken, total, most, at_peak = {}, 0, 0, {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            taken[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in taken:
            total -= taken.pop(event["addr"])["size"]
        if total > most:
            most, at_peak = total, dict(taken)
    owners = {}
    for event in at_peak.values():
        own = event["frames"]
        owner = f"{own[0]['filename']}:{own[0]['line']}" if own else "unknown"
        owners[owner] = owners.get(owner, 0) + event["size"]
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))


# %% wrong: outermost_frame
"""The last frame."""


def who_holds_the_peak(snapshot):
    taken, total, most, at_peak = {}, 0, 0, {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            taken[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in taken:
            total -= taken.pop(event["addr"])["size"]
        if total > most:
            most, at_peak = total, dict(taken)
    owners = {}
    for event in at_peak.values():
        own = [frame for frame in event["frames"] if "/torch/" not in frame["filename"]]
        owner = f"{own[-1]['filename']}:{own[-1]['line']}" if own else "unknown"
        owners[owner] = owners.get(owner, 0) + event["size"]
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))


# %% wrong: last_block_of_an_owner
"""An owner's blocks replace each other."""


def who_holds_the_peak(snapshot):
    taken, total, most, at_peak = {}, 0, 0, {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            taken[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in taken:
            total -= taken.pop(event["addr"])["size"]
        if total > most:
            most, at_peak = total, dict(taken)
    owners = {}
    for event in at_peak.values():
        own = [frame for frame in event["frames"] if "/torch/" not in frame["filename"]]
        owner = f"{own[0]['filename']}:{own[0]['line']}" if own else "unknown"
        owners[owner] = event["size"]
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))


# %% wrong: smallest_first
"""Sorted the other way."""


def who_holds_the_peak(snapshot):
    taken, total, most, at_peak = {}, 0, 0, {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            taken[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in taken:
            total -= taken.pop(event["addr"])["size"]
        if total > most:
            most, at_peak = total, dict(taken)
    owners = {}
    for event in at_peak.values():
        own = [frame for frame in event["frames"] if "/torch/" not in frame["filename"]]
        owner = f"{own[0]['filename']}:{own[0]['line']}" if own else "unknown"
        owners[owner] = owners.get(owner, 0) + event["size"]
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))[::-1]


# %% wrong: largest_alone
"""The largest owner only."""


def who_holds_the_peak(snapshot):
    taken, total, most, at_peak = {}, 0, 0, {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            taken[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in taken:
            total -= taken.pop(event["addr"])["size"]
        if total > most:
            most, at_peak = total, dict(taken)
    owners = {}
    for event in at_peak.values():
        own = [frame for frame in event["frames"] if "/torch/" not in frame["filename"]]
        owner = f"{own[0]['filename']}:{own[0]['line']}" if own else "unknown"
        owners[owner] = owners.get(owner, 0) + event["size"]
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))[:1]


# %% wrong: last_peak
"""Of equal peaks the last."""


def who_holds_the_peak(snapshot):
    taken, total, most, at_peak = {}, 0, 0, {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            taken[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in taken:
            total -= taken.pop(event["addr"])["size"]
        if total >= most:
            most, at_peak = total, dict(taken)
    owners = {}
    for event in at_peak.values():
        own = [frame for frame in event["frames"] if "/torch/" not in frame["filename"]]
        owner = f"{own[0]['filename']}:{own[0]['line']}" if own else "unknown"
        owners[owner] = owners.get(owner, 0) + event["size"]
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))
