"""Recognise rates that belong to a run of somebody else, which takes them off when it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.client import BrokerError, ConfigResource
from restow.execute.throttle.throttles import REPLICAS, entries

if TYPE_CHECKING:
    from collections.abc import Collection

    from restow.client import Admin
    from restow.model import BrokerId, TopicPartition


async def used_by_others(admin: Admin, own: Collection[TopicPartition]) -> frozenset[BrokerId]:
    """Return the brokers on which somebody else's moves are throttled.

    A tool that throttles a move names its replicas in the topic's config. A rate that an operator keeps set
    for good goes with `*`, or with lists that do not follow the moves.
    """
    moves = {
        name: move for name, move in (await admin.list_partition_reassignments()).items() if name not in own
    }
    if not moves:
        return frozenset()
    configs = await admin.describe_configs(sorted({ConfigResource("topic", name.topic) for name in moves}))
    used: set[BrokerId] = set()
    for name, move in moves.items():
        told = configs.get(ConfigResource("topic", name.topic))
        if told is None or isinstance(told, BrokerError):
            continue
        listed = {each for key in REPLICAS if key in told for each in entries(told[key].value or "")}
        used.update(broker for broker in move.replicas if f"{name.partition}:{broker}" in listed)
    return frozenset(used)
