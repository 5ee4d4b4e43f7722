"""`peakmem doctor`: what this machine can run, lab by lab."""

from __future__ import annotations

from typing import Annotated

import typer

from peakmem.core.units import both
from peakmem.show.cli.terminal import BAD, GOOD, tell

__all__ = ["doctor"]

Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only what is missing and how to install it.")
]


def doctor(quiet: Quiet = False) -> int:
    """Say what this machine can run, lab by lab."""
    from peakmem.labs.doctor import check_machine, labs_here

    checks = check_machine()
    for check in checks:
        if not check.ok:
            tell(f"MISSING {check.name:<12}{check.found}", style=BAD)
            tell(f"        to fix it: {check.remedy}")
        elif not quiet:
            tell(f"ok      {check.name:<12}{check.found}", style=GOOD)
    if not quiet:
        has_gpu = _print_device(any(check.name == "torch" and check.ok for check in checks))
        for lab, what in labs_here(has_gpu).items():
            tell(f"{lab:<24}{what}")
        if not has_gpu:
            tell("Without one, the total excludes exercises that need a GPU.")
    return 0 if all(check.ok for check in checks) else 1


def _print_device(has_torch: bool) -> bool:
    """Print the device that the labs use; return whether it is a CUDA GPU."""
    if not has_torch:
        return False
    import torch  # late, so that other commands start at once

    if torch.cuda.is_available():
        memory = both(torch.cuda.get_device_properties(0).total_memory)
        tell(f"The labs use the GPU {torch.cuda.get_device_name(0)} with {memory}.")
        return True
    if torch.backends.mps.is_available():
        tell("The labs use the CPU: they don't measure Apple's GPU.")
    else:
        tell("The labs use the CPU: torch finds no CUDA GPU.")
    return False
