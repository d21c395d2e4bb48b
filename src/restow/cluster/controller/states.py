"""The state tables: which states a replica and a partition may enter, and from which.

A replica:

    NonExistent ──► New ──► Online ◄──► Offline ──► DeletionStarted ──► DeletionSuccessful ──► NonExistent
                     │                  ▲  ▲  │           │
                     └──────────────────┘  │  ▼           ▼
                                  DeletionIneligible ◄────┘        (and ──► Online, when its broker is back)

A partition:

    NonExistent ──► New ──► Online ◄──► Offline ──► NonExistent
                     └────────────────────▲

Online and Offline may be entered again from themselves. Other transitions are refused and logged.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

_log = logging.getLogger(__name__)


class ReplicaState(Enum):
    """State of one replica on one broker."""

    NEW = "New"
    ONLINE = "Online"
    OFFLINE = "Offline"
    DELETION_STARTED = "DeletionStarted"
    DELETION_SUCCESSFUL = "DeletionSuccessful"
    DELETION_INELIGIBLE = "DeletionIneligible"
    NON_EXISTENT = "NonExistent"


class PartitionState(Enum):
    """State of one partition."""

    NEW = "New"
    ONLINE = "Online"
    OFFLINE = "Offline"
    NON_EXISTENT = "NonExistent"


_R = ReplicaState
REPLICA_ORIGINS: Mapping[ReplicaState, frozenset[ReplicaState]] = {
    _R.NEW: frozenset({_R.NON_EXISTENT}),
    _R.ONLINE: frozenset({_R.NEW, _R.ONLINE, _R.OFFLINE, _R.DELETION_INELIGIBLE}),
    _R.OFFLINE: frozenset({_R.NEW, _R.ONLINE, _R.OFFLINE, _R.DELETION_INELIGIBLE}),
    _R.DELETION_STARTED: frozenset({_R.OFFLINE}),
    _R.DELETION_SUCCESSFUL: frozenset({_R.DELETION_STARTED}),
    _R.DELETION_INELIGIBLE: frozenset({_R.OFFLINE, _R.DELETION_STARTED}),
    _R.NON_EXISTENT: frozenset({_R.DELETION_SUCCESSFUL}),
}

_P = PartitionState
PARTITION_ORIGINS: Mapping[PartitionState, frozenset[PartitionState]] = {
    _P.NEW: frozenset({_P.NON_EXISTENT}),
    _P.ONLINE: frozenset({_P.NEW, _P.ONLINE, _P.OFFLINE}),
    _P.OFFLINE: frozenset({_P.NEW, _P.ONLINE, _P.OFFLINE}),
    _P.NON_EXISTENT: frozenset({_P.OFFLINE}),
}

K = TypeVar("K", bound="Hashable")
S = TypeVar("S", bound=Enum)


class States(Generic[K, S]):
    """The state of each key, with an index by state."""

    def __init__(self, absent: S) -> None:
        self._absent = absent
        self._of: dict[K, S] = {}
        self._in: defaultdict[S, dict[K, None]] = defaultdict(dict)

    def __getitem__(self, key: K) -> S:
        return self._of.get(key, self._absent)

    def __setitem__(self, key: K, state: S) -> None:
        self.drop(key)
        if state is not self._absent:
            self._of[key] = state
            self._in[state][key] = None

    def drop(self, key: K) -> None:
        """Remove the key."""
        if (before := self._of.pop(key, None)) is not None:
            del self._in[before][key]

    def among(self, *states: S) -> tuple[K, ...]:
        """Return the keys in one of these states."""
        return tuple(key for state in states for key in self._in[state])

    def legal(self, keys: Iterable[K], target: S, origins: Mapping[S, frozenset[S]]) -> list[K]:
        """Return the keys that may enter the target state. Log the others and leave them as they are."""
        allowed = origins[target]
        able = []
        for key in keys:
            if self[key] in allowed:
                able.append(key)
            else:
                _log.error("refused: %s is %s and cannot become %s", key, self[key].value, target.value)
        return able
