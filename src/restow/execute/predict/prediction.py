"""What was said of a run before it began, and how far the run is ahead of it or behind."""

from __future__ import annotations

from dataclasses import asdict
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from restow._frozen import frozen
from restow.sizes import human_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BY_SCHEDULE, BY_BUSIEST = "schedule", "busiest broker"
_WIDE = 1.5
_MOST_POINTS = 150


@frozen
class TimeRange:
    """Seconds, or infinity: one run in ten is faster than `p10`, and one in ten slower than `p90`."""

    p10: float
    p50: float
    p90: float

    def document(self) -> dict[str, float | None]:
        """Return the range as JSON; a time that never comes is null."""
        return {
            name: None if value == inf else round(value, 3) for name, value in sorted(asdict(self).items())
        }


@frozen
class Prediction:
    """What was said of a run before it began."""

    start_ms: int
    seconds: TimeRange
    by: str
    """"schedule" if the schedule was carried out in the flow model, "busiest broker" for very large plans."""
    guessed: tuple[str, ...] = ()
    """Constants of the model that no earlier run has measured."""
    curve: tuple[tuple[float, float], ...] = ()
    """Seconds since the start, and the bytes copied until then."""
    resumed: bool = False
    """Whether it is of the rest of a run that was resumed."""

    @property
    def ends_ms(self) -> int | None:
        """Return when the run ends by this; None if never."""
        return None if self.seconds.p50 == inf else self.start_ms + int(self.seconds.p50 * 1000)

    @property
    def is_guess(self) -> bool:
        """Return whether constants that nobody has measured decide the time. A throttle is no guess."""
        return bool(self.guessed) and self.seconds.p90 > _WIDE * self.seconds.p50

    def bytes_at(self, seconds: float) -> float:
        """Return the bytes that are copied after so many seconds."""
        times, sizes = self._columns()
        return float(np.interp(seconds, times, sizes))

    def ahead_s(self, share: float, seconds: float) -> float | None:
        """Return how far ahead a run is that has this share of its bytes now; negative if it is behind.

        While nothing is copied, as outside of its hours, the curve is flat: anywhere on it is in time.
        """
        times, sizes = self._columns()
        if self.seconds.p50 == inf or sizes[-1] <= 0:
            return None
        wanted = share * sizes[-1]
        first = _crossing(times, sizes, wanted, int(np.searchsorted(sizes, wanted, side="left")))
        last = _crossing(times, sizes, wanted, int(np.searchsorted(sizes, wanted, side="right")))
        return first - seconds if seconds < first else min(0.0, last - seconds)

    def document(self) -> dict[str, object]:
        """Return the prediction as JSON; `prediction_of` reads it back."""
        return {
            "start_ms": self.start_ms,
            "seconds": self.seconds.document(),
            "by": self.by,
            "guessed": list(self.guessed),
            "curve": [[round(at_s, 3), round(size)] for at_s, size in self.curve],
            "resumed": self.resumed,
        }

    def _columns(self) -> tuple[list[float], list[float]]:
        points = self.curve or ((0.0, 0.0),)
        return [at_s for at_s, _ in points], [size for _, size in points]


def _crossing(times: Sequence[float], sizes: Sequence[float], wanted: float, at: int) -> float:
    """Return when the line that ends at this point has the wanted bytes."""
    if at <= 0:
        return times[0]
    if at >= len(sizes):
        return times[-1]
    return float(np.interp(wanted, sizes[at - 1 : at + 1], times[at - 1 : at + 1]))


def prediction_of(document: Mapping[str, Any]) -> Prediction:
    """Read the JSON of `Prediction.document`; raise KeyError, TypeError or ValueError if it is not valid."""
    seconds = document["seconds"]
    p10, p50, p90 = (inf if seconds[name] is None else float(seconds[name]) for name in ("p10", "p50", "p90"))
    return Prediction(
        start_ms=int(document["start_ms"]),
        seconds=TimeRange(p10=p10, p50=p50, p90=p90),
        by=str(document["by"]),
        guessed=tuple(map(str, document["guessed"])),
        curve=tuple((float(at_s), float(size)) for at_s, size in document["curve"]),
        resumed=bool(document["resumed"]),
    )


class CopiedCurve:
    """The bytes that a run has copied over time, in a hundred points or so."""

    def __init__(self) -> None:
        self._points: list[tuple[float, int]] = [(0.0, 0)]
        self._apart_s = 0.0

    def add(self, at_s: float, copied: int, *, last: bool = False) -> None:
        """Add a point, unless it is close to the one before; never leave out the last."""
        if not last and at_s - self._points[-1][0] < self._apart_s:
            return
        self._points.append((round(at_s, 2), copied))
        if len(self._points) > _MOST_POINTS:
            self._points = self._points[::2]
            self._apart_s = 2 * at_s / _MOST_POINTS

    @property
    def points(self) -> tuple[tuple[float, int], ...]:
        return tuple(self._points)


@frozen
class PredictedNow:
    """A prediction beside what has really happened so far."""

    seconds: TimeRange
    by: str
    guessed: bool
    ends_ms: int | None
    elapsed_s: float
    due_bytes: int
    """The bytes that the prediction has copied by now."""
    ahead_s: float | None
    """How far ahead of the prediction the run is; negative if it is behind."""

    @classmethod
    def of(cls, prediction: Prediction, elapsed_s: float, share: float) -> PredictedNow:
        return cls(
            seconds=prediction.seconds,
            by=prediction.by,
            guessed=prediction.is_guess,
            ends_ms=prediction.ends_ms,
            elapsed_s=elapsed_s,
            due_bytes=int(prediction.bytes_at(elapsed_s)),
            ahead_s=prediction.ahead_s(share, elapsed_s),
        )

    def document(self) -> dict[str, object]:
        return {
            **{name: getattr(self, name) for name in ("by", "guessed", "ends_ms", "due_bytes")},
            "seconds": self.seconds.document(),
            "elapsed_s": round(self.elapsed_s, 1),
            "ahead_s": None if self.ahead_s is None else round(self.ahead_s, 1),
        }


def predicted_now_of(document: Mapping[str, Any]) -> PredictedNow:
    """Read the JSON of `PredictedNow.document`."""
    times = {name: inf if value is None else float(value) for name, value in document["seconds"].items()}
    ends_ms, ahead_s = document["ends_ms"], document["ahead_s"]
    return PredictedNow(
        seconds=TimeRange(**times),
        by=str(document["by"]),
        guessed=bool(document["guessed"]),
        ends_ms=None if ends_ms is None else int(ends_ms),
        elapsed_s=float(document["elapsed_s"]),
        due_bytes=int(document["due_bytes"]),
        ahead_s=None if ahead_s is None else float(ahead_s),
    )


def range_told(prediction: Prediction) -> str:
    """Return how long a run takes, by what, and how sure that is: `16 s (P10 13 s, P90 32 s), by the …`."""
    seconds = prediction.seconds
    if seconds.p50 == inf:
        return f"forever, by the {prediction.by}"
    guess = ", mostly guessed" if prediction.is_guess else ""
    rest = " for the rest" if prediction.resumed else ""
    low, middle, high = (human_duration(each) for each in (seconds.p10, seconds.p50, seconds.p90))
    return f"{middle}{rest} (P10 {low}, P90 {high}), by the {prediction.by}{guess}"


def error_told(
    predicted_s: float | None,
    took_s: float | None,
    steered: Sequence[str] = (),
    held: str = "",
    waited: str = "",
) -> str:
    """Say how far off a prediction was, like `, 3.8% longer`; nothing if not known, or under a second.

    A run that an operator has `steered` is another one than was predicted. `held` says why a guard paused it,
    `waited` how long nothing could move, and why.
    """
    delays = f"; a guard paused it meanwhile ({held})" if held else ""
    delays += f"; nothing could move for {waited}" if waited else ""
    if steered:
        return f"; an operator changed it meanwhile ({', '.join(steered)}){delays}"
    if not predicted_s or predicted_s == inf or took_s is None or max(predicted_s, took_s) < 1:
        return delays
    error = took_s / predicted_s - 1
    return f", {abs(error):.1%} {'longer' if error > 0 else 'less'}{delays}"


@frozen
class Objection:
    """Something that speaks against a run."""

    why: str
    final: bool = False
    """Whether nobody may go on all the same."""
