"""The states of a group and the allowed transitions.

         first member joins
Empty ───────────────────────► PreparingRebalance ◄─────────────┐
  ▲                              │       ▲                      │
  │ no member joined             │       │ a member joined,     │ a member joined,
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
    """A transition that the table does not allow: a defect here, never a client's fault."""


class GroupState(Enum):
    """A group's state; the value is the name that clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"

    def may_become(self, target: GroupState) -> bool:
        """Return whether the table allows that transition."""
        return self in _CAME_FROM[target]

    @property
    def can_rebalance(self) -> bool:
        """Return whether a rebalance can start from here."""
        return self.may_become(GroupState.PREPARING_REBALANCE)


_CAME_FROM = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE,),
    GroupState.PREPARING_REBALANCE: (GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY),
    GroupState.COMPLETING_REBALANCE: (GroupState.PREPARING_REBALANCE,),
    GroupState.STABLE: (GroupState.COMPLETING_REBALANCE,),
    GroupState.DEAD: tuple(GroupState),
}
