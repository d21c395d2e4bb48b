"""How a run should behave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from restow.execute.throttle.throttles import ThrottleRates

if TYPE_CHECKING:
    from restow.execute.throttle.hours import HourlyThrottle, Hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """Beyond these a run pauses by itself, and goes on by itself when it is well again."""

    under_replicated: int | None = 0
    """How many partitions more than at the start may lack a replica; None for any number."""
    offline: int | None = 0
    latency_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a run should behave."""

    throttle: ThrottleRates = field(default_factory=ThrottleRates)
    auto: bool = False
    """Whether the throttle looks for its own height."""
    hourly: HourlyThrottle | None = None
    """Throttles for parts of the day; what holds at the moment replaces `throttle` and `auto`."""
    own_dir_rate: bool = False
    """Whether copies between directories have a rate of their own, which does not follow the throttle."""
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
