"""Level a group while taking as little as possible from the previous owners.

A cooperative group pays for every partition that changes owner: no member reads it until its old owner has
revoked it and the group has rebalanced again. So here a group counts as level when no direct move would
improve it, which is where Kafka stops too. Among the many ways to get there, one is searched that takes
little:

- partitions new to their holder are passed on, along chains if need be, before a member loses old ones;
- where a member would have to lose one, another with one partition less (or more) takes its place
  if that ends the matter;
- when all is level, partitions are given back as long as the group can stay level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.leveling import level
from restow.assignors.levels import Levels, bits, lowest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from restow.assignors.ledger import BalanceTable

# This search pays up to about so many kinds × members. Larger groups are leveled directly.
_CELLS = 4096
# Giving back stops after so many failures in a row.
_TRIES = 64


def share_out_gently(ledger: BalanceTable, shares: Sequence[tuple[int, int]]) -> None:
    """Share out and level a group so that little is taken from the previous owners.

    Where every member may read everything, the direct way already takes the least. Elsewhere the searches
    below pay up to some size. They choose the first among equal members, which can be unlucky; so they run
    with the members in several orders, and the result that took the least is kept.
    """
    direct = ledger.copy()
    direct.share_out(shares)
    level(direct)
    alike = bool(ledger.allowed.all()) and direct.surely_least_moved()
    if alike or direct.moved == 0 or ledger.held.size > _CELLS:
        ledger.adopt(direct)
        return
    best: tuple[int, BalanceTable, NDArray[np.int64]] | None = None
    for order in _orders(len(ledger.loads)):
        trial = ledger.reordered(order)
        trial.share_out(shares)
        _level_gently(trial)
        if best is None or trial.moved < best[0]:
            best = trial.moved, trial, order
        if best[0] == 0:
            break
    if best is not None:
        ledger.held[:, best[2]], ledger.loads[best[2]] = best[1].held, best[1].loads


def _orders(members: int) -> Iterator[NDArray[np.int64]]:
    there = np.arange(members)
    for order in (there, there[::-1]):
        yield order
        yield np.roll(order, members // 2)


def _level_gently(ledger: BalanceTable) -> None:
    if np.ptp(ledger.loads) > 1:
        _Gentle(ledger).run(hurting=True)
        while _give_back(ledger):
            pass


def _give_back(ledger: BalanceTable) -> bool:
    """Return one partition to its previous owner, if the group can be leveled again without taking others."""
    tries = _TRIES
    for kind, loser in np.argwhere(ledger.held < ledger.owned).tolist():
        for holder in np.flatnonzero(ledger.held[kind] > ledger.owned[kind]).tolist():
            trial = ledger.copy()
            trial.shift(kind, holder, loser)
            if _Gentle(trial).run(hurting=False):
                ledger.adopt(trial)
                return True
            tries -= 1
            if tries == 0:
                return False
    return False


class _Gentle(Levels):
    def run(self, *, hurting: bool) -> bool:
        """Level the group; return False if that would take from a previous owner and must not."""
        sidesteps = len(self.loads)
        while True:
            if any(self._pass_on(giver, chains=False) for giver in self._from_the_top()):
                continue
            pair = self._most_unfair()
            if pair is None:
                return True
            giver, taker = pair
            if self._pass_on(giver, chains=True):
                continue
            if sidesteps and (self._spare_giver(giver) or self._spare_taker(taker)):
                sidesteps -= 1
                continue
            if not hurting:
                return False
            self.move(self.cheapest_kind(giver, taker), giver, taker)

    def _from_the_top(self) -> list[int]:
        return [member for height in reversed(self.heights) for member in bits(self.at_load[height])]

    def _most_unfair(self) -> tuple[int, int] | None:
        """Return a giver and a taker, preferably a taker that need not give anything away in turn."""
        found: tuple[int, int] | None = None
        above: list[int] = []
        for height in reversed(self.heights):
            members = list(bits(self.at_load[height]))
            for giver in members:
                taker = self.least_loaded_taker(giver)
                if taker is None:
                    continue
                if not any(self.holds[other] & self.wants[giver] for other in above):
                    return giver, taker
                found = found or (giver, taker)
            above += members
        return found

    def _pass_on(self, giver: int, *, chains: bool) -> bool:
        """Relieve a member by a chain of partitions, each new to its giver, to a member with two fewer."""
        below = self.members_up_to(self.loads[giver] - 2)
        came: dict[int, tuple[int, int]] = {}
        seen = 1 << giver
        queue = [giver] if below else []
        for member in queue:
            for kind in bits(self.spare[member]):
                for taker in bits(self.takers[kind] & ~seen):
                    seen |= 1 << taker
                    came[taker] = member, kind
                    if chains:
                        queue.append(taker)
                    if below >> taker & 1:
                        self._carry_out(came, giver, taker)
                        return True
        return False

    def _carry_out(self, came: dict[int, tuple[int, int]], giver: int, end: int) -> None:
        while end != giver:
            member, kind = came[end]
            self.move(kind, member, end)
            end = member

    def _spare_giver(self, giver: int) -> bool:
        """Give something new to a member with one fewer, if no other member can then ask it for anything."""
        load = self.loads[giver]
        below = self.members_up_to(load - 2)
        for kind in bits(self.spare[giver]):
            for other in bits(self.takers[kind] & self.at_load.get(load - 1, 0)):
                if not (self.reach(other) | self.takers[kind]) & below:
                    self.move(kind, giver, other)
                    return True
        return False

    def _spare_taker(self, taker: int) -> bool:
        """Fill the taker up by a chain of partitions, each new to its giver, from a member that can spare
        one.

        That is one with at most one more than the taker, to which no member with many more can then give.
        """
        return any(self._fill_up(taker, kind) for kind in bits(self.wants[taker]))

    def _fill_up(self, taker: int, kind: int) -> bool:
        has = self.holds[taker] | 1 << kind
        load = self.loads[taker]
        others = [member for member in range(len(self.loads)) if member != taker]
        came = {other: (taker, kind) for other in others if self.spare[other] >> kind & 1}
        queue = list(came)
        for member in queue:
            one_more = self.loads[member] == load + 1
            as_much = self.loads[member] == load and not has & self.wants[member]
            if (one_more or as_much) and not self._can_be_given(member):
                giver = member
                while giver != taker:
                    receiver, passed = came[giver]
                    self.move(passed, giver, receiver)
                    giver = receiver
                return True
            for other in others:
                kinds = self.spare[other] & self.wants[member]
                if kinds and other not in came:
                    came[other] = member, lowest(kinds)
                    queue.append(other)
        return False

    def _can_be_given(self, member: int) -> bool:
        """Return whether another member could give to this one if it had one fewer."""
        least = self.loads[member] + 1
        return any(
            self.holds[giver] & self.wants[member]
            for height in self.heights
            if height >= least
            for giver in bits(self.at_load[height])
        )
