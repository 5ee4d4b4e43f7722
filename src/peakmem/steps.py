"""The optimizer's step on a tape: what torch's implementations allocate beside the state.

`for-loop` takes one parameter after another, `foreach` all at once, `fused` works in place. 8-bit
Adam is taken for a fused kernel, as bitsandbytes has it.
"""

from __future__ import annotations

from collections.abc import Sequence

from peakmem.recipes import Recipe
from peakmem.tape import Tape, Value

__all__ = ["play_step"]


def play_step(
    tape: Tape, parameters: Sequence[Value], recipe: Recipe, implementation: str
) -> None:
    """Play the step of the parameters that are trained.

    Where there are master weights, each gradient is first copied to their format, all together,
    unless it has it already; the step works on the masters, and the new weights are copied back in
    place.
    """
    if recipe.offload:
        tape.event("step of the host")
        return
    copies: list[Value] = []
    master = recipe.formats.master
    if master and recipe.formats.gradients != master:
        for parameter in parameters:
            tape.event(f"{parameter.storage.name}: gradient for its master")
            name = f"{parameter.storage.name}.grad in {master}"
            copies.append(tape.make(name, parameter.shape, master))
    with tape.holding(*copies):
        if recipe.optimizer in ("adam", "adamw") and implementation != "fused":
            _adam(tape, parameters, recipe.formats.states, implementation)
        elif recipe.optimizer == "adafactor":
            _adafactor(tape, parameters, recipe.formats.states, implementation)
        else:
            tape.event(f"{recipe.optimizer} in place")


def _adam(tape: Tape, parameters: Sequence[Value], dtype: str, implementation: str) -> None:
    """Adam divides by the root of the second moment: two copies, one of which has to stay."""
    if implementation == "foreach":
        tape.event("roots of all second moments")
        for parameter in parameters:
            tape.make(f"{parameter.storage.name} (root)", parameter.shape, dtype)
        return
    before: list[Value] = []  # the loop's name for the last divisor, until it has a new one
    for parameter in parameters:
        name = parameter.storage.name
        tape.event(f"{name}: root", before)
        root = tape.make(f"{name} (root)", parameter.shape, dtype)
        tape.event(f"{name}: divisor", [*before, root])
        before = [tape.make(f"{name} (divisor)", parameter.shape, dtype)]


def _adafactor(tape: Tape, parameters: Sequence[Value], dtype: str, implementation: str) -> None:
    """Adafactor multiplies the factors out again: an estimate as large as the parameter.

    The loop's names keep the last means, squares and update until they have new ones.
    """
    names: dict[str, Value] = {}
    for parameter in parameters:
        name, shape = parameter.storage.name, parameter.shape
        parts = {"squares": shape}
        if len(shape) > 1:
            parts = {"row mean": (*shape[:-1], 1), "column mean": (*shape[:-2], 1, shape[-1])}
        for part, size in {**parts, "update": shape}.items():
            tape.event(f"{name}: {part}", names.values())
            key = f"{name}: {part}" if implementation == "foreach" else part
            names[key] = tape.make(f"{name} ({part})", size, dtype)
        if len(shape) > 1:
            tape.event(f"{name}: mean of row means", names.values())
            tape.make(f"{name} (mean of row means)", (), dtype)
        tape.event(f"{name}: norm of update", names.values())
        tape.make(f"{name} (norm of update)", (), dtype)
