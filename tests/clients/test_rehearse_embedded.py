"""Rehearsals beside real runs on the embedded cluster, over sockets and in real time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kafka import KafkaProducer

import restow
from restow.client import NewTopic
from restow.execute import Ending
from restow.model import TopicPartition
from restow.plan.pin import Target, plan_from_targets

if TYPE_CHECKING:
    from pathlib import Path

SIZES_MB = [12, 3, 8, 5, 10, 2, 6, 9]
RECORD = bytes(10_000)


def filled(bootstrap: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
    for number, size in enumerate(SIZES_MB):
        for _ in range(size * 100):
            producer.send("orders", RECORD, partition=number)
    producer.flush()
    producer.close()


@pytest.mark.full
def test_run_on_the_embedded_cluster_takes_the_time_and_order_of_its_rehearsal(tmp_path: Path) -> None:
    with (
        restow.cluster.ThreadedCluster(4) as running,
        restow.connect(running.bootstrap, journal=tmp_path) as cluster,
    ):
        here = {number: (number % 2, (number + 1) % 2) for number in range(len(SIZES_MB))}
        cluster.ask(lambda admin: admin.create_topics([NewTopic(name="orders", by_hand=here)]))
        filled(running.bootstrap)
        targets = [
            Target(partition=TopicPartition("orders", number), replicas=(first, 3 if number % 3 == 1 else 2))
            for number, (first, _) in here.items()
        ]
        before = cluster.snapshot()
        plan = plan_from_targets(before, targets, created_ms=1)
        told = restow.rehearse(plan, before, throttle="1MB/s", journal=tmp_path)
        begun: list[tuple[float, str]] = []
        ended_ms: list[int] = []

        def heard(event: restow.execute.RunEvent) -> None:
            if event.kind == "begun":
                begun.append((event.at_ms, str(event.facts["partition"])))
            ended_ms.append(event.at_ms)

        outcome = cluster.execute(plan, throttle="1MB/s", on_event=heard)
    assert outcome.ending is Ending.DONE
    assert [name for _, name in begun] == [str(each.step.partition) for each in told.steps]
    seconds = (max(ended_ms) - min(ended_ms)) / 1000
    assert seconds == pytest.approx(told.seconds.p50, rel=0.05)
