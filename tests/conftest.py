"""What all tests share: one thread each, and the same examples on every run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from playwright.sync_api import Browser, Playwright, sync_playwright

# Tests run on several processes at once; a torch that takes all cores in each makes all slow.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Typer takes the environment of GitHub's machines for a terminal with colours.
os.environ.pop("GITHUB_ACTIONS", None)

# A slow machine is no failure, and a test that passed here passes elsewhere.
settings.register_profile("course", deadline=None, derandomize=True)
settings.load_profile("course")

_CHROMIUM = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder that holds course.py."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real browser, for tests of what people open."""
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
