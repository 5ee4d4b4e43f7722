"""What is hidden from the garbage collector while a probe measures."""

from __future__ import annotations

import subprocess
import sys

import pytest

_BLOCK = """
import gc, weakref
from peakmem.probes import earlier_objects_set_aside, set_aside_for_good

class Node:
    pass

def cycle():
    node = Node()
    node.itself = node
    return weakref.ref(node)

gc.collect()
{first}
gc.disable()
before, older = gc.get_freeze_count(), cycle()
with earlier_objects_set_aside():
    waits, own = older() is not None, cycle()
    gc.collect()
    print(waits == (older() is not None), own() is None)
print(before, gc.get_freeze_count())
gc.collect()
print(older() is None)
"""


@pytest.mark.parametrize("first", ["", "set_aside_for_good()"])
def test_older_garbage_stays_as_it_is_while_a_block_runs(first: str) -> None:
    code = _BLOCK.format(first=first)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    same, own_is_gone, before, after, gone = run.stdout.split()
    assert (same, own_is_gone, gone) == ("True", "True", "True")
    # What was set aside for good stays so: each later collection is quick. Otherwise nothing stays,
    # not even what Python 3.12 sets aside when it starts.
    assert after == (before if first else "0")
