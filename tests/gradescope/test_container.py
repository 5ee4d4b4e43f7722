"""The autograder for Gradescope in a container like Gradescope's, from the zip to results.json."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from autograder.cli.app import main
from autograder.content import find_lab
from autograder.sandbox.host.uid_isolation import NOTE
from tests.autograder import small_assignment as assignment
from tests.gradescope.container import Container, course_to_zip, why_not
from tests.grading import LAB05, Notebook, cell_of, code_cell, released, solved
from tests.hostile.attack import Attack
from tests.hostile.kernel import KERNEL
from tests.hostile.reach import REACH
from tests.hostile.use_up import USE_UP

pytestmark = pytest.mark.slow

SECRET = "5ec2e7" * 11  # the course's
POINTS = {task.id: task.points for task in find_lab(LAB05).tasks}
TOTAL = sum(POINTS.values())  # that a program gives in lab 5
HERE = Path(__file__).parent
PLACES = [
    *("/autograder/source", "/autograder/source/secret", "/autograder/source/course"),
    *("/autograder/grader", "/autograder/grader/autograder", "/autograder/results"),
    *("/autograder/submission", "/submitted", "/submitted/honest-a", "/out", "/etc/shadow"),
]
# Attacks that only deceive the judge or a reader meet the same defences as everywhere.
ATTACKS = (*REACH, *KERNEL, *USE_UP)
# Only namespaces hide the targets of these: names of folders, and a bound on their number.
ELSEWHERE = {"searches-the-disk", "inode-flood"}


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    """An image built from the zip that the command makes, by the zip's own setup.sh."""
    if why_not():
        pytest.skip(why_not())
    with TemporaryDirectory(prefix="gradescope-") as name:
        folder = Path(name)
        course = course_to_zip(folder, LAB05, SECRET)
        archive = folder / "autograder.zip"
        assert main(["--course", str(course), "gradescope", LAB05, "--out", str(archive)]) == 0
        image = Container(folder)
        done = image.build(archive)
        assert done.returncode == 0, done.stderr
        yield image


@pytest.mark.skipif("CI" not in os.environ, reason="elsewhere tests are left out, which says so")
def test_ci_as_root_leaves_out_no_container() -> None:
    assert os.getuid() != 0 or not why_not()


def hand_in(container: Container, notebook: Notebook, name: str = f"{LAB05}.ipynb", **more: Any):
    return container.run({name: json.dumps(notebook).encode()}, **more)


def by_name(results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {test["name"]: test for test in results["tests"]}


def with_cell(source: str) -> Notebook:
    """A right notebook with a cheat's cell before its first solution."""
    notebook = solved()
    place = notebook["cells"].index(cell_of(notebook, "lab05-largest_micro_batch-solution"))
    notebook["cells"].insert(place, {"id": "own", **code_cell(source)})
    return notebook


def test_a_right_submission_has_all_points_and_says_how_it_ran(container: Container) -> None:
    metadata = {"users": [{"id": 7, "email": "", "name": "A"}], "created_at": "2026-01-01"}
    results, said = hand_in(container, solved(), metadata=metadata)
    assert results["score"] == TOTAL, said
    judged = [test for test in results["tests"] if "score" in test]
    assert sum(test["max_score"] for test in judged) == TOTAL
    assert NOTE in results["output"]
    assert "Namespaces are refused here" in said


def test_a_half_right_one_under_any_name_has_half_its_points(container: Container) -> None:
    notebook = released()
    for name in ("largest_micro_batch", "memory_line"):
        cell = cell_of(notebook, f"lab05-{name}-solution")
        cell["source"] = cell_of(solved(), f"lab05-{name}-solution")["source"]
    results, said = hand_in(container, notebook, "my work (2).ipynb")
    half = POINTS["lab05-largest_micro_batch"] + POINTS["lab05-memory_line"]
    assert results["score"] == half, said
    assert by_name(results)["5.7 The largest micro-batch"]["status"] == "passed"
    untouched = by_name(results)["5.1 Accumulate gradients"]
    assert (untouched["score"], untouched["status"]) == (0, "failed")
    assert "Not written yet" in untouched["output"]


REACHES = f"""
import os, socket
for place in {PLACES!r}:
    try:
        print("REACHED", place, os.listdir(place) if os.path.isdir(place) else open(place).read())
    except OSError:
        pass
for place in ("/autograder/results/results.json", "/autograder/run_autograder"):
    try:
        open(place, "w").write("REACHED")
    except OSError:
        pass
for make in (socket.socket, lambda: socket.socket(socket.AF_UNIX),
             lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)):
    try:
        print("REACHED", make())
    except OSError:
        pass
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    if pid != os.getpid():
        try:
            os.kill(pid, 9)
            print("REACHED", pid)
        except OSError:
            pass
"""
STAYS = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("/tmp/letter", "w").write("x")
        while True:
            try:
                open("/autograder/results/results.json", "w").write("[]")
            except OSError:
                time.sleep(0.01)
    os._exit(0)
os.wait()
"""


def test_a_hostile_one_reaches_nothing_and_leaves_nothing(container: Container) -> None:
    notebook = with_cell(REACHES)
    stays = cell_of(notebook, "lab05-largest_micro_batch-solution")
    stays["source"] = f"{STAYS}\n{stays['source']}"
    look = "cat /proc/[0-9]*/status | grep ^Uid; find /tmp /var/tmp /dev/shm -type f"
    results, said = hand_in(container, notebook, after=f"echo AFTER; {look}")
    assert results["score"] == TOTAL, said
    assert "REACHED" not in json.dumps(results) + said
    after = said.partition("AFTER\n")[2].split("\n")
    assert after[0].split() == ["Uid:", "0", "0", "0", "0"]  # the look saw something
    assert {line for line in after if line} == {"Uid:\t0\t0\t0\t0"}


def test_what_is_no_notebook_is_told_as_ungraded(container: Container) -> None:
    results, _ = container.run({"essay.txt": b"Dear grader"})
    assert results["score"] == 0
    assert "the 0 isn't a grade" in results["output"]
    assert not [test for test in results["tests"] if "score" in test or "status" in test]


def test_where_nothing_shuts_code_in_nothing_is_run(container: Container) -> None:
    fewer = tuple(name for name in container.capabilities if name != "SETUID")
    results, said = hand_in(replace(container, capabilities=fewer), with_cell("print('RAN' * 2)"))
    assert (results["score"], results["extra_data"]["end"]) == (0, "failed")
    assert "may not change to another user id" in said
    assert "RANRAN" not in said + json.dumps(results)


def test_where_namespaces_are_allowed_code_runs_in_them(container: Container) -> None:
    results, said = hand_in(replace(container, privileged=True), with_cell(REACHES))
    assert results["score"] == TOTAL, said
    assert NOTE not in results["output"]
    assert "Namespaces are refused" not in said
    assert "REACHED" not in json.dumps(results) + said


def test_the_zip_has_no_secret_but_the_labs_own(container: Container) -> None:
    held = {p: p.read_bytes() for p in container.autograder.rglob("*") if p.is_file()}
    assert any(b"def largest_micro_batch" in data for data in held.values())  # it sees inside
    assert not [path for path, data in held.items() if SECRET.encode() in data]
    assert not [path for path, data in held.items() if bytes.fromhex(SECRET) in data]
    secret = container.autograder / "source/secret"
    assert (secret.stat().st_mode & 0o777, len(secret.read_text().strip())) == (0o600, 64)


# A student's process, and the fate of everything it leaves


@pytest.fixture(scope="module")
def facts(container: Container) -> dict[str, Any]:
    return json.loads(container.python((HERE / "look_inside.py").read_text()))


def test_the_process_is_nobodys_and_has_no_right_to_anything(facts: dict[str, Any]) -> None:
    status = dict(line.split(":\t", 1) for line in facts["status"].splitlines() if ":\t" in line)
    user = str(facts["user"])
    assert status["Uid"].split() == status["Gid"].split() == [user] * 4
    assert status["Groups"].strip() == ""
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[kind], 16) == 0
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert facts["user"] != facts["other_user"]


def test_it_has_one_socket_open_and_the_labs_answers_are_not_there(facts: dict[str, Any]) -> None:
    opened = re.search(r"\[([\d, ]+)\]", facts["open"])
    assert opened is not None
    assert len(opened[1].split(",")) == 5  # streams to nowhere, its socket, and the look itself
    assert "holds answers of this lab" in facts["hidden"]
    assert "peakmem.units" in facts["there"]


def test_all_that_it_leaves_is_found_and_ended(facts: dict[str, Any]) -> None:
    assert facts["daemons_before"] == 1
    assert len(facts["files_before"]) == 3
    assert (facts["processes_after"], facts["files_after"]) == ([], [])
    assert not facts["home_after"]


def test_nothing_outlives_a_grader_that_is_killed(facts: dict[str, Any]) -> None:
    assert facts["grader_dies"] == []


def test_another_program_in_its_place_is_noticed(facts: dict[str, Any]) -> None:
    assert "put another in its place" in facts["exec"]
    assert facts["exec_unseen"] == "answered 4"  # where nobody looks


def test_what_others_could_read_stops_the_grader(facts: dict[str, Any]) -> None:
    assert facts["readable"] == ["/usr"]
    assert facts["guessable"] == ["/autograder/source"]
    assert "chmod -R go-rwx" in facts["refused"]


# The attacks of tests/hostile, each as a user of its own


@pytest.fixture(scope="module")
def graded(container: Container) -> dict[str, Any]:
    with TemporaryDirectory(prefix="gradescope-class-", dir=container.folder) as name:
        folder = Path(name)
        for attack in ATTACKS:
            port_and_more = {"port": 9, "marker": "/autograder/marker", "daemon": "987654321"}
            write(folder, attack.name, attack.notebook(places=PLACES, **port_and_more))
        for student in ("honest-a", "zealous"):
            write(folder, student, solved())
        folder.chmod(0o700)
        binds = ["--bind", str(folder), "/submitted"]
        source = (HERE / "grade_many.py").read_text()
        return json.loads(container.python(source, "/submitted", LAB05, binds=binds))


def write(folder: Path, student: str, notebook: Notebook) -> None:
    path = folder / student / LAB05 / f"{LAB05}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook))


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_earns_what_its_solution_earns(graded: dict[str, Any], attack: Attack) -> None:
    status, points, message = graded[attack.name]["verdicts"][attack.task]
    assert status == attack.status, message
    assert attack.points is None or points == attack.points
    if attack.name not in ELSEWHERE:
        assert re.search(attack.says, message), message


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_reaches_and_leaves_nothing(graded: dict[str, Any], attack: Attack) -> None:
    one = graded[attack.name]
    assert one["left"] == []
    assert NOTE in one["notes"]
    if attack.name not in ELSEWHERE:
        assert "REACHED" not in json.dumps([one["outputs"], one["verdicts"]])


@pytest.mark.parametrize("student", ["honest-a", "zealous"])
def test_neighbours_have_what_they_earned(graded: dict[str, Any], student: str) -> None:
    verdicts = graded[student]["verdicts"].values()
    assert sum(points for _, points, _ in verdicts) == TOTAL


# An ordinary assignment, with files of the instructor's and of the students'

LOOKS = """
import os
from mine import WORD
print("HERE", sorted(os.listdir()), WORD, open("data.csv").readline())
for place in ({places}):
    try:
        print("REACHED", place, os.listdir(place) if os.path.isdir(place) else open(place).read())
    except OSError:
        pass
try:
    open("data.csv", "w").write("0")
    print("REACHED the data")
except OSError:
    pass
"""


@pytest.fixture(scope="module")
def ordinary(container: Container) -> dict[str, Any]:
    with TemporaryDirectory(prefix="gradescope-ordinary-", dir=container.folder) as name:
        folder = Path(name)
        course = assignment.write_course(folder / "course")
        places = ", ".join(map(repr, (*PLACES, "/course", "/course/source/ps1")))
        handed = {
            "right": assignment.submission(plot=LOOKS.format(places=places)),
            "wrong": assignment.submission(square="return x", total="return 0"),
            "exits": assignment.submission(quiet="import os\nos._exit(3)"),
        }
        for student, notebooks in handed.items():
            files = assignment.hand_in(folder / "submitted", student, notebooks)
            (files / "mine.py").write_text("WORD = 'theirs'\n")
            (files / "numpy.py").write_text("print('SHADOWED')\n")
            (files / "data.csv").write_text("0\n")
            (files / "link").symlink_to("/autograder/source/secret")
        for place in (course, folder / "submitted"):
            place.chmod(0o700)
        binds = [
            "--bind",
            str(course),
            "/course",
            "--bind",
            str(folder / "submitted"),
            "/submitted",
        ]
        source = (HERE / "grade_many.py").read_text()
        said = container.python(source, "/submitted", assignment.NAME, "/course", binds=binds)
        return json.loads(said)


def points_of(result: dict[str, Any]) -> dict[str, float]:
    return {task: points for task, (_, points, _) in result["verdicts"].items()}


def test_an_ordinary_assignment_is_graded_by_user_ids_too(ordinary: dict[str, Any]) -> None:
    right = points_of(ordinary["right"])
    test = f"{assignment.PROBLEM1}/test_"
    assert right == {
        f"{test}square": 2,
        f"{test}total": 3,
        f"{test}quiet": 1,
        f"{test}twice": 1,
        f"{test}value": 2,
        f"{assignment.PROBLEM2}/test_square": 1,
    }
    assert points_of(ordinary["wrong"]) == right | {f"{test}square": 0, f"{test}total": 1.5}
    assert points_of(ordinary["exits"]) == right | {f"{test}quiet": 0, f"{test}twice": 0}
    assert all(NOTE in result["notes"] for result in ordinary.values())


def test_files_are_there_by_user_ids_too_and_nothing_else_is(ordinary: dict[str, Any]) -> None:
    shown = json.dumps(ordinary["right"]["outputs"])
    here = "HERE ['data.csv', 'helper.py', 'mine.py', 'numpy.py'] theirs amount"
    assert here in shown
    assert "REACHED" not in shown
    assert "SHADOWED" not in json.dumps(ordinary)
    link = "Files submitted with the notebooks that weren't read: link (a link)."
    instead = "Also submitted, but replaced by the course's own: data.csv."
    assert {link, instead} <= set(ordinary["right"]["notes"])
    assert [result["left"] for result in ordinary.values()] == [[], [], []]
