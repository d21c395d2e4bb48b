"""Requests with changed, missing or extra bytes: a broker answers or closes, and goes on."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import TYPE_CHECKING

from restow.cluster.embedded import EmbeddedCluster
from restow.wire.codec import encode_request
from restow.wire.messages import REQUESTS
from tests.seeds import seeded
from tests.unit.broker.conversations import HOST, run
from tests.unit.broker.test_every_version import PLAIN, bodies, prepared

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

FRAMES = 1500
# Mutated topic names would fill the disk with topics; other tests cover the refusals.
LEFT_OUT = {19, 20, 37}


def mutated(frame: bytes, chance: random.Random) -> bytes:
    """Make up to four changes after key and version, which have their own tests."""
    changed = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(4, len(changed) + 1)
        match chance.randrange(4):
            case 0 if at < len(changed):
                changed[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            case 1 if at < len(changed):
                changed[at] ^= 1 << chance.randrange(8)
            case 2:
                del changed[at:]
            case _:
                changed[at:at] = chance.randbytes(chance.randint(1, 8))
    return bytes(changed)


def test_broker_survives_mutated_frames(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(seeded(20_240))

    async def send(port: int, frame: bytes) -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(len(frame).to_bytes(4, "big") + frame)
        with suppress(OSError):  # includes TimeoutError
            async with asyncio.timeout(0.02):
                await reader.read(1)
        writer.close()

    async def scenario() -> None:
        async with EmbeddedCluster(data=tmp_path, fsync=False) as cluster:
            client = await prepared(cluster)
            topic_id = cluster.brokers[0].services.metadata.topics["t"].topic_id
            assert topic_id is not None
            made = bodies(topic_id)
            asked = [(key, version) for key, version in PLAIN if key not in LEFT_OUT]
            port = int(cluster.brokers[0].address.rpartition(":")[2])
            for _ in range(FRAMES // 50):
                frames = []
                for key, version in chance.choices(asked, k=50):
                    body = made[key]() if key in made else REQUESTS[key]()
                    frames.append(mutated(b"".join(encode_request(key, version, 1, "test", body)), chance))
                await asyncio.gather(*(send(port, frame) for frame in frames))
            client.ask(3, 9, 77, made[3]())
            assert await client.number() == 77
            assert cluster.brokers[0].is_running

    run(scenario())
    failed = [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]
    assert not failed, failed[0].exc_text or failed[0].getMessage()
