"""The names, modules and constructs that a task bans, as data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NOTHING_BANNED", "Ban"]


@dataclass(frozen=True)
class Ban:
    """One task's restrictions, in addition to those for all tasks (`autograder.model.allowed`)."""

    #: Identifiers, attributes and imported names (`float32`). They also count if a string, or one
    #: computed from constants, is exactly that name (`"float32"`, as a dtype or for `getattr`) or
    #: has it as a part between dots. A name with a leading dot (`.half`) never matches a variable
    #: of that name.
    names: frozenset[str] = frozenset()
    #: Modules with everything below them (`torch.optim`), or single functions in modules
    #: (`math.fsum`), including built-in ones (`builtins.sum`).
    modules: frozenset[str] = frozenset()
    #: Modules or functions that are allowed after all in this task.
    allows: frozenset[str] = frozenset()
    #: A pattern that no text may match in full, such as the format codes of `struct`. Texts that
    #: can't be codes are exempt: keys, number formats, and arguments of `float` or `split`.
    codes: str = ""
    #: Names and modules that take format codes: `codes` count only in a solution that uses one.
    coded: frozenset[str] = frozenset()
    #: Methods of float (`hex`). Because bytes share some of the names, they count only on `float`,
    #: `float(...)`, `abs(...)` and the solution's parameters.
    methods: frozenset[str] = frozenset()
    #: Whether the probe also refuses conversions between bits and small floats by checking values
    #: while the code runs (`peakmem.probes.conversions`).
    conversions: bool = False
    #: Whether Python loops, comprehensions, `map` and np.vectorize are banned.
    loops: bool = False
    #: The sentence that a student reads.
    reason: str = ""


NOTHING_BANNED = Ban()
