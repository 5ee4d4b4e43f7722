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


# %% right: counter
"""Counter and next()."""

from collections import Counter


def owner_of(frames):
    return next(
        (f"{f['filename']}:{f['line']}" for f in frames if "/torch/" not in f["filename"]),
        "unknown",
    )


def who_holds_the_peak(snapshot):
    live, holds, peak, found = {}, Counter(), 0, Counter()
    for event in snapshot["device_traces"][0]:
        match event["action"]:
            case "alloc":
                who = owner_of(event["frames"])
                live[event["addr"]] = who, event["size"]
                holds[who] += event["size"]
                if holds.total() > peak:
                    peak, found = holds.total(), +holds
            case "free_completed":
                if block := live.pop(event["addr"], None):
                    holds[block[0]] -= block[1]
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


# %% right: dict_copy
"""A copy of what is live at each new peak."""


def who_holds_the_peak(snapshot):
    live, now, most, best = {}, 0, 0, {}
    for e in snapshot["device_traces"][0]:
        if e["action"] == "alloc":
            owner = "unknown"
            for f in e["frames"]:
                if "/torch/" not in f["filename"]:
                    owner = f"{f['filename']}:{f['line']}"
                    break
            live[e["addr"]] = (owner, e["size"])
            now += e["size"]
            if now > most:
                most, best = now, dict(live)
        elif e["action"] == "free_completed" and e["addr"] in live:
            now -= live.pop(e["addr"])[1]
    total = {}
    for owner, size in best.values():
        total[owner] = total.get(owner, 0) + size
    return sorted(total.items(), key=lambda p: (-p[1], p[0]))


# %% right: lifetimes
"""Lifetimes, cumulative sums, argmax; two sorts."""

import numpy as np


def who_holds_the_peak(snapshot):
    events = snapshot["device_traces"][0]
    blocks, open_ = [], {}
    change = np.zeros(len(events) + 1, dtype=np.int64)
    for i, e in enumerate(events):
        if e["action"] == "alloc":
            own = [f for f in e["frames"] if "/torch/" not in f["filename"]]
            name = "%s:%d" % (own[0]["filename"], own[0]["line"]) if own else "unknown"
            open_[e["addr"]] = len(blocks)
            blocks.append([name, e["size"], i, len(events) + 1])
            change[i] += e["size"]
        elif e["action"] == "free_completed" and e["addr"] in open_:
            b = blocks[open_.pop(e["addr"])]
            b[3] = i
            change[i] -= b[1]
    if not blocks:
        return []
    at = int(np.argmax(np.cumsum(change)))
    out = {}
    for name, size, first, end in blocks:
        if first <= at < end:
            out[name] = out.get(name, 0) + size
    pairs = sorted(out.items())
    pairs.sort(key=lambda p: p[1], reverse=True)
    return pairs


# %% wrong: ties_backwards
"""Ties in reverse order of names."""


def who_holds_the_peak(snapshot):
    live, now, most, best = {}, 0, 0, {}
    for e in snapshot["device_traces"][0]:
        if e["action"] == "alloc":
            owner = "unknown"
            for f in e["frames"]:
                if "/torch/" not in f["filename"]:
                    owner = f"{f['filename']}:{f['line']}"
                    break
            live[e["addr"]] = (owner, e["size"])
            now += e["size"]
            if now > most:
                most, best = now, dict(live)
        elif e["action"] == "free_completed" and e["addr"] in live:
            now -= live.pop(e["addr"])[1]
    total = {}
    for owner, size in best.values():
        total[owner] = total.get(owner, 0) + size
    return sorted(total.items(), key=lambda p: (p[1], p[0]), reverse=True)


# %% wrong: all_devices
"""All devices' events."""


def who_holds_the_peak(snapshot):
    live, now, most, best = {}, 0, 0, {}
    for e in [e for t in snapshot["device_traces"] for e in t]:
        if e["action"] == "alloc":
            owner = "unknown"
            for f in e["frames"]:
                if "/torch/" not in f["filename"]:
                    owner = f"{f['filename']}:{f['line']}"
                    break
            live[e["addr"]] = (owner, e["size"])
            now += e["size"]
            if now > most:
                most, best = now, dict(live)
        elif e["action"] == "free_completed" and e["addr"] in live:
            now -= live.pop(e["addr"])[1]
    total = {}
    for owner, size in best.values():
        total[owner] = total.get(owner, 0) + size
    return sorted(total.items(), key=lambda p: (-p[1], p[0]))


# %% wrong: state_of_module
"""What is live is a global, kept between calls."""

_live = {}


def who_holds_the_peak(snapshot):
    live, now, most, best = _live, sum(s for _, s in _live.values()), 0, {}
    for e in snapshot["device_traces"][0]:
        if e["action"] == "alloc":
            owner = "unknown"
            for f in e["frames"]:
                if "/torch/" not in f["filename"]:
                    owner = f"{f['filename']}:{f['line']}"
                    break
            live[e["addr"]] = (owner, e["size"])
            now += e["size"]
            if now > most:
                most, best = now, dict(live)
        elif e["action"] == "free_completed" and e["addr"] in live:
            now -= live.pop(e["addr"])[1]
    total = {}
    for owner, size in best.values():
        total[owner] = total.get(owner, 0) + size
    return sorted(total.items(), key=lambda p: (-p[1], p[0]))


# %% wrong: unknown_free_counts
"""An unknown free takes its bytes off."""


def who_holds_the_peak(snapshot):
    live, now, most, best = {}, 0, 0, {}
    for e in snapshot["device_traces"][0]:
        if e["action"] == "alloc":
            owner = "unknown"
            for f in e["frames"]:
                if "/torch/" not in f["filename"]:
                    owner = f"{f['filename']}:{f['line']}"
                    break
            live[e["addr"]] = (owner, e["size"])
            now += e["size"]
            if now > most:
                most, best = now, dict(live)
        elif e["action"] == "free_completed":
            live.pop(e["addr"], None)
            now -= e["size"]
    total = {}
    for owner, size in best.values():
        total[owner] = total.get(owner, 0) + size
    return sorted(total.items(), key=lambda p: (-p[1], p[0]))


# %% wrong: pops_events
"""The snapshot's events are used up."""


def who_holds_the_peak(snapshot):
    live, now, most, best = {}, 0, 0, {}
    events = snapshot["device_traces"][0]
    while events:
        e = events.pop(0)
        if e["action"] == "alloc":
            owner = "unknown"
            for f in e["frames"]:
                if "/torch/" not in f["filename"]:
                    owner = f"{f['filename']}:{f['line']}"
                    break
            live[e["addr"]] = (owner, e["size"])
            now += e["size"]
            if now > most:
                most, best = now, dict(live)
        elif e["action"] == "free_completed" and e["addr"] in live:
            now -= live.pop(e["addr"])[1]
    total = {}
    for owner, size in best.values():
        total[owner] = total.get(owner, 0) + size
    return sorted(total.items(), key=lambda p: (-p[1], p[0]))


# %% wrong: pairs_as_owners
"""An owner is a pair of file and line, not a string."""


def who_holds_the_peak(snapshot):
    live, now, most, best = {}, 0, 0, {}
    for e in snapshot["device_traces"][0]:
        if e["action"] == "alloc":
            owner = ("unknown", 0)
            for f in e["frames"]:
                if "/torch/" not in f["filename"]:
                    owner = (f["filename"], f["line"])
                    break
            live[e["addr"]] = (owner, e["size"])
            now += e["size"]
            if now > most:
                most, best = now, dict(live)
        elif e["action"] == "free_completed" and e["addr"] in live:
            now -= live.pop(e["addr"])[1]
    total = {}
    for owner, size in best.values():
        total[owner] = total.get(owner, 0) + size
    return sorted(total.items(), key=lambda p: (-p[1], p[0]))


# %% wrong: torch_anywhere
"""A frame is torch's if its file name has "torch" in it."""


def who_holds_the_peak(snapshot):
    live, total, most, at_peak = {}, 0, 0, {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            live[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in live:
            total -= live.pop(event["addr"])["size"]
        if total > most:
            most, at_peak = total, dict(live)
    owners = {}
    for event in at_peak.values():
        own = [frame for frame in event["frames"] if "torch" not in frame["filename"]]
        owner = f"{own[0]['filename']}:{own[0]['line']}" if own else "unknown"
        owners[owner] = owners.get(owner, 0) + event["size"]
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))


# %% wrong: other_actions_count
"""All actions that end in alloc take bytes, and only files below /home are the program's."""


def who_holds_the_peak(snapshot):
    live, total, most, at_peak = {}, 0, 0, {}
    for event in snapshot["device_traces"][0]:
        if event["action"].endswith("alloc"):
            live[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_completed" and event["addr"] in live:
            total -= live.pop(event["addr"])["size"]
        if total > most:
            most, at_peak = total, dict(live)
    owners = {}
    for event in at_peak.values():
        own = [frame for frame in event["frames"] if frame["filename"].startswith("/home/")]
        owner = f"{own[0]['filename']}:{own[0]['line']}" if own else "unknown"
        owners[owner] = owners.get(owner, 0) + event["size"]
    return sorted(owners.items(), key=lambda item: (-item[1], item[0]))


# %% right: match_and_groupby
"""match, a curve of sums, groupby."""

from collections import defaultdict
from itertools import groupby
from operator import itemgetter

class Block:
    __slots__ = ("owner", "size")
    def __init__(self, event):
        frames = (f for f in event["frames"] if f["filename"].find("/torch/") < 0)
        first = next(frames, None)
        self.owner = "unknown" if first is None else "{filename}:{line}".format(**first)
        self.size = event["size"]

def who_holds_the_peak(snapshot):
    events = snapshot["device_traces"][0]
    live, curve = {}, [0]
    for e in events:
        match e:
            case {"action": "alloc", "addr": a, "size": n}:
                live[a] = n
                curve.append(curve[-1] + n)
            case {"action": "free_completed", "addr": a} if a in live:
                curve.append(curve[-1] - live.pop(a))
            case _:
                curve.append(curve[-1])
    stop = curve.index(max(curve))
    blocks = {}
    for e in events[:stop]:
        if e["action"] == "alloc":
            blocks[e["addr"]] = Block(e)
        elif e["action"] == "free_completed":
            blocks.pop(e["addr"], None)
    rows = sorted(((b.owner, b.size) for b in blocks.values()))
    merged = [(o, sum(map(itemgetter(1), g))) for o, g in groupby(rows, itemgetter(0))]
    merged.sort(key=itemgetter(0))
    merged.sort(key=itemgetter(1), reverse=True)
    return merged


# %% wrong: others_free
"""Every action but alloc and free_requested frees its address."""

def who_holds_the_peak(snapshot):
    live, now, most, best = {}, 0, 0, {}
    for e in snapshot["device_traces"][0]:
        if e["action"] == "alloc":
            live[e["addr"]] = e
            now += e["size"]
            if now > most:
                most, best = now, dict(live)
        elif e["action"] != "free_requested" and e["addr"] in live:
            now -= live.pop(e["addr"])["size"]
    total = {}
    for e in best.values():
        owner = "unknown"
        for f in e["frames"]:
            if "/torch/" not in f["filename"]:
                owner = f"{f['filename']}:{f['line']}"
                break
        total[owner] = total.get(owner, 0) + e["size"]
    return sorted(total.items(), key=lambda p: (-p[1], p[0]))


# %% wrong: torch_nn_only
"""A frame is torch's if "/torch/nn/" is in its file name."""

def who_holds_the_peak(snapshot):
    live, now, most, best = {}, 0, 0, {}
    for e in snapshot["device_traces"][0]:
        if e["action"] == "alloc":
            live[e["addr"]] = e
            now += e["size"]
            if now > most:
                most, best = now, dict(live)
        elif e["action"] == "free_completed" and e["addr"] in live:
            now -= live.pop(e["addr"])["size"]
    total = {}
    for e in best.values():
        owner = "unknown"
        for f in e["frames"]:
            if "/torch/nn/" not in f["filename"]:
                owner = f"{f['filename']}:{f['line']}"
                break
        total[owner] = total.get(owner, 0) + e["size"]
    return sorted(total.items(), key=lambda p: (-p[1], p[0]))


# %% wrong: lines_as_numbers
"""In a tie, line 9 comes before line 10."""


def owner_of(frames):
    for frame in frames:
        if "/torch/" not in frame["filename"]:
            return frame["filename"], frame["line"]
    return "unknown", 0


def who_holds_the_peak(snapshot):
    live, at_peak, total, most = {}, {}, 0, 0
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            live[event["addr"]] = (owner_of(event["frames"]), event["size"])
            total += event["size"]
            if total > most:
                most, at_peak = total, dict(live)
        elif event["action"] == "free_completed" and event["addr"] in live:
            total -= live.pop(event["addr"])[1]
    held = {}
    for owner, size in at_peak.values():
        held[owner] = held.get(owner, 0) + size
    ranked = sorted(held.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(f"{name}:{line}" if line else name, size) for (name, line), size in ranked]
