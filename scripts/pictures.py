"""Make the pictures of the documents from a real run on an embedded cluster.

    .venv/bin/python scripts/pictures.py

docs/execute.svg is a screen of `restow execute`, about half-way. docs/plan.svg and docs/rehearse.svg are
pictures in the pages that `restow show --html` and `restow rehearse --html` write. What the rehearsal prints
goes to standard output, for docs/rehearse.md. Two pictures are not made here: docs/report.png is a browser's
picture of the report that `make demo` writes, and docs/flow.svg is drawn by hand.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from harness.terminal import frames, plain, run_in_terminal  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

COLUMNS = 96
RESTOW = [sys.executable, "-m", "restow"]
PARTITIONS = 24
RECORD = bytes(10_000)


def main() -> None:
    with tempfile.TemporaryDirectory() as name, cluster() as bootstrap:
        folder = Path(name)
        environment = {
            **os.environ,
            "RESTOW_BOOTSTRAP_SERVER": bootstrap,
            "XDG_STATE_HOME": str(folder),
            "COLUMNS": str(COLUMNS),
        }

        def restow(*arguments: str) -> str:
            code, shown = run_in_terminal(
                [*RESTOW, *arguments], folder=folder, environment=environment, columns=COLUMNS
            )
            if code != 0:
                raise SystemExit(plain(shown))
            return shown

        hands = ",".join(f"{p % 3}:{(p + 1) % 3}" for p in range(PARTITIONS))
        restow("topics", "create", "orders", "--replica-assignment", hands)
        fill(bootstrap)
        # A disk that is nearly full would otherwise leave nothing to show.
        restow("plan", "balance", "--fill", "0.99", "-o", "plan.json")
        restow("snapshot", "-o", "now.json")
        restow("show", "plan.json", "--snapshot", "now.json", "--html", "plan.html")
        rehearsal = ("rehearse", "plan.json", "--throttle", "10MB/s", "--snapshot", "now.json")
        print(plain(restow(*rehearsal, "--html", "rehearsal.html")))
        shown = restow("execute", "plan.json", "--throttle", "10MB/s", "--yes")
        page, rehearsed = ((folder / name).read_text() for name in ("plan.html", "rehearsal.html"))
    (ROOT / "docs" / "plan.svg").write_text(svgs(page)[0] + "\n")
    steps = next(each for each in svgs(rehearsed) if "steps over time" in each)
    (ROOT / "docs" / "rehearse.svg").write_text(steps + "\n")
    (ROOT / "docs" / "execute.svg").write_text(drawn(half_way(shown), "restow execute"))


def svgs(page: str) -> list[str]:
    return re.findall(r"<svg.*?</svg>", page, re.DOTALL)


@contextmanager
def cluster() -> Iterator[str]:
    """Start four brokers; yield their addresses."""
    command = [*RESTOW, "cluster", "up", "--brokers", "4", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            ready = process.stdout.readline() if process.stdout else ""
            yield json.loads(ready)["bootstrap_servers"]
        finally:
            process.terminate()


def fill(bootstrap: str) -> None:
    """Write 3 to 6 MB to each partition."""
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
    for partition in range(PARTITIONS):
        for _ in range(300 + 100 * (partition % 4)):
            producer.send("orders", RECORD, partition=partition)
    producer.flush()
    producer.close()


def half_way(shown: str) -> str:
    """Return the screen on which about half of the bytes have arrived."""
    screens = [frame for frame in frames(shown) if " under way" in frame and "ended" not in frame]
    return screens[len(screens) // 2]


def drawn(screen: str, title: str) -> str:
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen.strip("\n")))
    return console.export_svg(title=title)


if __name__ == "__main__":
    main()
