"""The fewest bytes that a plan can copy, from the snapshot and the request, by an integer program.

It shares nothing with the planner but the bands: those are what the request asks for. Each rule is written as
docs/planner.md states it, broker by broker and log dir by log dir.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

from restow.plan.judge.evaluate import racks_of
from restow.plan.judge.scores import able_brokers, differences_of, loads_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from random_cases import Case

    from restow.model import BrokerId, TopicPartition
    from restow.plan.request.framing import Asked

    Place = tuple[BrokerId, str]


_INFEASIBLE = 2


class Span(NamedTuple):
    """The fewest bytes: no fewer than proven, no more than a plan that was found; both infinite if none can
    be.
    """

    proven: float
    found: float


class _Program:
    """Columns that are 0 or 1, by name, and rows."""

    def __init__(self) -> None:
        self.number: dict[tuple, int] = {}
        self.cost: dict[int, float] = defaultdict(float)
        self.fixed: dict[int, float] = {}
        self.rows: list[tuple[dict[int, float], float, float]] = []

    def __getitem__(self, name: tuple) -> int:
        return self.number.setdefault(name, len(self.number))

    def add(self, row: dict[int, float], low: float, high: float) -> None:
        if row:
            self.rows.append((row, low, high))

    def solve(self) -> Span:
        many = len(self.number)
        cost = np.array([self.cost[each] for each in range(many)])
        unit = cost.max(initial=0.0) or 1.0
        values = [value for row, _, _ in self.rows for value in row.values()]
        columns = [at for row, _, _ in self.rows for at in row]
        numbers = np.repeat(np.arange(len(self.rows)), [len(row) for row, _, _ in self.rows])
        matrix = csr_matrix((values, (numbers, columns)), shape=(len(self.rows), many))
        low, high = np.zeros(many), np.ones(many)
        for at, value in self.fixed.items():
            low[at] = high[at] = value
        found = milp(
            cost / unit,
            constraints=LinearConstraint(matrix, [r[1] for r in self.rows], [r[2] for r in self.rows]),
            integrality=np.ones(many),
            bounds=Bounds(low, high),
            # Its presolve has lost the best plan (HiGHS in scipy 1.17.1).
            options={"node_limit": 300, "mip_rel_gap": 1e-6, "presolve": False},
        )
        if found.status == _INFEASIBLE:
            return Span(np.inf, np.inf)
        proven = -np.inf if found.mip_dual_bound is None else float(found.mip_dual_bound * unit)
        return Span(proven, np.inf if found.x is None else float(found.fun * unit))


def least_bytes_of_any_plan(case: Case, asked: Asked) -> Span:
    """Return between which numbers the fewest bytes are with which every broker is in every band."""
    snapshot, _, request = case
    program, able = _Program(), able_brokers(snapshot, request)
    brokers = asked.arrays.brokers
    into = able & request.add if request.add and not (request.balance or asked.slots.forced.any()) else able
    for name, partition in snapshot.all_partitions():
        before, size = partition.replicas, float(partition.size_bytes)
        may = request.covers(name.topic) and name not in request.except_partitions
        may = may and partition.leader is not None
        want = request.replication_factor_of(name.topic) if may else None
        factor = len(before) if want is None else want
        x = {broker: program["x", name, broker] for broker in brokers}
        y = {broker: program["y", name, broker] for broker in brokers}
        program.add(dict.fromkeys(x.values(), 1.0), factor, factor)
        program.add(dict.fromkeys(y.values(), 1.0), 1.0, 1.0)
        for broker in brokers:
            program.add({y[broker]: 1.0, x[broker]: -1.0}, -1.0, 0.0)
            must_go = may and broker in request.leaving
            if broker in before:
                kept = not may or broker in request.except_brokers
                dropped = want is not None and want < len(before)
                down = broker not in snapshot.broker
                still = down or not (request.sheds or request.fix_racks or want is not None)
                if must_go or kept or (still and not dropped):
                    program.fixed[x[broker]] = 0.0 if must_go and not kept else 1.0
            elif not may or broker not in into:
                program.fixed[x[broker]] = 0.0
            else:
                program.cost[x[broker]] = size
        _lead(program, case, asked, name, y)
        if may:
            _keep_racks(program, case, asked, name, x, factor)
    _fit(program, case, able)
    _stay_in_band(program, case, asked, brokers)
    if request.spread_topics and request.sheds:
        _spread(program, case, asked)
    return program.solve()


def _lead(program: _Program, case: Case, asked: Asked, name: TopicPartition, y: dict[BrokerId, int]) -> None:
    """Live brokers lead; where leadership may not change, the leader leads as long as it has a replica."""
    number = asked.arrays.names.index(name)
    led = asked.arrays.brokers[asked.slots.home[asked.problem.leader[number]]]
    changes = asked.problem.may_change_leader[number]
    for broker, at in y.items():
        if broker != led and broker not in case.snapshot.broker:
            program.fixed[at] = 0.0
        if broker in case.request.demote and changes:
            for other in _could_lead(case, name):
                program.add({at: 1.0, program["x", name, other]: 1.0}, 0.0, 1.0)
    if not changes:
        program.add({program["x", name, led]: 1.0, y[led]: -1.0}, -1.0, 0.0)


def _could_lead(case: Case, name: TopicPartition) -> list[BrokerId]:
    """Return the brokers that a demoted one may not lead before, if they have a replica."""
    snapshot, _, request = case
    partition, barred = snapshot.partition(name), request.demote | request.barred
    behind = {*partition.replicas} - {*partition.isr}
    return [each for each in snapshot.broker if each not in barred | behind]


def _keep_racks(
    program: _Program, case: Case, asked: Asked, name: TopicPartition, x: dict[BrokerId, int], factor: int
) -> None:
    """No fewer racks than before; and those that have to move get as many as there can be."""
    snapshot, _, request = case
    racks, able = racks_of(snapshot), able_brokers(snapshot, request)
    before = snapshot.partition(name).replicas
    if request.any_rack or request.replace:
        return
    stays = {racks[each] for each in before if each not in request.leaving}
    free = {racks[each] for each in able}
    forced = factor - sum(each not in request.leaving for each in before)
    wanted = len({racks[each] for each in before})
    if forced > 0:
        wanted = max(wanted, len(stays) + forced)
    if request.fix_racks:
        fixed = [racks[each] for each in before if each in request.except_brokers]
        wanted = max(wanted, min(len({*fixed}) + factor - len(fixed), len(stays | free)))
    wanted = min(factor, len(stays | free), wanted)
    z = {rack: program["z", name, rack] for rack in {racks[each] for each in x}}
    for rack, at in z.items():
        program.add({at: 1.0, **{x[b]: -1.0 for b in x if racks[b] == rack}}, -np.inf, 0.0)
    program.add(dict.fromkeys(z.values(), 1.0), wanted, np.inf)


def _fit(program: _Program, case: Case, able: frozenset[BrokerId]) -> None:
    """A log dir that receives something is not filled above the limit."""
    snapshot, _, request = case
    coming: dict[tuple[BrokerId, str], dict[int, float]] = defaultdict(dict)
    going: dict[tuple[BrokerId, str], dict[int, float]] = defaultdict(dict)
    open_dirs = {
        broker.id: [each for each in broker.log_dirs if not each.failed and not each.cordoned]
        for broker in snapshot.brokers
        if broker.id in able
    }
    for name, partition in snapshot.all_partitions():
        for copy in partition.copies:
            going[copy.broker, copy.log_dir][program["x", name, copy.broker]] = float(copy.size_bytes)
        for broker, dirs in open_dirs.items():
            if broker in partition.replicas or not dirs:
                continue
            parts = [program["d", name, broker, each.path] for each in dirs]
            program.add({program["x", name, broker]: -1.0, **dict.fromkeys(parts, 1.0)}, 0.0, 0.0)
            for each, part in zip(dirs, parts, strict=True):
                coming[broker, each.path][part] = float(partition.size_bytes)
    for broker, dirs in open_dirs.items():
        if any(each.total_bytes is None for each in dirs):
            continue
        if request.disks:
            _fit_together(program, case, broker, coming, going)
            continue
        for each in dirs:
            receives, place = program["c", broker, each.path], (broker, each.path)
            for part in coming[place]:
                program.add({part: 1.0, receives: -1.0}, -1.0, 0.0)
            stays = going[place]
            used = float(each.total_bytes - each.usable_bytes) - sum(stays.values())
            limit = each.total_bytes * request.fill + 1.0
            above = max(used + sum(stays.values()) + sum(coming[place].values()) - limit, 0.0)
            row = {**coming[place], **stays, receives: above}
            program.add(
                {at: value / limit for at, value in row.items()}, -np.inf, (limit - used + above) / limit
            )


def _fit_together(
    program: _Program,
    case: Case,
    broker: BrokerId,
    coming: Mapping[Place, dict[int, float]],
    going: Mapping[Place, dict[int, float]],
) -> None:
    """Replicas also move between the broker's log dirs: each has what it has, or what its limit allows."""
    row: dict[int, float] = {}
    most = 0.0
    for each in case.snapshot.broker[broker].log_dirs:
        used = each.total_bytes - each.usable_bytes
        row |= coming[broker, each.path] | going[broker, each.path]
        most += max(each.total_bytes * case.request.fill + 1.0, used)
        most -= used - sum(going[broker, each.path].values())
    program.add({at: value / max(most, 1.0) for at, value in row.items()}, -np.inf, most / max(most, 1.0))


def _stay_in_band(program: _Program, case: Case, asked: Asked, brokers: tuple[BrokerId, ...]) -> None:
    snapshot, load, _ = case
    rows = {} if load is None else {name: row for row, name in enumerate(load.partitions)}
    carried = {
        name: (loads_of(partition, load, rows.get(name)), differences_of(partition))
        for name, partition in snapshot.all_partitions()
    }
    for column, goal in enumerate(each.name for each in asked.goals):
        unit = max((each[goal][0] for each, _ in carried.values()), default=0.0) or 1.0
        for number, broker in enumerate(brokers):
            row: dict[int, float] = {}
            for name, (loads, own) in carried.items():
                leading, following = loads[goal]
                more = own.get(broker, 0) if goal == "disk" else 0
                row[program["x", name, broker]] = (following + more) / unit
                row[program["y", name, broker]] = (leading - following) / unit
            low, high = asked.problem.lower[number, column], asked.problem.upper[number, column]
            program.add(row, float(low) / unit - 1e-7, float(high) / unit + 1e-7)


def _spread(program: _Program, case: Case, asked: Asked) -> None:
    most = asked.problem.topic_replicas
    if most is None or not len(most):
        return
    for number, topic in enumerate(case.snapshot.topics):
        names = [name for name in case.snapshot.names if name.topic == topic.name]
        for broker in case.snapshot.broker.keys() - case.request.barred:
            held = {program["x", name, broker]: 1.0 for name in names}
            program.add(held, 0.0, float(most[number]))
