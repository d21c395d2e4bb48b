"""The promises of a run: its limits at every moment, and what it leaves behind at its end."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from restow.execute.throttle.throttles import RATES, REPLICAS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from restow.execute.journal.ledger import RunLedger
    from restow.model import Limits, Move, Plan, TopicPartition
    from restow.sim.truth import StoredTruth

Throttles = dict[tuple[str, str], dict[str, str]]
"""The throttle configs of topics and brokers, where any are set."""


def throttles_of(truth: StoredTruth) -> Throttles:
    """Return the throttle configs that are set now."""
    found = {}
    for owner, values in truth.configs().items():
        if ours := {key: values[key] for key in (*RATES, *REPLICAS) if key in values}:
            found[owner] = ours
    return found


class RunLimits:
    """The limits of the run in progress."""

    def __init__(self, truth: StoredTruth) -> None:
        self._truth = truth
        self._moves: Mapping[TopicPartition, Move] = {}
        self._limits: Limits | None = None

    def begin(self, plan: Plan) -> None:
        """Check the limits of this plan from now on."""
        self._moves = {move.partition: move for move in plan.moves}
        self._limits = plan.limits

    def allow(self, moves_in: int | None, moves_out: int | None) -> None:
        """Raise the limits, because the run was asked to. What began under higher limits may end."""
        if self._limits is not None:
            self._limits = replace(
                self._limits,
                moves_in=max(self._limits.moves_in, moves_in or 0),
                moves_out=max(self._limits.moves_out, moves_out or 0),
            )

    def check(self) -> Iterator[str]:
        """Yield every limit that is exceeded now."""
        limits = self._limits
        if limits is None:
            return
        into: Counter[int] = Counter()
        assignments = self._truth.assignments()
        for name, move in self._moves.items():
            assignment = assignments.get(name)
            if assignment is None or not assignment.is_moving:
                continue
            most = max(len(move.before), len(move.after)) + limits.extra_copies
            if len(assignment.replicas) > most:
                yield f"{name} has {len(assignment.replicas)} replicas while it moves, more than {most}"
            into.update(assignment.adding)
        for broker, count in sorted(into.items()):
            if count > limits.moves_in:
                yield f"broker {broker} receives {count} replicas, more than {limits.moves_in}"


def check_end(truth: StoredTruth, ledger: RunLedger) -> Iterator[str]:
    """Yield what a settled run has left in another state than its journal says."""
    topics, assignments = truth.topics(), truth.assignments()
    reached: dict[TopicPartition, tuple[int, ...]] = {}
    for step in ledger.finished:
        reached[step.partition] = step.after
    for move in ledger.plan.moves:
        name, now = move.partition, assignments.get(move.partition)
        known = ledger.topic_ids.get(name.topic)
        if now is None or topics[name.topic].topic_id != known or name in ledger.dropped:
            continue
        if now.is_moving:
            yield f"{name} is still being moved after the end of its run: {now}"
            continue
        expected = move.after if ledger.outcome == "done" else reached.get(name, move.before)
        if name in ledger.found or now.replicas == expected:
            continue
        yield f"{name} has the replicas {now.replicas} after its run ({ledger.outcome}), not {expected}"


def check_undone(truth: StoredTruth, undone: RunLedger) -> Iterator[str]:
    """Yield the partitions that an undo has not brought back to exactly their replicas."""
    topics, assignments = truth.topics(), truth.assignments()
    for move in undone.plan.moves:
        name, now = move.partition, assignments.get(move.partition)
        if name not in undone.submitted - undone.found or now is None:
            continue
        if topics[name.topic].topic_id == undone.topic_ids.get(name.topic) and now.replicas != move.before:
            yield f"{name} has the replicas {now.replicas} after an undo, not {move.before}"
