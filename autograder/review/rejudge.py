"""Judges the kept answers again with today's judges. No student code runs.

Answers are judged again only where they are answers to what would be asked today: the same probe
with the same inputs. Where the lab asks something else by now, only `regrade` can tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from autograder.base import pool
from autograder.base.course import Course
from autograder.base.limits import Limits
from autograder.content.provenance import asked_of
from autograder.grading.registry import CourseLab, find_lab
from autograder.model.judge import draw_again, judge_safely
from autograder.model.result import Result
from autograder.model.scoring import SANE, Rules
from autograder.model.submission import SubmissionKey
from autograder.model.task import Answer, Case, Task, Verdict
from autograder.publish.pages import drop_pages
from autograder.publish.publishing import publish
from autograder.review.changes import Change, between, note_down
from autograder.rules.waivers import waive, waivers, write_waivers
from autograder.store.fingerprint import terms_of
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from autograder.store.roll import taken

__all__ = ["Proposal", "commit", "drawn_again", "judge_again", "propose", "remarks"]


@dataclass
class Proposal:
    """What judging again comes to; nothing of it is written yet."""

    #: The waivers that are to hold, by task.
    waived: Mapping[str, str]
    #: The scores that change.
    changes: list[Change] = field(default_factory=list)
    #: Results as the judges see them, without waivers, with the journal they are in and the terms
    #: they stand under. Attempts that do not count are among them, so that none comes to count with
    #: its old verdicts.
    amended: list[tuple[Journal, Result, dict[str, Any]]] = field(default_factory=list)
    #: The results whose pages say something else then.
    pages: list[Result] = field(default_factory=list)
    #: By task, how many verdicts that count were judged again.
    judged: Counter[str] = field(default_factory=Counter)
    #: By task, how many stay, since something else would be asked today.
    stale: Counter[str] = field(default_factory=Counter)
    #: By task, how many rest on no answers, such as those on what a solution may not use.
    unasked: Counter[str] = field(default_factory=Counter)
    #: A sentence for each submission whose answers were too hard to judge.
    given_up: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Again:
    """What judging one submission again came to: its verdicts, the counts, and if all could be."""

    verdicts: tuple[Verdict, ...]
    judged: Counter[str]
    stale: Counter[str]
    unasked: Counter[str]

    @property
    def whole(self) -> bool:
        return not self.stale


def propose(
    out: OutFolder, course: Course, secret: bytes, waived: Mapping[str, str], rules: Rules = SANE
) -> Proposal:
    """Judge all kept answers in `out` again, and compare; nothing is written.

    `rules` are those of today for ordinary assignments.
    """
    holding, proposal = waivers(out), Proposal(waived)
    for old, new in _amended(out, course, secret, rules, proposal):
        was, now = waive(old, holding), waive(new, waived)
        if was != now:
            proposal.pages.append(now)
            proposal.changes += between(was, now)
    for folder in out.attempts():
        others = Proposal(waived)
        for _ in _amended(folder, course, secret, rules, others):
            pass  # what changes is told of the attempts that count alone
        proposal.amended += others.amended
    return proposal


def _amended(
    out: OutFolder, course: Course, secret: bytes, rules: Rules, proposal: Proposal
) -> Iterator[tuple[Result, Result]]:
    """Judge the answers in `out` itself again; note down what comes of it, yield old and new."""
    journal = Journal(out)
    graded = {
        key: result
        for key in taken(out)
        if (result := journal.verdicts(key)) is not None and result.end == "graded"
    }
    work: pool.Work[SubmissionKey, _Again] = pool.Work(
        partial(_judging, out, course, secret, rules), preload=(__name__,)
    )
    for key, again in pool.run_all(list(graded), work, workers=1):
        old = graded[key]
        if isinstance(again, pool.Failure):
            proposal.given_up.append(f"{key}: the verdicts stay. {again.reason}")
            continue
        for counts, more in (
            (proposal.judged, again.judged),
            (proposal.stale, again.stale),
            (proposal.unasked, again.unasked),
        ):
            counts.update(more)
        new = replace(old, verdicts=again.verdicts)
        held = journal.terms(key) or {}
        terms = _terms(held, key.lab, course, rules, whole=again.whole)
        if (new, terms) != (old, held):
            proposal.amended.append((journal, new, terms))
        yield old, new


@contextmanager
def _judging(
    out: OutFolder, course: Course, secret: bytes, rules: Rules, _slot: int
) -> Iterator[Callable[[SubmissionKey], _Again]]:
    labs: dict[str, CourseLab] = {}
    journal = Journal(out)

    def judge(key: SubmissionKey) -> _Again:
        old = journal.verdicts(key)
        assert old is not None, "which it was when this was handed out"
        if key.lab not in labs:
            labs[key.lab] = find_lab(key.lab, course, rules)
        return _judged_again(journal, old, secret, labs[key.lab])

    yield judge


def remarks(proposal: Proposal) -> list[str]:
    """Return a sentence for each task whose verdicts could not all be judged again."""
    lines = [f"Judged again: {proposal.judged.total()} verdicts, without running any code."]
    lines += [
        f"{task}: {count} verdicts stay, since the lab has changed; `autograder regrade` "
        "grades again."
        for task, count in sorted(proposal.stale.items())
    ]
    lines += [
        f"{task}: {count} verdicts stay, since they rest on no answers (a banned name, or no GPU)."
        for task, count in sorted(proposal.unasked.items())
    ]
    return lines + proposal.given_up


def commit(proposal: Proposal, out: OutFolder, course: Course) -> list[Result]:
    """Write what was proposed; return all results. Cut off, the same command does the rest.

    Pages go first: one that is missing is written anew from whatever holds by then.
    """
    note_down(proposal.changes, out)
    for result in proposal.pages:
        drop_pages(result.key, out)
    write_waivers(proposal.waived, out)
    for journal, result, terms in proposal.amended:
        journal.amend(result, terms)
    return publish(out, course)


def judge_again(
    task: Task, secret: bytes, journal: Journal, result: Result, answers: Sequence[Answer]
) -> Verdict | None:
    """Return today's verdict on kept answers, or None if they are answers to something else."""
    cases = drawn_again(task, secret, journal, result)
    return None if cases is None else judge_safely(task, cases, answers)


def drawn_again(task: Task, secret: bytes, journal: Journal, result: Result) -> list[Case] | None:
    """Return the cases that kept answers answer, or None if today's cases or probe are others."""
    digest = journal.submission(result.key) or ""
    cases = draw_again(task, secret, result.student, bytes.fromhex(digest))
    same = journal.asked(result.key).get(task.id) == asked_of(task, cases)
    return cases if same else None


def _judged_again(journal: Journal, old: Result, secret: bytes, lab: CourseLab) -> _Again:
    """The verdicts of today's judges, and which of the answers could be judged again."""
    answers = journal.answers(old.key)
    before = {verdict.task: verdict for verdict in old.verdicts}
    verdicts: list[Verdict] = []
    judged, stale, unasked = Counter[str](), Counter[str](), Counter[str]()
    for task in lab.tasks:
        verdict = before.pop(task.id, None)
        if task.id in answers:
            again = judge_again(task, secret, journal, old, answers[task.id])
            verdict = again or verdict
            counts = judged if again else stale
        else:
            counts = unasked if verdict else stale
        counts[task.id] += 1
        if verdict is not None:
            verdicts.append(verdict)
    # Manual answers that nobody wrote rest on no task.
    verdicts += (verdict for task, verdict in before.items() if task not in answers)
    return _Again(tuple(verdicts), judged, stale, unasked)


def _terms(
    old: dict[str, Any], lab: str, course: Course, rules: Rules, *, whole: bool
) -> dict[str, Any]:
    """The terms that a rejudged result stands under: today's tasks, if nothing else has changed."""
    now = terms_of(lab, course, Limits(), isolated=True, rules=rules)
    if not whole or old.get("notebooks") != now["notebooks"]:
        return old
    if "rules" not in now:
        return {**old, "lab": now["lab"]}
    shows = "show_hidden_tests"  # what a page shows follows from running, and stays
    now_rules = {**now["rules"], shows: old.get("rules", {}).get(shows)}
    return {**old, "lab": now["lab"], "rules": now_rules}
