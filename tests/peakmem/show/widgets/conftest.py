"""Calculators are tried as in a plain program, with no event loop that runs."""

from __future__ import annotations

import asyncio.events
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _no_running_loop() -> Iterator[None]:
    """Hide the loop that the browser's driver leaves running in a process that tested with it."""
    running = asyncio.events._get_running_loop()
    asyncio.events._set_running_loop(None)
    yield
    asyncio.events._set_running_loop(running)
