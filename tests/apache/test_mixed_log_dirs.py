"""Log dirs in a cluster of both kinds, under a controller of either kind: moves and failures."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from restow.wire.messages import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
from tests.apache.mixed import APACHE, OURS, SHIFT, Kind, MixedSide, mixed_cluster
from tests.apache.mixed_data import read, write
from tests.apache.test_mixed_cluster import EITHER, PLACES, RECORDS, SETTINGS
from tests.apache.test_reassign_like_kafka import Mover
from tests.apache.two_sides import PATIENCE_S
from tests.unit.broker.conversations import Client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

pytestmark = [pytest.mark.apache, pytest.mark.full]
ALTER, DESCRIBE = 34, 35


class LogDirs(Mover):
    """Asks brokers for their log dirs."""

    async def at(self, broker: int, api_key: int, body: Any) -> Any:
        client = await Client.connect(self.side.port(broker + SHIFT))
        client.ask(api_key, 1, 1, body)
        try:
            return await client.answer(api_key, 1)
        finally:
            client.connection.close()

    async def replicas(self, broker: int) -> tuple[set[str], dict[int, str]]:
        """Return the paths of a broker's log dirs, and the one of each partition of `t` without a move."""
        results = (await self.at(broker, DESCRIBE, DescribeLogDirsRequest(topics=None))).results
        assert {each.error_code for each in results} == {0}
        found: dict[int, list[tuple[str, bool]]] = {}
        for result in results:
            for topic in result.topics:
                for each in topic.partitions if topic.name == "t" else ():
                    found.setdefault(each.partition_index, []).append((result.log_dir, each.is_future_key))
        at_rest = {number: where for number, ((where, _), *more) in found.items() if not more}
        return {result.log_dir for result in results}, at_rest

    async def move(self, broker: int, targets: Mapping[int, str]) -> None:
        """Move replicas to these log dirs, and wait until they are there."""
        make = AlterReplicaLogDirsRequest.AlterReplicaLogDir
        dirs = [
            make(path=path, topics=[make.AlterReplicaLogDirTopic(name="t", partitions=[number])])
            for number, path in targets.items()
        ]
        for each in dirs:
            answer = await self.at(broker, ALTER, AlterReplicaLogDirsRequest(dirs=[each]))
            assert [it.error_code for topic in answer.results for it in topic.partitions] == [0]
        async with asyncio.timeout(PATIENCE_S):
            while (await self.replicas(broker))[1] != targets:
                await asyncio.sleep(0.05)


def run(folder: Path, first: Kind, story: Callable[[MixedSide], Awaitable[Any]]) -> None:
    async def tell() -> None:
        async with mixed_cluster(folder, first, SETTINGS, log_dirs=2) as side:
            await story(side)

    asyncio.run(tell())


@EITHER
def test_replicas_move_between_log_dirs_of_both_kinds(jars: Path, tmp_path: Path, first: Kind) -> None:
    async def story(side: MixedSide) -> None:
        asker = LogDirs(side)
        assert (await asker.create("t", by_hand=PLACES))[0] == 0
        await asyncio.to_thread(write, side.bootstrap, "t", range(RECORDS))
        for broker in (*APACHE, OURS):
            dirs, before = await asker.replicas(broker)
            assert set(before) == {number for number, replicas in PLACES.items() if broker in replicas}
            targets = {number: (dirs - {path}).pop() for number, path in before.items()}
            await asker.move(broker, targets)
        for number, replicas in PLACES.items():
            await asker.until_isr(set(replicas), "t", number)
        await asyncio.to_thread(write, side.bootstrap, "t", range(RECORDS, 2 * RECORDS))
        assert await asyncio.to_thread(read, side.bootstrap, "t", 2 * RECORDS) == list(range(2 * RECORDS))

    run(tmp_path, first, story)


@EITHER
def test_leaders_move_away_from_failed_log_dirs_of_both_kinds(
    jars: Path, tmp_path: Path, first: Kind
) -> None:
    """A broker notices when it cannot write a checkpoint, and tells the controller."""

    async def story(side: MixedSide) -> None:
        asker = LogDirs(side)
        assert (await asker.create("t", by_hand=PLACES))[0] == 0
        await asyncio.to_thread(write, side.bootstrap, "t", range(RECORDS))
        written = RECORDS
        for number, broker in ((0, APACHE[0]), (2, OURS)):
            leader, follower = PLACES[number]
            assert leader == broker
            await asker.until((broker, {broker, follower}), "t", number)
            path = Path((await asker.replicas(broker))[1][number])
            away = path.rename(path.with_name(f"{path.name}-away"))
            await asyncio.to_thread(write, side.bootstrap, "t", range(written, written + RECORDS))
            written += RECORDS
            await asker.until((follower, {follower}), "t", number)
            await asyncio.to_thread(write, side.bootstrap, "t", range(written, written + RECORDS))
            written += RECORDS
            await side.stop(broker)
            away.rename(path)
            await side.start(broker)
            for each, replicas in PLACES.items():
                await asker.until_isr(set(replicas), "t", each)
        assert await asyncio.to_thread(read, side.bootstrap, "t", written) == list(range(written))

    run(tmp_path, first, story)
