"""How a run ended, and what to do next."""

from __future__ import annotations

from dataclasses import asdict, field, replace
from enum import Enum
from math import inf
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.html.page import paragraph, table
from restow.plan.drift import REBASE
from restow.sizes import count, some

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.execute.journal.ledger import RunLedger
    from restow.execute.predict.prediction import Prediction
    from restow.model import TopicPartition


NO_ANSWER_IN_TIME = "told to end, and the cluster did not answer in time"


class Ending(Enum):
    """The ways a run can end."""

    DONE = "done"
    IN_PART = "done in part"
    CANCELLED = "cancelled"
    LEFT = "left running"
    STUCK = "stuck"
    LOST = "out of reach"
    FAILED = "failed"


_NEXT = {
    Ending.DONE: "every move of the plan is done; `restow undo` would bring everything back",
    Ending.IN_PART: "see why above, then `restow resume` for the rest or `restow undo` for all of it",
    Ending.CANCELLED: "`restow resume` goes on from here, `restow undo` brings back what had arrived",
    Ending.LEFT: "throttles stay on until `restow resume` or `restow cancel` has seen to the rest",
    Ending.STUCK: "remove what hinders it, then `restow resume`; or `restow undo`",
    Ending.LOST: "when the cluster can be reached again: `restow resume`, or `restow cancel`",
    Ending.FAILED: "`restow resume` when the cause is gone; or `restow cancel`, or `restow doctor --fix`",
}

_STUCK_UNDER_WAY = (
    "{moves} left under way{throttled}. Remove what hinders it, then `restow resume`; or `restow cancel` to "
    "take back what is under way"
)
_NOTHING_UNDER_WAY = "nothing is under way: `restow resume` goes on from here, `restow cancel` ends it here"
_UNDO_ALL = "or `restow undo` for all of it"

_WITHOUT_UNDO = {
    Ending.DONE: "every move of the plan is done",
    Ending.IN_PART: "see why above, then `restow resume` for the rest",
    Ending.CANCELLED: "`restow resume` goes on from here",
    Ending.STUCK: "remove what hinders it, then `restow resume`",
}
OFFERS_UNDO = _WITHOUT_UNDO.keys()
_ALL_TAKEN = (
    f"see why above; `restow resume` would leave these out again. If they are still to move, {REBASE}"
)
_SOME_TAKEN = f"see why above, then `restow resume` for the rest. For what others have changed, {REBASE}"


@frozen
class Summary:
    """What a run has copied, as observed, and what is left."""

    run: str
    partitions_moved: int
    """Partitions that have arrived since the run began or was resumed."""
    partitions_moved_before: int = 0
    """Partitions that had arrived before the run was resumed."""
    partitions_left: int
    """Partitions not begun, under way, or dropped."""
    copied_bytes: int
    left_bytes: int
    """Bytes that the remaining steps would copy, and those of the dropped partitions that still exist."""
    seconds: float
    prediction: Prediction | None = None
    """What was predicted when the run began or was resumed; None if it had nothing to do."""
    done: bool = False
    """Whether the run came to its end, so that its time can be compared with the predicted one."""
    busiest: str = ""
    """The broker with the most to copy, and in which direction."""
    busiest_bytes: int = 0
    steered: tuple[str, ...] = ()
    """What an operator has changed meanwhile, such as `throttle`: the prediction is of a run without that."""
    held: str = ""
    """Why a guard paused the run meanwhile; empty if none did."""
    waited: str = ""
    """How long nothing could move meanwhile, and why; empty if something always could."""

    @property
    def mean_rate(self) -> float:
        """Return the bytes per second of all brokers together over the whole run."""
        return self.copied_bytes / self.seconds if self.seconds > 0 else 0.0

    @property
    def predicted_s(self) -> float | None:
        """Return the seconds that were predicted, P50; None if nothing was, or that it never ends."""
        seconds = inf if self.prediction is None else self.prediction.seconds.p50
        return None if seconds == inf else seconds

    @property
    def error(self) -> float | None:
        """Return how much longer it took than predicted, as a share; negative if it was faster."""
        as_told = self.done and not self.steered
        return self.seconds / self.predicted_s - 1 if as_told and self.predicted_s else None

    @property
    def busiest_rate(self) -> float:
        return self.busiest_bytes / self.seconds if self.seconds > 0 else 0.0

    def document(self) -> dict[str, object]:
        told = self.prediction
        return {
            **{name: value for name, value in asdict(self).items() if name not in ("prediction", "done")},
            "seconds": round(self.seconds, 1),
            "mean_rate": round(self.mean_rate),
            "predicted_s": None if self.predicted_s is None else round(self.predicted_s, 1),
            "predicted": None if told is None else told.seconds.document(),
            "predicted_by": None if told is None else told.by,
            "prediction_error": None if self.error is None else round(self.error, 3),
            "busiest_rate": round(self.busiest_rate),
        }


@frozen
class RunOutcome:
    """An ending, its reason, and the partitions that were dropped."""

    ending: Ending
    reason: str = ""
    dropped: Mapping[TopicPartition, str] = field(default_factory=dict)
    taken: frozenset[TopicPartition] = frozenset()
    """Dropped partitions that somebody else has changed: `restow resume` would drop them again."""
    under_way: tuple[TopicPartition, ...] = ()
    """Partitions whose moves are left under way: they go on by themselves as soon as they can."""
    throttles_left: tuple[str, ...] = ()
    """Throttle configs that could not be restored yet; they are in the journal."""
    summary: Summary | None = None
    no_undo: str | None = None
    """Why `restow undo` would be refused now; None if it would not, or if that was not checked."""

    def with_rest(self, ledger: RunLedger, summary: Summary) -> RunOutcome:
        """Return the outcome with what the run has left behind, by its journal."""
        return replace(
            self,
            dropped=ledger.dropped,
            taken=ledger.taken,
            under_way=tuple(ledger.in_progress),
            throttles_left=tuple(f"{s.key} of {s.of} {s.name}" for s in sorted(ledger.ours)),
            summary=summary,
        )

    @property
    def run(self) -> str:
        """The name of the run, which is that of its journal's folder."""
        return "" if self.summary is None else self.summary.run

    @property
    def is_good(self) -> bool:
        """Whether all of the plan is done, and no throttle was left behind."""
        return self.ending is Ending.DONE and not self.throttles_left

    @property
    def next(self) -> str:
        """Say what to do now."""
        if self.ending is Ending.STUCK and self.under_way:
            throttled = ", throttled" if self.throttles_left else ""
            told = _STUCK_UNDER_WAY.format(moves=count(len(self.under_way), "move"), throttled=throttled)
            return f"{told}; {self._undo_told or _UNDO_ALL}"
        if self.ending is Ending.LEFT and not (self.under_way or self.throttles_left):
            return _NOTHING_UNDER_WAY
        if self.throttles_left and self.ending not in (Ending.LEFT, Ending.LOST, Ending.FAILED):
            settings = count(len(self.throttles_left), "throttle setting")
            return (
                f"{settings} could not be brought back, the first of them "
                f"{self.throttles_left[0]}: `restow doctor --fix` does it when what hinders it is gone"
            )
        if self.ending is Ending.IN_PART and self.taken:
            told = _ALL_TAKEN if self.dropped.keys() <= self.taken else _SOME_TAKEN
            return f"{told}; {self._undo_told or '`restow undo` would bring back what this run has moved'}"
        if self._undo_told and self.ending in _WITHOUT_UNDO:
            return f"{_WITHOUT_UNDO[self.ending]}; {self._undo_told}"
        return _NEXT[self.ending]

    @property
    def _undo_told(self) -> str:
        return "" if self.no_undo is None else f"`restow undo` would be refused now: {self.no_undo}"

    def _repr_html_(self) -> str:
        rows = [] if self.summary is None else list(self.summary.document().items())
        rows += [(f"left out: {partition}", why) for partition, why in self.dropped.items()]
        rows += [("left under way", some(self.under_way))] if self.under_way else []
        reason = f": {self.reason}" if self.reason else ""
        return paragraph(f"{self.ending.value}{reason}") + table(("", ""), rows) + paragraph(self.next)

    def document(self) -> dict[str, object]:
        return {
            "outcome": self.ending.value,
            "reason": self.reason,
            "dropped": {str(partition): reason for partition, reason in self.dropped.items()},
            "under_way": [str(partition) for partition in self.under_way],
            "throttles_left": list(self.throttles_left),
            "next": self.next,
            "summary": None if self.summary is None else self.summary.document(),
        }
