"""Make the pictures of docs/ui.md and the README: pages of `restow ui --demo` in Chromium.

    .venv/bin/python scripts/pictures_ui.py [FOLDER]

They show what everybody sees who starts `restow ui --demo`, so they change only with the pages and the story.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from harness.chromium import browser  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDE, HIGH = 1200, 900


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs"
    with served() as (address, token), browser() as chromium:
        for theme in ("light", "dark"):
            context = chromium.new_context(
                viewport={"width": WIDE, "height": HIGH},
                color_scheme=theme,
                timezone_id="UTC",
                locale="en-GB",
            )
            page = context.new_page()
            page.goto(f"{address}/login#token={token}")
            page.wait_for_selector("text=brokers up")
            for name, (where, high) in views(page, address).items():
                if (theme == "dark") != name.endswith("dark"):
                    continue
                page.goto(where)
                page.wait_for_load_state("load")
                page.screenshot(
                    path=folder / f"ui-{name}.png",
                    full_page=True,
                    clip={"x": 0, "y": 0, "width": WIDE, "height": high},
                )
            context.close()


def views(page: Any, address: str) -> dict[str, tuple[str, int]]:
    """Return the pictures by name: the address, and how much of the page is shown."""
    api = f"{address}/api/v1"
    told = {name: page.request.get(f"{api}/{name}").json() for name in ("plans", "runs")}
    plan = next(each for each in told["plans"]["plans"] if each["title"] == "plan balance")
    run = told["runs"]["runs"][-1]
    return {
        "cluster": (f"{address}/", 1500),
        "groups": (f"{address}/group?name=billing", 900),
        "plan": (f"{address}/plans/{plan['plan']}", 1300),
        "rehearsal": (f"{address}/plans/{plan['plan']}/rehearsals/{plan['rehearsals'][0]}", 1900),
        "run": (f"{address}/runs/{run['run']}", 1300),
        "run-dark": (f"{address}/runs/{run['run']}", 1300),
    }


@contextmanager
def served() -> Iterator[tuple[str, str]]:
    """Start the pages; yield their address and the operator's token."""
    command = [sys.executable, "-m", "restow", "ui", "--demo", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            told = json.loads(process.stdout.readline() if process.stdout else "")
            yield told["address"], told["tokens"]["operator"]
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
