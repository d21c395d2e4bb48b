"""Group records are read back in order, from any batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.broker.metadata import GROUP_OFFSETS_TOPIC
from restow.cluster.broker.offsets_journal import ReplicatedJournal
from restow.cluster.embedded import EmbeddedCluster
from restow.wire.error_codes import ErrorCode
from tests.unit.broker.conversations import run

if TYPE_CHECKING:
    from pathlib import Path


def test_journal_reads_back_records_and_refuses_partitions_led_elsewhere(tmp_path: Path) -> None:
    async def scenario() -> None:
        properties = {"offsets.topic.num.partitions": "2", "offsets.topic.replication.factor": "1"}
        async with EmbeddedCluster(2, data=tmp_path, fsync=False, properties=properties) as cluster:
            services = cluster.brokers[0].services
            metadata = services.metadata
            assert services.creation.create_in_passing(GROUP_OFFSETS_TOPIC)
            assert await metadata.until(lambda: metadata.partition_count(GROUP_OFFSETS_TOPIC) == 2, 120)
            ours, theirs = sorted(
                metadata.partitions(GROUP_OFFSETS_TOPIC), key=lambda each: each.leader_id != 0
            )
            journal = ReplicatedJournal(GROUP_OFFSETS_TOPIC, services.replicas, services.clock)
            written: list[tuple[bytes | None, bytes | None]] = []
            for size in (1, 3, 50):
                records = [(b"%d-%d" % (size, number), b"v" * number or None) for number in range(size)]
                assert await journal.append(ours.partition, records) is ErrorCode.NONE
                written += records
            read = [each async for each in journal.read_all(ours.partition)]
            assert [(each.key, each.value) for each in read] == written
            assert [each.offset for each in read] == list(range(len(written)))
            refused = await journal.append(theirs.partition, [(b"k", b"v")])
            assert refused is ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert [each async for each in journal.read_all(theirs.partition)] == []

    run(scenario())
