"""A move as the steps it is submitted in, so that a partition never has too many copies at once.

    [1,2,3] → [4,5,6], one extra copy      [1,2,3] → [1,2,4] → [1,4,5] → [4,5,6]

Each step copies as much as there is room for and lets go of as much as it copied. Who leads now stays first
until the last step, so that leadership changes hands once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.model import ANY_DIR, Step

if TYPE_CHECKING:
    from restow.model import BrokerId, Move


def steps_of(move: Move, extra_copies: int = 1) -> tuple[Step, ...]:
    """At least one step; its last leaves the replicas as the move wants them, in their order."""
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
    """The replicas to have after one step."""
    missing = [broker for broker in after if broker not in now]
    coming = missing[: most - len(now)]
    if len(coming) == len(missing):
        return after
    size = min(len(after), len(now) + len(coming))
    going = [broker for broker in now if broker not in after]
    spare = size - len(coming) - (len(now) - len(going))
    staying = set(now) - set(going) | set(going[: max(spare, 0)])
    return (*(broker for broker in now if broker in staying), *coming)
