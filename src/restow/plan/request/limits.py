"""How many replicas may be under way at a time, unless somebody says.

A move that ends leaves a gap until the next one's first fetch: the controller decides, brokers hear of it.
Twenty large replicas hide that, twenty tiny ones do not. So it is bytes that are kept under way, as far as
that needs no unreasonable number of moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from restow.model import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.model import Move

USUAL = Limits()
_BYTES_IN = 2 << 30
_MOST_IN = 10 * USUAL.moves_in


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedLimits:
    """Limits of which some are left open until the moves are known."""

    extra_copies: int = USUAL.extra_copies
    moves_in: int | None = None
    moves_out: int | None = None
    fill: float = USUAL.fill

    def for_moves(self, moves: Iterable[Move]) -> Limits:
        """Where replicas are small more of them may be under way."""
        times = _times_the_usual(moves)
        return Limits(
            extra_copies=self.extra_copies,
            moves_in=round(USUAL.moves_in * times) if self.moves_in is None else self.moves_in,
            moves_out=round(USUAL.moves_out * times) if self.moves_out is None else self.moves_out,
            fill=self.fill,
        )


def settled(limits: Limits | RequestedLimits | None, moves: Iterable[Move]) -> Limits:
    """Limits in numbers, for these moves."""
    if isinstance(limits, Limits):
        return limits
    return (limits or RequestedLimits()).for_moves(moves)


def _times_the_usual(moves: Iterable[Move]) -> float:
    """Where no size is known, or there is nothing to copy, the usual has to do."""
    copies = copied_bytes = 0
    for move in moves:
        made = len(move.adding) + len(move.dir_changes)
        copies += made
        copied_bytes += move.bytes_to_copy
    if not copied_bytes:
        return 1.0
    usual_bytes = USUAL.moves_in * copied_bytes / copies
    return min(max(_BYTES_IN / usual_bytes, 1.0), _MOST_IN / USUAL.moves_in)
