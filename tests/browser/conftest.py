"""Fixtures: a Chromium for all tests, and pages of `restow ui` on an embedded cluster."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harness.chromium import browser, chromium
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def running_browser() -> Iterator[Any]:
    """Return Playwright's browser. Without Chromium, the tests are skipped, but on CI they fail."""
    with needs_kafka():
        chromium()
    with ExitStack() as stack:
        yield stack.enter_context(browser())
