"""Hostile submissions, through the real command: nothing unearned or reached, no one harmed."""

from __future__ import annotations

import base64
import gzip
import re
from html import unescape
from pathlib import Path

import pytest

from autograder.base.course import Course
from autograder.base.limits import Limits
from autograder.model.status import shown
from autograder.model.submission import SubmissionKey
from autograder.review.explain import explain
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.unprotected import Unprotected
from autograder.store.out_folder import OutFolder
from autograder.store.scores import scores_in
from tests.grading import LAB05, SEARCH, cell_of
from tests.hostile.conftest import ATTACKS, CANARY, HIDDEN, SECRET, UNNAMED
from tests.hostile.kinds import KINDS, QUICK
from tests.hostile.reach import REACH
from tests.hostile.structure import FILES, STRUCTURES

HONEST = {"honest-a": "4", "honest-z": "4", "honest-half": "3", "untouched": "0"}
LINKS = ["link-to-secret", "link-to-peer", "link-of-a-folder", "link-of-the-labs-folder"]
FORMULA = UNNAMED[0]


def test_the_command_ends_well_and_loses_nobody(hostile):
    assert hostile.status == 0, hostile.said
    handed = {path.name for path in hostile.submitted.iterdir()} - {*UNNAMED}
    made_up = {row["student"] for row in hostile.rows()} - handed
    assert handed <= {row["student"] for row in hostile.rows()}
    assert made_up == _made_up(hostile)
    assert len(made_up) == len(UNNAMED)
    assert not [row for row in hostile.rows() if row["status"] == "grading failed"]


def test_an_attack_earns_what_its_solution_earns(hostile, attack):
    row = hostile.row(attack.name, attack.task)
    assert row["score"] == ("" if attack.points is None else str(attack.points)), row["message"]
    assert row["max_score"] == "4"
    assert row["status"] == shown(attack.status)


def test_the_message_says_what_happened(hostile, attack):
    message = hostile.row(attack.name, attack.task)["message"]
    assert re.search(attack.says, message), message
    page = unescape(_outputs(hostile.page(attack.name)))
    assert re.search(attack.shows, page), page
    assert "Traceback" not in message
    assert len(message) < 2000


def test_odd_answers_can_be_explained(hostile):
    out, course = OutFolder(hostile.out), Course(hostile.course)
    for attack in ("huge-integer", "nan"):
        said = explain(out, bytes.fromhex(SECRET), attack, SEARCH, course, whole=True)
        assert "can't be explained" not in said
        assert "answer:" in said


def test_nothing_is_reached(hostile, attack):
    shown = hostile.row(attack.name, attack.task)["message"] + _outputs(hostile.page(attack.name))
    found = re.search("REACHED[^<]*", shown)
    assert found is None, found


def _outputs(page: str) -> str:
    """A page without the student's own code, which names its target."""
    return re.sub(r'<pre class="code.*?</pre>', "", page, flags=re.DOTALL)


def test_every_message_can_be_read(hostile):
    for row in hostile.rows():
        assert len(row["message"]) < 2000
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", row["message"])


@pytest.mark.parametrize(("student", "score"), HONEST.items())
def test_neighbours_get_exactly_what_they_earned(hostile, student, score):
    assert hostile.row(student)["score"] == score


def test_an_edited_notebook_earns_what_its_code_earns(hostile, structure):
    row = hostile.row(structure.name)
    assert (row["score"], row["max_score"]) == (str(structure.points), "4"), row["message"]


def test_nobody_answers_in_anothers_name(hostile):
    assert hostile.row("honest-a")["score"] == "4"
    assert "1999-01-01" not in (hostile.out / "grades.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "reason"), [(name, why) for name, (_, why) in FILES.items()])
def test_what_is_no_notebook_is_quarantined_with_its_reason(hostile, name, reason):
    row = hostile.row(name)
    assert (row["status"], row["score"]) == ("quarantined", "")
    assert re.search(reason, row["message"]), row["message"]


def test_forged_marks_earn_nothing_and_change_no_maximum(hostile):
    row = hostile.row("forged-marks")
    assert (row["score"], row["max_score"]) == ("0", "4")
    other = hostile.row("forged-marks", "lab05-explain")
    assert (other["score"], other["max_score"], other["status"]) == ("", "2", "manual grading")
    assert "4321" not in hostile.page("forged-marks")


@pytest.mark.parametrize("student", [*LINKS, "hard-link", "pipe"])
def test_what_is_no_file_of_its_own_is_quarantined(hostile, student):
    _assert_quarantined(hostile, student)


def test_a_folder_whose_name_is_no_students_is_quarantined(hostile):
    for student in _made_up(hostile):
        _assert_quarantined(hostile, student)


def _assert_quarantined(hostile, student):
    row = hostile.row(student)
    assert (row["status"], row["score"]) == ("quarantined", "")
    assert re.search(r"link|Rename|plain file", row["message"])
    assert "largest_micro_batch" not in hostile.page(student).replace(SEARCH, "")


def _made_up(hostile):
    """The students whose folder names can't be student ids."""
    return {r["student"] for r in hostile.rows() if r["student"].startswith("unnamed~")}


def test_nobody_was_spoken_to(hostile):
    assert hostile.accepted == 0


def test_no_process_is_left(hostile):
    assert hostile.left == ()


def test_no_pickle_was_opened(hostile):
    assert not hostile.marker.exists()


def test_no_script_is_on_a_page(hostile):
    for path in (hostile.out / "feedback").rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert "<script" not in page.lower()
        assert not re.search(r"<[^>]*\s(on\w+|href=.javascript)", page, re.IGNORECASE)


def test_nothing_reads_otherwise_than_it_is(hostile):
    out = hostile.out
    for path in (*out.glob("feedback/*/*"), *out.glob("autograded/*/*/*"), *out.glob("*.csv")):
        text = path.read_text(encoding="utf-8")
        found = re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
        assert found is None, (path, found)


def test_no_cell_of_the_table_is_a_formula(hostile):
    for row in hostile.rows():
        texts = {key: value for key, value in row.items() if "score" not in key}
        assert not [text for text in texts.values() if text.startswith(("=", "+", "-", "@", "\t"))]


def test_nothing_that_leaves_holds_a_secret(hostile):
    for path in _all_written(hostile):
        text = _text(path)
        # The attack's own code names its canary, in quotes.
        assert not re.search(rf"{CANARY}(?!\\?\"| in text|&quot;|&#34;|</span>)", text), path
        assert "root:" not in text, path
        for form in _forms(SECRET[:12]) | _forms(HIDDEN) | _forms(CANARY) - {CANARY}:
            assert form not in text, path


def _all_written(hostile):
    """All files of the results folder, except for notebooks that Formgrader needs."""
    files = [path for path in hostile.out.rglob("*") if path.is_file()]
    own = [path for path in files if hostile.out / "source" in path.parents]
    return [path for path in files if path not in own and not path.name.startswith("gradebook.db")]


def _forms(secret):
    """A text as it stands, backwards, in hexadecimal, and in base64 wherever it begins."""
    raw = secret.encode()
    shifted = {base64.b64encode(b"x" * by + raw).decode()[4:-4] for by in range(3)}
    return {secret, secret[::-1], raw.hex(), *shifted}


@pytest.mark.parametrize("write", [str, lambda s: s.encode().hex(), lambda s: s[::-1]])
def test_a_secret_that_left_in_another_form_would_be_found(write):
    assert any(form in f"before {write(HIDDEN)} after" for form in _forms(HIDDEN))
    packed = base64.b64encode(f"beforehand {HIDDEN} after".encode()).decode()
    assert any(form in packed for form in _forms(HIDDEN))


def test_the_canaries_are_there_to_be_found(hostile):
    hidden = hostile.course / "solutions" / LAB05 / f"{LAB05}.ipynb"
    assert _text(hidden).count(HIDDEN) >= 6
    assert SECRET in _text(hostile.course / ".course_secret")


def _text(path: Path) -> str:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode(errors="replace")


def test_the_gradebook_holds_the_same_scores(hostile):
    scores = scores_in(OutFolder(hostile.out))
    for row in hostile.rows():
        if row["task"] == SEARCH and row["score"]:
            assert scores[SubmissionKey(row["student"], LAB05)][SEARCH] == float(row["score"])


# The control: without the sandbox the same code does reach its target.


def test_the_same_attacks_reach_their_aim_outside_of_the_sandbox(tmp_path):
    gradebook = tmp_path / "gradebook.db"
    gradebook.write_text("everybody's grades")
    with (
        Sandbox(limits=Limits(cell_seconds=60), backend=Unprotected(), preload=()) as bare,
        bare.open() as student,
    ):
        for name in ("reads-the-graders-files", "imports-the-grader"):
            (attack,) = (attack for attack in REACH if attack.name == name)
            cells = attack.notebook(places=[str(gradebook)])["cells"]
            outputs = student.run_cell(cell_of({"cells": cells}, "added-0")["source"])
            assert "REACHED" in outputs[0]["text"]


def test_every_attack_has_a_name_of_its_own():
    names = [case.name for case in (*ATTACKS, *STRUCTURES)] + list(FILES)
    assert len(set(names)) == len(names)


NO_TABLE = [*LINKS, "hard-link", "pipe", "forged-marks", FORMULA]


def test_every_kind_of_attack_is_tried():
    there = {case.name for case in (*ATTACKS, *STRUCTURES)} | set(FILES) | set(NO_TABLE)
    named = [name for names in KINDS.values() for name in names]
    assert sorted(named) == sorted(there)
    assert QUICK.isdisjoint({"sleeper", "crowds-the-processors"})  # these take long
    assert all(set(names) & QUICK for names in KINDS.values())
