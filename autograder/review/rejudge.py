"""Judges stored answers again with the current judges. No student code runs.

Answers are judged again only if they answer the current questions: the same probe with the same
inputs. If the lab has changed its questions, only `regrade` can help.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from autograder.base import pool
from autograder.base.course import Course
from autograder.base.limits import Limits
from autograder.base.plural import plural
from autograder.content.provenance import asked_of
from autograder.grading.course_lab import CourseLab
from autograder.grading.registry import find_lab
from autograder.model.judge import draw_again, judge_safely
from autograder.model.result import Result
from autograder.model.scoring import SANE, Rules
from autograder.model.submission import SubmissionKey
from autograder.model.task import Case, Task, Verdict
from autograder.publish.publishing import publish
from autograder.review.changes import Change, between, note_down
from autograder.rules.waivers import waive, waivers, write_waivers
from autograder.store.fingerprint import terms_of
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from autograder.store.roll import taken

__all__ = ["Proposal", "commit", "drawn_again", "propose", "remarks"]


@dataclass(frozen=True)
class Counts:
    """How many verdicts, by task, judging again has changed or left as they are."""

    #: Those that were judged again.
    judged: Counter[str] = field(default_factory=Counter)
    #: Those that stay because the questions have changed.
    stale: Counter[str] = field(default_factory=Counter)
    #: Those that rest on no answers, such as those on banned names.
    unasked: Counter[str] = field(default_factory=Counter)

    def add(self, more: Counts) -> None:
        """Add another submission's counts."""
        self.judged.update(more.judged)
        self.stale.update(more.stale)
        self.unasked.update(more.unasked)


_Again = tuple[tuple[Verdict, ...], Counts]  # a submission's new verdicts


@dataclass
class Proposal:
    """The outcome of judging again, before anything is written."""

    #: The waivers that are to apply, by task.
    waived: Mapping[str, str]
    #: The scores that change.
    changes: list[Change] = field(default_factory=list)
    #: Changed results, without waivers, each with its journal and its new terms. Includes attempts
    #: that don't count, so that none of them can later count with outdated verdicts.
    amended: list[tuple[Journal, Result, dict[str, Any]]] = field(default_factory=list)
    #: The results whose pages change.
    pages: list[Result] = field(default_factory=list)
    #: What became of the verdicts, of attempts that count.
    counts: Counts = field(default_factory=Counts)
    #: A sentence for each submission whose answers were too hard to judge.
    given_up: list[str] = field(default_factory=list)


def propose(
    out: OutFolder, course: Course, secret: bytes, waived: Mapping[str, str], rules: Rules = SANE
) -> Proposal:
    """Judge all stored answers in `out` again, and compare; nothing is written.

    `rules` are the current ones for ordinary assignments.
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
            pass  # changes are reported only for attempts that count
        proposal.amended += others.amended
    return proposal


def _amended(
    out: OutFolder, course: Course, secret: bytes, rules: Rules, proposal: Proposal
) -> Iterator[tuple[Result, Result]]:
    """Judge the answers of one folder again into `proposal`; yield each old and new result."""
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
        verdicts, counts = again
        proposal.counts.add(counts)
        new = replace(old, verdicts=verdicts)
        held = journal.terms(key) or {}
        terms = _terms(held, key.lab, course, rules, whole=not counts.stale)
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
        assert old is not None, "checked by the caller"
        if key.lab not in labs:
            labs[key.lab] = find_lab(key.lab, course, rules)
        return _judged_again(journal, old, secret, labs[key.lab])

    yield judge


def remarks(proposal: Proposal) -> list[str]:
    """Return a sentence for each task whose verdicts couldn't all be judged again."""
    counts = proposal.counts
    lines = [f"Judged again: {plural(counts.judged.total(), 'verdict')}, without running any code."]
    lines += [
        f"{task}: {plural(count, 'verdict')} kept, because the lab has changed; `autograder "
        "regrade` grades again."
        for task, count in sorted(counts.stale.items())
    ]
    lines += [
        f"{task}: {plural(count, 'verdict')} kept without any answers (a banned name, or no GPU)."
        for task, count in sorted(counts.unasked.items())
    ]
    return lines + proposal.given_up


def commit(proposal: Proposal, out: OutFolder, course: Course) -> list[Result]:
    """Write the proposal; return all results. If interrupted, repeat the command to finish.

    Pages are removed first, since a missing page is rewritten from the state at that time.
    """
    note_down(proposal.changes, out)
    for result in proposal.pages:
        out.drop_pages(result.key)
    write_waivers(proposal.waived, out)
    for journal, result, terms in proposal.amended:
        journal.amend(result, terms)
    return publish(out, course)


def drawn_again(task: Task, secret: bytes, journal: Journal, result: Result) -> list[Case] | None:
    """Return the cases of stored answers; None if the cases or the probe have changed."""
    digest = journal.submission(result.key) or ""
    cases = draw_again(task, secret, result.student, bytes.fromhex(digest))
    same = journal.asked(result.key).get(task.id) == asked_of(task, cases)
    return cases if same else None


def _judged_again(journal: Journal, old: Result, secret: bytes, lab: CourseLab) -> _Again:
    """The current judges' verdicts, and which of the answers could be judged again."""
    answers = journal.answers(old.key)
    before = {verdict.task: verdict for verdict in old.verdicts}
    verdicts: list[Verdict] = []
    counts = Counts()
    for task in lab.tasks:
        verdict = before.pop(task.id, None)
        if task.id in answers:
            cases = drawn_again(task, secret, journal, old)
            if cases is not None:
                verdict = judge_safely(task, cases, answers[task.id])
            count = counts.stale if cases is None else counts.judged
        else:
            count = counts.unasked if verdict else counts.stale
        count[task.id] += 1
        if verdict is not None:
            verdicts.append(verdict)
    # Unanswered manual questions belong to no task.
    verdicts += (verdict for task, verdict in before.items() if task not in answers)
    return tuple(verdicts), counts


def _terms(
    old: dict[str, Any], lab: str, course: Course, rules: Rules, *, whole: bool
) -> dict[str, Any]:
    """A rejudged result's terms: the current tasks', if nothing else has changed."""
    now = terms_of(lab, course, Limits(), isolated=True, rules=rules)
    if not whole or old.get("notebooks") != now["notebooks"]:
        return old
    if "rules" not in now:
        return {**old, "lab": now["lab"]}
    shows = "show_hidden_tests"  # fixed when the code ran, so it stays
    now_rules = {**now["rules"], shows: old.get("rules", {}).get(shows)}
    return {**old, "lab": now["lab"], "rules": now_rules}
