"""Leveling that takes as little as possible from those who held it before.

A cooperative group pays for every partition that changes hands: it stands still until its old reader has
let go of it and the group has met again. So here a group counts as level when no direct move would improve
it, which is where Kafka stops too, and among the many ways to get there one is looked for that takes little:

- what is new to its holder is passed on, along chains if need be, before anybody loses what they held;
- where a member would have to lose something, another with one partition less (or more) takes its place
  if that ends the matter;
- when all is level, what was taken is given back as long as the group can stay level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.leveling import level
from restow.assignors.levels import Levels, bits, lowest

if TYPE_CHECKING:
    from restow.assignors.ledger import Ledger

# All this searches: worth it up to about so many kinds × members. Larger groups are leveled directly.
_CELLS = 4096


def level_gently(ledger: Ledger) -> None:
    """Level a group with few partitions taken from those who held them."""
    if ledger.held.size > _CELLS:
        level(ledger)
    elif np.ptp(ledger.loads) > 1:
        _Gentle(ledger).run(hurting=True)
        while _give_back(ledger):
            pass


def _give_back(ledger: Ledger) -> bool:
    """Return one partition to who held it, if the group can be made level again without taking others."""
    for kind, loser in np.argwhere(ledger.held < ledger.owned).tolist():
        for holder in np.flatnonzero(ledger.held[kind] > ledger.owned[kind]).tolist():
            trial = ledger.copy()
            trial.shift(kind, holder, loser)
            if _Gentle(trial).run(hurting=False):
                ledger.held, ledger.loads = trial.held, trial.loads
                return True
    return False


class _Gentle(Levels):
    def run(self, *, hurting: bool) -> bool:
        """Level the group; False if that would hurt somebody and may not."""
        sidesteps = len(self.loads)
        while True:
            while any(self._pass_on(giver) for giver in self._from_the_top()):
                pass
            pair = self._most_unfair()
            if pair is None:
                return True
            giver, taker = pair
            if sidesteps and (self._spare_giver(giver) or self._spare_taker(taker)):
                sidesteps -= 1
                continue
            if not hurting:
                return False
            self.move(self.cheapest_kind(giver, taker), giver, taker)

    def _from_the_top(self) -> list[int]:
        return [member for height in reversed(self.heights) for member in bits(self.at_load[height])]

    def _most_unfair(self) -> tuple[int, int] | None:
        """Who should give to whom; rather one that nobody would then have to give something in turn."""
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

    def _pass_on(self, giver: int) -> bool:
        """Relieve a member by a chain of partitions, each new to who gives it, to one with two less."""
        below = self.members_up_to(self.loads[giver] - 2)
        came: dict[int, tuple[int, int]] = {}
        seen = 1 << giver
        queue = [giver] if below else []
        for member in queue:
            for kind in bits(self.spare[member]):
                for taker in bits(self.takers[kind] & ~seen):
                    seen |= 1 << taker
                    came[taker] = member, kind
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
        """Let one with one less have something new of the giver's, if nobody can then ask it for anything."""
        load = self.loads[giver]
        below = self.members_up_to(load - 2)
        for kind in bits(self.spare[giver]):
            for other in bits(self.takers[kind] & self.at_load.get(load - 1, 0)):
                if not (self.reach(other) | self.takers[kind]) & below:
                    self.move(kind, giver, other)
                    return True
        return False

    def _spare_taker(self, taker: int) -> bool:
        """Fill the taker up by a chain of partitions, each new to who gives it, from one that can do with less.

        That is one with at most one more than the taker, to whom nobody with much more can then give.
        """
        load = self.loads[taker]
        came: dict[int, tuple[int, int]] = {}
        seen = 1 << taker
        queue = [taker]
        for member in queue:
            for other in range(len(self.loads)):
                kinds = self.spare[other] & self.wants[member]
                if seen >> other & 1 or not kinds:
                    continue
                seen |= 1 << other
                came[other] = member, lowest(kinds)
                queue.append(other)
                chain = self._way(came, other, taker)
                had = self.holds[taker] | 1 << chain[-1][0]
                if self.loads[other] == load + 1 or (self.loads[other] == load and not had & self.wants[other]):
                    if not self._can_be_given(other):
                        for step in chain:
                            self.move(*step)
                        return True
        return False

    @staticmethod
    def _way(came: dict[int, tuple[int, int]], start: int, end: int) -> list[tuple[int, int, int]]:
        chain = []
        while start != end:
            member, kind = came[start]
            chain.append((kind, start, member))
            start = member
        return chain

    def _can_be_given(self, member: int) -> bool:
        """Whether somebody could give to this member if it had one less."""
        least = self.loads[member] + 1
        return any(
            self.holds[giver] & self.wants[member]
            for height in self.heights
            if height >= least
            for giver in bits(self.at_load[height])
        )
