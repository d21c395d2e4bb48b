"""Create `__consumer_offsets` where a plan wants it, before the mark of a run makes a broker create it.

On a cluster on which no group was ever used, the mark of a run creates the topic. Kafka would put replicas of
it on a broker that the plan is about to empty.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from restow.client import BrokerError, ClientError, ConfigResource, NewTopic
from restow.model import Broker
from restow.model.permissions import RUN_GROUP
from restow.placement import place
from restow.sizes import count, some
from restow.verify.evidence import holds, unknown

if TYPE_CHECKING:
    from collections.abc import Collection

    from restow.client.admin import Admin
    from restow.model import BrokerId, Check, Plan

OFFSETS_TOPIC = "__consumer_offsets"


async def create_offsets_topic(admin: Admin, plan: Plan) -> None:
    """Create the topic off the brokers that the plan empties or demotes, if the topic does not exist.

    After an error, or where too few brokers are left for it, a broker creates it.
    """
    with suppress(ClientError):
        topic = await _topic_off(admin, _avoided(plan))
        if isinstance(topic, NewTopic):
            await admin.create_topics([topic])


async def offsets_topic_check(admin: Admin, plan: Plan) -> Check:
    """Check that the mark of the run puts nothing on the brokers that the plan empties or demotes."""
    name, avoided = "offsets topic", _avoided(plan)
    try:
        topic = await _topic_off(admin, avoided)
    except ClientError as error:
        return unknown(name, f"whether the run creates {OFFSETS_TOPIC} cannot be asked: {error}")
    if topic is None:
        return holds(name, f"the run creates no partitions of {OFFSETS_TOPIC} on a broker that it empties")
    if isinstance(topic, NewTopic):
        return holds(name, f"the run creates {OFFSETS_TOPIC}, and not on broker {some(sorted(avoided))}")
    return unknown(
        name,
        f"the mark of the run, group {RUN_GROUP}, makes Kafka create {OFFSETS_TOPIC}, also on broker "
        f"{some(sorted(avoided))}: {topic}",
        f"add a broker, or lower offsets.topic.replication.factor; else plan again after the run, because "
        f"broker {some(sorted(avoided))} will hold partitions of that topic",
    )


def _avoided(plan: Plan) -> set[BrokerId]:
    """Return the brokers that the plan empties or demotes."""
    return {
        broker
        for promise in plan.promises
        if promise.kind in {"drained", "no_leaders", "replaced"}
        for broker in (promise.brokers[:1] if promise.kind == "replaced" else promise.brokers)
    }


async def _topic_off(admin: Admin, avoided: Collection[BrokerId]) -> NewTopic | str | None:
    """Return the topic to create off these brokers, or why it cannot be; None if nothing is to be created.

    It gets the partitions, replicas and configs that a broker would give it.
    """
    if not avoided or any(topic.name == OFFSETS_TOPIC for topic in await admin.describe_topics()):
        return None
    nodes = (await admin.describe_cluster()).nodes
    brokers = [Broker(id=node.id, rack=node.rack) for node in nodes if node.id not in avoided]
    resource = ConfigResource("broker", str(nodes[0].id))
    configs = (await admin.describe_configs([resource]))[resource]
    if isinstance(configs, BrokerError):
        raise configs

    def setting(name: str) -> int:
        return int(configs[f"offsets.topic.{name}"].value or 0)

    if len(brokers) < setting("replication.factor"):
        replicas = count(setting("replication.factor"), "replica")
        return (
            f"its partitions get {replicas} each, and the cluster has {count(len(brokers), 'other broker')}"
        )
    partitions, replication_factor = setting("num.partitions"), setting("replication.factor")
    rows = place(brokers, partitions, replication_factor, start_index=0, rack_mode="safe")
    return NewTopic(
        name=OFFSETS_TOPIC,
        by_hand={number: tuple(row) for number, row in enumerate(rows.tolist())},
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(setting("segment.bytes")),
        },
    )
