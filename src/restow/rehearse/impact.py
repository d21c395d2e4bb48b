"""What copies cost clients, and when they cost least.

Each broker counts as a queue. What its clients send per second is multiplied by how much the queue ρ/(1 − ρ)
grows by copying, and added up over the run; ρ is the share of the broker's rate in use. A copy in a busy hour
therefore costs more than one in a quiet hour, and a fast copy more than a slow one of the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.model.load import WEEK_HOURS
from restow.plan.flow.loads import HOUR_S

if TYPE_CHECKING:
    from restow.model import Snapshot
    from restow.plan.flow.movement import Movement
    from restow.plan.search.problem import Floats

_FULLEST = 0.95
"""A busier broker counts as this busy: copies and clients get at least a little of it."""


def client_impact(movement: Movement, snapshot: Snapshot) -> float:
    """Return what a run costs clients, in bytes that wait."""
    return float(_impacts(movement, snapshot, 1)[0])


def impact_by_start(movement: Movement, snapshot: Snapshot) -> Floats:
    """Return what the run would cost if it started now, or 1 to 167 hours later, at the same rates."""
    return _impacts(movement, snapshot, WEEK_HOURS)


def _impacts(movement: Movement, snapshot: Snapshot, starts: int) -> Floats:
    loads, history, size = movement.loads, movement.history, len(movement.links.brokers)
    if not loads.known or not history.at_s:
        return np.zeros(starts)
    table, most = loads.table(snapshot), movement.links.most_rate
    ends = np.array(history.at_s)
    spans = np.diff(ends, prepend=0.0)
    copied = np.array([rates[: 2 * size] for _, rates in history.points()], dtype=np.float64)
    numbers = ((ends - spans / 2 - loads.edge_s(0)) // HOUR_S).astype(np.int64)
    found = np.zeros(starts)
    for start in range(starts):
        for number in np.unique(numbers):
            clients = table.rates(loads.hour(int(number) + start)).ravel()
            now = numbers == number
            added = _queue((copied[now] + clients) / most) - _queue(clients / most)
            found[start] += spans[now] @ (added @ clients)
    return found


def _queue(used: Floats) -> Floats:
    used = np.minimum(used, _FULLEST)
    return used / (1 - used)
