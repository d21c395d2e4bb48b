"""A cluster that exists only in numbers: a snapshot, what moves on it, and brokers that may die.

Reassignments take the time that the flow model says. Their ends, leaders and ISRs follow the controller's
rules: a step ends when all its replicas are in sync, and a leader that leaves hands over to the first of the
new replicas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from restow.execute.predict.by_events import LeaderChange
from restow.model import ReplicaAssignment, Step, TopicPartition
from restow.plan.flow.copies import CopyKey, Start
from restow.plan.schedule.log_dirs import LogDirSpace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.model import BrokerId, Partition, Snapshot
    from restow.plan.flow.movement import Movement


@dataclass(slots=True)
class _State:
    """A partition: its replicas, its leader, and where its replicas lie."""

    assignment: ReplicaAssignment
    leader: BrokerId | None
    in_sync: set[BrokerId]
    lies: dict[BrokerId, str]


class RehearsedCluster:
    """The partitions of a snapshot as they move."""

    def __init__(self, snapshot: Snapshot, movement: Movement, fill: float) -> None:
        self.snapshot, self.movement = snapshot, movement
        self.alive = {broker.id for broker in snapshot.brokers}
        self.states = {name: _state(each) for name, each in snapshot.all_partitions()}
        self.wanted_dirs: dict[tuple[TopicPartition, BrokerId], str] = {}
        self.leader_changes: list[LeaderChange] = []
        self.changed: set[str] = set()
        """Topics whose metadata has changed since somebody has cleared this."""
        self._space = LogDirSpace(snapshot, fill)
        self._steps: dict[TopicPartition, tuple[Step, dict[BrokerId, str]]] = {}
        self._ended_s = 0.0
        self.least_margin = self.margin
        """The margin after the last fault, or at the start."""
        self.moving = {name for name, state in self.states.items() if state.assignment.is_moving}
        """Partitions with a reassignment in progress."""
        self._stalled: dict[CopyKey, float] = {}
        """Bytes left of copies whose broker has died."""
        self._silent: set[BrokerId] = set()
        """Brokers that are dead, but still count as alive."""

    @property
    def quiet_since_s(self) -> float:
        """Return when a step began or ended for the last time."""
        return self._ended_s

    def catch_up(self, now_s: float) -> None:
        """Let everything happen that happens until now."""
        while self.movement.now_s < now_s:
            for start, _ in self.movement.advance(now_s):
                self._finish(start)

    def left(self) -> dict[CopyKey, float]:
        """Return the bytes left of all copies, also of those whose broker has died."""
        return {**self._stalled, **self.movement.left()}

    def reassign(self, name: TopicPartition, target: tuple[BrokerId, ...]) -> None:
        """Begin a reassignment, or replace the one in progress."""
        state = self.states[name]
        self._forget(name)
        state.assignment = state.assignment.reassign_to(target)
        origin = state.assignment.origin
        size = int(self.movement.size_of(name))
        step = Step(partition=name, before=origin, after=target, size_bytes=size)
        dirs = {broker: self.wanted_dirs.pop((name, broker), "") for broker in step.adding}
        wanted = tuple(dirs.get(broker) or "any" for broker in target) if any(dirs.values()) else ()
        placed = Step(partition=name, before=origin, after=target, size_bytes=size, log_dirs=wanted)
        arrivals = self._space.begin(placed)
        self._steps[name] = placed, arrivals
        self._ended_s = self.movement.now_s
        self.changed.add(name.topic)
        if state.assignment.is_moving:
            self.moving.add(name)
        else:
            state.assignment = ReplicaAssignment(target)
        into = {broker: path for broker, path in arrivals.items() if broker in step.adding}
        self.movement.begin([Start(step, state.leader, into)])

    def cancel(self, name: TopicPartition) -> None:
        """Cancel a reassignment: the new replicas are gone."""
        state = self.states[name]
        self._forget(name)
        state.assignment = ReplicaAssignment(state.assignment.origin)
        state.in_sync &= set(state.assignment.replicas)
        self.moving.discard(name)
        self.changed.add(name.topic)

    def _forget(self, name: TopicPartition) -> None:
        for key in self.movement.copying(name):
            self._stalled.pop(key, None)
        self.movement.cancel(name)
        if name in self._steps:
            self._space.give_back(*self._steps.pop(name))

    def move_dir(self, name: TopicPartition, broker: BrokerId, path: str) -> bool:
        """Begin a copy to another log dir; return whether the broker has the replica."""
        state = self.states[name]
        if broker not in state.lies and broker not in state.assignment.origin:
            self.wanted_dirs[name, broker] = path
            return False
        if state.lies.get(broker) != path and self.future_dir(name, broker) is None:
            replicas = state.assignment.replicas
            size = int(self.movement.size_of(name))
            step = Step(partition=name, before=replicas, after=replicas, size_bytes=size)
            self.movement.begin([Start(step, broker, {broker: path}, only_within=True)])
            self.wanted_dirs[name, broker] = path
            self._ended_s = self.movement.now_s
        return True

    def future_dir(self, name: TopicPartition, broker: BrokerId) -> str | None:
        """Return the log dir that a replica is copied into on its own broker, if it is."""
        here = broker in self.states[name].lies
        return self.wanted_dirs.get((name, broker)) if here else None

    def _finish(self, start: Start) -> None:
        step, now_s = start.step, self.movement.now_s
        name, state = step.partition, self.states[step.partition]
        self._ended_s = now_s
        self.changed.add(name.topic)
        if start.only_within:
            for broker, path in start.arrivals.items():
                state.lies[broker] = path
                self.wanted_dirs.pop((name, broker), None)
            return
        placed = self._steps.pop(name, None)
        if placed is not None:
            self._space.finish(*placed)
        state.lies.update(start.arrivals)
        for broker in step.removing:
            state.lies.pop(broker, None)
        state.assignment = ReplicaAssignment(step.after)
        self.moving.discard(name)
        state.in_sync = {broker for broker in step.after if broker in self.alive}
        if state.leader not in step.after:
            self._lead(name, next((b for b in step.after if b in state.in_sync), None))

    def elect(self, name: TopicPartition) -> bool:
        """Make the first replica the leader, if it is in sync."""
        state = self.states[name]
        first = state.assignment.replicas[0]
        if first not in state.in_sync:
            return False
        self._lead(name, first)
        return True

    def _lead(self, name: TopicPartition, broker: BrokerId | None) -> None:
        state = self.states[name]
        if state.leader != broker:
            self.leader_changes.append(LeaderChange(self.movement.now_s, name, state.leader, broker))
            state.leader = broker
            self.changed.add(name.topic)

    @property
    def margin(self) -> int | None:
        """Return the least number of in-sync replicas beyond `min.insync.replicas` now."""
        least = {topic.name: topic.min_insync_replicas for topic in self.snapshot.topics}
        return min((len(s.in_sync) - least[name.topic] for name, s in self.states.items()), default=None)

    def die(self, broker: BrokerId, detect_s: float) -> None:
        """Kill a broker: copies to and from it stop, until the controller notices."""
        left = self.left()
        for name, state in self.states.items():
            for key in self.movement.copying(name):
                if broker in (state.leader, key.broker):
                    self._stall(key, left.get(key, self.movement.size_of(name)))
        self._silent.add(broker)
        self.movement.at(self.movement.now_s + detect_s, lambda: self._notice(broker))

    def _stall(self, key: CopyKey, bytes_left: float) -> None:
        self._stalled.setdefault(key, bytes_left)
        self.movement.redirect(key, None, bytes_left, stops=True)

    def _notice(self, broker: BrokerId) -> None:
        """Let others lead what a dead broker led, unless it has come back."""
        if broker not in self._silent:
            return
        self._silent.discard(broker)
        self.alive.discard(broker)
        left = self.left()
        for name, state in self.states.items():
            if broker not in state.assignment.replicas:
                continue
            was_leader = state.leader == broker
            self.changed.add(name.topic)
            state.in_sync.discard(broker)
            if was_leader:
                new = next((b for b in state.assignment.replicas if b in state.in_sync), None)
                self._lead(name, new)
            self._redirect(name, state, left)
        self.least_margin = self.margin

    def come_back(self, broker: BrokerId) -> None:
        """Start a broker again: it is in sync at once, because it was away for a short time."""
        self._silent.discard(broker)
        self.alive.add(broker)
        left = self.left()
        for name, state in self.states.items():
            if broker in state.assignment.replicas:
                self.changed.add(name.topic)
                if CopyKey(name, broker) not in {*self._stalled, *self.movement.copying(name)}:
                    state.in_sync.add(broker)
                if state.leader is None and broker in state.in_sync:
                    self._lead(name, broker)
                self._redirect(name, state, left)

    def _redirect(self, name: TopicPartition, state: _State, left: Mapping[CopyKey, float]) -> None:
        """Let a partition's copies go on from its present leader; those to dead brokers wait."""
        for key in self.movement.copying(name):
            goes_on = key.broker in self.alive and state.leader is not None
            bytes_left = self._stalled.pop(key, left.get(key, self.movement.size_of(name)))
            if goes_on:
                self.movement.redirect(key, state.leader, bytes_left, stops=False)
            else:
                self._stall(key, bytes_left)

    def partitions_of(self, topic: str, numbers: Iterable[int]) -> list[_State]:
        """Return the states of a topic's partitions."""
        return [self.states[TopicPartition(topic, number)] for number in numbers]


def _state(partition: Partition) -> _State:
    return _State(
        assignment=ReplicaAssignment(partition.replicas, partition.adding, partition.removing),
        leader=partition.leader,
        in_sync=set(partition.isr),
        lies=dict(partition.log_dirs),
    )
