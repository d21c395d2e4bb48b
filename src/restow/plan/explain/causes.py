"""Name the partitions that put brokers out of their bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow._frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.model import TopicPartition
    from restow.plan.explain.explain import Unmet
    from restow.plan.request.framing import Asked


@frozen
class BandCause:
    """A replica on a broker that has too much of a goal."""

    partition: TopicPartition
    leads: bool
    amount: float
    """What it carries, in the goal's unit."""
    share: float
    """The same in multiples of the broker's share."""


def causes_of(asked: Asked, unmet: Iterable[Unmet], most: int = 5) -> list[tuple[Unmet, list[BandCause]]]:
    """Return the heaviest replicas of each broker that is out of band; none for a broker with too little."""
    arrays, problem = asked.arrays, asked.problem
    names = {goal.name: number for number, goal in enumerate(asked.goals)}
    leads = np.zeros(len(arrays.holder), dtype=bool)
    leads[arrays.leader] = True
    found = []
    for each in unmet:
        goal, broker = names[each.goal], arrays.index[each.broker]
        share = float(asked.share[broker, goal])
        here = np.flatnonzero(arrays.holder == broker) if each.ratio > 1 else np.empty(0, dtype=np.int64)
        parts = arrays.part_of[here]
        carried = np.where(leads[here], problem.leading[parts, goal], problem.following[parts, goal])
        heaviest = [at for at in np.argsort(-carried, kind="stable")[:most].tolist() if carried[at] > 0]
        causes = [
            BandCause(
                partition=arrays.names[int(parts[at])],
                leads=bool(leads[here[at]]),
                amount=float(carried[at]),
                share=float(carried[at]) / share if share > 0 else 0.0,
            )
            for at in heaviest
        ]
        found.append((each, causes))
    return found
