"""Lab 8's verdicts on traffic and peak memory, repeated many times on a busy machine.

Run as `python -m benchmarks.verdicts`. Each round draws new cases and grades, in the sandbox, two
correct answers to each exercise whose ranks are metered, and the mistakes that only a meter
notices. An answer should get the same status, points and mistake each time.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autograder.base.course import COURSE
from autograder.content import find_lab
from autograder.model.status import JUDGED, shown
from autograder.model.task import Case, Verdict
from autograder.trials.answer_bank import read_bank
from autograder.trials.calibration import Grading, grade_rounds, with_cases
from autograder.trials.entry import Entry
from benchmarks.conditions import CONDITIONS, signs

__all__ = ["main", "verdicts"]

_LAB = "lab08_shards"
_RIGHT = 2  # correct answers to each exercise
# Mistakes that leave every value correct, so that only a meter detects them.
_WRONG = (
    "ring_all_reduce/wrong_star",  # gathers on one rank, then broadcasts
    "ring_all_reduce/wrong_whole_tensors",
    "ring_all_reduce/wrong_whole_copy",
    "data_parallel/wrong_talks_always",
    "sharded_adam/wrong_replicated",  # all moments on each rank
    "find_the_leak/wrong_all_gathered",
    "shard_gradients/wrong_freed_late",
    "sharded_layers/wrong_layers_stay",  # gathered weights are never freed
    "sharded_layers/wrong_sends_too_much",
)


def _is_metered(case: Case) -> bool:
    return case.budget is not None or bool(case.inputs.get("metered"))


def chosen_answers() -> list[Entry]:
    """Return the answers to grade, from the answer bank."""
    metered = {task.id for task in with_cases(find_lab(_LAB), _is_metered).tasks}
    found: list[Entry] = []
    correct: Counter[str] = Counter()
    for entry in read_bank(COURSE.bank, find_lab(_LAB)):
        if entry.kind == "right" and entry.task in metered:
            correct[entry.task] += 1
            if correct[entry.task] <= _RIGHT:
                found.append(entry)
        elif entry.label.removeprefix("lab08-") in _WRONG:
            found.append(entry)
    return found


def verdicts(gradings: Iterable[Grading]) -> list[dict[str, Any]]:
    """Return a row for each answer: how often it was graded, and each verdict with its count.

    `as_expected` is false if the verdict ever differed, if a correct answer lost points, or if an
    incorrect answer kept them all or could not be judged.
    """
    by_answer: dict[str, list[Grading]] = {}
    for grading in gradings:
        by_answer.setdefault(grading.entry.label, []).append(grading)
    return [_row(label, of_answer) for label, of_answer in by_answer.items()]


def _row(label: str, gradings: Sequence[Grading]) -> dict[str, Any]:
    counts = Counter(_words(grading.verdict) for grading in gradings)
    expected = {"right": {"right"}, "wrong": {"wrong", "partly"}}[gradings[0].entry.kind]
    return {
        "answer": label,
        "gradings": len(gradings),
        "verdicts": dict(counts),
        "as_expected": len(counts) == 1 and gradings[0].verdict.status in expected,
    }


def _words(verdict: Verdict) -> str:
    mistake = f", {verdict.mistake}" if verdict.mistake else ""
    said = f"{shown(verdict.status)}, {verdict.points:g} of {verdict.max_points:g}{mistake}"
    return said if verdict.status in JUDGED else f"{said}: {verdict.message}"


def main() -> int:
    """Print the verdicts; return 1 if one ever differed or wasn't the expected one."""
    parser = argparse.ArgumentParser(prog="verdicts", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="5 by default")
    parser.add_argument("--condition", choices=CONDITIONS, default="busy")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    lab = with_cases(find_lab(_LAB), _is_metered)
    begin, before, gradings = time.perf_counter(), signs(), list[Grading]()
    with CONDITIONS[options.condition]():
        for of_round in grade_rounds(lab, chosen_answers(), COURSE, options.rounds):
            gradings += of_round
            print(f"{len(gradings)} gradings after {time.perf_counter() - begin:.0f} s", flush=True)
    rows = verdicts(gradings)
    for row in rows:
        said = "; ".join(f"{words} ({count} times)" for words, count in row["verdicts"].items())
        print(f"{row['answer']:40} {said}")
    surprising = sum(not row["as_expected"] for row in rows)
    print(f"{options.condition}: {surprising} of {len(rows)} answers with a surprising verdict")
    if options.json:
        figures = {
            "command": _command(options),
            "gradings": len(gradings),
            "rounds": options.rounds,
            "seconds": round(time.perf_counter() - begin),
            "processors": os.cpu_count(),
            "load_average": round(os.getloadavg()[1], 1),
            "signs": asdict(signs().since(before)),
            "answers": rows,
        }
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return int(surprising > 0)


def _command(options: argparse.Namespace) -> str:
    return (
        f"python -m benchmarks.verdicts --rounds {options.rounds} "
        f"--condition {options.condition} --json {options.json}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
