"""A partition's replicas, at rest or during a reassignment.

During a reassignment the target replicas come first, then those to be removed:

    at rest   1 2 3
    moving    3 4 5 6 1 2      adding 4 5 6, removing 1 2      (to 3 4 5 6)
    at rest   3 4 5 6

The target can be read off in order. The original can be read off only as a set, because the replicas that
stay are in the new order already.
"""

from __future__ import annotations

from typing import NamedTuple


class ReplicaAssignment(NamedTuple):
    """Replicas in order, the preferred leader first, and those that a reassignment adds and removes.

    A tuple, because a controller keeps one for every partition.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_moving(self) -> bool:
        """Whether a replica is still to be added or removed."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The target replicas."""
        return _without(self.replicas, self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before the reassignment."""
        return _without(self.replicas, self.adding)

    def reassign_to(self, target: tuple[int, ...]) -> ReplicaAssignment:
        """Start a reassignment from the original replicas to the target, replacing one in progress."""
        origin = self.origin
        replicas = tuple(dict.fromkeys(target + origin))
        return ReplicaAssignment(replicas, _without(replicas, origin), _without(replicas, target))

    def cancel(self) -> ReplicaAssignment:
        """Return to the original replicas."""
        return self.reassign_to(self.origin)


def _without(replicas: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(each for each in replicas if each not in others) if others else replicas
