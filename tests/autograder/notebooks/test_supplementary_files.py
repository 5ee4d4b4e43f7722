"""Supplementary files: what the grader reads from a folder that anyone may have written to."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from autograder.model.submission import Contents, Quarantine
from autograder.notebooks.supplementary_files import read_beside

IGNORED = ("*.pyc", "__pycache__")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "submitted/ada/ps1"
    made.mkdir(parents=True)
    (made / "ps1.ipynb").write_text("{}")
    return made


def read(
    folder: Path, given: Mapping[str, Path] | None = None
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    return read_beside(folder / "ps1.ipynb", given or {}, IGNORED)


def test_plain_files_are_read_by_their_paths_and_nothing_is_said(folder: Path) -> None:
    (folder / "data/deep").mkdir(parents=True)
    for name in ("mine.csv", "data/a b.csv", "data/deep/ü.csv", "empty"):
        (folder / name).write_bytes(b"" if name == "empty" else name.encode())
    files, unread = read(folder)
    assert files == {
        "mine.csv": b"mine.csv",
        "data/a b.csv": b"data/a b.csv",
        "data/deep/ü.csv": "data/deep/ü.csv".encode(),
        "empty": b"",
    }
    assert unread == ()


def test_what_is_no_work_of_theirs_is_left_out_and_not_told_of(folder: Path) -> None:
    for name in ("ps1-Copy1.ipynb", ".DS_Store", "timestamp.txt", "helper.pyc"):
        (folder / name).write_text("x")
    for name in ("__pycache__", ".ipynb_checkpoints"):
        (folder / name).mkdir()
        (folder / name / "x").write_text("x")
    assert read(folder) == ({}, ())


def test_links_devices_and_second_names_are_named_and_not_opened(folder: Path) -> None:
    secret = folder.parent.parent / "secret"
    secret.write_text("SECRET")
    (folder / "link").symlink_to(secret)
    (folder / "out").symlink_to(folder.parent.parent)
    (folder / "hard").hardlink_to(secret)
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(folder)  # the whole path may be too long for an address
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
    (folder / "mine.csv").write_text("1")
    files, unread = read(folder)
    assert files == {"mine.csv": b"1"}
    assert unread == (
        "Files submitted with the notebooks that weren't read: hard (it has a second name "
        "elsewhere), link (a link), out (a link), pipe (not a plain file), socket (not a plain "
        "file).",
    )


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root makes devices")
def test_a_device_is_not_opened(folder: Path) -> None:
    try:
        os.mknod(folder / "zero", 0o20666, os.makedev(1, 5))
    except OSError:
        pytest.skip("this root may make no devices")
    files, (said,) = read(folder)
    assert files == {}
    assert said.endswith("zero (not a plain file).")


def test_a_folder_that_is_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    moved = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(moved)
    with pytest.raises(Quarantine, match="a link"):
        read(folder)


def test_ten_thousand_files_are_none_and_said_so(folder: Path) -> None:
    for number in range(10_000):
        (folder / f"{number}.txt").touch()
    assert read(folder) == (
        {},
        ("The files submitted with the notebooks weren't read: there are over 100 of them.",),
    )


def test_a_hundred_files_are_read_and_one_more_in_a_folder_is_too_many(folder: Path) -> None:
    for number in range(99):
        (folder / f"{number}.txt").touch()
    (folder / "folder").mkdir()
    files, unread = read(folder)
    assert (len(files), unread) == (99, ())
    (folder / "folder/one").touch()
    files, (said,) = read(folder)
    assert files == {}
    assert "over 100" in said


def test_a_huge_file_is_none_and_said_so(folder: Path) -> None:
    (folder / "mine.csv").write_text("1")
    with (folder / "huge").open("wb") as file:
        file.truncate(2**40)  # a sparse terabyte
    files, unread = read(folder)
    assert files == {}
    assert unread == (
        "The files submitted with the notebooks weren't read: they have over 10 MiB.",
    )


def test_ten_mebibytes_all_in_all_are_read(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).write_bytes(bytes(5 * 2**20))
    files, unread = read(folder)
    assert ([len(raw) for raw in files.values()], unread) == ([5 * 2**20] * 2, ())
    (folder / "c").write_bytes(b"1")
    assert read(folder)[0] == {}


def test_folders_without_end_are_cut_and_said_so(folder: Path) -> None:
    deep = folder.joinpath(*"abcdefgh")
    deep.mkdir(parents=True)
    (deep / "x").touch()
    (folder / "a/b/c/d/here").write_text("1")
    files, unread = read(folder)
    assert files == {"a/b/c/d/here": b"1"}
    assert unread == (
        "Files submitted with the notebooks that weren't read: a/b/c/d/e (too deep).",
    )


def test_names_that_could_not_be_shown_are_named_in_letters_that_can(folder: Path) -> None:
    (folder / "new\nline").touch()
    Path(os.fsdecode(bytes(folder) + b"/\xff")).touch()
    files, unread = read(folder)
    assert files == {}
    assert unread == (
        r"Files submitted with the notebooks that weren't read: 'new\nline' (its name), '\udcff' "
        "(its name).",
    )


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_a_file_that_nobody_may_read_is_named(folder: Path) -> None:
    (folder / "mine.csv").touch(mode=0o000)
    assert read(folder)[1][0].endswith("mine.csv (Permission denied).")


def test_the_courses_own_files_win_and_copies_of_them_count_as_nothing(
    folder: Path, tmp_path: Path
) -> None:
    course = tmp_path / "source"
    (course / "pictures").mkdir(parents=True)
    for number in range(200):
        (course / f"pictures/{number}.png").write_bytes(bytes(2**17))  # 25 MiB of them
    (course / "data.csv").write_text("right")
    (course / "helper.py").write_text("right")
    given = {p.relative_to(course).as_posix(): p for p in course.rglob("*") if p.is_file()}
    (folder / "pictures").mkdir()
    for name, path in given.items():
        (folder / name).write_bytes(path.read_bytes())
    assert read(folder, given) == ({}, ())
    (folder / "data.csv").write_text("wrong")
    (folder / "helper.py").unlink()
    (folder / "helper.py").mkdir()
    (folder / "helper.py/inner").touch()
    (folder / "pictures/mine.png").write_text("mine")
    files, unread = read(folder, given)
    assert files == {"pictures/mine.png": b"mine"}
    assert unread == (
        "Files submitted with the notebooks that weren't read: helper.py (not a plain file).",
        "Also submitted, but replaced by the course's own: data.csv.",
    )


def test_a_file_in_the_place_of_a_folder_of_the_course_is_not_read(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "data").write_text("mine")
    files, unread = read(folder, {"data/x.csv": tmp_path / "x.csv"})
    assert files == {}
    assert unread == ("Also submitted, but replaced by the course's own: data.",)


def test_what_was_handed_in_is_known_by_every_part_of_it() -> None:
    alone = Contents({"a": b"1"})
    assert alone.packed() == b"1"
    parts = [
        alone,
        Contents({"a": b"1", "b": b"2"}),
        Contents({"a": b"1"}, {"b": b"2"}),
        Contents({"a": b"1"}, {"b": b"3"}),
        Contents({"a": b"1"}, {"c": b"2"}),
        Contents({"a": b"1"}, {}, ("Something was not read.",)),
        Contents({"a": b"1"}, {"b": b""}, ()),
    ]
    assert len({contents.packed() for contents in parts}) == len(parts)
