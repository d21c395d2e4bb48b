"""How a run came out, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import TopicPartition


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
    Ending.DONE: "nothing is left to do; `restow undo` would bring everything back",
    Ending.IN_PART: "see why above, then `restow resume` for the rest or `restow undo` for all of it",
    Ending.CANCELLED: "`restow resume` goes on from here, `restow undo` brings back what had arrived",
    Ending.LEFT: "throttles stay on until `restow resume` or `restow cancel` has seen to the rest",
    Ending.STUCK: "remove what hinders it, then `restow resume`; or `restow undo`",
    Ending.LOST: "when the cluster can be reached again: `restow resume`, or `restow cancel`",
    Ending.FAILED: "`restow resume` when the cause is gone; or `restow cancel`, or `restow doctor --fix`",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An ending, why, and which partitions were left out."""

    ending: Ending
    reason: str = ""
    dropped: Mapping[TopicPartition, str] = field(default_factory=dict)
    throttles_left: tuple[str, ...] = ()
    """Settings that could not be brought back yet; the journal knows them."""

    @property
    def is_good(self) -> bool:
        return self.ending is Ending.DONE and not self.throttles_left

    @property
    def next(self) -> str:
        """What to do now."""
        if self.throttles_left and self.ending not in (Ending.LEFT, Ending.LOST, Ending.FAILED):
            return (
                f"{len(self.throttles_left)} throttle settings could not be brought back, the first of them "
                f"{self.throttles_left[0]}: `restow doctor --fix` does it when what hinders it is gone"
            )
        return _NEXT[self.ending]

    def document(self) -> dict[str, object]:
        return {
            "outcome": self.ending.value,
            "reason": self.reason,
            "dropped": {str(partition): reason for partition, reason in self.dropped.items()},
            "throttles_left": list(self.throttles_left),
            "next": self.next,
        }
