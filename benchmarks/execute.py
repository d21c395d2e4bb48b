"""Carrying out plans, beside everything submitted at once: `python -m benchmarks.execute [--json] [--quick]`.

    20,000 partitions     snapshot, plan and all checks before a run; the cluster is the embedded one
    1 GiB, no throttle    12 partitions, and 48, to a broker that has nothing, on Apache Kafka 4.3.1; beside
                          the one request that Apache's own tool sends. From the first request to the last
                          arrival, in turns, the median of each; the whole run, and what it does before and
                          after, are told too. Again with 20 in and 10 out of a broker, which is few for
                          such small ones. Brokers delete at once what a move has left: the disk has less
                          to do with it
    4 GiB, no throttle    192 partitions, of which only about half may be under way together
    1 GiB at 20 MB/s      from the first request to the last arrival, twenty at a time, beside bytes over
                          rate: neither longer nor shorter by more than the tolerance; and beside all at once
                          with the same throttle, of which Kafka lets through about seven eighths
    idle                  the longest time in which fewer replicas were under way than may be, while some wait

The whole takes about twelve minutes, `--quick` about five.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import psutil

from benchmarks import cluster_work
from benchmarks import reassign_work as work
from benchmarks.cluster import GIB, say
from benchmarks.contenders import KRAFT, OURS
from benchmarks.reassign import MB, THROTTLE_BYTES_PER_S, cluster_of
from benchmarks.report import Row, command_line, print_rows
from restow.client import ConnectionSettings, connected
from restow.execute.journal.runs import runs_of
from restow.execute.progress.status import RunListener
from restow.execute.run.options import RunOptions
from restow.execute.run.start import RunContext, check_begin, execute, readiness, why_not
from restow.execute.throttle.throttles import ThrottleRates
from restow.model import Limits, TopicPartition
from restow.plan.pin import Target, plan_from_targets
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk
from restow.snapshot import capture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka.admin import KafkaAdminClient

    from restow.execute.progress.status import RunEvent
    from restow.model import Plan, Snapshot

MANY = 20_000
FEW, MANY_PARTITIONS = 12, 48
TIMES_MORE = 4
TWENTY = Limits(moves_in=20, moves_out=10)
ROUNDS = 7
FASTER, SLOWER = 0.02, 0.05
"""A throttle is kept if the average over the whole run is not above it by more than this, nor below."""
_SAMPLE_S = 0.05
_ALL_IS_STILL_S = 2.5


def main() -> None:
    """Measure and print."""
    parser = command_line("Carrying out plans, beside everything submitted at once.")
    parser.add_argument("--quick", action="store_true", help="a quarter of the data and of the partitions")
    arguments = parser.parse_args()
    size = GIB // 4 if arguments.quick else GIB
    many = MANY // 4 if arguments.quick else MANY
    rows = [*before_rows(many), *data_rows(size)]
    print_rows(f"Carrying out plans, {size >> 20} MiB", rows, as_json=arguments.json)


def before_rows(partitions: int) -> list[Row]:
    """Measure the steps before the first move."""
    say(f"{OURS.name}: {partitions:,} partitions …")
    with cluster_of(OURS) as (up, admin):
        first, second, third = work.broker_ids(admin)
        per_topic = 500
        for topic in range(partitions // per_topic):
            work.create(admin, f"many-{topic}", {number: [first, second] for number in range(per_topic)})
        process = psutil.Process()
        began_bytes, began_s = process.memory_info().rss, time.monotonic()
        plan = asyncio.run(_planned(up.bootstrap, {first: first, second: third}))
        took_s, grown = time.monotonic() - began_s, process.memory_info().rss - began_bytes
    if len(plan.moves) != partitions:
        raise SystemExit(f"{len(plan.moves)} of {partitions} partitions are in the plan")
    name = f"snapshot, plan and checks of {partitions:,} partitions"
    return [
        Row(name=name, ours=took_s, unit="s", limit=10.0),
        Row(name=f"{name}: memory", ours=grown / MB, unit="MB", limit=500.0),
    ]


async def _planned(bootstrap: str, instead: dict[int, int]) -> Plan:
    async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
        snapshot = await capture(admin, SystemClock())
        plan = plan_from_targets(snapshot, _targets(snapshot, "many", instead), created_ms=1)
        with tempfile.TemporaryDirectory() as folder:
            check_begin(plan, snapshot, runs_of(SystemDisk(), folder, snapshot.cluster_id))
        if why := why_not(await readiness(admin, plan, snapshot)):
            raise SystemExit(f"this would not have begun: {why}")
        return plan


def _targets(snapshot: Snapshot, prefix: str, instead: dict[int, int]) -> list[Target]:
    return [
        Target(partition=name, replicas=tuple(instead.get(broker, broker) for broker in partition.replicas))
        for name, partition in snapshot.all_partitions()
        if name.topic.startswith(prefix)
    ]


def data_rows(size: int) -> list[Row]:
    """Move there and back in one request, then by a run, then there again throttled."""
    say(f"{KRAFT.name}: {size >> 20} MiB at once, by a run, and throttled …")
    with cluster_of(KRAFT) as (up, admin):
        work.forget_soon(admin)
        few = Data(up.bootstrap, admin, FEW, size)
        rows = few.unthrottled_rows()
        admin.delete_topics([few.topic])
        many = Data(up.bootstrap, admin, MANY_PARTITIONS, size)
        rows += [*many.unthrottled_rows(), *many.unthrottled_rows(TWENTY), *many.throttled_rows()]
        admin.delete_topics([many.topic])
        more = Data(up.bootstrap, admin, MANY_PARTITIONS * TIMES_MORE, size * TIMES_MORE)
        return [*rows, *more.unthrottled_rows(rounds=ROUNDS // 2)]


class Data:
    """A topic whose second replicas move to an empty broker."""

    def __init__(self, bootstrap: str, admin: KafkaAdminClient, partitions: int, size: int) -> None:
        first, second, new = work.broker_ids(admin)
        pairs = [(first, second) if number % 2 else (second, first) for number in range(partitions)]
        self._bootstrap, self._admin = bootstrap, admin
        self._here = {number: list(pair) for number, pair in enumerate(pairs)}
        self._there = {number: [leader, new] for number, (leader, _) in enumerate(pairs)}
        self._name = f"{size >> 20} MiB in {partitions} partitions on {KRAFT.name}"
        self.topic = f"data-{partitions}"
        work.create(admin, self.topic, self._here)
        cluster_work.produce(bootstrap, self.topic, partitions, size // cluster_work.RECORD_BYTES)
        self._at_once()
        self._bytes = work.bytes_on(admin, new, self.topic)
        self._back()

    def unthrottled_rows(self, limits: Limits | None = None, rounds: int = ROUNDS) -> list[Row]:
        """Measure without a throttle. Runs with explicit limits have no target."""
        at_once_s, runs = [], []
        for _ in range(rounds):
            at_once_s.append(self._at_once())
            self._back()
            runs.append(self._run(RunOptions(), limits))
            self._back()
        given = "" if limits is None else f", {limits.moves_in} at a time"
        name = f"{self._name}{given}, no throttle"
        peer = self._bytes / MB / median(at_once_s)
        took = {
            name: (median(run.moving_s for run in runs), 0.9 if limits is None else None),
            f"{name}, the whole run": (median(run.whole_s for run in runs), None),
        }
        return [
            *(
                Row(
                    name=each,
                    ours=self._bytes / MB / took_s,
                    peer=peer,
                    peer_name="all at once",
                    unit="MB/s",
                    target=target,
                    more_is_better=True,
                )
                for each, (took_s, target) in took.items()
            ),
            Row(name=f"{name}: checks before", ours=median(run.before_s for run in runs), unit="s"),
            Row(name=f"{name}: elections after", ours=median(run.after_s for run in runs), unit="s"),
        ]

    def throttled_rows(self) -> list[Row]:
        with work.throttled(self._admin, self.topic, THROTTLE_BYTES_PER_S):
            at_once_s = self._at_once()
        self._back()
        with sampled(self._admin) as samples:
            run = self._run(RunOptions(throttle=ThrottleRates(rate=THROTTLE_BYTES_PER_S)), TWENTY)
        ideal_s = self._bytes / THROTTLE_BYTES_PER_S
        name = f"{self._name}, {TWENTY.moves_in} at a time, {THROTTLE_BYTES_PER_S // MB} MB/s"
        return [
            Row(
                name=name,
                ours=run.moving_s,
                peer=ideal_s,
                peer_name="bytes over rate",
                unit="s",
                target=1 + SLOWER,
                least=1 / (1 + FASTER),
            ),
            Row(name=name, ours=run.moving_s, peer=at_once_s, peer_name="all at once", unit="s"),
            Row(
                name="the longest idle time between moves", ours=longest_idle_s(samples), unit="s", limit=1.0
            ),
        ]

    def _at_once(self) -> float:
        return work.move_by_api(self._admin, self.topic, self._there)

    def _back(self) -> None:
        """Move the replicas back, then wait: a plan starts from what any broker reports, so all must know.

        Brokers also delete the old replicas meanwhile.
        """
        work.move_by_api(self._admin, self.topic, self._here)
        time.sleep(_ALL_IS_STILL_S)

    def _run(self, options: RunOptions, limits: Limits | None) -> Run:
        run = asyncio.run(_carried_out(self._bootstrap, self.topic, self._there, options, limits))
        work.check(self._admin, self.topic, self._there)
        return run


@dataclass(frozen=True)
class Run:
    before_s: float
    """Checks, and throttles if there are any."""
    moving_s: float
    """From just before the first request to the last arrival."""
    after_s: float
    """Elections, the last look, and throttles taken away."""

    @property
    def whole_s(self) -> float:
        return self.before_s + self.moving_s + self.after_s


async def _carried_out(
    bootstrap: str, topic: str, target: work.Assignment, options: RunOptions, limits: Limits | None
) -> Run:
    times: dict[str, list[float]] = {"begun": [], "arrived": []}

    def note(event: RunEvent) -> None:
        if event.kind in times:
            times[event.kind].append(time.monotonic())

    async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
        clock = SystemClock()
        targets = [
            Target(partition=TopicPartition(topic, number), replicas=tuple(replicas))
            for number, replicas in target.items()
        ]
        plan = plan_from_targets(await capture(admin, clock), targets, created_ms=1, limits=limits)
        with tempfile.TemporaryDirectory() as folder:
            world = RunContext(admin=admin, clock=clock, disk=SystemDisk(), root=folder)
            began_s = time.monotonic()
            outcome = await execute(world, plan, options, RunListener(event=note, status=lambda _: None))
            ended_s = time.monotonic()
        if not outcome.is_good:
            raise SystemExit(f"the run ended: {outcome}")
        first_s, last_s = min(times["begun"]), max(times["arrived"])
        return Run(first_s - began_s, last_s - first_s, ended_s - last_s)


@contextmanager
def sampled(admin: KafkaAdminClient) -> Iterator[list[tuple[float, int]]]:
    """Sample the number of running moves twenty times a second, over another connection."""
    samples: list[tuple[float, int]] = []
    over = threading.Event()

    def sample() -> None:
        while not over.wait(_SAMPLE_S):
            samples.append((time.monotonic(), len(admin.list_partition_reassignments() or {})))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def longest_idle_s(samples: list[tuple[float, int]]) -> float:
    """Return the longest time below the limit, between the first and the last time at the limit."""
    most = TWENTY.moves_in
    full = [number for number, (_, moves) in enumerate(samples) if moves >= most]
    if not full:
        raise SystemExit(f"never were {most} replicas under way at once")
    longest = 0.0
    for earlier, later in pairwise(full):
        longest = max(longest, samples[later][0] - samples[earlier][0])
    return longest


if __name__ == "__main__":
    main()
