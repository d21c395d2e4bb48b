"""aiokafka on the same loop as the cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from restow.cluster.embedded import EmbeddedCluster

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 300
WAIT_S = 300
# Cluster and consumer share a loop: if it stalls, the member must not be removed.
SESSION_MS = 60_000


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_group_reads_all_records_and_continues_from_its_commit(
    tmp_path: Path, compression: str | None
) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(3, data=tmp_path, fsync=False) as cluster:
            admin = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap)
            await admin.start()
            await admin.create_topics([NewTopic("t", num_partitions=3, replication_factor=3)])
            await admin.close()
            sent = [f"{number}".encode() for number in range(RECORDS)]
            async with AIOKafkaProducer(
                bootstrap_servers=cluster.bootstrap,
                acks="all",
                enable_idempotence=True,
                compression_type=compression,
            ) as producer:
                for number, value in enumerate(sent):
                    await producer.send("t", value, partition=number % 3)
                await producer.flush()
            found = await read(cluster.bootstrap, RECORDS // 2) + await read(cluster.bootstrap, None)
            assert sorted(found) == sorted(sent)

    asyncio.run(asyncio.wait_for(scenario(), WAIT_S))


async def read(bootstrap: str, count: int | None) -> list[bytes]:
    """Read so many records, or all that are left, and commit."""
    found: list[bytes] = []
    async with AIOKafkaConsumer(
        "t",
        bootstrap_servers=bootstrap,
        group_id="g",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
    ) as consumer:
        wanted = RECORDS - RECORDS // 2 if count is None else count
        while len(found) < wanted:
            records = await consumer.getmany(timeout_ms=1000, max_records=wanted - len(found))
            found += [record.value for batch in records.values() for record in batch]
        await consumer.commit()
    return found
