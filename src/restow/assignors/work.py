"""Expected work of partitions, and the user data in which members tell each other of it.

    lag-aware:  int32 generation, array of (topic string, array of (int32 partition, float64 work))

Big-endian, like Kafka's own user data. Data that cannot be read counts as "nothing is known".
"""

from __future__ import annotations

import struct
from math import isfinite
from typing import TYPE_CHECKING

from restow.assignors.user_data import NO_GENERATION
from restow.model import TopicPartition, by_topic

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEAD = struct.Struct(">ii")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_PARTITION = struct.Struct(">id")


def expected_work(
    lag: Mapping[TopicPartition, float],
    rate_per_s: Mapping[TopicPartition, float] | None = None,
    horizon_s: float = 60.0,
) -> dict[TopicPartition, float]:
    """Return the messages to read of each partition within the horizon: its lag, and what arrives."""
    rates = rate_per_s or {}
    return {
        partition: max(lag.get(partition, 0.0), 0.0) + max(rates.get(partition, 0.0), 0.0) * horizon_s
        for partition in {**lag, **rates}
    }


def encode_work(generation: int, work: Mapping[TopicPartition, float]) -> bytes:
    """Encode what a member knows of its partitions."""
    topics = by_topic((topic, _PARTITION.pack(number, amount)) for (topic, number), amount in work.items())
    parts = [_HEAD.pack(generation, len(topics))]
    for topic, amounts in topics.items():
        name = topic.encode()
        parts += (_INT16.pack(len(name)), name, _INT32.pack(len(amounts)), *amounts)
    return b"".join(parts)


def decode_work(data: bytes) -> tuple[int, dict[TopicPartition, float]]:
    """Return the generation and the work; −1 and nothing if it cannot be read."""
    work: dict[TopicPartition, float] = {}
    try:
        generation, topics = _HEAD.unpack_from(data)
        at = _HEAD.size
        for _ in range(topics):
            (length,) = _INT16.unpack_from(data, at)
            name = data[at + 2 : at + 2 + length]
            (count,) = _INT32.unpack_from(data, at + 2 + length)
            at += 6 + length
            if length < 0 or not 0 <= count <= (len(data) - at) // _PARTITION.size:
                return NO_GENERATION, {}
            topic = name.decode(errors="replace")
            for number, amount in _PARTITION.iter_unpack(data[at : at + count * _PARTITION.size]):
                work[TopicPartition(topic, number)] = amount
            at += count * _PARTITION.size
    except struct.error:
        return NO_GENERATION, {}
    return generation, {where: amount for where, amount in work.items() if isfinite(amount) and amount >= 0}
