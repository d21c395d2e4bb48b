"""Records on several brokers: acknowledgement, the high watermark, and how many replicas it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.replication.replicas import Cluster, run, settle

if TYPE_CHECKING:
    from pathlib import Path


def test_a_leader_alone_acknowledges_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path, 1)
        assert cluster.elect(1, is_new=True) == {1: 0}
        first = await cluster.produce(1, "a", "b")
        second = await cluster.produce(1, "c")
        assert (first.error_code, first.base_offset) == (0, 0)
        assert (second.error_code, second.base_offset) == (0, 2)
        found = await cluster.consume(1, 0)
        assert found.high_watermark == 3
        assert found.records == cluster.bytes_at(1)
        await cluster.close()

    run(scenario())


def test_acks_all_waits_for_the_isr_and_logs_are_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster(tmp_path)
        cluster.elect(1, is_new=True)
        await settle()
        waiting = cluster.produce(1, "a", "b")
        await settle()
        assert waiting.done()
        assert (await waiting).error_code == 0
        assert cluster.at(1).log.high_watermark == 2
        assert cluster.bytes_at(1) == cluster.bytes_at(2) == cluster.bytes_at(3)
        await cluster.clock.advance(1)
        assert cluster.at(2).log.high_watermark == cluster.at(3).log.high_watermark == 2
        await cluster.close()

    run(scenario())
