"""What a task's solution may not use, as data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NOTHING_BANNED", "Ban"]


@dataclass(frozen=True)
class Ban:
    """What one task's solution may not use, beside what none may (`autograder.model.allowed`).

    `names` are identifiers, attributes and imported names (`float32`); they count in strings too
    where the string is exactly that name (`"float32"`, as dtype strings and `getattr` take it). A
    name with a leading dot (`.half`) is never a variable of that name.
    `modules` are modules with all that is below them (`torch.optim`), or single functions of theirs
    (`math.fsum`), Python's own among them (`builtins.sum`). `allows` are such names that this
    task's solution may use nevertheless.
    `arguments` is a pattern that no text given to the functions in `called` may match in full, such
    as the format codes of `struct`. `methods` are methods of float (`hex`); since bytes have some
    of the same names, they count where they are asked of `float`, `float(...)`, `abs(...)` or a
    parameter of the solution. `loops` bans Python loops, comprehensions, `map` and np.vectorize.
    `reason` is the sentence a student reads.
    """

    names: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    allows: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()
    arguments: str = ""
    methods: frozenset[str] = frozenset()
    loops: bool = False
    reason: str = ""


NOTHING_BANNED = Ban()
