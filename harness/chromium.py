"""Chromium for tests of pages, driven by Playwright: from the PATH, or Debian's (`harness/debian.py`).

Playwright's own browsers are not used: they are downloads of several hundred megabytes from elsewhere.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from harness.debian import Program, libraries, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator


@cache
def chromium() -> Program:
    """Find or fetch Chromium. Raises Missing if neither is possible."""
    if found := shutil.which("chromium"):
        return Program(found)
    root = unpacked("chromium", "110 MB")
    return Program(str(root / "usr" / "lib" / "chromium" / "chromium"), libraries(root))


@contextmanager
def browser() -> Iterator[Any]:
    """Run Chromium without a screen, as Playwright's browser. Raises Missing."""
    from playwright.sync_api import sync_playwright

    found = chromium()
    with sync_playwright() as playwright:
        # Root may not use the sandbox, and containers often lack what it needs. It only opens our own pages.
        started = playwright.chromium.launch(
            executable_path=found.program,
            env={**found.environment()},
            chromium_sandbox=False,
            args=["--disable-dev-shm-usage"],
        )
        try:
            yield started
        finally:
            started.close()
