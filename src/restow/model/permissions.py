"""A client's permissions, as far as a cluster reports them, and the ACLs that each command needs."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from restow._frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

CLUSTER, TOPIC, GROUP = "cluster", "topic", "group"
RUN_GROUP = "__restow_run"


@frozen
class Permissions:
    """Operations by Kafka's names, for example "ALTER"; None if the cluster did not report them."""

    cluster: frozenset[str] | None = None
    topics: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """By topic; a topic that may not be described has none."""


class Acl(NamedTuple):
    """An operation on a kind of resource, and its purpose."""

    on: str
    operation: str
    why: str
    name: str = ""
    """A group's name; "" for the cluster, the command's topics, and all groups."""
    optional: bool = False
    """Without it the command warns and continues."""


_SEE_TOPICS = Acl(TOPIC, "DESCRIBE", "to see partitions and replicas")
_SEE_CLUSTER = Acl(CLUSTER, "DESCRIBE", "to see moves, log dirs and the controller")
_TOPIC_CONFIGS = Acl(TOPIC, "DESCRIBE_CONFIGS", "to know topics' configs and throttles")
_BROKER_CONFIGS = Acl(CLUSTER, "DESCRIBE_CONFIGS", "to know brokers' configs and throttles")

_SEE_GROUPS = Acl(GROUP, "DESCRIBE", "to see members, and how far groups have read")

SIGHT = (_SEE_CLUSTER, _SEE_TOPICS)
GROUPS = (_SEE_GROUPS, _SEE_TOPICS)
SNAPSHOT = (_SEE_CLUSTER, _BROKER_CONFIGS, _SEE_TOPICS, _TOPIC_CONFIGS)
RUN = (
    Acl(CLUSTER, "ALTER", "to move replicas and elect leaders"),
    Acl(CLUSTER, "ALTER_CONFIGS", "to throttle brokers"),
    _SEE_CLUSTER,
    _BROKER_CONFIGS,
    Acl(TOPIC, "ALTER_CONFIGS", "to throttle replicas"),
    _SEE_TOPICS,
    _TOPIC_CONFIGS,
    Acl(GROUP, "READ", "to keep runs from other machines out", RUN_GROUP, optional=True),
    Acl(GROUP, "DELETE", "to remove that group at the end", RUN_GROUP, optional=True),
)

NEEDED: Mapping[str, tuple[Acl, ...]] = {
    "topics list": (_SEE_TOPICS,),
    "topics describe": (_SEE_TOPICS, _TOPIC_CONFIGS),
    "topics create": (Acl(CLUSTER, "CREATE", "to make topics"),),
    "topics create-partitions": (Acl(TOPIC, "ALTER", "to add partitions"),),
    "topics delete": (Acl(TOPIC, "DELETE", "to delete topics"), _SEE_TOPICS),
    "groups list": (_SEE_GROUPS,),
    "groups describe": GROUPS,
    "groups lag": GROUPS,
    "groups assign": GROUPS,
    "groups simulate": GROUPS,
    "cluster status": SIGHT,
    "watch": SIGHT,
    "control": (),
    "snapshot": SNAPSHOT,
    "plan": SNAPSHOT,
    "rehearse": SNAPSHOT,
    "verify": SNAPSHOT,
    "broker-check": SNAPSHOT,
    "doctor": SNAPSHOT,
    "ui": RUN,
    "execute": RUN,
    "resume": RUN,
    "undo": RUN,
    "cancel": RUN,
    "doctor --fix": RUN,
    "reassign": RUN[:-2],
    "collect": (*SIGHT, _SEE_GROUPS),
    "pipeline stream": (Acl(TOPIC, "READ", "to read the topic with the samples"), _SEE_TOPICS),
}
"""By command, as typed. `plan` stands for all of its subcommands."""
