"""Random plans for a simulated cluster, made by the real planner.

They leave the topic alone that another workload moves: it expects the replicas that it has requested.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

from restow.model import ANY_DIR
from restow.plan.pin import Target, plan_from_targets
from restow.plan.planning import make_plan
from restow.plan.request.request import PlanRequest, RequestedLimits
from restow.sim.workloads.reassigning import TOPIC as MOVED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from restow.model import Partition, Plan, Snapshot, TopicPartition
    from restow.runtime.chance import Chance

T = TypeVar("T")

_MOST_TARGETS = 8
_MOST_SEARCH_STEPS = 60
"""A plan that is nearly as good as can be does as well here, and takes a tenth of the time."""


def pick(chance: Chance, choices: Sequence[T]) -> T:
    """Return one of them."""
    return choices[chance.randrange(len(choices))]


def sample(chance: Chance, choices: Sequence[T], count: int) -> tuple[T, ...]:
    """Return that many of them in random order, each once."""
    left = list(choices)
    return tuple(left.pop(chance.randrange(len(left))) for _ in range(min(count, len(left))))


def drawn_plan(snapshot: Snapshot, chance: Chance) -> Plan:
    """Return a random plan, which may be empty. Raises InvalidInput if the planner refuses the request."""
    return pick(chance, _KINDS)(snapshot, chance)


def _limits(chance: Chance) -> RequestedLimits:
    return RequestedLimits(
        extra_copies=1 + chance.randrange(2),
        moves_in=pick(chance, (None, 1, 2, 4)),
        moves_out=pick(chance, (None, 1, 2, 4)),
    )


def _some_partitions(snapshot: Snapshot, chance: Chance) -> tuple[tuple[TopicPartition, Partition], ...]:
    found = [each for each in snapshot.all_partitions() if each[0].topic != MOVED]
    return sample(chance, found, 1 + chance.randrange(_MOST_TARGETS))


def _broker(snapshot: Snapshot, chance: Chance) -> int:
    return pick(chance, [broker.id for broker in snapshot.brokers])


def _made(snapshot: Snapshot, chance: Chance, **request: Any) -> Plan:
    limits = _limits(chance)
    asked = PlanRequest(except_topics=(MOVED,), seed=chance.randrange(1000), **request)
    made = make_plan(
        snapshot, None, asked, limits=limits, seconds=math.inf, told_to_stop=_after(_MOST_SEARCH_STEPS)
    )
    return made.plan


def _after(calls: int) -> Callable[[], bool]:
    """Return a function that says True after so many calls. Time would make plans depend on the machine."""
    left = iter(range(calls))
    return lambda: next(left, None) is None


def _drain(snapshot: Snapshot, chance: Chance) -> Plan:
    return _made(snapshot, chance, drain=frozenset([_broker(snapshot, chance)]))


def _demote(snapshot: Snapshot, chance: Chance) -> Plan:
    return _made(snapshot, chance, demote=frozenset([_broker(snapshot, chance)]))


def _balance(snapshot: Snapshot, chance: Chance) -> Plan:
    return _made(snapshot, chance, balance=True)


def _change_replication_factor(snapshot: Snapshot, chance: Chance) -> Plan:
    topic = pick(chance, [topic.name for topic in snapshot.topics if topic.name != MOVED])
    return _made(snapshot, chance, replication_factors={topic: 2 + chance.randrange(3)})


def random_targets(snapshot: Snapshot, chance: Chance) -> Plan:
    """Return a plan that moves a few partitions to any brokers."""
    alive = [broker.id for broker in snapshot.brokers]
    targets = []
    for name, partition in _some_partitions(snapshot, chance):
        count = len(partition.replicas)
        targets.append(Target(partition=name, replicas=sample(chance, alive, count)))
    return plan_from_targets(snapshot, targets, created_ms=snapshot.taken_ms, limits=_limits(chance))


def _log_dirs(snapshot: Snapshot, chance: Chance) -> Plan:
    """Send some replicas to other log dirs of their brokers."""
    dirs = {broker.id: [each.path for each in broker.log_dirs] for broker in snapshot.brokers}
    targets = []
    for name, partition in _some_partitions(snapshot, chance):
        paths = tuple(pick(chance, [*dirs.get(broker, ()), ANY_DIR]) for broker in partition.replicas)
        targets.append(Target(partition=name, replicas=partition.replicas, log_dirs=paths))
    return plan_from_targets(snapshot, targets, created_ms=snapshot.taken_ms, limits=_limits(chance))


_KINDS: tuple[Callable[[Snapshot, Chance], Plan], ...] = (
    _drain,
    _demote,
    _balance,
    _change_replication_factor,
    *(random_targets,) * 5,
    *(_log_dirs,) * 2,
)
"""The planner's search takes longer than all else, so most plans need none."""
