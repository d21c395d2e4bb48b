"""Order the steps: which begins next when another has ended.

Steps wait in lines, one line for each route (a leader and its receivers). Each line waits at a gate, which is
one end of its route: a sending or a receiving broker. A gate that is shut holds all its lines, and a line
whose other end is shut moves to that gate. So lines gather where the cluster is busiest, and finding the next
steps costs about as much as there are brokers and steps that begin, however many wait.
"""

from __future__ import annotations

import heapq
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from restow.model import ANY_DIR, Step
from restow.plan.schedule.admission import Admission, Gate, Route

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from restow.model import BrokerId, Limits, Move, Partition, Snapshot, TopicPartition


def steps_of(move: Move, extra_copies: int = 1) -> tuple[Step, ...]:
    """Return at least one step; the last one ends at the move's replicas, in their order."""
    if extra_copies < 1:
        raise ValueError(f"a move needs room for at least one extra copy, not {extra_copies}")
    most = max(len(move.before), len(move.after)) + extra_copies
    wanted_dir = dict(zip(move.after, move.log_dirs, strict=False)) if move.log_dirs else {}
    steps: list[Step] = []
    now, after = move.before, move.after
    while not steps or now != after:
        then = _next(now, after, most)
        dirs = tuple(wanted_dir.get(broker, ANY_DIR) for broker in then) if wanted_dir else ()
        steps.append(
            Step(
                partition=move.partition,
                before=now,
                after=then,
                size_bytes=move.size_bytes,
                log_dirs=dirs,
            )
        )
        now = then
    return tuple(steps)


def _next(now: tuple[BrokerId, ...], after: tuple[BrokerId, ...], most: int) -> tuple[BrokerId, ...]:
    """Return the replicas after one step."""
    missing = [broker for broker in after if broker not in now]
    coming = missing[: most - len(now)]
    if len(coming) == len(missing):
        return after
    size = min(len(after), len(now) + len(coming))
    going = [broker for broker in now if broker not in after]
    spare = size - len(coming) - (len(now) - len(going))
    staying = set(now) - set(going) | set(going[: max(spare, 0)])
    return (*(broker for broker in now if broker in staying), *coming)


@dataclass(slots=True)
class _Line:
    """Steps that wait for the same route, by their turns."""

    route: Route
    steps: list[tuple[int, Step]] = field(default_factory=list)


_Entry: TypeAlias = tuple[int, int, _Line]
"""The turn of a line's first step, a unique number, and the line."""

SPECIAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})


class Schedule:
    """The waiting, running and remaining steps. First come, first served, as far as there is room."""

    def __init__(self, chains: Iterable[Sequence[Step]], admission: Admission) -> None:
        """Take one chain per partition: its steps, to be carried out one after the other."""
        self.admission = admission
        self._lines: dict[Route, _Line] = {}
        self._gates: dict[Gate, list[_Entry]] = {}
        """Lines by the turn of their first step; some entries are outdated."""
        self._serial = count()
        self._rest: dict[TopicPartition, tuple[int, tuple[Step, ...]]] = {}
        self.left = 0
        for turn, chain in enumerate(chains):
            steps = tuple(chain)
            if steps:
                self.left += len(steps)
                self._rest[steps[0].partition] = turn, steps
                self._line_up(turn, steps[0])

    def fork(self) -> Schedule:
        """Return the same state, with an admission of its own, to look ahead from here."""
        other = copy(self)
        other.admission = self.admission.fork()
        lines = {route: _Line(route, list(line.steps)) for route, line in self._lines.items()}
        gates = {
            gate: [(turn, number, lines[line.route]) for turn, number, line in entries]
            for gate, entries in self._gates.items()
        }
        vars(other).update(
            _lines=lines, _gates=gates, _rest=self._rest.copy(), _serial=count(next(self._serial))
        )
        return other

    @property
    def under_way(self) -> list[Step]:
        """Return the steps that were admitted and have not ended."""
        return [steps[0] for _, steps in self._rest.values() if self.admission.has_admitted(steps[0])]

    @property
    def partitions(self) -> Iterable[TopicPartition]:
        """Return the partitions with steps left."""
        return self._rest.keys()

    @property
    def steps(self) -> Iterator[Step]:
        """Yield all steps that are left."""
        return (step for _, steps in self._rest.values() for step in steps)

    @property
    def waiting(self) -> tuple[Step, ...]:
        """Return the next step of each partition that has not begun it."""
        return tuple(step for line in self._lines.values() for _, step in line.steps)

    def admit(self) -> list[Step]:
        """Begin every step that may begin, and return them."""
        admission = self.admission
        shut = admission.shut
        order = [
            (ways[0][0], ways[0][1], gate, ways)
            for gate, ways in self._gates.items()
            if ways and not shut(gate)  # none opens while steps begin
        ]
        heapq.heapify(order)
        begun: list[Step] = []
        held: list[tuple[int, Step]] = []
        while order:
            turn, _, gate, ways = heapq.heappop(order)
            if admission.shut(gate):
                continue
            entry = heapq.heappop(ways)
            line = entry[2]
            if (elsewhere := admission.shut_gate(line.route)) is not None:
                heapq.heappush(self._gates.setdefault(elsewhere, []), entry)
            elif line.steps and line.steps[0][0] == turn:
                _, step = heapq.heappop(line.steps)
                if admission.hindrance(step, line.route) is None:
                    admission.begin(step, line.route)
                    begun.append(step)
                else:
                    held.append((turn, step))
                self._put_up(line, ways)
            if ways:
                heapq.heappush(order, (ways[0][0], ways[0][1], gate, ways))
        for turn, step in held:
            self._line_up(turn, step)
        return begun

    def see(self, partitions: Mapping[TopicPartition, Partition]) -> None:
        """Let steps wait for, and count for, the leaders that partitions have now."""
        self.admission.see(partitions)
        route = self.admission.route
        if all(route(step) == line.route for line in self._lines.values() for _, step in line.steps):
            return
        waiting = [each for line in self._lines.values() for each in line.steps]
        self._lines, self._gates = {}, {}
        for turn, step in waiting:
            self._line_up(turn, step)

    def finish(self, step: Step) -> None:
        """Count a step as completed; the next one of its partition lines up."""
        self.admission.finish(step)
        self.left -= 1
        name = step.partition
        turn, steps = self._rest[name]
        if len(steps) > 1:
            self._rest[name] = turn, steps[1:]
            self._line_up(turn, steps[1])
        else:
            del self._rest[name]

    def adopt(self, step: Step) -> None:
        """Count a partition's next step as under way, whether or not it would be admitted."""
        self._leave_line(step)
        self.admission.begin(step)

    def drop(self, step: Step) -> None:
        """Remove a step that was cancelled or will not begin, and all later steps of its partition."""
        if self.admission.has_admitted(step):
            self.admission.give_up(step)
        else:
            self._leave_line(step)
        self.left -= len(self._rest.pop(step.partition)[1])

    def put_back(self, step: Step) -> None:
        """Let a step wait again that could not begin after all."""
        self.admission.give_up(step)
        self._line_up(self._rest[step.partition][0], step)

    def rest_of(self, partition: TopicPartition) -> tuple[Step, ...]:
        """Return the remaining steps of one partition, including the one under way."""
        return self._rest[partition][1] if partition in self._rest else ()

    def why_stuck(self) -> str | None:
        """Say why the first waiting step waits if nothing under way can copy; None if it may begin."""
        if not self.admission.idle:
            return None
        for line in self._lines.values():
            for _, step in line.steps:
                why = self.admission.hindrance(step)
                return None if why is None else f"{step.partition}: {why}"
        return None

    def _leave_line(self, step: Step) -> None:
        for line in self._lines.values():
            if any(waits == step for _, waits in line.steps):
                line.steps = [each for each in line.steps if each[1] != step]
                heapq.heapify(line.steps)
                self._put_up(line, self._ways_from(line))

    def _line_up(self, turn: int, step: Step) -> None:
        """Line up a step with its partition's turn, so that partitions under way are completed first."""
        route = self.admission.route(step)
        line = self._lines.get(route)
        if line is None:
            line = self._lines[route] = _Line(route)
        heapq.heappush(line.steps, (turn, step))
        if line.steps[0][0] == turn:
            self._put_up(line, self._ways_from(line))

    def _ways_from(self, line: _Line) -> list[_Entry]:
        """Return the lines at the sending end of a line's route, where it waits at first."""
        return self._gates.setdefault(Gate(False, line.route.sender), [])

    def _put_up(self, line: _Line, ways: list[_Entry]) -> None:
        """Enter a line at one end of its route, with the turn of its first step."""
        if line.steps:
            heapq.heappush(ways, (line.steps[0][0], next(self._serial), line))


class Order(NamedTuple):
    """Waves, and the steps that fit into none, each with the reason."""

    waves: tuple[tuple[Step, ...], ...]
    stuck: tuple[tuple[Step, str], ...]


def order_of(moves: Iterable[Move], snapshot: Snapshot, limits: Limits) -> Order:
    """Return the steps of all moves in an order that keeps the limits at every moment.

    Special topics come last, one replica at a time, because every group and every transaction needs them.
    """
    moves = tuple(moves)
    admission = Admission(snapshot, limits)
    slowly = replace(limits, moves_in=1, moves_out=1)
    waves: list[tuple[Step, ...]] = []
    stuck: list[tuple[Step, str]] = []
    for special, pace in ((False, limits), (True, slowly)):
        admission.limits = pace
        chains = (
            steps_of(move, limits.extra_copies)
            for move in moves
            if (move.partition.topic in SPECIAL_TOPICS) is special
        )
        schedule = Schedule(chains, admission)
        while begun := schedule.admit():
            waves.append(tuple(begun))
            for step in begun:
                schedule.finish(step)
        stuck += [(step, admission.hindrance(step) or "") for step in schedule.waiting]
    return Order(tuple(waves), tuple(stuck))


def waves_of(moves: Iterable[Move], snapshot: Snapshot, limits: Limits) -> tuple[tuple[Step, ...], ...]:
    """Return only the waves, without the steps that can never be admitted."""
    return order_of(moves, snapshot, limits).waves
