"""The controller: who leads which partition, and who must hear of it.

controller.py        Controller: election through the store, requests, resignation
term.py              one time in office; begins with everything that is in the store
events.py            one queue, one worker
listeners.py         the nodes that are watched
context.py           what the controller knows
states.py            both tables of states
partition_states.py  partitions through theirs, with `elections.py`, which is pure
replica_states.py    replicas through theirs
creation.py, deletion.py, brokers.py, isr.py, leaders.py, shutdown.py    what an event leads to
reassignment/        moves: reassignment.py says what makes them begin and go on, rules.py which may begin,
                     steps.py has the steps, nodes.py writes, watch.py knows whose ISRs matter
state_nodes.py, guarded.py    writing, as long as nobody was elected later
batch.py, outbox.py           telling brokers
topics.py                     create_topic, expand_topic, delete_topic for those who serve clients
steps.py                      where tests may stop a controller
"""

from restow.cluster.controller.config import ControllerConfig
from restow.cluster.controller.controller import Controller
from restow.cluster.controller.elections import Election
from restow.cluster.controller.errors import (
    ControllerError,
    DeletionPending,
    InvalidAssignment,
    InvalidPartitionCount,
    InvalidTopic,
    MoveInProgress,
    NotController,
    StaleBrokerEpoch,
    TopicError,
    TopicExists,
    UnknownBroker,
    UnknownTopic,
)
from restow.cluster.controller.outbox import BrokerChannel
from restow.cluster.controller.reassignment.rules import ReassignmentTarget, Refusal
from restow.cluster.controller.steps import ControllerStep
from restow.cluster.controller.topics import create_topic, delete_topic, expand_topic, random_topic_id

__all__ = [
    "BrokerChannel",
    "Controller",
    "ControllerConfig",
    "ControllerError",
    "ControllerStep",
    "DeletionPending",
    "Election",
    "InvalidAssignment",
    "InvalidPartitionCount",
    "InvalidTopic",
    "MoveInProgress",
    "NotController",
    "ReassignmentTarget",
    "Refusal",
    "StaleBrokerEpoch",
    "TopicError",
    "TopicExists",
    "UnknownBroker",
    "UnknownTopic",
    "create_topic",
    "delete_topic",
    "expand_topic",
    "random_topic_id",
]
