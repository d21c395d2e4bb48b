"""Who is in sync, and how far records are safe: the decisions, as functions of what is known.

    in the ISR ── behind for longer than replica.lag.time.max.ms ──► out
    out ── has fetched up to the high watermark and the leader's epoch start ──► in

The high watermark is the smallest end of the ISR. While a change of the ISR is being written, those of
the old and of the new one count, because nobody knows yet which of the two holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

UNKNOWN = -1


class FollowerProgress(NamedTuple):
    """How far a follower has come, as its leader sees it."""

    caught_up_s: float
    """The last moment at which it had all that the leader had."""
    end_offset: int = UNKNOWN
    start_offset: int = UNKNOWN
    fetched_s: float = 0.0
    leader_end: int = UNKNOWN
    """Where the leader's log ended at its last fetch."""

    def after_fetch(self, offset: int, start_offset: int, leader_end: int, now_s: float) -> FollowerProgress:
        """It asks for an offset, so it has what comes before.

        Who asks for the leader's end has caught up now. Who asks for what was the end at the fetch
        before had caught up then; without that nobody would ever catch up with a busy leader.
        """
        caught_up_s = self.caught_up_s
        if offset >= leader_end:
            caught_up_s = now_s
        elif self.leader_end != UNKNOWN and offset >= self.leader_end:
            caught_up_s = max(caught_up_s, self.fetched_s)
        return FollowerProgress(caught_up_s, offset, start_offset, now_s, leader_end)


def behind(
    isr: Iterable[int], followers: Mapping[int, FollowerProgress], leader_end: int
) -> list[tuple[int, FollowerProgress]]:
    """Members of the ISR that do not have all that the leader has."""
    return [
        (follower, followers[follower])
        for follower in isr
        if follower in followers and followers[follower].end_offset != leader_end
    ]


def without_laggards(
    isr: tuple[int, ...],
    followers: Mapping[int, FollowerProgress],
    leader_end: int,
    now_s: float,
    lag_max_s: float,
) -> tuple[int, ...]:
    """The ISR less those who have been behind for too long."""
    out = {
        follower
        for follower, progress in behind(isr, followers, leader_end)
        if now_s - progress.caught_up_s > lag_max_s
    }
    return tuple(member for member in isr if member not in out)


def may_join(progress: FollowerProgress, high_watermark: int, epoch_start_offset: int) -> bool:
    """Whether a follower that is out of sync has all that may ever have been acknowledged."""
    return progress.end_offset >= max(high_watermark, epoch_start_offset)


def smallest_end(members: Iterable[int], followers: Mapping[int, FollowerProgress], leader_end: int) -> int:
    """How far all of these replicas have come; the leader is the one that is not among the followers."""
    smallest = leader_end
    for member in members:
        progress = followers.get(member)
        if progress is not None and progress.end_offset < smallest:
            smallest = progress.end_offset
    return smallest
