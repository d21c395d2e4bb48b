"""No record acknowledged by all in-sync replicas is lost, whatever is killed or paused.

Three broker processes on a real ZooKeeper; idempotent producers, a group that commits, a reader that watches;
and a sequence of faults chosen by a seed. `history.py` says what must hold.
"""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from harness.brokers import wait_for
from tests.faults.after import different_replicas, read_everything, until_in_sync, until_the_same
from tests.faults.history import Kind, Op, check
from tests.faults.nemesis import Nemesis
from tests.faults.recording import (
    GROUP,
    PARTITIONS,
    TOPIC,
    Member,
    Recorder,
    count_up,
    produce,
    produce_in_python,
    quiet,
    read_along,
)
from tests.often import often

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.brokers import BrokerProcesses
    from tests.faults.history import FinalLog

FAULTS_S = 25.0
SEEDS = range(1, 51)
OFTEN = 2
"""This seed writes with two kinds of clients, the first with one."""
CONFIGS = {"replica.lag.time.max.ms": "4000", "min.insync.replicas": "2"}


@pytest.mark.jvm
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "seed",
    often(SEEDS, OFTEN),
    ids=lambda it: f"seed-{it}",
)
def test_no_acknowledged_record_is_lost(
    seed: int, tmp_path: Path, start_brokers: Callable[..., BrokerProcesses]
) -> None:
    brokers = start_brokers(harms=True, configs=CONFIGS)
    admin = AdminClient(quiet(brokers.bootstrap))
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(120)
    recorder = Recorder()
    try:
        final, gave_up = suffer(brokers, recorder, seed)
        problems = [*gave_up, *check(recorder.events, final, GROUP)]
        until_the_same(brokers)
        codes = [broker.stop() for broker in brokers.values()]
        problems += different_replicas(brokers)
    finally:
        recorder.save(tmp_path / "history.jsonl")
        gc.collect()  # kafka-python leaves unconnected sockets to the garbage collector
    again = (
        f"again: pytest 'tests/faults/test_histories.py::test_no_acknowledged_record_is_lost[seed-{seed}]'"
    )
    assert not problems, f"{problems[:20]}\n{again}\nthe history and the brokers' logs are in {tmp_path}"
    assert codes == [0, 0, 0]
    acknowledged = sum(event.op is Op.WRITE and event.kind is Kind.OK for event in recorder.events)
    assert acknowledged > 100, f"only {acknowledged} writes went through: nothing was tested\n{again}"


def suffer(brokers: BrokerProcesses, recorder: Recorder, seed: int) -> tuple[FinalLog, list[str]]:
    """Run clients during the seed's faults; after the repair return the log and the failed clients."""
    second = produce_in_python if seed % 2 == 0 else produce
    bootstrap = brokers.bootstrap
    with ThreadPoolExecutor(max_workers=6) as threads:
        writers = [
            threads.submit(produce, recorder, "a", bootstrap, seed),
            threads.submit(second, recorder, "b", bootstrap, seed),
        ]
        readers = [
            threads.submit(Member(recorder, f"{GROUP}/1", bootstrap).run),
            threads.submit(Member(recorder, f"{GROUP}/2", bootstrap).run),
            threads.submit(read_along, recorder, "alone", bootstrap),
            threads.submit(count_up, recorder, "counter", bootstrap),
        ]
        try:
            Nemesis(brokers, recorder, seed).run(FAULTS_S)
            until_in_sync(brokers)
            recorder.over.set()
            gave_up = [reason for writer in writers if (reason := writer.result())]
            final = read_everything(bootstrap)
            wait_for("everybody has read everything", lambda: _all_read(recorder, final), 120)
        finally:
            recorder.over.set()
            recorder.enough.set()
        for reader in readers:
            reader.result()
    return final, gave_up


def _all_read(recorder: Recorder, final: FinalLog) -> bool:
    """Return whether the group has committed every partition's end, and the reader has reached it.

    The watcher's lookups show commits without a response.
    """
    ends = {partition: entries[-1][0] + 1 for partition, entries in final.items() if entries}
    committed = dict.fromkeys(ends, 0)
    read = dict.fromkeys(ends, 0)
    for event in tuple(recorder.events):
        if event.kind is Kind.OK and event.op in (Op.COMMIT, Op.RESUME) and event.partition in ends:
            committed[event.partition] = event.offset
        elif event.kind is Kind.OK and event.op is Op.READ and event.client == "alone":
            read[event.partition] = event.offset + 1
    return committed == ends == read
