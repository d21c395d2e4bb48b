"""Create `__consumer_offsets` where a plan wants it, before the mark of a run makes a broker create it.

On a cluster on which no group was ever used, the mark of a run creates the topic. Kafka would put replicas of
it on a broker that the plan is about to empty.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from restow.client import BrokerError, ClientError, ConfigResource, NewTopic
from restow.model import Broker
from restow.placement import place

if TYPE_CHECKING:
    from collections.abc import Collection

    from restow.client.admin import Admin
    from restow.model import BrokerId, Plan

OFFSETS_TOPIC = "__consumer_offsets"


async def create_offsets_topic(admin: Admin, plan: Plan) -> None:
    """Create the topic off the brokers that the plan empties or demotes, if the topic does not exist.

    It gets the partitions, replicas and configs that a broker would give it. After an error a broker creates
    it.
    """
    avoided = {
        broker
        for promise in plan.promises
        if promise.kind in {"drained", "no_leaders", "replaced"}
        for broker in (promise.brokers[:1] if promise.kind == "replaced" else promise.brokers)
    }
    if avoided:
        with suppress(ClientError):
            await _create_off(admin, avoided)


async def _create_off(admin: Admin, avoided: Collection[BrokerId]) -> None:
    if any(topic.name == OFFSETS_TOPIC for topic in await admin.describe_topics()):
        return
    nodes = (await admin.describe_cluster()).nodes
    brokers = [Broker(id=node.id, rack=node.rack) for node in nodes if node.id not in avoided]
    resource = ConfigResource("broker", str(nodes[0].id))
    configs = (await admin.describe_configs([resource]))[resource]
    if isinstance(configs, BrokerError):
        return

    def setting(name: str) -> int:
        return int(configs[f"offsets.topic.{name}"].value or 0)

    if len(brokers) < setting("replication.factor"):
        return
    rows = place(brokers, setting("num.partitions"), setting("replication.factor"), rack_mode="safe")
    topic = NewTopic(
        name=OFFSETS_TOPIC,
        by_hand={number: tuple(row) for number, row in enumerate(rows.tolist())},
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(setting("segment.bytes")),
        },
    )
    await admin.create_topics([topic])
