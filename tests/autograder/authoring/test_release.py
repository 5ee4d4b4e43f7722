"""The release: nothing hidden gets out, and no student's file is ever overwritten."""

from __future__ import annotations

import io
import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

from autograder.authoring.build import build
from autograder.authoring.release import FOLDER, make_release, student_files
from autograder.base.course import Course
from autograder.cli.app import main
from autograder.notebooks.intake import take_in
from autograder.notebooks.stamp import release_note, release_version
from peakmem import __version__ as VERSION

LAB = "lab05_accumulation"
REPOSITORY = Path(__file__).resolve().parents[3]
CANARY = "canary_7f3a91"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course with one lab, and a secret word in every hidden part."""
    root = tmp_path_factory.mktemp("release") / "course"
    (root / "solutions").mkdir(parents=True)
    for name in ("nbgrader_config.py", "constraints.txt", "environment.yml", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, root)
    shutil.copy(REPOSITORY / "LICENSE", root)
    shutil.copytree(
        REPOSITORY / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    (root / "docs").mkdir()
    shutil.copy(REPOSITORY / "docs/students.md", root / "docs")
    source = (REPOSITORY / "solutions" / f"{LAB}.py").read_text("utf-8")
    source = source.replace("### BEGIN SOLUTION", f"### BEGIN SOLUTION\n    # {CANARY}")
    source = source.replace("### BEGIN HIDDEN TESTS", f"### BEGIN HIDDEN TESTS\n# {CANARY}")
    (root / "solutions" / f"{LAB}.py").write_text(source, "utf-8")
    build(Course(root))
    for place in (f"autograder/content/{LAB}.py", f"bank/{LAB}/right.py", "src/secret.py"):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(f"{CANARY} = 1\n")
    for place in (f"labs/{LAB}/answers.txt", "src/peakmem/.draft.py", ".course_secret"):
        (root / place).write_text(CANARY)
    return root


@pytest.fixture(scope="module")
def zips(course: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("out")
    written = make_release(Course(course), None, out)
    return {path.name: path for path in written}


def everything_in(data: bytes, name: str = "") -> Iterator[tuple[str, bytes]]:
    """Names and contents of all files of a zip, those of zips and wheels inside it included."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.namelist():
            content = archive.read(entry)
            yield f"{name}{entry}", content
            if content.startswith(b"PK"):
                yield from everything_in(content, f"{name}{entry}/")


# Nothing hidden gets out


def test_the_canaries_are_where_they_would_be_found(course: Path) -> None:
    built = (course / "solutions" / LAB / f"{LAB}.ipynb").read_text("utf-8")
    assert built.count(CANARY) > 5
    planted = io.BytesIO()
    with zipfile.ZipFile(planted, "w") as outer:
        inner = io.BytesIO()
        with zipfile.ZipFile(inner, "w") as wheel:
            wheel.writestr("a.py", CANARY)
        outer.writestr("some.whl", inner.getvalue())
    found = [
        name
        for name, data in everything_in(planted.getvalue())
        if CANARY in data.decode("latin-1") and name.endswith(".py")
    ]
    assert found == ["some.whl/a.py"]


def test_no_zip_holds_what_students_must_not_see(zips: dict[str, Path]) -> None:
    assert set(zips) == {"peakmem-labs.zip", f"{LAB}.zip"}
    for path in zips.values():
        files = dict(everything_in(path.read_bytes()))
        assert len(files) > 60, "the wheel was opened too"
        assert [n for n, data in files.items() if CANARY.encode() in data] == []
        assert [n for n in files if re.search(r"autograder|solution|bank|tasks|secret", n)] == []
        sources = {n: data for n, data in files.items() if n.endswith((".py", ".ipynb"))}
        asked = re.compile(rb"^\s*(\"?)(from|import) autograder", re.MULTILINE)
        assert [n for n, data in sources.items() if asked.search(data)] == []


def test_a_zip_holds_these_files_and_no_others(zips: dict[str, Path]) -> None:
    with zipfile.ZipFile(zips["peakmem-labs.zip"]) as archive:
        names = {name.removeprefix(f"{FOLDER}/") for name in archive.namelist()}
        executable = archive.getinfo(f"{FOLDER}/start.py").external_attr >> 16
    assert names == {
        *("START-HERE.html", "start.py", "requirements.txt", "constraints.txt"),
        *("environment.yml", f"peakmem-{VERSION}-py3-none-any.whl"),
        f"released/{LAB}/{LAB}.ipynb",
    }
    assert executable & 0o111


def test_a_stale_notebook_is_not_released(course: Path, tmp_path: Path) -> None:
    root = shutil.copytree(course, tmp_path / "course")
    source = root / "solutions" / f"{LAB}.py"
    source.write_text(source.read_text("utf-8").replace("# # Lab 5", "# # Lab five"), "utf-8")
    with pytest.raises(
        ValueError, match=rf"differs from what .* builds; run `autograder build {LAB}`"
    ):
        make_release(Course(root), None, tmp_path / "out")
    with pytest.raises(ValueError, match=f"no source of lab99; its labs are {LAB}"):
        make_release(Course(root), ["lab99"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_library_that_cannot_be_built_is_said(course: Path, tmp_path: Path) -> None:
    root = shutil.copytree(course, tmp_path / "course")
    (root / "pyproject.toml").write_text("no TOML [")
    with pytest.raises(RuntimeError, match="wheel couldn't be built:\n"):
        student_files(Course(root))


def test_the_command_makes_the_same_zips_again_and_says_what_they_hold(
    course: Path, zips: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--course", str(course), "release", LAB, "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [str(tmp_path / name) for name in zips]
    assert all(re.search(rf"MiB, {VERSION}\+[0-9a-f]{{8}}\)$", line) for line in lines)
    for name, path in zips.items():
        assert (tmp_path / name).read_bytes() == path.read_bytes()


def test_a_zip_of_several_labs_says_how_many(
    course: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = [f"0.1.0+{n:08d}" for n in range(7)]
    held = {course / "constraints.txt": versions, course / "environment.yml": versions[:1]}
    monkeypatch.setattr("autograder.authoring.release.make_release", lambda *_: held)
    assert main(["--course", str(course), "release", "--out", "zips"]) == 0
    several, one = capsys.readouterr().out.splitlines()
    assert several.endswith(" MiB, 7 labs)")
    assert one.endswith(f" MiB, {versions[0]})")


# The start page


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.asked_for: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.asked_for += [v for k, v in attrs if k in ("href", "src") and v]


def test_the_start_page_is_the_students_guide_and_asks_for_nothing(zips: dict[str, Path]) -> None:
    with zipfile.ZipFile(zips[f"{LAB}.zip"]) as archive:
        page = archive.read(f"{FOLDER}/START-HERE.html").decode()
    links = Links()
    links.feed(page)
    assert "<h1>Student guide</h1>" in page
    assert "python3 start.py lab01" in page
    assert links.asked_for == []


# Which release a submission is of


def released(zips: dict[str, Path]) -> nbformat.NotebookNode:
    with zipfile.ZipFile(zips[f"{LAB}.zip"]) as archive:
        return nbformat.reads(archive.read(f"{FOLDER}/released/{LAB}/{LAB}.ipynb").decode(), 4)


def test_a_submission_reports_its_release(course: Path, zips: dict[str, Path]) -> None:
    notebook = released(zips)
    present = json.loads((course / "labs" / LAB / f"{LAB}.ipynb").read_text("utf-8"))
    assert notebook.metadata.peakmem.release == release_version(notebook)
    handed_in = take_in("ada", LAB, nbformat.writes(notebook).encode(), present)
    assert not any(note.kind == "release" for note in handed_in.notes)
    later = json.loads(json.dumps(present))
    later["cells"][0]["source"] = "# Lab 5, mended"
    handed_in = take_in("ada", LAB, nbformat.writes(notebook).encode(), later)
    (note,) = [note.text for note in handed_in.notes if note.kind == "release"]
    assert note == (
        f"This notebook comes from release {notebook.metadata.peakmem.release}; it was graded as "
        f"the current release, {release_version(nbformat.from_dict(later))}."
    )


@pytest.mark.parametrize(
    "metadata",
    [
        *(None, [], {}, {"peakmem": 3}, {"peakmem": {}}, {"peakmem": {"release": 5}}),
        *({"peakmem": {"release": "<b>0.1.0+12345678"}}, {"peakmem": {"release": "9" * 99}}),
    ],
)
def test_made_up_metadata_are_not_repeated(metadata: object, zips: dict[str, Path]) -> None:
    assert release_note(metadata, released(zips)) == []
