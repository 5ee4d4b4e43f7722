"""Waives tasks: everyone who submitted gets full points, and reads the reason.

Waivers are set in semester.toml, and apply once `autograder rejudge` has written them to
`OUT/waived.json`. The journal keeps the judge's verdicts, so that a waiver can be revoked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autograder.content import full_id
from autograder.model.result import Result
from autograder.model.task import Verdict
from autograder.store.out_folder import OutFolder
from autograder.store.small_files import WAIVED

__all__ = ["waive", "waivers", "write_waivers"]


def waivers(out: OutFolder) -> dict[str, str]:
    """Return the reasons why tasks are waived in `out`, by task."""
    return dict(WAIVED.read(out))


def write_waivers(given: Mapping[str, str], out: OutFolder) -> None:
    """Replace the waivers of `out`."""
    WAIVED.write(out, dict(given))


def waive(result: Result, given: Mapping[str, str]) -> Result:
    """Return the result with full marks for waived tasks."""
    if not given:
        return result
    return replace(result, verdicts=tuple(_waived(result.lab, v, given) for v in result.verdicts))


def _waived(lab: str, verdict: Verdict, given: Mapping[str, str]) -> Verdict:
    reason = given.get(full_id(lab, verdict.task))
    if reason is None:
        return verdict
    message = f"Waived, so everyone gets full points: {reason}"
    return Verdict(
        task=verdict.task,
        status="right",
        earned={"waived": verdict.max_points},
        max_points=verdict.max_points,
        message=message,
    )
