"""The values that every part of Restow speaks in: frozen, slotted, hardly any behaviour of their own."""

from restow.model.assignment import ReplicaAssignment
from restow.model.broker import Broker
from restow.model.group import Member
from restow.model.ids import BrokerId, Rack, TopicPartition
from restow.model.plan import ANY_DIR, Limits, Move, Plan, Step, starting_hash
from restow.model.snapshot import Copy, LiveBroker, LogDir, Partition, Snapshot, Topic
from restow.model.verdict import Check, Outcome, Verdict

__all__ = [
    "ANY_DIR",
    "Broker",
    "BrokerId",
    "Check",
    "Copy",
    "Limits",
    "LiveBroker",
    "LogDir",
    "Member",
    "Move",
    "Outcome",
    "Partition",
    "Plan",
    "Rack",
    "ReplicaAssignment",
    "Snapshot",
    "Step",
    "Topic",
    "TopicPartition",
    "Verdict",
    "starting_hash",
]
