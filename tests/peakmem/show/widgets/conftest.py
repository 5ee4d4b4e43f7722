"""Calculators are tested as in a plain program, without a running event loop."""

from __future__ import annotations

import asyncio.events
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _no_running_loop() -> Iterator[None]:
    """Hide the loop that the browser's driver leaves running after its tests."""
    running = asyncio.events._get_running_loop()
    asyncio.events._set_running_loop(None)
    yield
    asyncio.events._set_running_loop(running)
