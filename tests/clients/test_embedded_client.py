"""Our own client on an embedded cluster whose brokers stop and start."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

import pytest

from restow.client import ConnectionSettings, NewTopic, connected
from restow.cluster.embedded import EmbeddedCluster
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

# kafka-python leaves a refused socket to the garbage collector, which warns of it.


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect garbage now, and not during another test."""
    yield
    gc.collect()


@pytest.mark.parametrize("end", ["stop_broker", "kill_broker"])
def test_open_connection_finds_the_next_controller(end: str) -> None:
    async def main() -> None:
        async with (
            EmbeddedCluster(3) as cluster,
            connected(ConnectionSettings(bootstrap=cluster.bootstrap)) as admin,
        ):
            assert await admin.create_topics(
                [NewTopic(name="before", partitions=1, replication_factor=3)]
            ) == {"before": None}
            first = await admin.controller()
            assert first is not None
            await getattr(cluster, end)(first)
            assert await admin.create_topics(
                [NewTopic(name="after", partitions=1, replication_factor=2)]
            ) == {"after": None}
            assert await admin.controller() not in (None, first)

    asyncio.run(main())


def test_every_answer_is_kept() -> None:
    async def main() -> None:
        async with (
            EmbeddedCluster(1) as cluster,
            connected(ConnectionSettings(bootstrap=cluster.bootstrap)) as admin,
        ):
            outcome = await admin.create_topics(
                [
                    NewTopic(name="good", partitions=2, replication_factor=1),
                    NewTopic(name="too many", partitions=1, replication_factor=1),
                    NewTopic(name="wide", partitions=1, replication_factor=2),
                    NewTopic(name="hand", by_hand={0: (0,), 1: (0,)}),
                ]
            )
            codes = {name: error and error.code for name, error in outcome.items()}
            assert codes == {
                "good": None,
                "too many": ErrorCode.INVALID_TOPIC_EXCEPTION,
                "wide": ErrorCode.INVALID_REPLICATION_FACTOR,
                "hand": None,
            }
            assert [len(topic.partitions) for topic in await admin.describe_topics(["good", "hand"])] == [
                2,
                2,
            ]

    asyncio.run(main())
