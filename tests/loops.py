"""An event loop for a test: in a thread of its own, since a browser of other tests may hold the loop of this one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Found = TypeVar("Found")


def awaited(story: Coroutine[Any, Any, Found]) -> Found:
    """What a coroutine comes to."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, story).result()
