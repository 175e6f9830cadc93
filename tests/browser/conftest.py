"""One browser for all tests of pages: Debian's chromium, driven by Playwright; without either, they are skipped.

`visit` gives a new page of the browser. When the test is over, nothing may be in its console, and it may have asked
for nothing but files and this machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HERE = ("127.0.0.1", "localhost", "::1")
Visit = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    missing = "the pages are not tried: playwright is not installed"
    playwright = pytest.importorskip("playwright.sync_api", reason=missing)
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"the pages are not tried: none of {', '.join(NAMES)} is installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield opened
        opened.close()


def stays_here(address: str) -> bool:
    """Whether an address is of a file, of this machine, or of data in the page itself."""
    parts = urlsplit(address)
    return parts.scheme in ("file", "data", "blob", "about") or parts.hostname in HERE


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    """Open an address in a new window; keywords are those of Playwright's `new_context`."""
    contexts, said, asked = [], [], []

    def opened(address: str, **settings: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not said, said
    assert all(map(stays_here, asked)), [address for address in asked if not stays_here(address)]
