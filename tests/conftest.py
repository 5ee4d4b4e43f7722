"""Settings of all tests: one thread each, and the same examples on every run."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from playwright.sync_api import Browser, Playwright, sync_playwright

from tests.sandbox import require_sandbox

# Tests run on several processes at once; a torch that takes all cores in each makes all slow.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Typer takes the environment of GitHub's machines for a terminal with colours.
os.environ.pop("GITHUB_ACTIONS", None)

# A slow machine isn't a failure, and a test that passed here passes elsewhere.
settings.register_profile("course", deadline=None, derandomize=True)
settings.load_profile("course")

_CHROMIUM = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow_tests.txt, before `-m` chooses."""
    listed = (Path(__file__).parent / "slow_tests.txt").read_text("utf-8").splitlines()
    for item in items:
        if item.nodeid in listed:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)  # before fixtures that would start a sandbox
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("sandbox"):
        require_sandbox()


@pytest.fixture(autouse=True)
def no_refusals() -> Iterator[None]:
    """A lab's first cell refuses some imports from then on: that ends with each test."""
    _forget_refusals()
    yield
    _forget_refusals()


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """Let each test find its own environment active: course.py sets another one for a while."""
    os.environ["VIRTUAL_ENV"] = sys.prefix
    yield
    os.environ["VIRTUAL_ENV"] = sys.prefix


def _forget_refusals() -> None:
    session = sys.modules.get("peakmem.labs.session")
    if session is not None:
        session.lift_refusals()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder that holds course.py."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real browser, for tests of pages."""
    with sync_playwright() as playwright:
        try:
            browser = launch_chromium(playwright)
        except FileNotFoundError as missing:
            pytest.skip(str(missing))
        yield browser
        browser.close()


def launch_chromium(playwright: Playwright) -> Browser:
    """A browser without a window. Raises FileNotFoundError if Chromium isn't installed."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise FileNotFoundError("needs Chromium; on Debian: apt-get install chromium")
    return playwright.chromium.launch(executable_path=chromium, args=_CHROMIUM.split())
