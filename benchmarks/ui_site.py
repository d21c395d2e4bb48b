"""What `benchmarks.ui` looks at: a large cluster in a file, a plan and a run of 100,000 moves, a server."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from restow.execute.journal.journal import Journal
from restow.execute.journal.runs import runs_of
from restow.execute.run.lock import Holder, cluster_lock
from restow.model import (
    Copy,
    LiveBroker,
    LogDir,
    Move,
    Partition,
    Plan,
    Snapshot,
    Step,
    Topic,
    TopicPartition,
)
from restow.plan import write_plan
from restow.plan.files.text import document_of, step_document
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk
from restow.snapshot import write_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

BROKERS, PARTITIONS, PER_TOPIC, MOVES = 1_000, 200_000, 100, 100_000
CLUSTER, RUN, PLAN_ID = "benchmark", "20261115-120000", "20261115-115900-0001"
_WAVE = 1_000


def snapshot() -> Snapshot:
    """Return a cluster of ten racks with three replicas of each partition."""
    draw = random.Random(20)
    dirs = tuple(
        LogDir(path=f"/data/{name}", total_bytes=10**13, usable_bytes=6 * 10**12) for name in ("a", "b")
    )
    brokers = tuple(
        LiveBroker(id=each, host=f"broker-{each}", port=9092, rack=f"rack-{each % 10}", log_dirs=dirs)
        for each in range(BROKERS)
    )
    topics = []
    for number in range(PARTITIONS // PER_TOPIC):
        partitions = []
        for place in range(PER_TOPIC):
            replicas = tuple(draw.sample(range(BROKERS), 3))
            size = draw.randrange(10**9)
            copies = tuple(Copy(each, dirs[each % 2].path, size) for each in replicas)
            partitions.append(Partition(place, replicas, replicas, replicas[0], copies=copies))
        topics.append(Topic(name=f"topic-{number:05}", partitions=tuple(partitions)))
    return Snapshot(
        cluster_id=CLUSTER, taken_ms=1_790_000_000_000, controller=1, brokers=brokers, topics=tuple(topics)
    )


def plan_of(found: Snapshot) -> Plan:
    """Return a plan that moves one replica of half of the partitions."""
    draw = random.Random(21)
    moves = []
    for name, partition in list(found.all_partitions())[:MOVES]:
        free = draw.choice(
            [each for each in draw.sample(range(BROKERS), 5) if each not in partition.replicas]
        )
        after = (*partition.replicas[:2], free)
        reason = f"disk: broker {partition.replicas[2]} has too much"
        size = partition.size_bytes
        moves.append(
            Move(partition=name, before=partition.replicas, after=after, size_bytes=size, reason=reason)
        )
    steps = [step_of(each) for each in moves]
    waves = tuple(tuple(steps[at : at + _WAVE]) for at in range(0, len(steps), _WAVE))
    return Plan(
        cluster_id=CLUSTER, created_ms=found.taken_ms, moves=tuple(moves), waves=waves, title="balance"
    )


def step_of(move: Move) -> Step:
    return Step(partition=move.partition, before=move.before, after=move.after, size_bytes=move.size_bytes)


@dataclass
class LargeSite:
    """The files, and the journal of a run that goes on."""

    folder: Path
    journal: Journal
    steps: list[Step]
    _done: int = 0

    def move_on(self, count: int = 20) -> TopicPartition:
        """Write that some moves arrived and others were submitted; return the first that was submitted.

        Events name the first few of many partitions.
        """
        arrived = self.steps[self._done : self._done + count]
        begun = self.steps[self._done + count : self._done + 2 * count]
        self._done += count
        self.journal.write("finished", steps=[step_document(each) for each in arrived])
        self.journal.write("submit", steps=[step_document(each) for each in begun])
        return begun[0].partition


@contextmanager
def large_site(folder: Path) -> Iterator[LargeSite]:
    """Write the files; the run counts as being carried out during the block."""
    found = snapshot()
    write_snapshot(found, folder / "snapshot.json")
    plan = plan_of(found)
    stored = folder / "state" / "ui" / CLUSTER / "plans" / PLAN_ID
    stored.mkdir(parents=True)
    (stored / "request.json").write_text(json.dumps({"title": "balance", "at_ms": 0, "who": "benchmark"}))
    write_plan(plan, stored / "plan.json")
    disk = SystemDisk()
    runs = runs_of(disk, str(folder / "state"), CLUSTER)
    Path(runs.folder).mkdir(parents=True)
    journal = Journal(disk, SystemClock(), runs.path(RUN))
    journal.write("began", plan=document_of(plan), who={"user": "ada", "host": "ops-1"}, turn=1)
    steps = [step for wave in plan.waves for step in wave]
    site = LargeSite(folder, journal, steps)
    journal.write("submit", steps=[step_document(each) for each in steps[:20]])
    with cluster_lock(disk, runs.folder, Holder(pid=os.getpid(), host="ops-1", user="ada", run=RUN)):
        for _ in range(MOVES // 2 // 1_000):
            site.move_on(1_000)
        yield site
    journal.close()


@dataclass(frozen=True)
class Server:
    """`restow ui` on those files."""

    address: str
    token: str
    pid: int

    def megabytes(self, name: str) -> float:
        """Return what /proc says of its memory: VmRSS now, VmHWM at most."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1024
        raise LookupError(name)


@contextmanager
def served(folder: Path) -> Iterator[Server]:
    """Start the server on one core."""
    flags = ("--snapshot", str(folder / "snapshot.json"), "--journal", str(folder / "state"))
    command = [sys.executable, "-m", "restow", "ui", *flags, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
            told = json.loads(process.stdout.readline() if process.stdout else "")
            yield Server(told["address"], told["tokens"]["operator"], process.pid)
        finally:
            process.terminate()
