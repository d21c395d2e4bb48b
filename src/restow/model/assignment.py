"""A partition's replicas, at rest or on the move.

While it moves, the replicas it is to have come first, then those it had and is to lose:

    at rest   1 2 3
    moving    3 4 5 6 1 2      adding 4 5 6, removing 1 2      (to 3 4 5 6)
    at rest   3 4 5 6

What it is to have can be read off in its order; what it had only as a set, for the order of those that stay
is the new one already.
"""

from __future__ import annotations

from typing import NamedTuple


class ReplicaAssignment(NamedTuple):
    """Replicas in order, the first of which should lead, and which of them a running move adds and removes.

    A tuple, because a controller keeps one for every partition there is.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_moving(self) -> bool:
        """Whether some replica is still to be added or removed."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas it is to have."""
        return _without(self.replicas, self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas it had before the move."""
        return _without(self.replicas, self.adding)

    def reassign_to(self, target: tuple[int, ...]) -> ReplicaAssignment:
        """On its way from where it was at rest to the target, wherever another move has got to."""
        origin = self.origin
        replicas = tuple(dict.fromkeys(target + origin))
        return ReplicaAssignment(replicas, _without(replicas, origin), _without(replicas, target))

    def cancel(self) -> ReplicaAssignment:
        """At rest again, with the replicas it had."""
        return self.reassign_to(self.origin)


def _without(replicas: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(each for each in replicas if each not in others) if others else replicas
