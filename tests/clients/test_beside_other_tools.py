"""Another tool changes waiting partitions of a run: on the embedded cluster and on Apache Kafka 4.3.1."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from harness.apache import apache_kafka
from harness.jars import KAFKA_4
from restow.client import ConfigResource, ConnectionSettings, connected
from restow.cluster.embedded import EmbeddedCluster
from restow.execute.progress.outcome import Ending
from restow.execute.run.control import ControlRequest
from restow.execute.run.options import RunOptions
from restow.execute.throttle.throttles import FOLLOWER_RATE, FOLLOWER_REPLICAS, ThrottleRates
from restow.model import Limits, TopicPartition
from tests.clients.watched_run import WatchedRun, fill, make, plan_to, replicas_of, throttles
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from pathlib import Path

SLOW = RunOptions(throttle=ThrottleRates(rate=2_000), survey_every_s=0.3, look_every_s=0.05)
TOPICS = ("a", "b", "c", "d", "e")
MANY_FETCHES = 12_000_000
"""Under a throttle, a fetch of a mebibyte gets through every ten seconds, so this takes minutes."""


@pytest.fixture(autouse=True)
def hushed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")


async def others_are_respected(bootstrap: str, ids: tuple[int, ...], folder: Path) -> None:
    """Move one slowly; of the four that wait, others change three, and move one to its target."""
    first, second, third, fourth = ids
    before, after = (first, second), (first, third)
    async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
        for topic in TOPICS:
            await make(admin, topic, [before])
            await fill(bootstrap, topic, 1, MANY_FETCHES)
        stage = WatchedRun(admin, folder)
        aims = {TopicPartition(topic, 0): after for topic in TOPICS}
        run = stage.start(await plan_to(admin, aims, Limits(moves_in=1)), SLOW)
        await stage.until(lambda: stage.told("begun"), "one has begun")
        begun = {str(each.facts["partition"]) for each in stage.told("begun")}
        replication_factor, flying, elsewhere, there = (name for name in aims if str(name) not in begun)
        theirs = ConfigResource("topic", flying.topic), ConfigResource("broker", str(fourth))
        slowed = {theirs[0]: {FOLLOWER_REPLICAS: "*"}, theirs[1]: {FOLLOWER_RATE: "1000"}}
        assert set((await admin.incremental_alter_configs(slowed)).values()) == {None}
        wanted = {
            replication_factor: (*before, fourth),
            flying: (first, fourth),
            elsewhere: (second, fourth),
            there: after,
        }
        assert set((await admin.alter_partition_reassignments(wanted)).values()) == {None}
        await stage.until(
            lambda: len(stage.told("dropped")) + len(stage.told("found done")) == 4,
            "the run has seen what others did to the four",
        )
        stage.request(ControlRequest(throttle="50MB/s"))
        outcome = await run
        assert outcome.ending is Ending.IN_PART, outcome
        dropped = dict(outcome.dropped)
        if not stage.told("found done"):
            assert dropped.pop(there) == f"somebody else is moving it to {list(after)}"
        assert set(dropped) == {replication_factor, flying, elsewhere}
        assert dropped[flying] == f"somebody else is moving it to {[first, fourth]}"
        assert len(stage.told("begun")) == 1, "it has asked for nothing but the first"
        assert await replicas_of(admin, replication_factor.topic) == [(*before, fourth)]
        assert await replicas_of(admin, elsewhere.topic) == [(second, fourth)]
        assert await replicas_of(admin, there.topic) == [after]
        assert set(await admin.list_partition_reassignments()) == {flying}
        assert set(await throttles(admin)) == {
            f"{FOLLOWER_REPLICAS} of topic {flying.topic}",
            f"{FOLLOWER_RATE} of broker {fourth}",
        }


def test_run_respects_other_tools_on_the_embedded_cluster(tmp_path: Path) -> None:
    async def main() -> None:
        async with EmbeddedCluster(4, data=tmp_path / "data", fsync=False) as cluster:
            await others_are_respected(cluster.bootstrap, (0, 1, 2, 3), tmp_path)

    asyncio.run(main())


@pytest.mark.apache
def test_run_respects_other_tools_on_apache_kafka(tmp_path: Path) -> None:
    with (
        needs_kafka(),
        apache_kafka(tmp_path / "kafka", nodes=4, version=KAFKA_4, heap="256m") as cluster,
    ):
        asyncio.run(others_are_respected(cluster.bootstrap, (1, 2, 3, 4), tmp_path))
