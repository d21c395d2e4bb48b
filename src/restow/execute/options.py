"""How a run should behave."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from restow.errors import InvalidInput
from restow.execute.throttles import Wanted

_HOURS = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-4]):([0-5]\d)")
_DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class Hours:
    """A part of the day, in minutes since midnight; it may go over midnight."""

    begin: int
    end: int

    @classmethod
    def parse(cls, text: str) -> Hours:
        """`22:00-06:00`."""
        found = _HOURS.fullmatch(text.strip())
        if found is None:
            raise InvalidInput(f"hours: {text!r} is not a part of the day; write it like 22:00-06:00")
        begin, end = (int(found[i]) * 60 + int(found[i + 1]) for i in (1, 3))
        if begin == end or end > _DAY:
            raise InvalidInput(f"hours: {text!r} is no part of the day; write it like 22:00-06:00")
        return cls(begin, end)

    def contain(self, minute: int) -> bool:
        if self.begin < self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end

    def __str__(self) -> str:
        return "{:02}:{:02}-{:02}:{:02}".format(*divmod(self.begin, 60), *divmod(self.end, 60))


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """Beyond these a run pauses by itself, and goes on by itself when it is well again."""

    under_replicated: int | None = 0
    """How many partitions more than at the start may lack a replica; None for any number."""
    offline: int | None = 0
    latency_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a run should behave."""

    throttle: Wanted = field(default_factory=Wanted)
    auto: bool = False
    """Whether the throttle looks for its own height."""
    hours: Hours | None = None
    guards: Guards = field(default_factory=Guards)
    special_last: bool = True
    """`__consumer_offsets` and `__transaction_state` after all others, one at a time."""
    elect: bool = True
    """Whether first replicas are asked to lead when their partition has arrived."""
    elections_at_once: int = 50
    look_every_s: float = 0.1
    """How often at least to ask what has ended; soon after a change it is asked more often."""
    survey_every_s: float = 2.0
    """How often to look at the whole cluster, which costs more."""
    stall_s: float = 30.0
    """After so long without a byte a replica stands still."""
    give_up_s: float = 600.0
    """After so long with nothing under way and nothing that may begin, the run ends."""
    patience_s: float = 300.0
    """For so long the cluster may be out of reach."""
