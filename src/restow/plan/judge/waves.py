"""Judge the waves of a plan: is a rule broken midway, with all steps of a wave under way at once?

It shares no code with the planner. A copy counts from the start of its wave; the replica that it replaces is
freed at the end of the wave.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from restow.errors import RestowError
from restow.model import ANY_DIR, Snapshot
from restow.plan.judge.evaluate import PlanViolation
from restow.sizes import some

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from restow.model import BrokerId, Plan, Step, TopicPartition

    Place = tuple[BrokerId, str]


class _LogDirs:
    """Bytes and replicas by log dir, counted up and down."""

    def __init__(self, snapshot: Snapshot, moved: Collection[TopicPartition]) -> None:
        self.open: dict[BrokerId, list[Place]] = {}
        """The working log dirs of each broker that a new replica may go to."""
        self.used: Counter[Place] = Counter()
        self.total: dict[Place, int] = {}
        self.count: dict[Place, int] = {}
        self.where: dict[tuple[TopicPartition, BrokerId], Place] = {}
        self.size: dict[tuple[TopicPartition, BrokerId], int] = {}
        """The bytes of each replica on its own disk."""
        self.told: dict[TopicPartition, Mapping[BrokerId, str]] = {}
        """Where replicas lie as the plan says, for want of a snapshot."""
        self.cordoned: set[Place] = set()
        for broker in snapshot.brokers:
            for each in broker.log_dirs:
                if each.cordoned:
                    self.cordoned.add((broker.id, each.path))
                if not each.failed:
                    self.count[broker.id, each.path] = 0
                    if not each.cordoned:
                        self.open.setdefault(broker.id, []).append((broker.id, each.path))
                if not each.failed and each.total_bytes is not None and each.usable_bytes is not None:
                    self.total[broker.id, each.path] = each.total_bytes
                    self.used[broker.id, each.path] = each.total_bytes - each.usable_bytes
        if any(len(places) > 1 for places in self.open.values()):
            for _, partition in snapshot.all_partitions():
                for copy in partition.copies:
                    if not copy.future and (copy.broker, copy.log_dir) in self.count:
                        self.count[copy.broker, copy.log_dir] += 1
        for name in moved:
            there = snapshot.partition(name)
            for copy in () if there is None else there.copies:
                if not copy.future and (copy.broker, copy.log_dir) in self.count:
                    self.where[name, copy.broker] = copy.broker, copy.log_dir
                    self.size[name, copy.broker] = copy.size_bytes

    def coming(self, step: Step, broker: BrokerId) -> int:
        """Return the bytes that a step copies to a broker: the leader's size, or its own between log dirs."""
        own = self.size.get((step.partition, broker)) if broker in step.before else None
        return step.size_bytes if own is None else own

    def _path(self, name: TopicPartition, broker: BrokerId) -> str | None:
        """Return the log dir of a replica now, as far as it is known."""
        if (here := self.where.get((name, broker))) is not None:
            return here[1]
        return self.told.get(name, {}).get(broker)

    def arrivals(self, step: Step) -> list[Place]:
        """Return the log dirs of a step's copies: as given, or the one with the fewest partitions."""
        found = []
        targets = step.log_dirs or (ANY_DIR,) * len(step.after)
        for broker, target in zip(step.after, targets, strict=False):
            if broker in step.before and target in (ANY_DIR, self._path(step.partition, broker)):
                continue
            if target != ANY_DIR:
                found.append((broker, target))
            elif choice := self.open.get(broker):
                found.append(min(choice, key=lambda place: self.count[place]))
        for place in found:
            self.count[place] = self.count.get(place, 0) + 1
        return found


class BrokenPlan(RestowError):
    """A plan that the judge finds broken. Nothing was changed."""


def violations_of(plan: Plan, snapshot: Snapshot | None = None) -> tuple[PlanViolation, ...]:
    """Return what is broken in a plan, whatever it was asked for.

    With the snapshot that it was made from, also what it does to that cluster. A plan without waves has no
    order that could be judged.
    """
    found = []
    for move in plan.moves:
        if not move.after or len(set(move.after)) < len(move.after):
            found.append(PlanViolation(rule="distinct", where=str(move.partition), what=f"{move.after}"))
        if move.log_dirs and len(move.log_dirs) != len(move.after):
            what = "there is not one for each replica"
            found.append(PlanViolation(rule="log dirs", where=str(move.partition), what=what))
    if plan.waves:
        nothing = Snapshot(cluster_id=plan.cluster_id, taken_ms=0, controller=None, brokers=(), topics=())
        found += waves_broken(nothing if snapshot is None else snapshot, plan)
    return tuple(found)


def told(violations: Sequence[PlanViolation]) -> str:
    """Name the first of them, in a line."""
    return some((f"{each.where}: {each.rule} ({each.what})" for each in violations), between="; ")


def check_sound(plan: Plan, snapshot: Snapshot | None = None) -> None:
    """Refuse a plan that the judge finds broken."""
    if violations := violations_of(plan, snapshot):
        raise BrokenPlan(f"the judge finds this plan broken: {told(violations)}. Make the plan again")


def waves_broken(snapshot: Snapshot, plan: Plan) -> Iterator[PlanViolation]:
    """Yield every rule that is broken at some moment, and every partition that misses its target.

    A partition's copies are sent by the leader that it has in the snapshot.
    """
    log_dirs = _LogDirs(snapshot, [move.partition for move in plan.moves])
    log_dirs.told = {move.partition: move.dirs_before for move in plan.moves}
    now = {move.partition: move.before for move in plan.moves}
    leaders = {name: there.leader for name in now if (there := snapshot.partition(name)) is not None}
    longest = {move.partition: max(len(move.before), len(move.after)) for move in plan.moves}
    for number, wave in enumerate(plan.waves, 1):
        where = f"wave {number}"
        coming = [(step, log_dirs.arrivals(step)) for step in wave]
        if len({step.partition for step in wave}) < len(wave):
            yield PlanViolation(rule="one at a time", where=where, what="a partition has two steps")
        receiving = Counter(broker for _, places in coming for broker in {place[0] for place in places})
        for broker, many in receiving.items():
            if many > plan.limits.moves_in:
                yield PlanViolation(rule="moves in", where=where, what=f"{many} to broker {broker}")
        senders = (leaders.get(step.partition) for step in wave if step.adding)
        for sender, many in Counter(senders).items():
            if sender is not None and many > plan.limits.moves_out:
                yield PlanViolation(rule="moves out", where=where, what=f"{many} from broker {sender}")
        for step, places in coming:
            if now.get(step.partition) != step.before:
                yield PlanViolation(
                    rule="in order", where=where, what=f"{step.partition} is not {step.before}"
                )
            copies = len(set(step.before) | set(step.after))
            if copies > longest.get(step.partition, 0) + plan.limits.extra_copies:
                yield PlanViolation(rule="extra copies", where=where, what=f"{step.partition}: {copies}")
            for place in places:
                log_dirs.used[place] += log_dirs.coming(step, place[0])
                if place in log_dirs.cordoned:
                    yield PlanViolation(
                        rule="cordoned", where=f"{where}, {place[0]}:{place[1]}", what="is used"
                    )
        for place in {place for _, places in coming for place in places}:
            if (
                place in log_dirs.total
                and log_dirs.used[place] > log_dirs.total[place] * plan.limits.fill + 1
            ):
                yield PlanViolation(rule="room", where=f"{where}, {place[0]}:{place[1]}", what="is too full")
        for step, places in coming:
            _finish(log_dirs, step, places)
            now[step.partition] = step.after
    for move in plan.moves:
        if now[move.partition] != move.after:
            yield PlanViolation(
                rule="arrives", where=str(move.partition), what=f"ends as {now[move.partition]}"
            )


def _finish(log_dirs: _LogDirs, step: Step, places: list[Place]) -> None:
    staying = {broker for broker, _ in places if broker in step.before}
    came = {place[0]: log_dirs.coming(step, place[0]) for place in places}
    for broker in [each for each in step.before if each not in step.after or each in staying]:
        place = log_dirs.where.pop((step.partition, broker), None)
        if place is not None:
            log_dirs.used[place] -= log_dirs.size.pop((step.partition, broker))
            log_dirs.count[place] -= 1
    for place in places:
        log_dirs.size[step.partition, place[0]] = came[place[0]]
        log_dirs.where[step.partition, place[0]] = place
