"""The controller: it elects partition leaders, moves replicas and sends the result to the brokers.

controller.py        Controller: election through the store, requests, resignation
term.py              one controller's term; starts by reading the whole store
events.py            one queue, one worker
listeners.py         the znodes that the controller watches
context.py           what the controller knows
states.py            the state tables of replicas and partitions
partition_states.py  moves partitions between states; `elections.py` chooses leaders without I/O
replica_states.py    moves replicas between states
creation.py, deletion.py, brokers.py, notifications.py, leaders.py, shutdown.py, isr_changes.py    handlers
                     of events
reassignment/        reassignments: reassignment.py has the triggers, rules.py the checks,
                     steps.py the steps, nodes.py the writes, watch.py the ISRs to watch
features.py          the cluster's features, which Apache brokers expect
state_nodes.py, guarded.py    conditional writes: they fail once a later controller is elected
batch.py, outbox.py           requests to brokers
topics.py                     create_topic, create_partitions, delete_topic for the request handlers
steps.py                      the points at which tests may stop a controller
"""

from restow.cluster.controller.context import Leadership
from restow.cluster.controller.controller import Controller
from restow.cluster.controller.elections import Election
from restow.cluster.controller.errors import ControllerError, NotController
from restow.cluster.controller.isr_changes import IsrChange, IsrChangeKey
from restow.cluster.controller.outbox import BrokerChannel
from restow.cluster.controller.reassignment.rules import ReassignmentTarget, Refusal
from restow.cluster.controller.steps import ControllerStep
from restow.cluster.controller.tools import ControllerConfig
from restow.cluster.controller.topics import (
    assigned_replicas,
    create_partitions,
    create_topic,
    delete_topic,
    random_topic_id,
)

__all__ = [
    "BrokerChannel",
    "Controller",
    "ControllerConfig",
    "ControllerError",
    "ControllerStep",
    "Election",
    "IsrChange",
    "IsrChangeKey",
    "Leadership",
    "NotController",
    "ReassignmentTarget",
    "Refusal",
    "assigned_replicas",
    "create_partitions",
    "create_topic",
    "delete_topic",
    "random_topic_id",
]
