"""The exact last step of balancing: exchange partitions until no exchange helps.

See the assignment as a flow from kinds to members. Moving one partition of a kind from a to b has a price, in
this order: how much the balance worsens, whether a partition leaves its previous owner (or comes back to it),
whether it is now read across racks. A chain of such moves from a to b changes only the loads of its ends, and
a closed chain changes none. By the theory of minimum-cost flows, an assignment is optimal exactly when no
chain has a negative price; so such chains are searched (Bellman–Ford, all members and kinds at once) and
applied until none is left.

The balance enters as the sum of squared loads. Among all assignments, one sorted list of loads is at least as
level as any other at every step (the loads form an integral base polyhedron), and both the squares and
Kafka's sum of pairwise differences have their minimum exactly there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from restow.assignors.ledger import BalanceTable

_NEVER = 1 << 56
_ROOT = -1

# How many searches may go into rack matching alone once balance and movement are settled.
_RACK_SEARCHES = 64


def settle(ledger: BalanceTable) -> None:
    """Apply exchanges until the table is optimal.

    In this order: balance, partitions kept by their previous owners, partitions read within a rack. The last
    stops after a bounded number of searches; a cross-rack read is no error.
    """
    _improve(_Search(ledger, None, loads_may_change=True))
    if ledger.far is not None:
        _improve(_Search(ledger, ledger.far, loads_may_change=True))


def swap(ledger: BalanceTable) -> None:
    """Apply only exchanges that keep every count: back to the previous owner, or to a nearer rack."""
    _improve(_Search(ledger, ledger.far, loads_may_change=False))


def _improve(search: _Search) -> None:
    rack_searches = 0
    while rack_searches < _RACK_SEARCHES:
        gained = search.improve()
        if gained == 0:
            return
        if gained < search.move:
            rack_searches += 1


class _Search:
    """The prices of taking a partition of a kind from, or giving it to, each member, and the search."""

    def __init__(
        self, ledger: BalanceTable, far: NDArray[np.bool_] | None, *, loads_may_change: bool
    ) -> None:
        self.ledger = ledger
        self.loads_may_change = loads_may_change
        kinds, members = ledger.allowed.shape
        longest = 2 * (min(kinds, members) + 1)
        self.move = 1 if far is None else longest + 1
        self.step = (self.move + 1) * longest + 1 if loads_may_change else 0
        near = np.zeros((kinds, members), dtype=np.int64)
        self.far = near if far is None else far.astype(np.int64)
        held, owned = ledger.held, ledger.owned
        self.take = np.where(held > 0, np.where(held > owned, 0, self.move) - self.far, _NEVER)
        self.give = np.where(ledger.allowed, np.where(held < owned, -self.move, 0) + self.far, _NEVER)

    def _price(self, kind: int, member: int) -> None:
        """Compute the prices of one cell again."""
        ledger, far = self.ledger, self.far[kind, member]
        held, owned = ledger.held[kind, member], ledger.owned[kind, member]
        self.take[kind, member] = (0 if held > owned else self.move) - far if held > 0 else _NEVER
        if ledger.allowed[kind, member]:
            self.give[kind, member] = (-self.move if held < owned else 0) + far

    def improve(self) -> int:
        """Find and apply exchanges; return the total gain."""
        reached, kind_before, member_before = self._shortest()
        ends = _loops(member_before)
        if self.loads_may_change:
            price = reached + self.step * (2 * self.ledger.loads + 1)
            ends += np.argsort(price, kind="stable")[: np.count_nonzero(price < 0)].tolist()
        gained = 0
        for end in ends:
            chain = _walk(end, kind_before, member_before)
            while (gain := self._try(chain)) > 0:
                gained += gain
        return gained

    def _shortest(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the least price of a chain to each member, with the last kind and the member before it."""
        loads = self.ledger.loads
        kinds, members = np.arange(len(self.take)), np.arange(len(loads))
        reached = np.where(loads > 0, -self.step * (2 * loads - 1), _NEVER)
        kind_before = np.full(len(loads), _ROOT, dtype=np.int64)
        member_before = np.full(len(loads), _ROOT, dtype=np.int64)
        for lap in range(len(loads) + 1):
            from_member = reached + self.take
            giver = from_member.argmin(axis=1)
            to_member = from_member[kinds, giver][:, None] + self.give
            kind = to_member.argmin(axis=0)
            nearer = to_member[kind, members]
            better = nearer < np.minimum(reached, _NEVER // 2)
            if not better.any():
                break
            reached = np.where(better, nearer, reached)
            kind_before = np.where(better, kind, kind_before)
            member_before = np.where(better, giver[kind], member_before)
            if lap % 4 == 3 and _loops(member_before):
                break
        return reached, kind_before, member_before

    def _try(self, chain: list[tuple[int, int, int]]) -> int:
        """Apply the chain if that still helps; return the gain.

        Its price is first looked up as a whole, which is wrong only if it uses one cell twice; so it is
        summed again on the way, and undone if it was wrong.
        """
        price = sum([int(self.take[kind, giver] + self.give[kind, taker]) for kind, giver, taker in chain])
        first, last = chain[0][1], chain[-1][2]
        loads = self.ledger.loads
        relief = 2 * self.step * int(loads[first] - loads[last] - 1) if first != last else 0
        if relief <= price:
            return 0
        paid = 0
        for kind, giver, taker in chain:
            paid += int(self.take[kind, giver]) + int(self.give[kind, taker])
            self._shift(kind, giver, taker)
        if relief > paid:
            return relief - paid
        for kind, giver, taker in reversed(chain):
            self._shift(kind, taker, giver)
        return 0

    def _shift(self, kind: int, giver: int, taker: int) -> None:
        self.ledger.shift(kind, giver, taker)
        self._price(kind, giver)
        self._price(kind, taker)


def _walk(
    end: int, kind_before: NDArray[np.int64], member_before: NDArray[np.int64]
) -> list[tuple[int, int, int]]:
    """Return the chain that leads to a member, or the closed one that its way back runs into."""
    chain: list[tuple[int, int, int]] = []
    seen = {end: 0}
    at = end
    while (giver := int(member_before[at])) != _ROOT:
        chain.append((int(kind_before[at]), giver, at))
        if giver in seen:
            chain = chain[seen[giver] :]
            break
        at = giver
        seen[at] = len(chain)
    chain.reverse()
    return chain


def _loops(member_before: NDArray[np.int64]) -> list[int]:
    """Return a member of each closed chain: their ways back never reach a root."""
    back = np.where(member_before == _ROOT, np.arange(len(member_before)), member_before)
    steps = 1
    while steps < len(back):  # doubling: one step back, two, four, …
        back = back[back]
        steps *= 2
    endless = back[member_before[back] != _ROOT]
    return np.unique(endless).tolist() if endless.size else []  # mostly, there is none
