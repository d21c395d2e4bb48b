"""The cost of collecting: two samples of six brokers, without Spark and with it, and samples of many brokers.

Many brokers are simulated (`many_brokers_child.py`): they answer at once over the real protocol, some of them
never. Then the time that counts is the collector's own, and that it waits for silent brokers.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.report import Row, command_line, print_rows
from restow.client import ConnectionSettings, NewTopic, ask_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LOOK_EVERY_S = 0.05
_EVERY_S, _SAMPLES = 30, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The processor time and the peak memory of a command and all processes that it started."""

    processor_s: float
    peak_mb: float


@contextmanager
def _child(name: str, *words: object) -> Iterator[str]:
    """Start a program beside this one, and give what it prints as the bootstrap servers."""
    command = [sys.executable, str(Path(__file__).with_name(name)), *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["bootstrap"]
        finally:
            process.kill()


@contextmanager
def _cluster(folder: Path, brokers: int) -> Iterator[str]:
    with _child("embedded_child.py", folder, brokers) as bootstrap:
        topics = [NewTopic(name=f"t{number}", partitions=20, replication_factor=3) for number in range(10)]
        ask_cluster(ConnectionSettings(bootstrap=bootstrap), lambda admin: admin.create_topics(topics))
        yield bootstrap


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


def many_rows(brokers: int = 1_000, partitions: int = 200_000, silent: int = 20) -> Iterator[Row]:
    """Collect every 30 s, some brokers being silent: no sample may be late, and nobody else missing."""
    command = [sys.executable, "-m", "restow", "collect", "--every", f"{_EVERY_S}s", "--json"]
    with (
        tempfile.TemporaryDirectory() as name,
        _child("many_brokers_child.py", brokers, partitions, silent) as bootstrap,
    ):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [*command, "--samples", str(_SAMPLES), "--lake", f"{name}/lake", "-b", bootstrap],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    samples = [each for each in map(json.loads, done.stdout.splitlines()) if "sample" in each]
    for each in samples:
        known = each["rows"]["assignment"], each["brokers"], each["gap_count"]
        assert known == (partitions, brokers - silent, silent), f"others are missing, too: {each}"
    times = [datetime.fromisoformat(each["at"]).timestamp() for each in samples]
    processor_s = (after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime) / _SAMPLES
    work = f"a sample of {brokers:,} brokers, {silent} of them silent, and {partitions:,} partitions"
    yield Row(name=f"{work}: processor time", ours=processor_s, unit="s", limit=_EVERY_S)
    apart_s = max(late - early for early, late in pairwise(times[1:]))  # brokers make up the first answers
    yield Row(name=f"{work}: seconds between samples", ours=apart_s, unit="s", limit=1.5 * _EVERY_S)


def main(arguments: Sequence[str] | None = None) -> None:
    given = command_line(__doc__ or "").parse_args(arguments)
    print_rows("pipeline, collect", [*collect_rows(), *many_rows()], as_json=given.json)


if __name__ == "__main__":
    main()
