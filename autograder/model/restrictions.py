"""The names, modules and constructs that a task bans, as data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NOTHING_BANNED", "Ban"]


@dataclass(frozen=True)
class Ban:
    """One task's restrictions, beyond those that hold for all (`autograder.model.allowed`)."""

    #: Identifiers, attributes and imported names (`float32`). They count in strings too if the
    #: string, or one that constants yield, is exactly that name (`"float32"`, as dtype strings and
    #: `getattr` take it) or has it as a part between dots. A name
    #: with a leading dot (`.half`) never matches a variable of that name.
    names: frozenset[str] = frozenset()
    #: Modules with everything below them (`torch.optim`), or single functions of modules
    #: (`math.fsum`), built-in ones included (`builtins.sum`).
    modules: frozenset[str] = frozenset()
    #: Modules or functions that are allowed after all in this task.
    allows: frozenset[str] = frozenset()
    #: A pattern that no text may match in full, such as the format codes of `struct`. Texts that
    #: can't be codes are left out: keys, formats of numbers, and what `float` or `split` takes.
    codes: str = ""
    #: Names and modules that take format codes: `codes` count only in a solution that uses one.
    coded: frozenset[str] = frozenset()
    #: Methods of float (`hex`). Since bytes share some of their names, they count only on `float`,
    #: `float(...)`, `abs(...)` and the solution's parameters.
    methods: frozenset[str] = frozenset()
    #: Whether the probe refuses conversions between bits and small floats too, by the values that
    #: the code handles (`peakmem.probes.conversions`).
    conversions: bool = False
    #: Whether Python loops, comprehensions, `map` and np.vectorize are banned.
    loops: bool = False
    #: The sentence that a student reads.
    reason: str = ""


NOTHING_BANNED = Ban()
