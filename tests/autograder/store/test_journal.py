"""The journal: written entries are found again, and damaged ones are not believed."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from autograder.model.result import result_from_dict
from autograder.model.submission import SubmissionKey
from autograder.model.task import Answer
from autograder.sandbox.guest.wire import decode
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from peakmem.core import serialization
from tests.autograder.small_class import DOUBLE, LAB, end_of, graded

ADA, EVE = SubmissionKey("ada", LAB), SubmissionKey("eve", LAB)
INSIDE, OUTSIDE = {"isolated": True}, {"isolated": False}
RAW = b"the notebook's bytes"
ANSWERS = {
    DOUBLE: [
        Answer(float("nan"), asked=((3, "fits"), (5, "out of memory"))),
        Answer(3, memory="refused"),
        Answer(3, memory="within", doubt="Held too much."),
        Answer(raised=("ValueError", "no", "line 1")),
        Answer(lost="killed"),
    ]
}


@pytest.fixture
def journal(tmp_path):
    return Journal(OutFolder(tmp_path))


def path_of(tmp_path):
    return OutFolder(tmp_path).entry(ADA)


def test_what_was_kept_is_found_by_the_same_bytes_only(journal):
    journal.keep(graded(), RAW, {}, INSIDE)
    assert journal.find(ADA, RAW, INSIDE) == graded()
    assert journal.find(ADA, RAW + b" ", INSIDE) is None
    assert journal.find(EVE, RAW, INSIDE) is None
    assert journal.find(ADA, RAW, OUTSIDE) is None


def test_a_result_from_outside_of_the_sandbox_is_graded_again_inside(journal):
    journal.keep(graded(isolated=False), RAW, {}, OUTSIDE)
    assert journal.find(ADA, RAW, OUTSIDE) == graded(isolated=False)
    assert journal.find(ADA, RAW, INSIDE) is None


def test_the_last_result_is_read_whatever_it_was_made_from(journal):
    assert journal.read(ADA) is None
    journal.keep(end_of("ada", "quarantined", "The file is empty."), b"", {}, INSIDE)
    journal.keep(graded(), RAW, {}, INSIDE)
    assert journal.read(ADA) == graded()


def test_an_entry_has_the_words_that_people_read(journal, tmp_path):
    statuses = ("right", "partly", "could_not_judge", "needs_gpu", "unanswered")
    result = graded()
    (verdict, *_) = result.verdicts
    result = replace(result, verdicts=tuple(replace(verdict, status=one) for one in statuses))
    journal.keep(result, RAW, {}, INSIDE)
    head = json.loads(path_of(tmp_path).read_bytes().partition(b"\n")[0])
    words = ["correct", "partially correct", "not judged", "needs a GPU", "not answered"]
    assert [one["status"] for one in head["result"]["verdicts"]] == words
    assert journal.read(ADA) == result
    of_format_1 = [{**asdict(verdict), "status": one} for one in statuses]
    read = result_from_dict({**head["result"], "notebook": None, "verdicts": of_format_1})
    assert read.verdicts == result.verdicts


@pytest.mark.parametrize(("end", "again"), [("failed", True), ("quarantined", False)])
def test_only_the_graders_own_failures_are_graded_again(journal, end, again):
    journal.keep(end_of("ada", end, "why"), RAW, {}, INSIDE)
    assert (journal.find(ADA, RAW, INSIDE) is None) is again
    assert journal.read(ADA).reason == "why"


def test_answers_come_back_as_they_were(journal):
    journal.keep(graded(), RAW, ANSWERS, INSIDE)
    (first, *others) = journal.answers(ADA)[DOUBLE]
    assert np.isnan(first.value)
    assert first.asked == ((3, "fits"), (5, "out of memory"))
    assert others == ANSWERS[DOUBLE][1:]


@pytest.mark.parametrize("shape", [(0,), (3,), (50, 1000)])
def test_arrays_come_back_as_they_were_and_are_not_compressed(journal, shape, tmp_path):
    array = np.full(shape, 0x0A, np.uint8)  # all of it line ends, and easy to compress
    answers = {DOUBLE: [Answer(array), Answer([array, "text" * 1000])]}
    journal.keep(graded(), RAW, answers, INSIDE)
    first, second = journal.answers(ADA)[DOUBLE]
    assert np.array_equal(first.value, array)
    assert np.array_equal(second.value[0], array)
    assert second.value[1] == "text" * 1000
    size = path_of(tmp_path).stat().st_size
    journal.keep(graded(), RAW, {}, INSIDE)
    bare = path_of(tmp_path).stat().st_size
    assert 2 * array.nbytes < size - bare < 2 * array.nbytes + 1000


def test_the_same_result_makes_the_same_bytes(journal, tmp_path):
    journal.keep(graded(), RAW, ANSWERS, INSIDE)
    before = path_of(tmp_path).read_bytes()
    journal.keep(graded(), RAW, ANSWERS, INSIDE)
    assert before == path_of(tmp_path).read_bytes()


def test_an_entry_of_an_earlier_version_is_shown_but_graded_again(journal, monkeypatch):
    monkeypatch.setattr("autograder.store.journal._VERSION", 2)
    journal.keep(graded(), RAW, ANSWERS, INSIDE)
    assert journal.answers(ADA)
    monkeypatch.undo()
    assert journal.answers(ADA) == {}
    assert journal.find(ADA, RAW, INSIDE) is None
    assert journal.read(ADA) == graded()


@pytest.mark.parametrize("kept", [0, 1, 100, -1])
def test_an_entry_that_lost_a_part_counts_as_none(journal, kept, tmp_path):
    journal.keep(graded(), RAW, ANSWERS, INSIDE)
    path = path_of(tmp_path)
    path.write_bytes(path.read_bytes()[:kept])
    assert journal.find(ADA, RAW, INSIDE) is None
    assert journal.read(ADA) is None
    journal.keep(graded(), RAW, ANSWERS, INSIDE)
    assert journal.find(ADA, RAW, INSIDE) == graded()


@pytest.mark.parametrize("damage", [b"null", b"{}", b'"text"', b'{"key": 1, "result": {}}'])
def test_json_that_is_no_entry_counts_as_none(journal, damage, tmp_path):
    journal.keep(graded(), RAW, ANSWERS, INSIDE)
    path_of(tmp_path).write_bytes(damage)
    assert journal.find(ADA, RAW, INSIDE) is None
    assert journal.read(ADA) is None


def test_half_a_draft_is_not_taken_for_an_entry(journal, tmp_path):
    journal.keep(graded(), RAW, {}, INSIDE)
    path_of(tmp_path).rename(path_of(tmp_path).with_name(".ada.entry.4711"))
    assert journal.read(ADA) is None


def test_verdicts_are_read_without_the_notebook(journal):
    journal.keep(graded(), RAW, ANSWERS, INSIDE)
    assert journal.verdicts(ADA) == replace(graded(), notebook=None)
    assert journal.terms(ADA) == INSIDE
    assert (journal.verdicts(EVE), journal.terms(EVE)) == (None, None)


@pytest.mark.parametrize("student", ["../eve", "a/b", "a\0b"])
def test_a_name_that_leads_elsewhere_is_refused(journal, student):
    with pytest.raises(ValueError, match="cannot name a file"):
        journal.read(SubmissionKey(student, LAB))


def nested(levels, wrap):
    value = 1
    for _ in range(levels):
        value = wrap(value)
    return value


def levels_on_the_wire(wrap):
    """The deepest of these that a student's process can send, as an answer or in a question."""
    levels = 0
    while True:
        try:
            decode(serialization.encode({"id": 1, "ask": nested(levels + 1, wrap)}))
        except serialization.PlainError:
            return levels
        levels += 1


@pytest.mark.parametrize(
    "wrap", [lambda v: [v], lambda v: (v,), lambda v: {1: v}, lambda v: [v, {}]]
)
def test_whatever_came_over_the_wire_is_kept_however_deep(journal, wrap):
    deep = nested(levels_on_the_wire(wrap), wrap)
    answers = {DOUBLE: [Answer(deep, asked=((deep, deep),))]}
    journal.keep(graded(), RAW, answers, INSIDE)
    assert journal.answers(ADA) == answers


def test_without_room_of_its_own_the_journal_could_not_keep_it(journal, monkeypatch):
    monkeypatch.setattr("autograder.store.journal._AROUND", 0)
    deep = nested(levels_on_the_wire(lambda v: [v]), lambda v: [v])
    with pytest.raises(serialization.PlainError, match="deep"):
        journal.keep(graded(), RAW, {DOUBLE: [Answer(deep)]}, INSIDE)
