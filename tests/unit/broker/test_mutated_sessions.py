"""Recorded sessions with changed, missing, extra or repeated bytes: the broker goes on.

The requests are those of a client that asks every version of everything, well and badly. Controller requests
are left out, because a broker obeys valid ones.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from itertools import repeat
from typing import TYPE_CHECKING

import pytest

from restow.cluster.embedded import EmbeddedCluster
from restow.cluster.handlers import served_versions
from restow.wire.codec import Codec, MalformedRequest, UnsupportedVersion
from restow.wire.messages import CreatePartitionsRequest, CreateTopicsRequest
from tests.oracle.raw_session import ask_everything
from tests.oracle.recording import recorded
from tests.seeds import seeded
from tests.unit.broker.conversations import HOST, run
from tests.unit.broker.harm import MEGABYTE, port_of, unharmed
from tests.unit.broker.test_every_version import ORDERS
from tests.unit.broker.test_mutated_frames import mutated

if TYPE_CHECKING:
    from pathlib import Path

CODEC = Codec(served_versions())
AT_ONCE = 40
FEW, MANY = 40, 400
_CLOSE_AFTER_S = 0.03


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    with recorded() as recording:
        run(ask_everything(tmp_path_factory.mktemp("session")))
    return [each.request for each in recording if each.api_key not in ORDERS]


def spoiled(frame: bytes, chance: random.Random) -> bytes:
    """Change a frame, mostly after the header; now and then key, version or all of it."""
    kind = chance.random()
    if kind < 0.1:
        head = bytearray(frame[:4])
        head[chance.randrange(4)] = chance.randrange(256)
        return bytes(head) + frame[4:]
    if kind < 0.15:
        return chance.randbytes(len(frame))
    if kind < 0.2:
        return frame + frame[8:]
    return mutated(frame, chance)


def is_modest(frame: bytes) -> bool:
    """Return whether the frame creates few partitions; thousands would take too long."""
    try:
        body = CODEC.parse_request(frame).body
    except (MalformedRequest, UnsupportedVersion):
        return True
    if isinstance(body, CreateTopicsRequest):
        return all(topic.num_partitions < 50 or topic.num_partitions > 10_000 for topic in body.topics)
    return not isinstance(body, CreatePartitionsRequest) or all(
        topic.count < 50 or topic.count > 20_000 for topic in body.topics
    )


async def send(port: int, frames: list[bytes]) -> None:
    """Send several frames over one connection, then close it."""
    reader, writer = await asyncio.open_connection(HOST, port)
    for frame in frames:
        writer.write(len(frame).to_bytes(4, "big") + frame)
    with suppress(OSError):  # includes TimeoutError
        async with asyncio.timeout(_CLOSE_AFTER_S):
            await reader.read(1)
    writer.close()


@pytest.mark.parametrize(
    ("seed", "rounds"),
    [(1, FEW), *(pytest.param(seed, MANY, marks=pytest.mark.full) for seed in range(2, 7))],
)
def test_broker_survives_mutated_sessions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, requests: list[bytes], seed: int, rounds: int
) -> None:
    chance = random.Random(seeded(seed))

    async def scenario() -> None:
        async with (
            EmbeddedCluster(data=tmp_path, fsync=False, log_dirs=2) as cluster,
            unharmed(cluster, caplog, most_grown=200 * MEGABYTE, more_files=512),
        ):
            for _ in range(rounds):
                batches = [
                    [
                        frame
                        for frame in map(
                            spoiled, chance.choices(requests, k=chance.randint(1, 4)), repeat(chance)
                        )
                        if is_modest(frame)
                    ]
                    for _ in range(AT_ONCE)
                ]
                await asyncio.gather(*(send(port_of(cluster), frames) for frames in batches))

    asyncio.run(asyncio.wait_for(scenario(), 600))
