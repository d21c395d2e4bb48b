"""The states of a group, and from where to where it may go.

         first member joins
Empty ───────────────────────► PreparingRebalance ◄─────────────┐
  ▲                              │       ▲                      │
  │ nobody joined                │       │ somebody came,       │ somebody came,
  ├──────────────────────────────┤       │ left or changed      │ left or changed
  │                              ▼       │                      │
  │           all have joined, or the time is up                │
  │                    CompletingRebalance ────────────────► Stable
  │                                       the leader's assignment is written
  ▼
Dead ◄── from every state: deleted, expired, or moved to another coordinator
"""

from __future__ import annotations

from enum import Enum

from restow.errors import RestowError


class IllegalTransition(RestowError):
    """A group was told to go where its state does not lead: a defect here, never of a client."""


class GroupState(Enum):
    """Where a group is; the value is the name that clients are shown."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"

    def may_become(self, target: GroupState) -> bool:
        """Whether the table below has that step."""
        return self in _CAME_FROM[target]

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance can begin here."""
        return self.may_become(GroupState.PREPARING_REBALANCE)


_CAME_FROM = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE,),
    GroupState.PREPARING_REBALANCE: (GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY),
    GroupState.COMPLETING_REBALANCE: (GroupState.PREPARING_REBALANCE,),
    GroupState.STABLE: (GroupState.COMPLETING_REBALANCE,),
    GroupState.DEAD: tuple(GroupState),
}
