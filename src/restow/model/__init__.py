"""The values that all parts of Restow share: frozen, slotted, with hardly any behaviour."""

from restow.model.assignment import ReplicaAssignment
from restow.model.broker import Broker
from restow.model.group import Member
from restow.model.ids import BrokerId, Rack, TopicPartition, by_topic
from restow.model.plan import ANY_DIR, Left, Limits, Move, Plan, Promise, Step
from restow.model.snapshot import (
    Copy,
    LiveBroker,
    LogDir,
    Partition,
    ReadingGroup,
    ReadingMember,
    Snapshot,
    Topic,
)
from restow.model.verdict import Check, CheckOutcome, Verdict

__all__ = [
    "ANY_DIR",
    "Broker",
    "BrokerId",
    "Check",
    "CheckOutcome",
    "Copy",
    "Left",
    "Limits",
    "LiveBroker",
    "LogDir",
    "Member",
    "Move",
    "Partition",
    "Plan",
    "Promise",
    "Rack",
    "ReadingGroup",
    "ReadingMember",
    "ReplicaAssignment",
    "Snapshot",
    "Step",
    "Topic",
    "TopicPartition",
    "Verdict",
    "by_topic",
]
