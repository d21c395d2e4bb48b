"""The states of a transaction and the allowed transitions.

              first partition           commit                  all markers written
    Empty ─────────────────────► Ongoing ──► PrepareCommit ───────────────────────► CompleteCommit
      ▲                            │  ▲                                                 │
      │ new producer               │  └───────────── first partition of the next ───────┤
      │                            │ abort, timeout, or a new producer                  │
      └── CompleteAbort ◄── PrepareAbort ◄─┘                                            │
      └─────────────────────────────────────────── new producer ────────────────────────┘

PrepareEpochFence is only ever pending: a new producer or a timeout has raised the epoch, and the abort
follows. Dead: the transactional id has expired.
"""

from __future__ import annotations

from enum import Enum


class TransactionState(Enum):
    """A state: its number in records, and the name that clients see."""

    EMPTY = (0, "Empty")
    ONGOING = (1, "Ongoing")
    PREPARE_COMMIT = (2, "PrepareCommit")
    PREPARE_ABORT = (3, "PrepareAbort")
    COMPLETE_COMMIT = (4, "CompleteCommit")
    COMPLETE_ABORT = (5, "CompleteAbort")
    DEAD = (6, "Dead")
    PREPARE_EPOCH_FENCE = (7, "PrepareEpochFence")

    @property
    def number(self) -> int:
        return self.value[0]

    @property
    def label(self) -> str:
        return self.value[1]

    def may_become(self, target: TransactionState) -> bool:
        """Return whether the table allows that transition."""
        return self in _CAME_FROM[target]

    @property
    def is_ended(self) -> bool:
        """Whether no transaction is open, and none is being ended."""
        return self in _ENDED

    @property
    def is_ending(self) -> bool:
        """Whether markers are being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


BY_NUMBER = {state.number: state for state in TransactionState}
BY_LABEL = {state.label: state for state in TransactionState}

_S = TransactionState
_ENDED = frozenset((_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT))
_CAME_FROM = {
    _S.EMPTY: _ENDED,
    _S.ONGOING: _ENDED | {_S.ONGOING},
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: frozenset({_S.ONGOING}),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: _ENDED,
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}
