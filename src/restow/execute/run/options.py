"""The options of a run."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, TypedDict

from restow._frozen import frozen
from restow.execute.predict.moments import moment_ms
from restow.execute.throttle.hours import HourlyThrottle, Hours
from restow.execute.throttle.throttles import ThrottleRates
from restow.sizes import parse_rate

if TYPE_CHECKING:
    from restow.model.load import LoadModel


@frozen
class Guards:
    """Limits at which a run pauses by itself, until the cluster is well again."""

    under_replicated: int | None = 0
    """How many more partitions than at the start may be under-replicated; None for no limit."""
    offline: int | None = 0
    latency_s: float | None = None


@frozen
class RunOptions:
    """The options of a run."""

    throttle: ThrottleRates = field(default_factory=ThrottleRates)
    auto: bool = False
    """Whether the throttle adjusts itself."""
    hourly: HourlyThrottle | None = None
    """Throttles by hour of the day; the present one replaces `throttle` and `auto`."""
    own_dir_rate: bool = False
    """Whether copies between log dirs have a rate of their own."""
    hours: Hours | None = None
    guards: Guards = field(default_factory=Guards)
    special_last: bool = True
    """Move `__consumer_offsets` and `__transaction_state` after all others, one at a time."""
    elect: bool = True
    """Whether to elect preferred leaders once a partition has arrived."""
    elections_at_once: int = 50
    look_every_s: float = 0.1
    """The longest pause between two checks for completed steps; checks are more frequent after a change."""
    survey_every_s: float = 2.0
    """How often to look at the whole cluster, which costs more."""
    stall_s: float = 30.0
    """A replica without progress for this long is stalled."""
    give_up_s: float = 600.0
    """The run ends after this long in which nothing under way could go on, and nothing else begin."""
    patience_s: float = 300.0
    """The run ends after the cluster has been unreachable for this long."""
    predicts: bool = True
    """Whether the run is predicted, and tells the time left. A rehearsal, a prediction itself, does not."""
    load: LoadModel | None = None
    """What producers write and consumers read, for the prediction."""
    deadline: str | None = None
    """When the run has to be done, like "06:00" or "4h"."""
    anyway: bool = False
    """Whether to begin although the prediction speaks against it. A log dir that would be too full is always
    refused."""

    @property
    def sets_throttles(self) -> bool:
        """Return whether the run sets any throttle."""
        return self.throttle != ThrottleRates() or self.auto or self.hourly is not None


class RunFlags(TypedDict, total=False):
    """Further options of a run, named like the flags of `restow execute`."""

    dir_throttle: str | None
    """The rate for copies between a broker's log dirs, such as "50MB/s"; otherwise as the throttle."""
    hours: str | None
    """Begin moves only at these hours: "22:00-06:00"."""
    max_under_replicated: int
    """Pause when more partitions than this become under-replicated; -1 for no limit. Default 0."""
    max_latency_ms: float | None
    """Pause when brokers take longer than this to answer."""
    special_last: bool
    """Move `__consumer_offsets` and `__transaction_state` last, one partition at a time. Default True."""
    elect: bool
    """Elect preferred leaders once they are in sync. Default True."""
    give_up_after: float
    """End the run when nothing could move for this many seconds. Default 600."""


def run_options(
    *,
    throttle: str,
    dir_throttle: str | None = None,
    hours: str | None = None,
    max_under_replicated: int = 0,
    max_latency_ms: float | None = None,
    special_last: bool = True,
    elect: bool = True,
    give_up_after: float = 600.0,
) -> RunOptions:
    """Return the options of a run; refuse invalid values before the cluster is asked."""
    wanted = HourlyThrottle.parse(throttle)
    usual = wanted.usual.bytes_per_s
    dir_rate = parse_rate(dir_throttle, "--dir-throttle") if dir_throttle else None
    allowed = None if max_under_replicated < 0 else max_under_replicated
    return RunOptions(
        throttle=ThrottleRates(rate=usual, dir_rate=dir_rate or usual),
        auto=wanted.usual.auto,
        hourly=wanted if wanted.by_hour else None,
        own_dir_rate=dir_rate is not None,
        hours=Hours.parse(hours) if hours else None,
        guards=Guards(
            under_replicated=allowed,
            offline=allowed,
            latency_s=None if max_latency_ms is None else max_latency_ms / 1000,
        ),
        special_last=special_last,
        elect=elect,
        give_up_s=give_up_after,
    )


def expecting(
    options: RunOptions, *, load: LoadModel | None = None, deadline: str | None = None, anyway: bool = False
) -> RunOptions:
    """Return the options with what the prediction has to know; refuse a deadline that is no time."""
    if deadline is not None:
        moment_ms(deadline, 0, "--deadline")
    return replace(options, load=load, deadline=deadline, anyway=anyway)
