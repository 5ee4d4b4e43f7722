"""A real JupyterLab, and browser pages that must not log errors."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import peakmem

PATIENCE = 600_000  # milliseconds: the machine may be busy with other tests


def listens(port: int) -> bool:
    try:
        socket.create_connection(("localhost", port), 1).close()
    except OSError:
        return False
    return True


class JupyterLab:
    """A JupyterLab without user settings, except those it is started with."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.process: subprocess.Popen[bytes] | None = None

    def run(self, arguments: list[str], folder: Path) -> int:
        """Start this command, which is a JupyterLab; it goes on running. course.py can call it."""
        homes = ("CONFIG", "DATA", "RUNTIME", "LAB_SETTINGS", "LAB_WORKSPACES")
        environment = {
            **os.environ,
            **{f"JUPYTER{'' if 'LAB' in h else '_'}{h}_DIR": str(self.home / h) for h in homes},
            "IPYTHONDIR": str(self.home / "IPYTHON"),
            "PYTHONPATH": str(Path(peakmem.__file__).parents[1]),
        }
        self.home.mkdir()
        with (self.home / "log.txt").open("wb") as log:
            self.process = subprocess.Popen(
                arguments, cwd=folder, env=environment, stdout=log, stderr=log
            )
        return 0

    def address(self) -> str:
        """Where the browser finds it, its token included, as soon as it listens."""
        assert self.process is not None, "no JupyterLab was started"
        while self.process.poll() is None:
            for path in (self.home / "RUNTIME").glob("jpserver-*.json"):
                text = path.read_text()
                # Else it is being written; and it is there before the server listens.
                if text.endswith("}") and listens((server := json.loads(text))["port"]):
                    return f"{server['url']}?token={server['token']}"
            time.sleep(0.05)
        raise AssertionError(f"JupyterLab ended:\n{(self.home / 'log.txt').read_text()}")

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()


@pytest.fixture
def jupyter(tmp_path: Path) -> Iterator[JupyterLab]:
    lab = JupyterLab(tmp_path / "jupyter")
    yield lab
    lab.stop()


class Voila(JupyterLab):
    """A lecture as a separate page, without user settings."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    def address(self) -> str:
        """Where the browser finds it, as soon as it listens."""
        assert self.process is not None, "no Voila was started"
        while self.process.poll() is None:
            if listens(self.port):
                return f"http://127.0.0.1:{self.port}/"
            time.sleep(0.05)
        raise AssertionError(f"Voila ended:\n{(self.home / 'log.txt').read_text()}")


@pytest.fixture
def voila(tmp_path: Path) -> Iterator[Voila]:
    server = Voila(tmp_path / "voila")
    yield server
    server.stop()


def listen(page: Page) -> list[str]:
    """The list of the page's console errors and uncaught exceptions."""
    said: list[str] = []
    page.on("console", lambda message: message.type == "error" and said.append(message.text))
    page.on("pageerror", lambda error: said.append(error.message))
    return said


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of 1280 by 800; a complaint in its console fails the test."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    complaints = listen(page)
    yield page
    page.close()
    assert complaints == []
