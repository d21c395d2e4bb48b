"""The promises of a run: its limits at every moment, and what it leaves behind at its end."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING
from uuid import UUID

from restow.execute.throttle.throttles import RATES, REPLICAS
from restow.model import TopicPartition
from restow.sim.states import state_of
from restow.sim.truth import StoredTruth
from restow.wire.messages import AlterPartitionReassignmentsRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from restow.cluster.store.znodes import TopicZNode
    from restow.execute.journal.ledger import RunLedger
    from restow.execute.journal.runs import Run
    from restow.model import Limits, Move, Plan, ReplicaAssignment
    from restow.sim.cluster import SimCluster
    from restow.wire.messages import Message

MIN_INSYNC_REPLICAS = 2
"""As the brokers of simulated runs have it."""
Throttles = dict[tuple[str, str], dict[str, str]]
"""The throttle configs of topics and brokers, where any are set."""


def throttles_of(truth: StoredTruth) -> Throttles:
    """Return the throttle configs that are set now, without topics whose configs go with them."""
    found, deleting = {}, [("topic", name) for name in truth.deleting()]
    for owner, values in truth.configs().items():
        if owner in deleting:
            continue
        if ours := {key: values[key] for key in (*RATES, *REPLICAS) if key in values}:
            found[owner] = ours
    return found


class RunLimits:
    """The limits of the run in progress."""

    def __init__(self, cluster: SimCluster) -> None:
        self._nodes, self._tree = cluster.nodes, cluster.store.tree
        self._truth = StoredTruth(self._tree)
        self._moves: Mapping[TopicPartition, Move] = {}
        self._limits: Limits | None = None
        self._looked_zxid = -1
        """The last transaction of the store at the last look."""
        self._excused: set[TopicPartition] = set()
        """Partitions whose moves were blocked: others took their places, and they may go on all the same."""
        self._leaders: dict[TopicPartition, int] = {}
        """The leaders when the run began, of partitions that have kept them, as far as brokers knew of them.

        A run counts for the leaders that it was last told of, so another one may send more for a while.
        """

    def begin(self, plan: Plan) -> None:
        """Check the limits of this plan from now on. A resumed run may have more moves under way already."""
        self._moves = {move.partition: move for move in plan.moves}
        self._limits, self._excused, self._looked_zxid = plan.limits, set(), -1
        assignments = self._truth.assignments()
        at_rest = [name for name in self._moves if name in assignments and not assignments[name].is_moving]
        self._leaders = {
            name: leader
            for name in at_rest
            if (leader := self._leader(name)) is not None and self._tell(name) <= {leader}
        }
        found = Counter(
            each for name in self._moves if name in assignments for each in assignments[name].adding
        )
        self.allow(max(found.values(), default=0), None)

    def allow(self, moves_in: int | None, moves_out: int | None) -> None:
        """Raise the limits, because the run was asked to. What began under higher limits may end."""
        if self._limits is not None:
            self._limits = replace(
                self._limits,
                moves_in=max(self._limits.moves_in, moves_in or 0),
                moves_out=max(self._limits.moves_out, moves_out or 0),
            )

    def excuse(self, partition: TopicPartition) -> None:
        """Count this partition no longer: the run has said that its move is blocked."""
        self._excused.add(partition)

    def check(self) -> Iterator[str]:
        """Yield every limit that is exceeded now."""
        limits = self._limits
        if limits is None or self._looked_zxid == self._tree.zxid:
            return  # limits are only ever raised, so what held still holds
        self._looked_zxid = self._tree.zxid
        self._leaders = {
            name: leader for name, leader in self._leaders.items() if leader == self._leader(name)
        }
        into: Counter[int] = Counter()
        out_of: Counter[int] = Counter()
        assignments = self._truth.assignments()
        for name, move in self._moves.items():
            assignment = assignments.get(name)
            if assignment is None or not assignment.is_moving:
                continue
            yield from _check_sizes(move, assignment, limits.extra_copies)
            if name in self._excused:
                continue
            into.update(assignment.adding)
            if assignment.adding and (leader := self._leaders.get(name)) is not None:
                out_of[leader] += 1
        for what, counts, most in (("receives", into, limits.moves_in), ("sends", out_of, limits.moves_out)):
            for broker, count in sorted(counts.items()):
                if count > most:
                    yield f"broker {broker} {what} {count} replicas, more than {most}"

    def _tell(self, partition: TopicPartition) -> set[int]:
        """Return the leaders that running brokers tell."""
        running = (node.broker.services.metadata for node in self._nodes.values() if node.broker.is_running)
        return {told.leader_id for each in running if (told := each.partition(partition)) is not None}

    def _leader(self, partition: TopicPartition) -> int | None:
        state = state_of(self._tree, partition)
        return None if state is None else state.leader


def _check_sizes(move: Move, assignment: ReplicaAssignment, extra_copies: int) -> Iterator[str]:
    name, most = move.partition, max(len(move.before), len(move.after)) + extra_copies
    if len(assignment.replicas) > most:
        yield f"{name} has {len(assignment.replicas)} replicas while it moves, more than {most}"
    if len(assignment.target) < min(MIN_INSYNC_REPLICAS, len(move.before)):
        yield f"{name} moves to {assignment.target}, fewer than min.insync.replicas"


class RunRequests:
    """The reassignments that one process of the tool has requested.

    Each must be in the journal of its run before it is sent. A process that resumes a run must not request
    what its predecessor has requested and the cluster is still doing. It may repeat a request of its own,
    whose response may be lost.
    """

    def __init__(self, truth: StoredTruth, journal: Callable[[], Run | None]) -> None:
        """`journal` returns the run that is not settled."""
        self._truth, self._journal = truth, journal
        self._own: set[tuple[TopicPartition, tuple[int, ...]]] = set()
        self.broken: list[str] = []

    def sent(self, request: Message) -> None:
        """Look at a request that is being sent."""
        if request.API_KEY != AlterPartitionReassignmentsRequest.API_KEY:
            return
        assignments = self._truth.assignments()
        for topic in request.topics:
            for each in topic.partitions:
                name, target = TopicPartition(topic.name, each.partition_index), tuple(each.replicas or ())
                now = assignments.get(name)
                if (name, target) in self._own or now is None:
                    continue
                self._own.add((name, target))
                if target:
                    self._check_journal(name, target)
                if now.is_moving and now.target == target:
                    self.broken.append(f"a resumed run submits {name} again, which moves to {target} already")

    def _check_journal(self, name: TopicPartition, target: tuple[int, ...]) -> None:
        run = self._journal()
        step = None if run is None else run.ledger.in_progress.get(name)
        if step is None or step.after != target:
            self.broken.append(f"the move of {name} to {target} is sent before it is in the journal")


def check_newest_first(plan: Plan, undone: RunLedger) -> Iterator[str]:
    """Yield whether an undo begins with an older change than the last one."""
    arrived = {step.partition: at for at, step in enumerate(undone.finished)}
    order = [arrived[move.partition] for move in plan.moves if move.partition in arrived]
    if any(earlier < later for earlier, later in pairwise(order)):
        yield f"an undo takes back changes in the order {order} of their arrival, not the newest first"


def _is_same(name: str, topic: TopicZNode, ledger: RunLedger) -> bool:
    """Return whether this is still the topic that the run has moved. A journal has ids as UUIDs."""
    stored = None if topic.topic_id is None else str(UUID(bytes=urlsafe_b64decode(f"{topic.topic_id}==")))
    return stored == ledger.topic_ids.get(name)


def check_end(
    truth: StoredTruth, ledger: RunLedger, moved_since: Collection[TopicPartition]
) -> Iterator[str]:
    """Yield what a settled run has left in another state than its journal says.

    Other runs have `moved_since` some partitions, before this one was resumed. Of topics that are being
    deleted no broker tells, so a run cannot know what has become of its moves.
    """
    topics, assignments, deleting = truth.topics(), truth.assignments(), truth.deleting()
    reached = {step.partition: step.after for step in ledger.finished}
    for move in ledger.plan.moves:
        name, now = move.partition, assignments.get(move.partition)
        if now is None or name.topic in deleting or name in ledger.dropped:
            continue
        if not _is_same(name.topic, topics[name.topic], ledger):
            continue
        if now.is_moving:
            yield f"{name} is still being moved after the end of its run: {now}"
            continue
        if name in ledger.found or (ledger.outcome != "done" and name in moved_since):
            continue
        expected = move.after if ledger.outcome == "done" else reached.get(name, move.before)
        if now.replicas != expected:
            yield f"{name} has the replicas {now.replicas} after its run ({ledger.outcome}), not {expected}"


def check_undone(truth: StoredTruth, undo: RunLedger, undone: RunLedger, *, whole: bool) -> Iterator[str]:
    """Yield the partitions that an undo has not brought back to exactly their replicas.

    An undo that is not `whole` was to bring back what is possible, so only its own moves count.
    """
    topics, assignments = truth.topics(), truth.assignments()
    names = undone.submitted - undone.found
    if not whole:
        names &= {move.partition for move in undo.plan.moves}
    for move in undone.plan.moves:
        name, now = move.partition, assignments.get(move.partition)
        if name not in names or now is None:
            continue
        if _is_same(name.topic, topics[name.topic], undone) and now.replicas != move.before:
            yield f"{name} has the replicas {now.replicas} after an undo, not {move.before}"
