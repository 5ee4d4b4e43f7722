"""Memory budgets compared with answers' needs, and correct answers graded under hard conditions.

Run as `python -m benchmarks.budgets`. Without options it finds the smallest sufficient budget for
each answer in the answer bank to an exercise with a memory budget. With `--repeat N` it grades the
correct answers N times in total, each equally often, while the machine is in the named condition.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autograder.base.course import COURSE
from autograder.content import find_lab
from autograder.model.task import Lab
from autograder.trials.answer_bank import read_bank
from autograder.trials.calibration import calibrate, measured_labs, tallies
from benchmarks.conditions import CONDITIONS, signs
from benchmarks.figures import NotRun
from benchmarks.needs import Need, margins, measure_needs

__all__ = ["main"]


def main() -> int:
    """Print the figures; return 1 if a correct answer is refused memory, or a mistake isn't."""
    parser = argparse.ArgumentParser(prog="budgets", description=__doc__)
    parser.add_argument("--repeat", type=int, metavar="N", help="grade right answers N times")
    parser.add_argument("--condition", choices=CONDITIONS, default="idle")
    parser.add_argument("--json", type=Path, metavar="FILE", help="update the figures there too")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if options.repeat is None:
        return _needs(options.json)
    try:
        return _repeat(options.repeat, options.condition, options.json)
    except NotRun as reason:
        print(f"{options.condition}: not run, {reason}.")
        return 0


def _needs(file: Path | None) -> int:
    needs: list[Need] = []
    for lab in measured_labs():
        for need in measure_needs(lab, COURSE):
            needs.append(need)
            print(need, flush=True)
        _update(file, {"needs": [asdict(need) for need in needs], "margins": margins(needs)})
    for task, margin in margins(needs).items():
        print(
            f"{task}: right answers have {margin['to_spare_mib']} MiB to spare at least, "
            f"mistakes of memory are over by {margin['over_mib']} MiB at least"
        )
    return int(any(need.is_misjudged for need in needs))


def _repeat(count: int, condition: str, file: Path | None) -> int:
    labs = measured_labs()
    rounds = math.ceil(count / sum(map(_right_answers, labs)))
    begin, before = time.perf_counter(), signs()
    with CONDITIONS[condition]():
        counted = tallies(calibrate(labs, COURSE, rounds))
    seconds, seen = time.perf_counter() - begin, signs().since(before)
    total = {
        name: sum(getattr(tally, name) for tally in counted)
        for name in ("gradings", "lost", "could_not_judge")
    }
    print(*counted, sep="\n")
    print(
        f"{condition}: {total['gradings']} gradings in {seconds:.0f} s, {total['lost']} lost "
        f"points, {total['could_not_judge']} could not be judged; {seen}"
    )
    for tally in counted:
        print(*tally.failures, sep="\n", end="")
    figures = {
        **total,
        "rounds": rounds,
        "seconds": round(seconds),
        "load_average": round(os.getloadavg()[1], 1),
        "signs": asdict(seen),
        "tasks": [asdict(tally) for tally in counted],
    }
    _update(file, {"conditions": {condition: figures}})
    return int(any(tally.failures for tally in counted))


def _right_answers(lab: Lab) -> int:
    tasks = {task.id for task in lab.tasks}
    entries = read_bank(COURSE.bank, find_lab(lab.name))
    return sum(entry.kind == "right" and entry.task in tasks for entry in entries)


def _update(file: Path | None, figures: Mapping[str, Any]) -> None:
    """Add figures to a file, next to those for other conditions."""
    if file is None:
        return
    there = json.loads(file.read_text()) if file.exists() else {}
    conditions = there.get("conditions", {}) | figures.get("conditions", {})
    there |= {**figures, "conditions": conditions}
    file.write_text(json.dumps(there, indent=1) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
