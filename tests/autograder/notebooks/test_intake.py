"""Intake accepts anything in a folder, and leaves the originals unchanged."""

from __future__ import annotations

import copy
import errno
import json
import os
import socket
import time
import tracemalloc
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.model.submission import Quarantine, Submission
from autograder.notebooks.intake import (
    find_submissions,
    is_student_id,
    read_submission,
    take_in,
)
from autograder.notebooks.parse import MAX_FILE_BYTES
from autograder.notebooks.restore import DELETED
from tests.autograder.small_release import LAB, STUBS, code, markdown, own, release, solved

DOUBLE = "def double(x):\n    return x + x"
HALVE = "def halve(x):\n    return x / 2"
GIVEN = ["import peakmem\nlimit = 10", "scale = limit * 2"]


def taken(notebook: dict[str, Any] | bytes) -> Submission:
    raw = notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
    return take_in("s001", LAB, raw, release())


def run_sources(submission: Submission, kind: str | None = None) -> list[str]:
    return [cell.source for cell in submission.cells if kind in (None, cell.kind)]


def place_of(notebook: dict[str, Any], name: str) -> int:
    return [cell["id"] for cell in notebook["cells"]].index(name)


def stripped(notebook: dict[str, Any]) -> dict[str, Any]:
    """As Colab saves it: no cell ids, nothing of nbgrader's."""
    bare = copy.deepcopy(notebook)
    for cell in bare["cells"]:
        cell["metadata"] = {}
        del cell["id"]
    return bare | {"nbformat_minor": 0}


# Files.


def hand_in(submitted: Path, student: str, content: bytes = b"{}") -> Path:
    path = submitted / student / LAB / f"{LAB}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


def reason(path: Path) -> str:
    with pytest.raises(Quarantine) as caught:
        take_in("s001", LAB, read_submission(path), release())
    return str(caught.value)


def test_every_student_is_found_in_order_and_nobody_is_passed_over(tmp_path: Path) -> None:
    expected = [(name, hand_in(tmp_path, name)) for name in ("anna@uni.de", "b 2", "s010", "s9")]
    (tmp_path / "s_empty").mkdir()
    (tmp_path / "s_loose").mkdir()
    (tmp_path / "s_loose" / "Lab 5.ipynb").write_bytes(b"{}")
    (tmp_path / "stray.ipynb").write_bytes(b"{}")
    (tmp_path / "other_lab_only" / "lab03_adam").mkdir(parents=True)
    (tmp_path / ".ipynb_checkpoints").mkdir()
    found = find_submissions(tmp_path, LAB)
    assert found[:4] == expected
    assert [student for student, _ in found[4:]] == ["s_empty", "s_loose", "stray.ipynb"]
    assert "its folder is empty" in reason(found[4][1])
    assert "'Lab 5.ipynb'" in reason(found[5][1])
    assert "something else" in reason(found[6][1])


@pytest.mark.parametrize("name", ["lab05_Accumulation", "lab05_accum", "lab05-accumulation"])
def test_a_misspelt_folder_is_listed_and_its_name_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "ada" / name).mkdir(parents=True)
    (tmp_path / "kim" / "lab03_adam").mkdir(parents=True)
    ((student, path),) = find_submissions(tmp_path, LAB, [LAB, "lab03_adam"])
    assert student == "ada"
    assert f"its folder holds {name!r}" in reason(path)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_what_cannot_be_read_is_listed_and_the_remedy_told(
    tmp_path: Path, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = hand_in(tmp_path, "s 1", json.dumps(release()).encode())
    closed = [path, *path.parents][depth]
    opened = os.open

    def refused(name: str, *given: Any, **more: Any) -> int:  # as of another user, even for root
        if name == closed.name:
            raise PermissionError(errno.EACCES, "Permission denied", name)
        return opened(name, *given, **more)

    monkeypatch.setattr(os, "open", refused)
    assert [found for _, found in find_submissions(tmp_path, LAB)] == [path]
    assert "can't be read (permission denied)" in reason(path)
    assert "`chmod -R u+rX 's 1'`" in reason(path)


def test_a_folder_that_cannot_be_listed_may_be_a_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = hand_in(tmp_path, "s001", json.dumps(release()).encode())

    def refused(folder: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", refused)
    assert [found for _, found in find_submissions(tmp_path, LAB)] == [path]


def test_no_folder_is_an_error_that_names_the_layout(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="<student>/lab05_accumulation"):
        find_submissions(tmp_path / "nowhere", LAB)


@pytest.mark.parametrize(
    "name",
    ["=cmd", "-rf", "a\nb", "a;b", "x" * 101, "é+", "..a", ".a", "...", os.fsdecode(b"\xff")],
)
def test_a_name_that_is_no_student_id_is_listed_under_another(tmp_path: Path, name: str) -> None:
    hand_in(tmp_path, name, json.dumps(release()).encode())
    ((student, path),) = find_submissions(tmp_path, LAB)
    assert student.startswith("unnamed~")
    assert student.isascii()
    assert "Rename the folder" in reason(path)


def test_a_made_up_id_is_nobody_elses(tmp_path: Path) -> None:
    """Whatever students call their folders, a name taken as is never equals a made-up one."""
    hand_in(tmp_path, "..a")
    ((made_up, _),) = find_submissions(tmp_path, LAB)
    for name in (made_up, made_up.replace("~", "-"), f"x{made_up}"):
        hand_in(tmp_path, name)
    students = [student for student, _ in find_submissions(tmp_path, LAB)]
    assert len(set(students)) == 4
    assert not is_student_id(made_up)


@pytest.mark.parametrize("name", [".DS_Store", "._ada", ".ipynb_checkpoints", ".git", ".Trash-0"])
def test_what_programs_hide_is_no_submission(tmp_path: Path, name: str) -> None:
    hand_in(tmp_path, name)
    assert find_submissions(tmp_path, LAB) == []


def test_hidden_files_and_links_of_no_program_are_listed(tmp_path: Path) -> None:
    (tmp_path / "..file").write_bytes(b"{}")
    (tmp_path / "..link").symlink_to("/")
    assert len(find_submissions(tmp_path, LAB)) == 2


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_link_is_not_followed_wherever_it_stands(tmp_path: Path, depth: int) -> None:
    secret = hand_in(tmp_path / "elsewhere", "s001", json.dumps(release()).encode())
    path = tmp_path / "submitted" / "s001" / LAB / f"{LAB}.ipynb"
    link, target = [path, *path.parents][depth], [secret, *secret.parents][depth]
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    assert path.read_bytes() == secret.read_bytes()
    assert [found for _, found in find_submissions(tmp_path / "submitted", LAB)] == [path]
    assert "is a link" in reason(path)


def test_a_hard_link_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "gradebook.db"
    secret.write_bytes(b"{}")
    path = hand_in(tmp_path / "submitted", "s001")
    path.unlink()
    path.hardlink_to(secret)
    assert "hard link" in reason(path)


def test_no_pipe_socket_or_folder_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = hand_in(tmp_path, "s001")
    path.unlink()
    os.mkfifo(path)  # opening it would wait for a writer
    assert "something else" in reason(path)
    path.unlink()
    monkeypatch.chdir(path.parent)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
        assert "something else" in reason(path)
    path.unlink()
    path.mkdir()
    assert "something else" in reason(path)


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = hand_in(tmp_path, "s001")
    with path.open("wb") as file:
        file.truncate(2**30)
    tracemalloc.start()
    assert "MiB" in reason(path)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 2 * MAX_FILE_BYTES


def test_the_limit_is_exact(tmp_path: Path) -> None:
    path = hand_in(tmp_path, "s001", b"x" * 100)
    assert len(read_submission(path, 100)) == 100
    with pytest.raises(Quarantine):
        read_submission(path, 99)


# Files that aren't notebooks of this lab.


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"\x00\x01\x02\xff" * 1000, "isn't JSON"),
        (os.urandom(1000) + b"\xff", "isn't JSON"),
        (b"PK\x03\x04\x14", "a zip archive"),
        (b"\n<!DOCTYPE html>", "a web page"),
        (b"[1, 2]", "JSON, but not a notebook"),
        (b'{"a": 1}', "JSON, but not a notebook"),
        (b'{"nbformat": 5, "cells": []}', "nbformat 5"),
        (b'{"nbformat": 4, "cells": {}}', "no list of cells"),
        (b'{"nbformat": 3}', "no list of cells"),
        (b'{"nbformat": 4, "cells": [' + b"9" * 5000 + b"]}", "isn't JSON"),
        (b"[" * 100_000, "nested more deeply"),
        (b'{"a":' * 100_000, "nested more deeply"),
        (b"[" + b"{}," * 1_000_000 + b"{}]", "clear its outputs"),
        (b'{"nbformat": 4, "cells": [' + b"1," * 5000 + b"1]}", "5,001 cells"),
        (json.dumps({**release(), "cells": [own("a", "x" * 5_000_000)]}).encode(), "characters"),
    ],
    ids=range(17),
)
def test_what_is_no_notebook_is_quarantined_with_a_reason(raw: bytes, said: str) -> None:
    start = time.process_time()  # other programs don't count
    with pytest.raises(Quarantine, match=said):
        taken(raw)
    assert time.process_time() - start < 2


def test_another_lab_is_quarantined_by_its_ids_or_by_having_nothing_of_this_one() -> None:
    other = json.loads(json.dumps(release()).replace("lab05", "lab03"))
    with pytest.raises(Quarantine, match=r"another lab's notebook.*lab03"):
        taken(other)
    with pytest.raises(Quarantine, match="no cell of this lab"):
        taken({**release(), "cells": [own("a", "print('my thesis')")]})


def test_one_cell_pasted_from_another_lab_does_no_harm() -> None:
    notebook = solved(double=DOUBLE)
    notebook["cells"].append(code("lab03-x-solution", "y = 1", solution=True))
    assert run_sources(taken(notebook), "own")[-1] == "y = 1"


def test_an_empty_notebook_is_graded() -> None:
    submission = taken({**release(), "cells": []})
    assert run_sources(submission) == GIVEN
    ids = [cell["id"] for cell in submission.notebook["cells"]]
    assert ids == [c["id"] for c in release()["cells"] if "cell-" not in c["id"]]
    assert any("nothing to grade" in note.text for note in submission.notes)


# What runs.


def test_an_honest_notebook_runs_without_its_checks_and_demos() -> None:
    notebook = solved(double=DOUBLE, halve=HALVE)
    notebook["cells"][2]["source"] = "predicted = 7"
    notebook["cells"].insert(3, own("mine", "def helper(): pass"))
    submission = taken(notebook)
    assert submission.notes == ()
    assert [(cell.kind, cell.source, cell.task) for cell in submission.cells] == [
        ("given", GIVEN[0], None),
        ("own", "predicted = 7", None),
        ("own", "def helper(): pass", None),
        ("solution", DOUBLE, "lab05-double"),
        ("given", GIVEN[1], None),
        ("solution", HALVE, "lab05-halve"),
    ]
    for cell in submission.cells:
        assert submission.notebook["cells"][cell.index]["source"] == cell.source
    assert submission.notebook == {**notebook, "nbformat_minor": 5}


@pytest.mark.parametrize(
    ("first", "second", "noted"),
    [
        ("def half(x): return x / 2", "def half(x): return x // 2", True),
        ("class half: pass", "half = 0.5", True),
        ("def half(x): return x / 2", "for half in range(2): pass", True),
        ("def half(x): return x / 2", "def half(x):\n    return x/2  # as above", False),
        ("half = 0.5", "half = 2", False),  # numbers are mostly meant to change
        ("def half(x): return x / 2", "def use():\n    half = 2", False),
        ("def half(x): return x\ndef half(x): return x / 2", "pass", False),
        ("def half(x): return x / 2", "def half(:", False),
    ],
)
def test_a_helper_that_a_later_cell_binds_anew_is_named(
    first: str, second: str, noted: bool
) -> None:
    notebook = solved(double=f"{first}\n{DOUBLE}", halve=HALVE)
    notebook["cells"].append(own("mine", second))
    said = [note for note in taken(notebook).notes if "again in a later cell: half." in note.text]
    assert len(said) == noted


def test_an_edited_demo_is_the_students_own() -> None:
    notebook = release()
    notebook["cells"][7]["source"] = "print(double(3))"
    assert run_sources(taken(notebook), "own")[-1] == "print(double(3))"


def test_given_cells_are_put_back_whatever_the_student_wrote_over_them() -> None:
    notebook = solved(double=DOUBLE)
    notebook["cells"][0]["source"] = "# A lab\nMy answer stands in the wrong cell."
    notebook["cells"][1]["source"] = "limit = 10**9"
    notebook["cells"][4]["source"] = "pass"
    submission = taken(notebook)
    assert run_sources(submission, "given") == GIVEN
    assert "limit = 10**9" not in run_sources(submission)
    kept = [(c["cell_type"], c["source"]) for c in submission.notebook["cells"]]
    assert kept[1] == ("markdown", notebook["cells"][0]["source"])
    assert kept[3] == ("raw", "limit = 10**9")
    assert "lab05-title, lab05-setup, lab05-double-check" in submission.notes[0].text


def test_metadata_decides_nothing() -> None:
    notebook = solved(double=DOUBLE)
    for cell in notebook["cells"]:
        cell["metadata"].setdefault("nbgrader", {}).update(points=999, locked=False, checksum="0")
        cell["metadata"]["widget"] = "<script>"
    notebook["metadata"] = {"kernelspec": {"name": "bash"}}
    submission = taken(notebook)
    assert submission.notebook == solved(double=DOUBLE)
    assert run_sources(submission, "given") == GIVEN


def test_a_cell_that_claims_to_be_a_check_runs_as_the_students_own() -> None:
    notebook = solved(double=DOUBLE)
    notebook["cells"].insert(1, code("x", "helper = 1", grade_id="lab05-double", grade=True))
    submission = taken(notebook)
    assert "helper = 1" in run_sources(submission, "own")
    assert place_of(submission.notebook, "lab05-double") == 6


def test_a_solution_merged_into_a_given_cell_is_found() -> None:
    notebook = solved()
    notebook["cells"][1]["source"] = f"{GIVEN[0]}\n\n{DOUBLE}"
    del notebook["cells"][3]
    submission = taken(notebook)
    assert run_sources(submission)[:2] == [GIVEN[0], f"{GIVEN[0]}\n\n{DOUBLE}"]
    assert submission.cells[1].task == "lab05-double"


def test_lost_metadata_costs_nothing() -> None:
    notebook = solved(double=f"import math\n\n{DOUBLE}", halve=HALVE)
    expected = taken(notebook)
    submission = taken(stripped(notebook))
    assert submission.cells == expected.cells
    assert submission.notebook == expected.notebook


def test_a_solution_with_a_syntax_error_is_found_without_metadata() -> None:
    broken = "def double(x:\n    return 2"
    submission = taken(stripped(solved(double=broken, halve=HALVE)))
    assert [(c.source, c.task) for c in submission.cells if c.kind == "solution"] == [
        (broken, "lab05-double"),
        (HALVE, "lab05-halve"),
    ]


def test_copies_run_in_order_and_are_reported() -> None:
    notebook = solved(double=DOUBLE)
    copied = copy.deepcopy(notebook["cells"][3]) | {"id": "abcd", "source": "double = abs"}
    notebook["cells"].insert(4, copied)
    submission = taken(notebook)
    assert run_sources(submission, "solution")[:2] == [DOUBLE, "double = abs"]
    assert "lab05-double-solution is answered in 2 cells" in submission.notes[0].text
    marked = [c["source"] for c in submission.notebook["cells"] if "nbgrader" in c["metadata"]]
    assert "double = abs" in marked  # what counts bears the id, once
    assert DOUBLE not in marked


def test_an_untouched_copy_of_the_stub_does_not_undo_the_answer() -> None:
    notebook = solved(double=DOUBLE)
    notebook["cells"].append(copy.deepcopy(release()["cells"][3]) | {"id": "abcd"})
    submission = taken(notebook)
    assert run_sources(submission, "solution") == [DOUBLE, STUBS["halve"]]


def test_an_answer_written_into_another_exercises_copy_is_found_by_its_names() -> None:
    notebook = solved(double=DOUBLE)
    notebook["cells"].insert(4, copy.deepcopy(notebook["cells"][3]) | {"id": "a", "source": HALVE})
    submission = taken(notebook)
    answers = {cell.task: cell.source for cell in submission.cells if cell.kind == "solution"}
    assert answers == {"lab05-double": DOUBLE, "lab05-halve": HALVE}


def test_a_deleted_solution_costs_that_exercise_only() -> None:
    notebook = solved(double=DOUBLE, halve=HALVE)
    del notebook["cells"][3]
    submission = taken(notebook)
    assert run_sources(submission, "solution") == [HALVE]
    assert [note.text for note in submission.notes] == [
        "You deleted the solution cell, so there was nothing to grade: lab05-double-solution."
    ]
    assert submission.notebook["cells"][3]["source"] == STUBS["double"]


@pytest.mark.parametrize("name", [c["id"] for c in release()["cells"] if "cell-" not in c["id"]])
def test_a_deleted_cell_goes_back_to_its_place(name: str) -> None:
    notebook = release()
    del notebook["cells"][place_of(notebook, name)]
    restored = taken(notebook).notebook
    marked = restored["cells"][place_of(release(), name)]["metadata"].pop(DELETED, False)
    assert marked == (name == "lab05-explain")  # an answer to it may stand elsewhere
    assert restored == release()


def test_a_deleted_given_cell_goes_before_all_that_may_need_it() -> None:
    notebook = solved(double=DOUBLE)
    setup = notebook["cells"].pop(1)
    notebook["cells"].append(notebook["cells"].pop(0))  # what it follows now stands last
    assert run_sources(taken(notebook))[0] == setup["source"]


def test_moved_cells_stay_where_the_student_put_them() -> None:
    notebook = solved(double=DOUBLE, halve=HALVE)
    notebook["cells"].insert(1, notebook["cells"].pop(8))
    submission = taken(notebook)
    assert run_sources(submission)[:2] == [HALVE, GIVEN[0]]
    assert submission.notebook["cells"] == notebook["cells"]


def test_retyped_cells_are_turned_back() -> None:
    notebook = solved(double=DOUBLE)
    for index in (1, 3):
        notebook["cells"][index]["cell_type"] = "markdown"
    notebook["cells"][10]["cell_type"] = "code"
    submission = taken(notebook)
    assert run_sources(submission)[0] == GIVEN[0]
    assert DOUBLE in run_sources(submission, "solution")
    assert submission.notebook["cells"][10] == release()["cells"][10]
    assert "lab05-setup, lab05-double-solution, lab05-explain" in submission.notes[0].text


def test_code_turned_into_text_is_a_solution_only_where_there_is_no_other() -> None:
    notebook = stripped(solved(double=DOUBLE))
    notebook["cells"][3]["cell_type"] = "markdown"
    assert DOUBLE in run_sources(taken(notebook), "solution")
    notebook["cells"].insert(3, own("a", "def double(x):\n    return 2 * x"))
    assert DOUBLE not in run_sources(taken(notebook))


def test_a_copied_answer_in_words_loses_neither() -> None:
    notebook = release()
    copied = copy.deepcopy(notebook["cells"][10]) | {"id": "a", "source": "Because it is smaller."}
    notebook["cells"].append(copied)
    cells = taken(notebook).notebook["cells"]
    assert cells[11]["metadata"]["nbgrader"]["grade_id"] == "lab05-explain"
    assert "nbgrader" not in cells[10]["metadata"]


# How files are written.


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1"])
def test_other_encodings_are_read_and_reported(encoding: str) -> None:
    notebook = solved(double=f"# über\n{DOUBLE}")
    submission = taken(json.dumps(notebook, ensure_ascii=False).encode(encoding))
    assert run_sources(submission, "solution")[0] == f"# über\n{DOUBLE}"
    assert ("isn't in UTF-8" in str(submission.notes)) == (encoding != "utf-8-sig")


def test_windows_line_ends_change_nothing() -> None:
    notebook = solved(double=DOUBLE)
    windows = json.dumps(notebook, indent=1).replace("\\n", "\\r\\n").replace("\n", "\r\n")
    submission = taken(windows.encode())
    assert submission.notebook == notebook
    assert submission.notes == ()


def test_half_a_surrogate_pair_can_be_written_afterwards() -> None:
    submission = taken(solved(double=f"# \ud83d\n{DOUBLE}"))
    assert run_sources(submission, "solution")[0] == f"# \ufffd\n{DOUBLE}"


def test_version_3_is_read() -> None:
    notebook = solved(double=DOUBLE, halve=HALVE)
    cells = [dict(cell) for cell in notebook["cells"]]
    for cell in cells:
        if cell["cell_type"] == "code":
            cell["input"] = cell.pop("source")
    cells[0] = {"cell_type": "heading", "level": 1, "source": ["A lab"]}
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}
    assert taken(old).notebook == notebook


def test_pictures_stay_and_nothing_else_that_is_attached() -> None:
    picture, script = {"image/png": "iVBORw0KGgo="}, {"image/svg+xml": "<svg onload='x'/>"}
    words = markdown("words", "![a](attachment:a.png)")
    words["attachments"] = {"a.png": picture, "b.svg": script, "c": {"image/png": "<b>"}}
    notebook = release()
    notebook["cells"].append(words)
    submission = taken(notebook)
    assert submission.notebook["cells"][-1]["attachments"] == {"a.png": picture}
    words["attachments"] = {"a.png": {"image/png": "A" * 9_000_000}}
    submission = taken(notebook)
    assert "attachments" not in submission.notebook["cells"][-1]
    assert "all pictures together may take at most 1 MiB" in submission.notes[0].text


# Whatever happens to a notebook.

EDITS = ("delete", "duplicate", "move", "retype", "relabel", "strip", "blank", "rewrite", "add")
edits = st.lists(
    st.tuples(st.sampled_from(EDITS), st.integers(0, 30), st.integers(0, 30)), max_size=12
)


def edited(notebook: dict[str, Any], steps: list[tuple[str, int, int]]) -> dict[str, Any]:
    cells = notebook["cells"]
    for step, at, other in steps:
        if not cells or step == "add":
            cells.insert(at % (len(cells) + 1), own(f"new{other}", f"note = {other}"))
            continue
        index, cell = at % len(cells), cells[at % len(cells)]
        match step:
            case "delete":
                del cells[index]
            case "duplicate":
                cells.insert(other % (len(cells) + 1), copy.deepcopy(cell))
            case "move":
                cells.insert(other % len(cells), cells.pop(index))
            case "retype":
                cell["cell_type"] = ("code", "markdown", "raw")[other % 3]
            case "relabel":
                cell["metadata"]["nbgrader"] = {"grade_id": cells[other % len(cells)]["id"]}
            case "strip":
                cell["metadata"], cell["id"] = {}, None
            case "blank":
                cell["source"] = []
            case "rewrite":
                cell["source"] += f"\nmore = {other}" if isinstance(cell["source"], str) else []
    return notebook


@settings(max_examples=400)
@given(edits)
def test_no_edit_breaks_intake_or_changes_what_is_given(steps: list[tuple[str, int, int]]) -> None:
    notebook = edited(solved(double=DOUBLE, halve=HALVE), steps)
    try:
        submission = taken(notebook)
    except Quarantine:
        assert not any("lab05" in json.dumps(cell) for cell in notebook["cells"])
        return
    nbformat.validate(nbformat.from_dict(submission.notebook))
    assert sorted(run_sources(submission, "given")) == sorted(GIVEN)
    marks = [
        c["metadata"].get("nbgrader", {}).get("grade_id") for c in submission.notebook["cells"]
    ]
    wanted = [c["metadata"].get("nbgrader", {}).get("grade_id") for c in release()["cells"]]
    assert sorted(filter(None, marks)) == sorted(filter(None, wanted))
    for name in ("double", "halve"):
        there = [c for c in notebook["cells"] if f"def {name}(" in "".join(c["source"])]
        if any(cell["cell_type"] == "code" for cell in there):
            assert any(f"def {name}(" in source for source in run_sources(submission, "solution"))


def test_intake_is_quick() -> None:
    cells = [
        code(f"{cell['id']}-{copied}", "".join(cell["source"]), solution=True)
        for copied in range(5)
        for cell in release()["cells"]
    ]
    for cell in cells:
        cell["outputs"] = [{"output_type": "display_data", "data": {"image/png": "A" * 10_000}}]
    raw = json.dumps({**release(), "cells": cells}).encode()
    big = {**release(), "cells": cells}
    start = time.process_time()
    for _ in range(5):
        take_in("s001", LAB, raw, big)
    assert (time.process_time() - start) / 5 < 0.1  # CPU seconds; 0.005 is usual
