"""Deliberate defects of the controller: elections, reassignments, deletions and failover."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from restow.cluster.broker.broker import BrokerServer
from restow.cluster.controller import controller, elections
from restow.cluster.controller.context import Replica
from restow.cluster.controller.deletion import Deletion
from restow.cluster.controller.guarded import GuardedStore
from restow.cluster.controller.partition_states import PartitionStates
from restow.cluster.controller.reassignment import steps
from restow.cluster.controller.reassignment.reassignment import Reassignment
from restow.cluster.controller.reassignment.steps import Steps
from restow.cluster.controller.state_nodes import StateNodes
from restow.cluster.controller.states import ReplicaState
from restow.cluster.handlers import k06_update_metadata
from restow.cluster.store.operations import ANY_VERSION, Create
from tests.sim.defects import Defects, Patch, wrap

CONTROLLER = Defects()
FAILOVERS = ("kill", "controller-kill", "controller-kill-at-write", "session-expiry", "stop")
CUTS = ("isolate", "isolate-in", "isolate-out", "store-cut", "halt", "session-expiry")


async def _nothing(*_: Any) -> None:
    """Do nothing instead."""


@CONTROLLER.add("An election does not raise the leader epoch.", "is not leader on broker")
def epoch_not_raised(patch: Patch) -> None:
    def made(update: Any) -> Any:
        async def updated(self: Any, changes: Any) -> Any:
            return await update(
                self,
                {
                    name: (before._replace(leader_epoch=before.leader_epoch - 1), choice)
                    for name, (before, choice) in changes.items()
                },
            )

        return updated

    wrap(patch, StateNodes, "update", made)


@CONTROLLER.add(
    "A replica outside the ISR is elected although unclean elections are off.",
    "orders-",
    faults=("kill", "halt", "store-cut"),
    every_s=3.0,
)
def unclean_leader_elected(patch: Patch) -> None:
    async def all_topics(_: Any, found: Any, __: Any) -> set[str]:
        return {each.topic for each in found}

    patch.setattr(PartitionStates, "_unclean_topics", all_topics)


@CONTROLLER.add(
    "The preferred replica is elected even if it is not in the ISR.",
    "is not in",
    workloads=("elections",),
)
def preferred_replica_elected_out_of_sync(patch: Patch) -> None:
    def for_preferred(replicas: Any, isr: Any, live: Any) -> Any:
        return elections.Choice(replicas[0], isr) if replicas[0] in live else None

    patch.setattr(elections, "for_preferred", for_preferred)


@CONTROLLER.add(
    "A reassignment ends before all target replicas are in the ISR.",
    "is still at work",
    workloads=("reassign",),
)
def reassignment_ends_too_early(patch: Patch) -> None:
    patch.setattr(steps, "is_complete", lambda context, partition: True)
    patch.setattr(Steps, "_is_safe", lambda self, partition, before: True)


@CONTROLLER.add(
    "B4 comes before B3: replicas are stopped while one of them leads.",
    "lost its leader",
    workloads=("reassign",),
)
def b3_and_b4_swapped(patch: Patch) -> None:
    def made(lead_from_target: Any) -> Any:
        async def swapped(self: Any, before: Any) -> None:
            removed = [Replica(each, broker) for each in before for broker in before[each].removing]
            await self._replicas.move(removed, ReplicaState.OFFLINE)
            await lead_from_target(self, before)

        return swapped

    wrap(patch, Steps, "_lead_from_target", made)


@CONTROLLER.add(
    "Brokers do not look for removed replicas of which a dead controller has not told them.",
    "stray log",
    workloads=("reassign",),
    faults=("controller-kill-at-write",),
    every_s=4.0,
)
def strays_not_looked_for(patch: Patch) -> None:
    """Take away what makes B5 and B6 safe in any order: a controller may die right after either."""
    patch.setattr(k06_update_metadata, "stop_strays", _nothing)


@CONTROLLER.add("B5 is left out: removed replicas stay where they are.", "stray log", workloads=("reassign",))
def b5_left_out(patch: Patch) -> None:
    patch.setattr(Steps, "_delete", _nothing)


@CONTROLLER.add(
    "A cancelled reassignment leaves the added replicas behind.", "not assigned", workloads=("reassign",)
)
def cancelled_reassignment_keeps_replicas(patch: Patch) -> None:
    patch.setattr(Steps, "_remove", _nothing)


@CONTROLLER.add(
    "A cancelled reassignment does not take the leadership from the replicas that it had added.",
    "lost its leader",
    workloads=("reassign", "elections"),
)
def cancelled_reassignment_keeps_the_isr(patch: Patch) -> None:
    patch.setattr(Steps, "disown", _nothing)


@CONTROLLER.add(
    "A new controller does not take up reassignments.", "still being reassigned", workloads=("reassign",)
)
def reassignments_forgotten_at_failover(patch: Patch) -> None:
    patch.setattr(Reassignment, "start", _nothing)


@CONTROLLER.add(
    "A new controller does not take up deletions.",
    "topics is still at work",
    workloads=("topics",),
    faults=FAILOVERS,
    every_s=4.0,
)
def deletions_forgotten_at_failover(patch: Patch) -> None:
    patch.setattr(Deletion, "start", _nothing)


@CONTROLLER.add(
    "A broker that is elected again goes on with what it knew in its earlier term.",
    "was to have the replicas",
    workloads=("topics", "reassign"),
    faults=(*FAILOVERS, "controller-deposed"),
    every_s=4.0,
)
def store_not_read_again_at_failover(patch: Patch) -> None:
    known: dict[tuple[object, int], Any] = {}

    def made(context: Any) -> Any:
        def remembered(broker: int, epoch: int) -> Any:
            found = known.setdefault((asyncio.get_running_loop(), broker), context(broker, epoch))
            found.epoch = epoch
            return found

        return remembered

    wrap(patch, controller, "ControllerContext", made)


@CONTROLLER.add(
    "A deposed controller goes on writing to the store, whatever others have written since.",
    "still being reassigned",
    workloads=("topics", "reassign"),
    faults=("controller-deposed", "store-slow"),
    every_s=4.0,
)
def deposed_controller_writes(patch: Patch) -> None:
    def unchecked(operations: Any) -> Any:
        return [
            each if isinstance(each, Create) else replace(each, version=ANY_VERSION) for each in operations
        ]

    async def multi(self: Any, operations: Any) -> Any:
        return await self._store.multi(unchecked(operations))

    async def multi_each(self: Any, transactions: Any) -> Any:
        return await self._store.multi_each([unchecked(each) for each in transactions])

    patch.setattr(GuardedStore, "multi", multi)
    patch.setattr(GuardedStore, "multi_each", multi_each)


@CONTROLLER.add(
    "A broker goes on after its session has expired.", "is still at work", faults=("session-expiry",)
)
def session_expiry_ignored(patch: Patch) -> None:
    patch.setattr(BrokerServer, "_session_expired", lambda self, life: None)
