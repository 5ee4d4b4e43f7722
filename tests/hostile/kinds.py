"""Every kind of attack that the hostile class must contain, and the submissions that try it.

The first of each kind is cheap, and is also in the quick class.
"""

from __future__ import annotations

__all__ = ["KINDS", "QUICK"]

_KINDS = {
    # Judging.
    "always-equal objects": "equal-to-everything int-equal-to-everything",
    "subclasses and classes that lie": "subclasses-of-plain-types lies-about-its-class "
    "numpy-scalar-that-lies",
    "AST removal of asserts": "deletes-asserts",
    "input transformers": "rewrites-cells",
    "patched run_cell": "patches-the-shell",
    "patched numpy, torch and builtins": "patched-libraries",
    "patched peakmem": "patched-peakmem",
    "reading frames": "reads-frames traces-all-calls",
    "reading linecache, In and pre_run_cell": "listens-to-cells source-that-lies",
    "forged replies on the socket": "forged-replies forged-verdict forged-exception "
    "answers-from-the-socket",
    "outcomes that are long and odd to read": "forged-outcomes",
    "odd replies on the socket": "arrays-in-the-frame arrays-as-question a-thread-that-stays",
    "shadow modules": "shadow-modules import-hooks",
    # Answers.
    "nan": "nan keys-of-nan",
    "negative": "negative",
    "huge": "huge-integer infinite",
    "wrong types": "text true nothing memory-view deep-answer",
    "10 GB": "ten-gb-announced ten-gb",
    "slow to read": "colliding-keys millions-of-lists",
    "endless to go through": "rows-of-nothing rows-of-nothing-on-the-wire endless-tuple",
    "never": "never exception-without-end",
    "never, and talking": "questions-without-end a-byte-now-and-then",
    "twice": "answers-twice",
    "exceptions that cannot be told": "exception-that-cannot-be-told",
    "pickles": "pickle-on-the-wire pickle",
    "object arrays": "array-of-objects object-array-on-the-wire",
    # Looking around.
    "notebooks, gradebook, journal, peers, home": "reads-the-graders-files searches-the-disk",
    "the grader's own modules": "imports-the-grader",
    "/proc and the environment": "reads-the-graders-processes kills-the-grader",
    "memory and descriptors of others": "shared-mappings memory-of-others inherited-descriptors",
    "network and abstract sockets": "socket other-sockets",
    "DNS": "name-lookup",
    "the scheduler's port": "scheduler",
    "letters to the next student": "leaves-a-letter hoards-in-dev reads-letters-in-dev keyring",
    "modules for the next student": "writes-everywhere",
    "nested namespaces": "nested-namespaces",
    "ptrace": "ptrace",
    # Using up.
    "os._exit": "exit-in-the-function exit-in-a-cell polite-exit-in-the-function",
    "segfault": "crash-in-a-cell crashes-in-many-cells recursion-without-end code-nested-too-deep",
    "SIGSTOP of itself": "stops-itself",
    "loops that ignore signals": "endless-loop-that-catches-all sleeper sleeps-as-if-for-the-disk",
    "hooks of the interpreter": "hooks-of-the-interpreter",
    "memory in RAM": "memory-bomb memory-bomb-of-many-processes",
    "memory in tmpfs and shared memory": "memory-bomb-in-shm memory-of-no-process",
    "memory that is let go of": "lets-go-of-shared-memory",
    "memory in threads": "memory-in-threads",
    "fork bombs": "fork-bomb",
    "thread bombs": "threads",
    "output floods": "output-flood displays-without-end",
    "disk floods": "disk-flood",
    "inode floods": "inode-flood",
    "daemons that outlive": "daemon",
    "processors and priorities": "goes-before-others crowds-the-processors",
    "handles": "hoards-handles",
    "the kernel's own memory": "locks-and-watches sockets-that-wait sockets-of-many-processes",
    # Files and notebooks.
    "symlinks": "link-to-secret link-to-peer link-of-a-folder link-of-the-labs-folder",
    "hard links and pipes": "hard-link pipe",
    "zip bombs and ..": "zip-bomb",
    "devices in archives": "tar-of-devices packed",
    "huge, deep and broken files": "too-many-lists too-deep too-large too-many-cells too-much-code",
    "files of other kinds": "empty gradebook long-number",
    "odd JSON": "odd-numbers half-characters byte-order-mark utf-16",
    "odd cells": "odd-headings",
    "metadata edits": "no-metadata",
    "points edits": "rewritten-grade-cell forged-marks",
    "grade_id edits": "all-grade-ids-alike all-ids-alike",
    "duplicated cells": "duplicated-grade-cells defined-again-last",
    "deleted cells": "deleted deleted-grade-cell",
    "split cells": "split-solution",
    "reordered cells": "reordered",
    "retyped cells": "retyped-grade-cells",
    "a forged timestamp or student id": "forged-identity",
    # People.
    "script injection": "script forged-outputs pictures-with-scripts attached-scripts "
    "outputs-of-many-kinds scripts-in-metadata",
    "CSV formula injection": "formula formula=1+1",
    "text that breaks writing": "half-a-character",
    "text that reads otherwise": "reads-otherwise",
    "HTML that is slow to clean": "html-that-is-slow-to-clean many-outputs-slow-to-clean",
}

KINDS = {kind: tuple(names.split()) for kind, names in _KINDS.items()}
QUICK = frozenset(names[0] for names in KINDS.values())
