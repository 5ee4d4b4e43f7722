"""Whether this machine can isolate, and secrets that the sandbox must never show."""

import os
import sys

import pytest

from autograder.base.course import Course
from autograder.sandbox.host import binds, isolation
from autograder.sandbox.host.isolation import missing_layers
from tests import sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")


@pytest.mark.skipif("CI" not in os.environ, reason="elsewhere tests are left out, which says so")
def test_ci_leaves_out_no_test_for_want_of_a_sandbox():
    assert missing_layers() == []


@pytest.mark.sandbox
def test_a_marked_test_is_left_out_where_nothing_can_be_isolated(request, monkeypatch):
    monkeypatch.setattr(sandbox, "_missing", lambda: ["bwrap is not installed"])
    with pytest.raises(pytest.skip.Exception, match="bwrap is not installed"):
        request.config.hook.pytest_runtest_setup(item=request.node)


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("trial", "said"),
    [
        ("raise SystemExit('no such layer')", "no such layer"),
        ("import os; os.kill(os.getpid(), 9)", "without a message"),
        (isolation._TRIAL.replace('"processes": 64, ', ""), "KeyError('processes')"),
    ],
)
def test_a_chain_that_breaks_is_a_missing_layer_with_its_reason_and_a_remedy(
    monkeypatch, trial, said
):
    monkeypatch.setattr(isolation, "_TRIAL", trial)
    (sentence,) = missing_layers()
    assert said in sentence
    assert "--privileged" in sentence


def test_elsewhere_than_on_linux_a_way_is_named(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    (sentence,) = missing_layers()
    assert "Linux" in sentence


def test_a_course_below_a_folder_that_is_shown_is_masked(monkeypatch, tmp_path):
    course = tmp_path / "shown" / "course"
    (course / "solutions").mkdir(parents=True)
    monkeypatch.setattr(binds, "COURSE", Course(course))
    masks = list(binds._masks(tmp_path / "shown", "/inside"))
    assert masks == emptiness("/inside/course")
    assert list(binds._masks(tmp_path / "other", "/inside")) == []


def test_an_installed_grader_is_masked_and_the_packages_beside_it_are_not(monkeypatch, tmp_path):
    packages = tmp_path / "site-packages"
    (packages / "autograder" / "content").mkdir(parents=True)
    monkeypatch.setattr(binds, "COURSE", Course(packages))
    monkeypatch.setattr(binds, "GRADER", packages / "autograder")
    assert list(binds._masks(packages, "/packages")) == emptiness("/packages/autograder")


def emptiness(place):
    return ["--perms", "0755", "--tmpfs", place, "--remount-ro", place]


@pytest.mark.parametrize("user", [0, 1000])
def test_no_folder_in_memory_is_writable_but_those_of_one_submission(monkeypatch, tmp_path, user):
    """An ordinary user would own them: modules could be left there that the next student imports.

    Each submission lays a /tmp and a /dev/shm of its own over these, and makes /dev read-only.
    """
    monkeypatch.setattr(os, "getuid", lambda: user)
    arguments, _ = isolation.command((), ["peakmem.numbers.formats"], 0, tmp_path)
    after = arguments[arguments.index("--unshare-all") if user == 0 else 0 :]

    def places(option):
        return [after[at + 1] for at, word in enumerate(after) if word == option]

    assert set(places("--tmpfs")) - {"/tmp"} <= set(places("--remount-ro"))
    assert places("--remount-ro")[-1] == "/"
    if user:
        assert "/course/peakmem/numbers/__pycache__" in places("--tmpfs")
