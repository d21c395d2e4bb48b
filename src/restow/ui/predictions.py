"""What the latest rehearsal of a plan predicted of its run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from restow.ui.plan_store import PlanStore
    from restow.ui.run_books import RunBook


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedTime:
    """The time of a run as a rehearsal predicted it, and its bytes over that time."""

    throttle: str
    p10_s: float | None
    p50_s: float | None
    p90_s: float | None
    arrived: tuple[tuple[float, float], ...]
    """Seconds since the start, and the bytes of the moves that would have arrived by then."""


class Predictions:
    """The rehearsals that were made on these pages before a run began."""

    def __init__(self, store: PlanStore) -> None:
        self._store = store

    def of(self, book: RunBook) -> RehearsedTime | None:
        """Return what was predicted last, before the run began; None if nothing was."""
        if book.plan is None:
            return None
        stored = self._store.of_digest(book.digest)
        for each in () if stored is None else stored.rehearsals():
            told = each.told()
            if told is not None and int(each.request.get("at_ms", 0)) <= book.began_ms:
                sizes = {str(move.partition): move.bytes_to_copy for move in book.plan.moves}
                return _prediction(told, sizes)
        return None


def _prediction(told: dict[str, Any], sizes: dict[str, int]) -> RehearsedTime:
    last: dict[str, float] = {}
    for step in told["steps"]:
        if step["ended_s"] is not None:
            last[step["partition"]] = max(float(step["ended_s"]), last.get(step["partition"], 0.0))
    done, points = 0.0, [(0.0, 0.0)]
    for partition, at_s in sorted(last.items(), key=lambda pair: pair[1]):
        done += sizes.get(partition, 0)
        points.append((at_s, done))
    seconds = told["seconds"]
    return RehearsedTime(
        throttle=str(told["throttle"]),
        p10_s=seconds["p10"],
        p50_s=seconds["p50"],
        p90_s=seconds["p90"],
        arrived=tuple(points),
    )
