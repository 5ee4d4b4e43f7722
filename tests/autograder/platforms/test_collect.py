"""`autograder collect`, on downloads named as Canvas, Moodle and Gradescope name them."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.cli.app import main
from autograder.platforms import collect as collecting
from autograder.platforms.downloads import MAX_FILE_BYTES, open_download
from autograder.rules.semester import read_semester
from autograder.store.out_folder import OutFolder

LAB = "lab01_formats"
ROSTER = """id,first_name,last_name,email,lms_user_id
ada,Ada,Lovelace,ada@uni.example,4711
emmy,Émmy,Noether,emmy@uni.example,4712
rene,René,Descartes,,
tom1,Tom,Jones,,
tom2,Tom,Jones,,
"""
GRADESCOPE = """submission_1:
  :submitters:
  - :name: Ada Lovelace
    :sid: ada
    :email: somewhere@else.example
  :created_at: 2026-11-20 21:59:00.000000000 Z
  :score: 0.0
submission_2:
  :submitters:
  - :name: Emmy N.
    :sid:
    :email: emmy@uni.example
  - :name: Rene Descartes
    :sid: rene
    :email: rene@uni.example
  :created_at: 2026-11-21 08:00:00.000000000 +0100
"""


def notebook(text: str = "") -> bytes:
    cells = [{"cell_type": "markdown", "metadata": {}, "source": text}]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def zipped(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A results folder whose rules name a roster."""
    folder = tmp_path / "graded"
    folder.mkdir()
    (folder / "roster.csv").write_text(ROSTER, encoding="utf-8")
    (folder / "semester.toml").write_text('roster = "roster.csv"\n', encoding="utf-8")
    return folder


def collect(download: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """Run the command as a program would; return the object that it prints."""
    submitted = out.with_name("submitted")
    places = ("--submitted", str(submitted), "--out", str(out))
    status = main(["collect", LAB, str(download), *places, "--json"])
    told: dict[str, object] = json.loads(capsys.readouterr().out)
    assert told["status"] == status
    return told


def placed(out: Path, student: str) -> bytes:
    return (out.with_name("submitted") / student / LAB / f"{LAB}.ipynb").read_bytes()


def aside(out: Path) -> list[bytes]:
    files = out.with_name("submitted_set_aside").rglob("*")
    return sorted(f.read_bytes() for f in files if f.is_file() and f.name != "collected.csv")


def test_canvas_names_are_found_on_the_roster(tmp_path, out, capsys):
    download = zipped(
        tmp_path / "submissions.zip",
        {
            f"lovelaceada_4711_901_{LAB}.ipynb": notebook("ada, first"),
            f"lovelaceada_4711_902_{LAB}-10.ipynb": notebook("ada, eleventh"),
            f"lovelaceada_4711_903_{LAB}-2.ipynb": notebook("ada, third"),
            "lovelaceada_4711_900_scratch.ipynb": notebook("ada, scratch"),
            "noetheremmy_LATE_4712_904_my work.ipynb": notebook("emmy"),
            "noetheremmy_LATE_4712_905_proof.pdf": b"%PDF",
            f"descartesrene_4800_906_{LAB}.ipynb": notebook("rene"),
            f"evemallory_4999_907_{LAB}.ipynb": notebook("eve"),
            f"__MACOSX/._lovelaceada_4711_901_{LAB}.ipynb": b"\0",
        },
    )
    told = collect(download, out, capsys)
    assert placed(out, "ada") == notebook("ada, eleventh")
    assert placed(out, "emmy") == notebook("emmy")
    assert placed(out, "rene") == notebook("rene")
    assert told["placed"] == ["ada", "emmy", "rene"]
    assert told["late"] == ["emmy"]
    assert told["renamed"] == {"emmy": "my work.ipynb"}
    assert told["problems"] == [
        f"evemallory_4999_907_{LAB}.ipynb was not collected: evemallory_4999 is not on the roster."
    ]
    assert told["status"] == 1
    first, third = (f"lovelaceada_4711_{n}_{LAB}{c}.ipynb" for n, c in ((901, ""), (903, "-2")))
    reasons = {name: why for name, why in told["set_aside"].items() if "lovelace" in name}
    assert reasons == {
        first: "an earlier attempt",
        third: "an earlier attempt",
        "lovelaceada_4711_900_scratch.ipynb": f"another notebook; {LAB}-10.ipynb is graded",
    }
    ada = [notebook(f"ada, {which}") for which in ("first", "third", "scratch")]
    assert aside(out) == sorted([b"%PDF", notebook("eve"), *ada])


def test_a_stranger_is_named_once_and_all_lines_are_shown_on_request(tmp_path, out, capsys):
    strangers = {f"stranger{n}_70{n}_80{n}_{LAB}.ipynb": notebook() for n in range(2)}
    proofs = {f"lovelaceada_4711_90{n}_proof.pdf": b"%PDF" for n in range(7)}
    ada = {f"lovelaceada_4711_901_{LAB}.ipynb": notebook()}
    download = zipped(tmp_path / "submissions.zip", {**ada, **strangers, **proofs})
    places = ("--submitted", str(out.with_name("submitted")), "--out", str(out))
    for options, shown in (((), 5), (("-v",), 7)):
        assert main(["collect", LAB, str(download), *places, *options]) == 1
        said, problems = capsys.readouterr()
        assert [said.count(name) + problems.count(name) for name in strangers] == [1, 1]
        assert said.count("proof.pdf") == shown
        assert ("2 more; --verbose shows all" in said) is (shown == 5)
        assert "and named on standard error: 2" in said


def test_moodle_folders_and_flat_names_are_found(tmp_path, out, capsys):
    sent = "assignsubmission_file"
    download = zipped(
        tmp_path / "moodle.zip",
        {
            f"Ada Lovelace_123_{sent}_/{LAB}.ipynb": notebook("ada"),
            f"Group A-Emmy Noether_124_{sent}_{LAB}.ipynb": notebook("emmy"),
            f"Descartes René_126_{sent}/{LAB}.ipynb": notebook("rene"),
            f"Tom Jones_127_{sent}_/{LAB}.ipynb": notebook("which Tom?"),
        },
    )
    told = collect(download, out, capsys)
    assert told["problems"] == [
        f"Tom Jones_127_{sent}_/{LAB}.ipynb was not collected: Tom Jones_127 may be any of tom1, "
        "tom2."
    ]
    # Ada and Emmy have numbers on the roster, which Moodle's of this assignment say nothing of.
    assert told["placed"] == ["ada", "emmy", "rene"]
    assert aside(out) == [notebook("which Tom?")]


def test_gradescope_tells_who_and_when(tmp_path, out, capsys):
    download = zipped(
        tmp_path / "export.zip",
        {
            "assignment_7_export/submission_metadata.yml": GRADESCOPE.encode(),
            f"assignment_7_export/submission_1/{LAB}.ipynb": notebook("ada"),
            "assignment_7_export/submission_1/submission_metadata.yml": b"submission_2: {}",
            f"assignment_7_export/submission_2/{LAB}.ipynb": notebook("a pair's work"),
        },
    )
    # The rules may name the receipts before the first download with times has been collected.
    rules = (
        f'roster = "roster.csv"\nreceipts = "receipts.csv"\n[due]\n{LAB} = 2026-11-20T23:00:00Z\n'
    )
    (out / "semester.toml").write_text(rules)
    told = collect(download, out, capsys)
    assert (told["problems"], told["unread"]) == ([], {})
    (out / "semester.toml").write_text('roster = "roster.csv"\n')
    told = collect(download, out, capsys)
    assert placed(out, "emmy") == placed(out, "rene") == notebook("a pair's work")
    assert any('receipts = "receipts.csv"' in remark for remark in told["remarks"])
    (out / "semester.toml").write_text('roster = "roster.csv"\nreceipts = "receipts.csv"\n')
    times = {r.student: r.received for r in read_semester(OutFolder(out)).receipts}
    assert times["ada"] == datetime.fromisoformat("2026-11-20T21:59:00+00:00")
    assert times["emmy"] == times["rene"] == datetime.fromisoformat("2026-11-21T08:00:00+01:00")


# In flat names, folders and files, students choose whatever follows the platform's own part.
FORGED = """submission_9:
  :submitters:
  - :name: Ada Lovelace
    :sid: ada
  :created_at: 2020-01-01 00:00:00 Z
"""
SENT = "assignsubmission_file"
IMPERSONATED = {
    "metadata of one's own": {
        f"Emmy Noether_124_{SENT}_/submission_metadata.yml": FORGED.encode(),
        f"Emmy Noether_124_{SENT}_/submission_9/{LAB}.ipynb": notebook("emmy"),
    },
    "a flat name in a flat name": {
        f"Emmy Noether_124_{SENT}_x-Ada Lovelace_123_{SENT}_{LAB}.ipynb": notebook("emmy"),
    },
    "Canvas's names in a folder of Moodle's": {
        f"Emmy Noether_124_{SENT}_/lovelaceada_4711_98765_{LAB}.ipynb": notebook("emmy"),
    },
    "Canvas's names in a folder of Canvas's": {
        f"noetheremmy_4712_98_work/lovelaceada_4711_99_{LAB}.ipynb": notebook("emmy"),
        "noetheremmy_4712_98_work/read.me": b"mine",
    },
    "metadata beside a file on Canvas": {
        "noetheremmy_4712_9_submission_metadata.yml": FORGED.encode(),
        f"noetheremmy_4712_98_lovelaceada_4711_99_{LAB}.ipynb": notebook("emmy"),
    },
}


@pytest.mark.parametrize("files", IMPERSONATED.values(), ids=IMPERSONATED)
@pytest.mark.parametrize("others", [True, False], ids=["beside others", "alone"])
def test_no_name_that_a_student_chooses_makes_them_another(tmp_path, out, capsys, files, others):
    rene = {f"René Descartes_126_{SENT}_/{LAB}.ipynb": notebook("rene")}
    told = collect(zipped(tmp_path / "d.zip", {**files, **(rene if others else {})}), out, capsys)
    assert "ada" not in told["placed"]
    assert ("rene" in told["placed"]) == (others and "noetheremmy" not in str(files))


def test_a_name_that_fits_in_part_never_replaces_one_that_fits(tmp_path, out, capsys):
    files = {
        f"Ada Lovelace_123_{SENT}_/{LAB}.ipynb": notebook("ada"),
        f"Eve-Ada Lovelace_130_{SENT}_/{LAB}-2.ipynb": notebook("eve"),
        f"Group A-Emmy Noether_124_{SENT}_/{LAB}.ipynb": notebook("emmy"),
        f"Group B-Emmy Noether_125_{SENT}_/{LAB}.ipynb": notebook("eve"),
    }
    told = collect(zipped(tmp_path / "d.zip", files), out, capsys)
    assert told["placed"] == ["ada"]
    assert placed(out, "ada") == notebook("ada")
    assert sum("isn't the only sender who may be" in problem for problem in told["problems"]) == 3


def test_receipts_of_other_labs_and_columns_of_ones_own_stay(tmp_path, out, capsys):
    (out / "receipts.csv").write_text(
        "student;lab;received;folder;my notes\n"
        "ada;lab02_sizing;2026-10-01T10:00:00+02:00;;by e-mail\n"
        f"ada;{LAB};2026-10-01T10:00:00+02:00;;old\n"
    )
    download = zipped(
        tmp_path / "export.zip",
        {
            "submission_metadata.yml": GRADESCOPE.encode(),
            f"submission_1/{LAB}.ipynb": notebook("ada"),
        },
    )
    collect(download, out, capsys)
    with (out / "receipts.csv").open(newline="") as file:
        rows = {(row["student"], row["lab"]): row for row in csv.DictReader(file)}
    assert rows["ada", "lab02_sizing"]["my notes"] == "by e-mail"
    assert rows["ada", LAB]["received"].startswith("2026-11-20T21:59:00")


def test_two_commands_take_turns_at_the_log_and_the_receipts(tmp_path, out, capsys, monkeypatch):
    read, seen = collecting.rows, []

    def rows(path, *more, **options):
        folder = os.open(path.parent, os.O_RDONLY)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            seen.append(f"{path.name} may be written meanwhile")
        os.close(folder)
        seen.append(path.name)
        return read(path, *more, **options)

    files = {
        "submission_metadata.yml": GRADESCOPE.encode(),
        f"submission_1/{LAB}.ipynb": notebook("ada"),
    }
    collect(zipped(tmp_path / "export.zip", files), out, capsys)
    monkeypatch.setattr(collecting, "rows", rows)
    collect(tmp_path / "export.zip", out, capsys)
    assert seen == ["collected.csv", "receipts.csv"]


def test_collecting_again_changes_nothing_and_a_newer_one_keeps_the_old(tmp_path, out, capsys):
    def download(text: str) -> Path:
        name = f"lovelaceada_4711_901_{LAB}.ipynb"
        files = {name: notebook(text), "=1+1\t_4799_902_x.txt": b"x"}
        return zipped(tmp_path / "submissions.zip", files)

    collect(download("first"), out, capsys)
    log = (out.with_name("submitted_set_aside") / "collected.csv").read_bytes()
    again = collect(download("first"), out, capsys)
    assert (again["placed"], again["unchanged"]) == ([], ["ada"])
    assert (out.with_name("submitted_set_aside") / "collected.csv").read_bytes() == log
    newer = collect(download("second"), out, capsys)
    assert newer["replaced"] == ["ada"]
    assert placed(out, "ada") == notebook("second")
    assert aside(out) == sorted([notebook("first"), b"x"])


@pytest.mark.parametrize("writes", [1, 2])
def test_a_command_that_was_killed_leaves_nothing_once_it_runs_again(tmp_path, out, capsys, writes):
    names = (f"lovelaceada_4711_901_{LAB}.ipynb", "lovelaceada_4711_902_x.txt")
    made = zipped(tmp_path / "submissions.zip", dict.fromkeys(names, notebook()))
    command = [sys.executable, "-c", _KILLED.format(writes=writes)]
    places = ("--submitted", str(out.with_name("submitted")), "--out", str(out))
    done = subprocess.run([*command, "collect", LAB, str(made), *places], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert len(_hidden(tmp_path)) == 1
    assert collect(made, out, capsys)["status"] == 0
    assert _hidden(tmp_path) == []
    assert (placed(out, "ada"), aside(out)) == (notebook(), [notebook()])


# The command, which kills itself once that many files are on the disk but not yet in their places.
_KILLED = """
import os, signal
from autograder.cli.app import main
left = [{writes}]
def fsync(descriptor):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
os.fsync = fsync
main()
"""


def _hidden(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.is_file()]


def test_where_lateness_costs_something_missing_times_are_remarked_on(tmp_path, capsys):
    out = tmp_path / "graded"
    out.mkdir()
    rules = f'receipts = "receipts.csv"\n[due]\n{LAB} = 2026-11-20T23:59:00+01:00\n'
    download = zipped(tmp_path / "a.zip", {f"lovelaceada_4711_901_{LAB}.ipynb": notebook()})
    for late, expected in (("", 0), ("[late]\npercent_per_day = 10\n", 1)):
        (out / "semester.toml").write_text(rules + late, encoding="utf-8")
        remarks = collect(download, out, capsys)["remarks"]
        assert (
            len([remark for remark in remarks if "contain submission times" in remark]) == expected
        )
    row = f"student,lab,received\nlovelaceada_4711,{LAB},2026-11-20T20:00:00+01:00\n"
    (out / "receipts.csv").write_text(row, encoding="utf-8")
    assert "contain submission times" not in str(collect(download, out, capsys)["remarks"])


def test_without_a_roster_the_platforms_names_are_the_ids(tmp_path, capsys):
    out = tmp_path / "graded"
    name = f"lovelaceada_4711_901_{LAB}.ipynb"
    told = collect(zipped(tmp_path / "a.zip", {name: notebook()}), out, capsys)
    assert told["placed"] == ["lovelaceada_4711"]
    assert any("Without a roster" in remark for remark in told["remarks"])


def test_an_unpacked_folder_is_taken_too(tmp_path, out, capsys):
    folder = tmp_path / "submissions"
    folder.mkdir()
    (folder / f"lovelaceada_4711_901_{LAB}.ipynb").write_bytes(notebook("ada"))
    (folder / f"noetheremmy_4712_902_{LAB}.ipynb").symlink_to("/etc/passwd")
    assert collect(folder, out, capsys)["placed"] == ["ada"]


@pytest.mark.parametrize(
    "make",
    [
        lambda path: None,
        lambda path: path.write_bytes(b"not a zip"),
        lambda path: zipped(path, {"holiday.jpg": b"x"}),
        lambda path: zipped(path, {}),
    ],
)
def test_what_is_no_download_is_refused_in_a_sentence(tmp_path, out, capsys, make):
    path = tmp_path / "it.zip"
    make(path)
    told = collect(path, out, capsys)
    assert told["status"] == 2
    (problem,) = told["problems"]
    assert str(path) in problem
    assert "Canvas" in problem
    assert not out.with_name("submitted").exists()


def test_a_file_that_unpacks_to_far_more_than_it_says_is_left(tmp_path, out, capsys):
    huge = zipfile.ZipInfo(f"noetheremmy_4712_902_{LAB}.ipynb")
    huge.compress_type = zipfile.ZIP_DEFLATED
    path = tmp_path / "submissions.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"lovelaceada_4711_901_{LAB}.ipynb", notebook("ada"))
        with archive.open(huge, "w") as file:
            for _ in range(MAX_FILE_BYTES // 2**20 + 2):
                file.write(bytes(2**20))
    told = collect(path, out, capsys)
    assert told["placed"] == ["ada"]
    assert list(told["unread"]) == [huge.filename]
    assert told["status"] == 1


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_entry_costs_nobody_else_anything(tmp_path, out, capsys, compression):
    path = tmp_path / "submissions.zip"
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(damaged := f"lovelaceada_4711_901_{LAB}.ipynb", notebook("ada"))
        archive.writestr(f"noetheremmy_4712_902_{LAB}.ipynb", notebook("emmy"))
    raw = bytearray(path.read_bytes())
    begin = raw.index(damaged.encode()) + len(damaged)
    raw[begin : begin + 40] = b"\xff" * 40
    path.write_bytes(raw)
    told = collect(path, out, capsys)
    assert (told["placed"], list(told["unread"])) == (["emmy"], [damaged])
    assert "can't be unpacked" in str(told["problems"])


def test_entries_of_one_name_are_all_kept(tmp_path, out, capsys):
    name = f"lovelaceada_4711_901_{LAB}.ipynb"
    texts = ("first", "second", "third")
    made = {name.replace("901", f"90{n}"): notebook(text) for n, text in enumerate(texts)}
    path = zipped(tmp_path / "submissions.zip", made)
    path.write_bytes(re.sub(rb"_4711_90\d_", b"_4711_901_", path.read_bytes()))
    collect(path, out, capsys)
    assert placed(out, "ada") == notebook("third")
    assert aside(out) == sorted([notebook("first"), notebook("second")])


def test_a_name_too_long_for_a_file_system_is_cut(tmp_path, out, capsys):
    name = "lovelaceada_4711_901_" + "\u6f22" * 80 + ".txt"
    files = {name: b"x", f"noetheremmy_4712_902_{LAB}.ipynb": notebook("emmy")}
    told = collect(zipped(tmp_path / "d.zip", files), out, capsys)
    assert (told["placed"], list(told["set_aside"])) == (["emmy"], [name])
    assert aside(out) == [b"x"]


def test_a_download_whose_names_are_damaged_is_named(tmp_path, out, capsys):
    path = zipped(tmp_path / "d.zip", {f"\u00e9_4711_901_{LAB}.ipynb": b"{}"})
    path.write_bytes(path.read_bytes().replace("\u00e9".encode(), b"\xff\xfe"))
    told = collect(path, out, capsys)
    assert told["status"] == 2
    assert f"{path} is not a zip file" in str(told["problems"])


names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(st.tuples(names, names), max_size=4))
def test_no_name_in_a_download_leads_out_of_its_folders(made):
    """Whatever names students and files have, each file is placed or set aside."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        files = {f"{who}_4711_901_{what}": who.encode() for who, what in made}
        download = zipped(top / "d.zip", {**files, f"a_1_2_{LAB}.ipynb": b"{}"})
        with open_download(download) as opened:
            listed = {upload.path for upload in opened.uploads} | set(opened.others)
        submitted = ("--submitted", str(top / "in" / "submitted"), "--out", str(top / "in" / "out"))
        with contextlib.redirect_stdout(io.StringIO()) as text:
            main(["collect", LAB, str(download), *submitted, "--json"])
        told = json.loads(text.getvalue())
        assert sorted(p.name for p in top.iterdir()) in (["d.zip", "in"], ["d.zip"])
        known = {*told["set_aside"], *told["unread"]}
        assert len(listed) <= len(known) + len(told["placed"])
