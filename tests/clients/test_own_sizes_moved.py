"""Plans for replicas of different sizes, carried out: the disks hold what was foretold, at every moment."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaProducer

import restow
from restow.client import ConfigResource, NewTopic
from tests.clients.embedded import embedded
from tests.clients.sizes_on_brokers import move_and_look

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from restow.model import Plan, Snapshot

PARTITIONS = 6
TOPIC = "orders"
_PATIENCE_S = 240


@pytest.fixture
def kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[restow.cluster.ThreadedCluster]:
    monkeypatch.setenv("RESTOW_JOURNAL", str(tmp_path / "journals"))
    properties = {"offsets.topic.num.partitions": "4"}
    with restow.cluster.ThreadedCluster(4, properties=properties) as running:
        yield running


def make_lagging_followers(kafka: restow.cluster.ThreadedCluster) -> None:
    """Create a topic led by broker 3, whose followers on broker 0 miss most of it and get a byte a second."""
    with restow.connect(kafka.bootstrap) as cluster:
        orders = NewTopic(name=TOPIC, by_hand=dict.fromkeys(range(PARTITIONS), (3, 0)))
        assert cluster.ask(lambda admin: admin.create_topics([orders])) == {TOPIC: None}
        slow: dict[ConfigResource, dict[str, str | None]] = {
            ConfigResource("broker", "0"): {"follower.replication.throttled.rate": "1"},
            ConfigResource("topic", TOPIC): {"follower.replication.throttled.replicas": "*"},
        }
        answers = cluster.ask(lambda admin: admin.incremental_alter_configs(slow))
        assert set(answers.values()) == {None}
    kafka.stop_broker(0)
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, acks=1)
    for number in range(400):
        producer.send(TOPIC, bytes(50_000), partition=number % PARTITIONS)
    producer.flush()
    producer.close()
    kafka.start_broker(0)


def sizes_of(snapshot: Snapshot) -> Counter[int]:
    """Return the bytes of the topic's replicas on each broker."""
    found: Counter[int] = Counter()
    for partition in snapshot.topic[TOPIC].partitions:
        for copy in partition.copies:
            found[copy.broker] += copy.size_bytes
    return found


def foretold(plan: Plan, before: Counter[int]) -> tuple[Counter[int], Counter[int]]:
    """Return what brokers hold at the end, and the most that they hold on the way."""
    most, end = Counter(before), Counter(before)
    for move in plan.moves:
        for broker in move.adding:
            most[broker] += move.size_bytes
            end[broker] += move.size_bytes
        for broker in move.removing:
            end[broker] -= move.own_size(broker)
    return end, most


def test_disks_hold_what_the_plan_foretold_when_followers_are_smaller(
    kafka: restow.cluster.ThreadedCluster,
) -> None:
    make_lagging_followers(kafka)
    with restow.connect(kafka.bootstrap) as cluster:
        before = cluster.snapshot()
        while 0 not in before.broker or 0 in before.unanswered:
            before = cluster.snapshot()
        partitions = before.topic[TOPIC].partitions
        assert any(each.own_sizes.get(0, 0) < each.own_sizes[3] for each in partitions), "the followers lag"
        plan = restow.plan(before, drain=0, topics=TOPIC)
        assert len(plan.moves) == PARTITIONS
        end, most = foretold(plan, sizes_of(before))
        assert end[0] == 0
        seen, done = [], threading.Event()

        def look() -> None:
            with restow.connect(kafka.bootstrap) as other:
                while not done.is_set():
                    seen.append(sizes_of(other.snapshot()))

        looking = threading.Thread(target=look)
        looking.start()
        try:
            assert cluster.execute(plan, throttle="none").is_good
        finally:
            done.set()
            looking.join()
        assert cluster.verify(plan).holds
        until = time.monotonic() + _PATIENCE_S
        while sizes_of(cluster.snapshot()) != +end and time.monotonic() < until:
            time.sleep(0.2)
        assert sizes_of(cluster.snapshot()) == +end
    assert seen
    for look_ in seen:
        for broker in (1, 2, 3):
            assert look_[broker] <= most[broker], "more than was foretold"


def test_disks_hold_what_was_foretold_at_every_moment_when_brokers_keep_their_logs_for_other_times(
    tmp_path: Path,
) -> None:
    with embedded(4) as running:
        asyncio.run(
            move_and_look(
                running.bootstrap, tmp_path, (0, 1, 2, 3), size=2_400_000, segment=100_000, rate=300_000
            )
        )
