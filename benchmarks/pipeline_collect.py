"""The cost to start collecting: two samples of six brokers into a lake, without Spark and with it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.report import Row
from restow.client import ConnectionSettings, NewTopic, ask_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOOK_EVERY_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The processor time and the peak memory of a command and all processes that it started."""

    processor_s: float
    peak_mb: float


@contextmanager
def _cluster(folder: Path, brokers: int) -> Iterator[str]:
    child = Path(__file__).with_name("embedded_child.py")
    with subprocess.Popen(
        [sys.executable, str(child), str(folder), str(brokers)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            bootstrap = json.loads(process.stdout.readline())["bootstrap"]
            topics = [
                NewTopic(name=f"t{number}", partitions=20, replication_factor=3) for number in range(10)
            ]
            ask_cluster(ConnectionSettings(bootstrap=bootstrap), lambda admin: admin.create_topics(topics))
            yield bootstrap
        finally:
            process.kill()


def _cost(bootstrap: str, lake: Path, *flags: str) -> Cost:
    command = [sys.executable, "-m", "restow", "collect", "--every", "1s", "--samples", "2"]
    process = subprocess.Popen(
        [*command, "--lake", str(lake), "-b", bootstrap, *flags], stdout=subprocess.DEVNULL
    )
    used: dict[int, float] = {}
    peak = 0
    root = psutil.Process(process.pid)
    while True:
        held = 0
        with suppress(psutil.Error):
            for each in (root, *root.children(recursive=True)):
                with suppress(psutil.Error):
                    times = each.cpu_times()
                    used[each.pid] = times.user + times.system
                    held += each.memory_info().rss
        peak = max(peak, held)
        with suppress(subprocess.TimeoutExpired):
            if process.wait(_LOOK_EVERY_S):
                raise RuntimeError(f"restow collect ended with exit code {process.returncode}")
            return Cost(processor_s=sum(used.values()), peak_mb=peak / 1e6)


def collect_rows(brokers: int = 6) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name, _cluster(Path(name) / "data", brokers) as bootstrap:
        ours = _cost(bootstrap, Path(name) / "ours")
        peer = _cost(bootstrap, Path(name) / "peer", "--master", "local[2]")
    work = f"two samples of {brokers} brokers"
    yield Row(
        name=f"{work}: processor time",
        ours=ours.processor_s,
        peer=peer.processor_s,
        peer_name="with Spark",
        unit="s",
        target=0.2,
    )
    yield Row(
        name=f"{work}: memory of all processes",
        ours=ours.peak_mb,
        peer=peer.peak_mb,
        peer_name="with Spark",
        unit="MB",
        limit=250,
    )
