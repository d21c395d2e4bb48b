"""`restow ui` as a process, on a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_MS = 180_000


@dataclass(frozen=True)
class ServedPages:
    """A server that is ready: its address and its tokens."""

    address: str
    tokens: dict[str, str]
    process: subprocess.Popen[bytes]

    def enter(self, context: Any, role: str = "operator", until: str = "#brokers") -> Any:
        """Open the printed address in a new page, and return the page when it shows the cluster."""
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{self.address}/login#token={self.tokens[role]}")
        page.wait_for_url(f"{self.address}/")
        page.wait_for_selector(until)
        return page


@contextmanager
def served_pages(folder: Path, *flags: str) -> Iterator[ServedPages]:
    """Start `restow ui` with these flags, and end it with the block."""
    command = [sys.executable, "-m", "restow", "ui", "--port", "0", "--json", *flags]
    with (folder / "ui.err").open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "ui.err").read_text()
        told = json.loads(line)
        yield ServedPages(told["address"], told["tokens"], process)
    finally:
        process.terminate()
        process.communicate()
