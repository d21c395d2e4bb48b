"""The reassignments that a run has in progress. A submitted step is one of these:

moving      the controller lists it, with our target
arrived     it has the target replicas, in order and in their log dirs
refused     it was never listed and is where it was: the request did not get through
taken       another tool has cancelled or redirected it, or its topic is gone
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from restow.client import BrokerError, TopicPartitionReplica
from restow.execute.progress.observation import PATIENCE_S
from restow.model import ANY_DIR, ReplicaAssignment
from restow.plan.files.text import step_document
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from restow.client import Admin, PartitionReassignment
    from restow.execute.journal.ledger import RunJournal
    from restow.model import BrokerId, Copy, Partition, Step, TopicPartition


_GRACE_S = 10.0
"""How long a broker's metadata may lag behind the controller."""


class StepState(Enum):
    MOVING = "moving"
    ARRIVED = "arrived"
    REFUSED = "refused"
    TAKEN = "taken"


@dataclass(slots=True, kw_only=True)
class SubmittedStep:
    """A step that was submitted. `dirs` are the requested log dirs that are not reached yet."""

    step: Step
    seen: bool = False
    """Whether the controller has ever listed it."""
    odd_since_s: float | None = None
    """Since when the controller does not list it, while brokers do not show it as arrived."""
    dirs: dict[TopicPartitionReplica, str] = field(default_factory=dict)
    accepted: set[TopicPartitionReplica] = field(default_factory=set)

    def judge(
        self, move: PartitionReassignment | None, now: Partition | None, at_s: float
    ) -> tuple[StepState, str]:
        """Return the step's state; `now` matters only if the controller does not list a move."""
        step = self.step
        if move is not None:
            self.seen, self.odd_since_s = True, None
            target = ReplicaAssignment(move.replicas, move.adding, move.removing).target
            if target == step.after:
                return StepState.MOVING, ""
            return StepState.TAKEN, f"somebody else is moving it to {list(target)}"
        if now is not None and now.replicas == step.after:
            self.odd_since_s = None
            return (StepState.MOVING, "") if self.dirs else (StepState.ARRIVED, "")
        if self.odd_since_s is None:
            self.odd_since_s = at_s
        if at_s - self.odd_since_s < _GRACE_S:
            return StepState.MOVING, ""
        if now is None:
            return StepState.TAKEN, "its topic is gone"
        if not self.seen and set(now.replicas) == set(step.before):
            return StepState.REFUSED, "the cluster knows nothing of it"
        return StepState.TAKEN, f"somebody else has cancelled it; it has the replicas {list(now.replicas)}"


def target_log_dirs(step: Step, copies: Mapping[BrokerId, Copy]) -> dict[TopicPartitionReplica, str]:
    """Return the log dirs to request; `copies` are the step's replicas on disk."""
    lies = {broker: copy.log_dir for broker, copy in copies.items() if not copy.future}
    return {
        TopicPartitionReplica(step.partition, broker): path
        for broker, path in zip(step.after, step.log_dirs, strict=False)
        if path != ANY_DIR and lies.get(broker) != path
    }


class ReassignmentsInProgress:
    """The reassignments that a run has submitted and not yet seen to end.

    The journal is their only record: an entry begins each of them, and another entry ends it. What the run
    has seen of them in between is here.
    """

    def __init__(self, book: RunJournal) -> None:
        self._run_journal = book
        self._submitted: dict[TopicPartition, SubmittedStep] = {}

    def __len__(self) -> int:
        return len(self._run_journal.ledger.in_progress)

    def __iter__(self) -> Iterator[SubmittedStep]:
        return iter([self._submitted[name] for name in self._run_journal.ledger.in_progress])

    @property
    def steps(self) -> list[Step]:
        return [each.step for each in self]

    @property
    def partitions(self) -> Iterable[TopicPartition]:
        return self._run_journal.ledger.in_progress

    def begin(self, submitted: Iterable[SubmittedStep]) -> None:
        """Add steps, before they are submitted; those that the journal has already are not written again."""
        begun = {each.step.partition: each for each in submitted}
        self._submitted.update(begun)
        new = [each.step for name, each in begun.items() if name not in self.partitions]
        if new:
            self._run_journal.write("submit", steps=[step_document(step) for step in new])


async def fulfil_dirs(
    admin: Admin, submitted: Iterable[SubmittedStep]
) -> dict[TopicPartitionReplica, BrokerError]:
    """Request log dirs again that were not accepted, and detect arrivals; return the refusals.

    A broker without the replica remembers the request, but answers that it has none.
    """
    waiting = [each for each in submitted if each.dirs]
    if not waiting:
        return {}
    asked = {
        which: path for each in waiting for which, path in each.dirs.items() if which not in each.accepted
    }
    answers = await admin.alter_replica_log_dirs(asked) if asked else {}
    brokers = {which.broker for each in waiting for which in each.dirs}
    disks = await admin.describe_log_dirs(sorted(brokers), PATIENCE_S)
    there = {
        (TopicPartitionReplica(replica.partition, broker), replica.log_dir)
        for broker, told in disks.items()
        if not isinstance(told, BrokerError)
        for replica in told.replicas
        if not replica.future
    }
    refused: dict[TopicPartitionReplica, BrokerError] = {}
    for each in waiting:
        for which, path in tuple(each.dirs.items()):
            error = answers.get(which)
            if which in asked and error is None:
                each.accepted.add(which)
            if (which, path) in there:
                del each.dirs[which]
            elif error is not None and error.code not in _NOT_YET:
                refused[which] = error
                del each.dirs[which]
    return refused


_NOT_YET = (
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
