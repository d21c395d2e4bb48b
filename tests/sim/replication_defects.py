"""Deliberate defects of partitions, their ISR and their logs."""

from __future__ import annotations

from typing import Any

from restow.cluster.broker.controller_requests import ControllerRequests
from restow.cluster.log import log, segment
from restow.cluster.log.log import PartitionLog
from restow.cluster.log.producers import ProducerStates
from restow.cluster.replication import partition
from restow.cluster.replication.isr import StoreIsrWriter
from restow.cluster.replication.manager import ReplicaManager
from restow.cluster.replication.partition import HostedPartition, Role
from restow.cluster.replication.values import PartitionRefused
from restow.cluster.store.operations import ANY_VERSION
from restow.wire.error_codes import ErrorCode
from tests.sim.defects import Defects, Patch, wrap

REPLICATION = Defects()
CRASHES = ("kill", "stop", "controller-kill", "session-expiry", "halt")
CUTS = ("isolate", "isolate-in", "isolate-out", "store-cut", "halt", "session-expiry")
POWER = ("power-loss",)


@REPLICATION.add("The high watermark moves before the ISR has the records.", "orders-")
def high_watermark_too_early(patch: Patch) -> None:
    patch.setattr(partition, "smallest_end", lambda members, followers, leader_end: leader_end)


@REPLICATION.add("acks=all is answered before the ISR has the records.", "is in sync in epoch")
def acks_before_the_isr(patch: Patch) -> None:
    def wait_for_acks(self: Any, _: int, pending: Any) -> None:
        pending.settle(self.topic_partition, ErrorCode.NONE)

    patch.setattr(HostedPartition, "wait_for_acks", wait_for_acks)


@REPLICATION.add("Leaders ignore min.insync.replicas.", "min.insync.replicas", faults=CUTS, every_s=4.0)
def min_insync_replicas_ignored(patch: Patch) -> None:
    patch.setattr(HostedPartition, "_has_enough_replicas", lambda self: True)


@REPLICATION.add("A follower joins the ISR before it has caught up.", "is in sync in epoch")
def isr_grows_too_early(patch: Patch) -> None:
    patch.setattr(partition, "may_join", lambda progress, high_watermark, epoch_start: True)


@REPLICATION.add("A leader acts on its new ISR before the store has it.", "is in sync in epoch", faults=CUTS)
def isr_in_force_before_it_is_written(patch: Patch) -> None:
    def made(propose: Any) -> Any:
        def proposed(self: Any, isr: tuple[int, ...]) -> None:
            propose(self, isr)
            self.order = self.order._replace(isr=isr)
            self.proposed_isr = None
            self._advance()

        return proposed

    wrap(patch, HostedPartition, "_propose", made)


@REPLICATION.add("A leader writes its ISR without a check of the version.", "went back", faults=CUTS)
def isr_written_without_version_check(patch: Patch) -> None:
    def made(write: Any) -> Any:
        async def written(self: Any, name: Any, leader: int, epoch: int, isr: Any, _: int) -> Any:
            return await write(self, name, leader, epoch, isr, ANY_VERSION)

        return written

    wrap(patch, StoreIsrWriter, "write", made)


@REPLICATION.add("A new follower truncates to its high watermark.", "is in sync in epoch")
def truncation_by_high_watermark(patch: Patch) -> None:
    def made(follow: Any) -> Any:
        def followed(self: Any, order: Any) -> None:
            follow(self, order)
            self.log.truncate_to(self.log.high_watermark)

        return followed

    wrap(patch, HostedPartition, "follow", made)


@REPLICATION.add("A leader does not look for the offset at which a follower diverges.", "orders-")
def divergence_not_looked_for(patch: Patch) -> None:
    patch.setattr(partition, "divergence", lambda log, wanted: None)


@REPLICATION.add("A broker that leads no more goes on serving.", "orders-")
def old_leader_goes_on_serving(patch: Patch) -> None:
    def require_leader(self: Any, leader_epoch: int = -1) -> None:
        if self.role is Role.OFFLINE:
            raise PartitionRefused(ErrorCode.KAFKA_STORAGE_ERROR)

    patch.setattr(HostedPartition, "require_leader", require_leader)


@REPLICATION.add(
    "A broker obeys a LeaderAndIsr request of an old leader epoch, also one that newer ones have overtaken.",
    "the leader epoch went back",
    workloads=("reassign",),
    faults=("late-data", "kill"),
    every_s=4.0,
)
def old_leader_epoch_accepted(patch: Patch) -> None:
    def made(apply: Any) -> Any:
        def applied(self: Any, each: Any) -> Any:
            known = self._partitions.get(each.topic_partition)
            if known is not None and each.order.leader_epoch < known.leader_epoch:
                known.order = known.order._replace(leader_epoch=each.order.leader_epoch - 1)
            return apply(self, each)

        return applied

    wrap(patch, ReplicaManager, "_apply", made)
    overtaken_request_accepted(patch)


@REPLICATION.add(
    "A broker obeys a controller of an old epoch.",
    "although it has obeyed controller epoch",
    workloads=("reassign",),
    faults=("controller-deposed", "late-data"),
    every_s=4.0,
)
def old_controller_epoch_accepted(patch: Patch) -> None:
    def made(refusal_of: Any) -> Any:
        async def accepted(self: Any, *request: Any) -> ErrorCode:
            code: ErrorCode = await refusal_of(self, *request)
            return ErrorCode.NONE if code is ErrorCode.STALE_CONTROLLER_EPOCH else code

        return accepted

    wrap(patch, ControllerRequests, "refusal_of", made)


@REPLICATION.add(
    "A broker obeys requests that were meant for its life before a restart.",
    "since its restart",
    workloads=("reassign",),
    faults=("kill", "stop", "session-expiry", "store-slow"),
    every_s=4.0,
)
def old_broker_epoch_accepted(patch: Patch) -> None:
    def made(refusal_of: Any) -> Any:
        async def accepted(self: Any, *request: Any) -> ErrorCode:
            code: ErrorCode = await refusal_of(self, *request)
            return ErrorCode.NONE if code is ErrorCode.STALE_BROKER_EPOCH else code

        return accepted

    wrap(patch, ControllerRequests, "refusal_of", made)


@REPLICATION.add(
    "A broker obeys a request of the controller that newer ones have overtaken.",
    "tells the ",
    workloads=("reassign",),
    faults=("late-data",),
    every_s=4.0,
)
def overtaken_request_accepted(patch: Patch) -> None:
    def made(refusal_of: Any) -> Any:
        return lambda self, request, _: refusal_of(self, request)

    wrap(patch, ControllerRequests, "refusal_of", made)


@REPLICATION.add("A leader does not check the sequence of a producer.", "orders-")
def sequence_not_checked(patch: Patch) -> None:
    patch.setattr(ProducerStates, "repetition_of", lambda self, header: None)


@REPLICATION.add("A broker forgets the producers of a log when it starts.", "orders-", faults=CRASHES)
def producers_not_rebuilt(patch: Patch) -> None:
    patch.setattr(log, "load_producers", lambda *_: ProducerStates())


@REPLICATION.add("A log is recovered without a check of its CRCs.", "orders-", faults=POWER, every_s=15.0)
def recovery_without_crc(patch: Patch) -> None:
    patch.setattr(segment, "check", lambda batch: None)


@REPLICATION.add(
    "A checkpointed high watermark may be above the end of the log.",
    "is not within",
    faults=POWER,
    every_s=15.0,
)
def high_watermark_above_the_end(patch: Patch) -> None:
    def made(init: Any) -> Any:
        def initialised(self: Any, *it: Any, high_watermark: int = 0, **more: Any) -> None:
            init(self, *it, high_watermark=high_watermark, **more)
            self._high_watermark = max(self._high_watermark, high_watermark)

        return initialised

    wrap(patch, PartitionLog, "__init__", made)


@REPLICATION.add(
    "A follower takes over the leader's high watermark beyond its own end.",
    "is not within",
    workloads=("plans",),
    faults=("slow-link",),
    every_s=15.0,
)
def high_watermark_beyond_the_follower(patch: Patch) -> None:
    def follow_watermark(self: Any, leaders: int) -> None:
        self.log._high_watermark = max(self.log.high_watermark, leaders)

    patch.setattr(HostedPartition, "follow_watermark", follow_watermark)


@REPLICATION.add(
    "A broker does not delete the logs of replicas that are gone.", "stray", workloads=("topics",)
)
def deleted_replica_leaves_its_log(patch: Patch) -> None:
    def made(stop: Any) -> Any:
        return lambda self, each, known: stop(self, each._replace(delete=False), known)

    wrap(patch, ReplicaManager, "_stop", made)


@REPLICATION.add(
    "Consumers read records above the high watermark.", "readers-", workloads=("groups",), faults=CUTS
)
def consumers_read_uncommitted_records(patch: Patch) -> None:
    patch.setattr(HostedPartition, "readable_end", lambda self, replica_id, **_: self.log.end_offset)
