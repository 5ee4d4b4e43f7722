"""The command `peakmem`: what a training step takes, and what this machine can run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, NoReturn

from peakmem.deepspeed import deepspeed_config
from peakmem.doctor import check_machine, labs_here
from peakmem.estimate import Estimate, estimate
from peakmem.hardware import accelerator
from peakmem.models import model, parameter_count
from peakmem.recipes import Parallelism, Recipe
from peakmem.remedies import remedies
from peakmem.units import both, parse

__all__ = ["main"]


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; `{self.prog} --help` lists what can be given\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status, 2 where the input has something to mend."""
    given = _parser().parse_args(arguments)
    try:
        return int(given.run(given))
    except ValueError as error:
        print(f"peakmem {given.command}: {error}", file=sys.stderr)
        return 2


def _parser() -> _Parser:
    parser = _Parser(prog="peakmem", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_estimate(commands.add_parser("estimate", help="predict one training step's peak memory"))
    doctor = commands.add_parser("doctor", help="say what this machine can run, lab by lab")
    doctor.set_defaults(run=_doctor)
    return parser


def _add_estimate(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    recipe = {f.name: f.default for f in fields(Recipe)}
    add("--model", required=True, help="such as gpt3-175b")
    add("--gpu", required=True, help="such as a100-80gb")
    add("--memory", metavar="SIZE", help="instead of the GPU's own, such as 40GiB")
    add("--precision", default=recipe["precision"], help="such as amp_fp16")
    add("--optimizer", default=recipe["optimizer"], help="such as adam")
    add("--implementation", help="of the optimizer: for-loop, foreach or fused")
    add("--batch", type=int, default=1, help="sequences a step on each replica")
    add("--seq", dest="sequence", type=int, default=1024, help="tokens a sequence")
    add("--micro-batches", type=int, default=1, help="parts the batch is cut into")
    add("--attention", default=recipe["attention"], help="standard or flash")
    add("--dropout", type=float, default=0.0)
    add("--checkpointing", default="none", help="none, selective, every_k or full")
    add("--checkpoint-every", type=int, default=1, metavar="LAYERS", help="under every_k")
    add("--offload", action="store_true", help="the optimizer works on the host")
    add("--lora-rank", type=int, default=0, metavar="R", help="train adapters of this rank only")
    add("--quantized-base", help="of adapters: int8 or nf4")
    add("--zero", type=int, default=0, metavar="STAGE", help="0, 1, 2 or 3")
    add("--data-parallel", dest="data", type=int, default=1, metavar="N")
    add("--tensor-parallel", dest="tensor", type=int, default=1, metavar="N")
    add("--sequence-parallel", dest="cut_sequence", action="store_true")
    add("--pipeline", type=int, default=1, metavar="N")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print figures for programs, in bytes")
    output.add_argument("--export", metavar="deepspeed", help="print a configuration file instead")
    parser.set_defaults(run=_estimate)


def _estimate(given: argparse.Namespace) -> int:
    options = vars(given)
    recipe = Recipe(**{f.name: options[f.name] for f in fields(Recipe) if f.name in options})
    parallelism = Parallelism(
        **{name: options[name] for name in ("data", "zero", "tensor", "pipeline")},
        sequence=given.cut_sequence,
    )
    shape = model(given.model)
    if given.export is not None:
        if given.export != "deepspeed":
            raise ValueError(f"--export {given.export!r} is unknown; use deepspeed")
        print(json.dumps(deepspeed_config(shape, recipe, parallelism), indent=2))
        return 0
    device = accelerator(given.gpu)
    if given.memory is not None:
        memory_bytes = parse(given.memory)
        if memory_bytes < 1:
            raise ValueError("--memory is 0 bytes, and nothing fits into that; give at least 1B")
        device = replace(device, memory_bytes=memory_bytes)
    found = estimate(shape, recipe, device, parallelism)
    if given.json:
        others = [
            {"changes": r.changes, "cost": r.cost, "peak_bytes": r.estimate.peak_bytes}
            for r in remedies(found)
        ]
        print(json.dumps(found.as_json() | {"remedies": others}, indent=2))
    else:
        print("\n".join(_report(found)))
    return 0


def _report(found: Estimate) -> Iterator[str]:
    """Yield the lines that a person reads."""
    n_parameters = sum(parameter_count(found.model).values())
    devices = found.parallelism.devices
    where = f"{found.device.name} x {devices}" if devices > 1 else found.device.name
    yield f"{found.model.name}: {n_parameters:,} parameters; one step on {where}"
    yield ""
    yield f"{'at the peak, on one device':<28}{'bytes':>20}  "
    by_owner: dict[Any, int] = found.ledger.by_owner()
    for owner, n_bytes in by_owner.items():
        yield f"  {owner.replace('_', ' '):<26}{n_bytes:>20,}  {both(n_bytes)}"
    yield f"  {'peak':<26}{found.peak_bytes:>20,}  {both(found.peak_bytes)}"
    yield f"  {'memory of ' + found.device.name:<26}{found.device.memory_bytes:>20,}  " + both(
        found.device.memory_bytes
    )
    yield ""
    yield f"The peak comes in the {found.ledger.peak_phase} phase."
    yield from _verdict(found)
    yield "Left out: the CUDA context, libraries' workspaces, the allocator's fragments."


def _verdict(found: Estimate) -> Iterator[str]:
    if found.fits:
        yield f"It fits, with {both(found.margin_bytes)} to spare."
        return
    yield f"It does not fit: {both(-found.margin_bytes)} too much."
    if found.verdict == "reduce activations":
        yield "Reduce activations: with fewer sequences at a time it would fit."
    else:
        share = found.state_bytes / found.peak_bytes
        yield (
            "No batch size can fix this: one sequence at a time is too much. At the peak, weights, "
            f"gradients and optimizer state are {share:.0%} of what is live."
        )
    cheapest = remedies(found)
    yield (
        "Cheapest changes that would fit (device time a sequence, now = 1):"
        if cheapest
        else ("Nothing that was tried makes it fit; take a smaller model or a larger device.")
    )
    for remedy in cheapest:
        size = both(remedy.estimate.peak_bytes)
        yield f"  {remedy.cost:5.2f}  {'; '.join(remedy.changes)}: {size}"


def _doctor(_: argparse.Namespace) -> int:
    checks = check_machine()
    for check in checks:
        print(f"{'ok     ' if check.ok else 'MISSING'} {check.name:<12}{check.found}")
        if not check.ok:
            print(f"        to mend it: {check.remedy}")
    has_gpu = _print_device(any(check.name == "torch" and check.ok for check in checks))
    for lab, what in labs_here(has_gpu).items():
        print(f"{lab:<24}{what}")
    return 0 if all(check.ok for check in checks) else 1


def _print_device(has_torch: bool) -> bool:
    """Print which device the labs use; return whether it is a CUDA GPU."""
    if not has_torch:
        return False
    import torch  # here, so that `peakmem estimate` starts at once

    if torch.cuda.is_available():
        memory = both(torch.cuda.get_device_properties(0).total_memory)
        print(f"The labs use the GPU {torch.cuda.get_device_name(0)} with {memory}.")
        return True
    if torch.backends.mps.is_available():
        print("The labs use the CPU: they do not measure Apple's GPU.")
    else:
        print("The labs use the CPU: torch sees no CUDA GPU here.")
    return False
