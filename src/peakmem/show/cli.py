"""The command `peakmem`: what a training step takes, and what this machine can run."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, NoReturn

from peakmem.core.units import both, parse
from peakmem.labs.doctor import check_machine, labs_here
from peakmem.predict.deepspeed import deepspeed_config
from peakmem.predict.estimate import Estimate, estimate
from peakmem.predict.suggestions import suggest
from peakmem.show.config_report import ConfigReport
from peakmem.show.snapshot_report import snapshot_report
from peakmem.specs.hardware import (
    ACCELERATORS,
    BOARDS,
    Accelerator,
    Memory,
    accelerator,
    smallest_board,
    unnamed,
)
from peakmem.specs.models import MODELS, ModelShape, model, parameter_count
from peakmem.specs.recipes import Parallelism, Recipe

__all__ = ["main"]

_GIVEN = "--memory"  # the source of a memory that the user gave
_PIPE_CLOSED = 141  # what a shell reports of a command that a closed pipe ended


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; `{self.prog} --help` lists what can be given\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    0 says that the step fits or the machine is ready, 1 that it is not so, 2 that the input has
    something to mend, and 141 that the reader of the output went away, as `| head -1` does.
    """
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()  # here, where a closed pipe can still be caught
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return _PIPE_CLOSED


def _run(arguments: Sequence[str] | None) -> int:
    given = _parser().parse_args(arguments)
    try:
        return int(given.run(given))
    except ValueError as error:
        print(f"peakmem {given.command}: {error}", file=sys.stderr)
        return 2


def _parser() -> _Parser:
    parser = _Parser(prog="peakmem", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_estimate(
        commands.add_parser(
            "estimate",
            help="predict one training step's peak memory",
            epilog="The exit status is 0 if the step fits, 1 if not, and 2 for wrong input. Of a "
            "config whose activations are not predicted it is 1 only if the model's states alone "
            "are too large.",
        )
    )
    doctor = commands.add_parser("doctor", help="say what this machine can run, lab by lab")
    doctor.set_defaults(run=_doctor)
    snapshot = commands.add_parser("snapshot", help="say who holds a recorded snapshot's peak")
    snapshot.add_argument("file", help="as torch.cuda.memory._dump_snapshot writes it")
    snapshot.add_argument("--device", type=int, default=0, metavar="N", help="of several GPUs")
    snapshot.add_argument("--plot", metavar="FILE", help="draw memory over time, such as peak.png")
    snapshot.set_defaults(run=_snapshot)
    return parser


def _snapshot(given: argparse.Namespace) -> int:
    try:
        print("\n".join(snapshot_report(given.file, device=given.device, plot=given.plot)))
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}; give a file that is there") from None
    return 0


def _add_estimate(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    recipe = {f.name: f.default for f in fields(Recipe)}
    add("--list", action="store_true", help="list models and GPUs, with their memory")
    named = parser.add_mutually_exclusive_group()
    named.add_argument("--model", help="such as gpt3-175b")
    named.add_argument(
        "--config",
        metavar="PATH",
        help="a Hugging Face config.json, its folder, or a model id in the local cache",
    )
    add("--gpu", help="such as a100-80gb; without it, the smallest that fits is named")
    add("--memory", metavar="SIZE", help="of one device, such as 40GiB; also without --gpu")
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
    if given.list:
        print("\n".join(_listing()))
        return 0
    report = None
    if given.config is not None:
        report = ConfigReport.of(given.config, recipe, parallelism)
        if report.shape is None:
            return _print_states(given, report)
    elif given.model is None:
        raise ValueError(
            "expected --model, such as gpt2, or --config; `peakmem estimate --list` has all models"
        )
    shape = report.shape if report and report.shape else model(given.model)
    if given.export is not None:
        if given.export != "deepspeed":
            raise ValueError(f"--export {given.export!r} is unknown; use deepspeed")
        print(json.dumps(deepspeed_config(shape, recipe, parallelism), indent=2))
        return 0
    device = _device(given)
    if device is None:
        found = _on_smallest_board(shape, recipe, parallelism)
    else:
        found = estimate(shape, recipe, device, parallelism)
    notes = list(_notes(found, was_chosen=device is None))
    notes += report.assumptions if report else []
    if given.json:
        others = [
            {"changes": r.changes, "cost": r.cost, "peak_bytes": r.estimate.peak_bytes}
            for r in suggest(found)
        ]
        figures = found.as_json() | {"suggestions": others, "notes": notes}
        print(json.dumps((report.as_json() if report else {}) | figures, indent=2))
    else:
        if report:
            print("\n".join(report.parameter_lines()), end="\n\n")
        print("\n".join(_report(found, notes)))
    return 0 if found.fits else 1


def _print_states(given: argparse.Namespace, report: ConfigReport) -> int:
    """Print what is known of a model whose activations are not predicted."""
    if given.export is not None:
        raise ValueError(
            f"--export {given.export} needs a model whose step is predicted, such as a Llama, but "
            f"{given.config} is a {report.table.model_type}; leave it out"
        )
    device = _device(given)
    memory_bytes = device.memory_bytes if device else None
    if given.json:
        print(json.dumps(report.as_json() | report.states_as_json(memory_bytes), indent=2))
    else:
        print("\n".join([*report.parameter_lines(), "", *report.state_lines(memory_bytes)]))
    return 1 if report.is_too_large(memory_bytes) else 0


def _device(given: argparse.Namespace) -> Accelerator | None:
    """Return the device that --gpu and --memory describe; None if neither is given."""
    named = accelerator(given.gpu) if given.gpu is not None else None
    if given.memory is None:
        return named
    n_bytes = parse(given.memory)
    if n_bytes < 1:
        raise ValueError("--memory is 0 bytes, and nothing fits into that; give at least 1B")
    if named is None:
        return unnamed(n_bytes, _GIVEN)
    return replace(named, memory=Memory(n_bytes, _GIVEN, reported=False))


def _on_smallest_board(shape: ModelShape, recipe: Recipe, parallelism: Parallelism) -> Estimate:
    """Return the estimate on the smallest board that holds it, or on the largest there is.

    The peak depends on no device, so one ledger is enough.
    """
    found = estimate(shape, recipe, BOARDS[-1], parallelism)
    return replace(found, device=smallest_board(found.peak_bytes) or BOARDS[-1])


def _listing() -> Iterator[str]:
    """Yield a line for each model and each GPU."""
    yield "models"
    for name, shape in MODELS.items():
        n_parameters = sum(parameter_count(shape).values())
        yield f"  {name:<16}{n_parameters:>16,} parameters"
    yield "GPUs, with the memory that a program can have"
    for name, device in ACCELERATORS.items():
        yield f"  {name:<16}{both(device.memory_bytes):<26}{device.memory.source}"


def _notes(found: Estimate, *, was_chosen: bool) -> Iterator[str]:
    """Yield what you should know beside the figures, a sentence each."""
    device, many = found.device, found.parallelism
    if was_chosen and found.fits:
        yield f"{device.name} is the smallest board here that holds this step."
    elif was_chosen:
        yield f"No board here holds this step; {device.name} is the largest."
    if not device.memory.reported and device.memory.source != _GIVEN:
        yield f"The memory of {device.name} is an {device.memory.source}."
    if many.zero and many.data == 1:
        yield (
            f"ZeRO stage {many.zero} has no effect with one replica; "
            "give --data-parallel 2 or more."
        )
    if device.unified:
        yield f"Predicted by the rules of torch on CUDA; {device.name} may need more."


def _report(found: Estimate, notes: list[str]) -> Iterator[str]:
    """Yield the lines that are printed without --json."""
    n_parameters = sum(parameter_count(found.model).values())
    devices, device = found.parallelism.devices, found.device
    name = device.name or ("device" if devices > 1 else "one device")
    where = f"{devices} x {name}" if devices > 1 else name
    yield f"{found.model.name}: {n_parameters:,} parameters; one step on {where}"
    yield ""
    yield f"{'at the peak, on one device':<28}{'bytes':>20}  "
    by_owner: dict[Any, int] = found.ledger.by_owner()
    for owner, n_bytes in by_owner.items():
        yield f"  {owner.replace('_', ' '):<26}{n_bytes:>20,}  {both(n_bytes)}"
    yield f"  {'peak':<26}{found.peak_bytes:>20,}  {both(found.peak_bytes)}"
    memory = "memory given" if device.memory.source == _GIVEN else f"memory of {device.name}"
    yield f"  {memory:<26}{device.memory_bytes:>20,}  {both(device.memory_bytes)}"
    yield ""
    yield f"The peak comes in the {found.ledger.peak_phase} phase."
    yield from _verdict(found)
    yield from notes
    if not device.unified:
        yield from _process(found)
    yield "Not in the peak: the CUDA context, libraries' workspaces, the allocator's fragments."


def _process(found: Estimate) -> Iterator[str]:
    """Yield what comes on top of the peak, and whether it still fits then."""
    low, high = found.process_bytes
    reserved = both(found.allocation.reserved_bytes)
    yield f"Torch's allocator reserves {reserved}, without expandable segments."
    yield f"With the CUDA context and cuBLAS the process takes {both(low)} to {both(high)}."
    if found.fits and high > found.device.memory_bytes:
        yield f"So it {'may' if low <= found.device.memory_bytes else 'does'} not fit after all."


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
    cheapest = suggest(found)
    rates = "" if found.device.name else " at a similar board's rates"
    yield (
        f"Cheapest changes that would fit (device time a sequence{rates}, now = 1):"
        if cheapest
        else ("Nothing that was tried makes it fit; take a smaller model or a larger device.")
    )
    for suggestion in cheapest:
        size = both(suggestion.estimate.peak_bytes)
        yield f"  {suggestion.cost:5.2f}  {'; '.join(suggestion.changes)}: {size}"


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
