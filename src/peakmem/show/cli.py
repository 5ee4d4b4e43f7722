"""The command `peakmem`: what a training step takes, and what this machine can run."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import NoReturn

from peakmem.core.units import both, parse
from peakmem.labs.doctor import check_machine, labs_here
from peakmem.predict.estimate import Estimate, estimate
from peakmem.predict.suggestions import suggest
from peakmem.show.config_report import ConfigReport
from peakmem.show.exports import print_export
from peakmem.show.inference_report import print_inference
from peakmem.show.picture import save_ledger
from peakmem.show.step_report import (
    batch_line,
    layer_lines,
    owner_lines,
    process_lines,
    verdict_lines,
)
from peakmem.show.trace_report import print_trace
from peakmem.show.traced_report import print_traced
from peakmem.specs.adapters import read_targets
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
            epilog="The exit status is 0 if it fits, 1 if it does not or may not, and 2 for wrong "
            "input. Of a config whose activations are not predicted it is 1 only if the model's "
            "states alone are too large.",
        )
    )
    _add_trace(commands.add_parser("trace", help="run a script without its memory"))
    doctor = commands.add_parser("doctor", help="say what this machine can run, lab by lab")
    doctor.set_defaults(run=_doctor)
    return parser


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
    add("--largest-batch", action="store_true", help="say how many sequences fit at once")
    add("--micro-batches", type=int, default=1, help="parts the batch is cut into")
    add("--attention", default=recipe["attention"], help="standard or flash")
    add("--dropout", type=float, default=0.0)
    add("--checkpointing", default="none", help="none, selective, every_k or full")
    add("--checkpoint-every", type=int, default=1, metavar="LAYERS", help="under every_k")
    add("--offload", action="store_true", help="the optimizer works on the host")
    add("--lora-rank", type=int, default=0, metavar="R", help="train adapters of this rank only")
    add("--lora-targets", metavar="NAMES", help="such as q_proj,v_proj, attention or all-linear")
    add("--quantized-base", help="of adapters, or for inference: int8, nf4 or fp8_e4m3")
    add("--loss-chunks", type=int, default=1, metavar="N", help="parts of head and loss")
    add("--trace", action="store_true", help="of a config: run transformers' class without memory")
    add("--inference", action="store_true", help="generate text; no training")
    add("--context", type=int, metavar="TOKENS", help="in each sequence's KV cache")
    add("--plot", metavar="FILE", help="draw who holds the peak, as .png, .svg or .pdf")
    add("--zero", type=int, default=0, metavar="STAGE", help="0, 1, 2 or 3")
    add("--data-parallel", dest="data", type=int, default=1, metavar="N")
    add("--tensor-parallel", dest="tensor", type=int, default=1, metavar="N")
    add("--sequence-parallel", dest="cut_sequence", action="store_true")
    add("--pipeline", type=int, default=1, metavar="N")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print figures for programs, in bytes")
    output.add_argument(
        "--export", metavar="KIND", help="print a file for accelerate, deepspeed or fsdp"
    )
    parser.set_defaults(run=_estimate)


def _add_trace(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--profile", default="torch-cuda", help="torch-cuda or torch-cpu")
    add("--plot", metavar="FILE", help="draw who holds memory when, as .png, .svg or .pdf")
    add("--json", action="store_true", help="print figures for programs, in bytes")
    add("script", help="a Python file that makes its model and runs its steps")
    add("arguments", nargs=argparse.REMAINDER, help="what the script is given")
    parser.set_defaults(run=_trace)


def _trace(given: argparse.Namespace) -> int:
    return print_trace(given.script, given.arguments, given.profile, given.plot, as_json=given.json)


def _estimate(given: argparse.Namespace) -> int:
    options = vars(given) | {"lora_targets": read_targets(given.lora_targets or "attention.qkv")}
    if given.inference:
        return print_inference(options, _device(given))
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
        if given.trace:
            return print_traced(options, recipe, parallelism, _device(given))
        report = ConfigReport.of(given.config, recipe, parallelism)
        if report.shape is None:
            return _print_states(given, report)
    elif given.model is None:
        raise ValueError(
            "expected --model, such as gpt2, or --config; `peakmem estimate --list` has all models"
        )
    shape = report.shape if report and report.shape else model(given.model)
    device = _device(given)
    if device is None:
        found = _on_smallest_board(shape, recipe, parallelism)
    else:
        found = estimate(shape, recipe, device, parallelism)
    if given.export is not None:
        return print_export(given.export, found, judged=device is not None)
    notes = list(_notes(found, was_chosen=device is None))
    notes += report.assumptions if report else []
    notes += [batch_line(found)] if given.largest_batch else []
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
    if given.plot:
        save_ledger(given.plot, found.model.name, found.ledger, found.device.memory_bytes)
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
    return replace(found, device=smallest_board(found.needed_bytes) or BOARDS[-1])


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
    yield f"{'at the peak, on one device':<28}{'bytes':>20}"
    yield from owner_lines(found.ledger)
    memory = "memory given" if device.memory.source == _GIVEN else f"memory of {device.name}"
    yield f"  {memory:<26}{device.memory_bytes:>20,}  {both(device.memory_bytes)}"
    yield ""
    yield from layer_lines(found.ledger)
    yield ""
    yield f"The peak comes in the {found.ledger.peak_phase} phase."
    yield from process_lines(found)
    yield from verdict_lines(found)
    yield from notes
    yield "Not counted: other libraries' workspaces, and scratch memory inside an operator."


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
