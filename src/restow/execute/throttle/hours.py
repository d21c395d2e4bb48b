"""Hours of the day, and throttles that depend on them.

    20MB/s                      the same all day
    20MB/s,22-06=200MB/s        200MB/s from ten in the evening to six in the morning
    auto,08:30-17:00=5MB/s      5MB/s in office hours, and automatic otherwise

Hours are local time where the run is executed. An hour that occurs twice when summer time ends counts twice;
an hour that is skipped when it begins does not count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from restow.errors import InvalidInput
from restow.sizes import parse_rate

AUTO, NONE = "auto", "none"
DAY = 24 * 60
_HOURS = re.compile(r"([01]?\d|2[0-3])(?::([0-5]\d))?-([01]?\d|2[0-4])(?::([0-5]\d))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Hours:
    """A part of the day, in minutes since midnight; it may span midnight."""

    begin: int
    end: int

    @classmethod
    def parse(cls, text: str, flag: str = "--hours") -> Hours:
        """Read `22:00-06:00` or `22-6`."""
        found = _HOURS.fullmatch(text.strip())
        if found is None:
            raise InvalidInput(
                f"{flag}: {text!r} is not a part of the day; write it like 22:00-06:00 or 22-06"
            )
        begin, end = (int(found[i]) * 60 + int(found[i + 1] or 0) for i in (1, 3))
        if begin == end or end > DAY:
            raise InvalidInput(f"{flag}: {text!r} is no part of the day; write it like 22:00-06:00 or 22-06")
        return cls(begin, end)

    def contain(self, minute: int) -> bool:
        if self.begin < self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end

    def __str__(self) -> str:
        return "{:02}:{:02}-{:02}:{:02}".format(*divmod(self.begin, 60), *divmod(self.end, 60))


@dataclass(frozen=True, slots=True)
class Rate:
    """A throttle at one time: bytes per second, none, or automatic."""

    text: str
    bytes_per_s: int | None = None

    @classmethod
    def parse(cls, text: str, flag: str) -> Rate:
        said = text.strip().lower()
        return cls(said) if said in (AUTO, NONE) else cls(text.strip(), parse_rate(text, flag))

    @property
    def auto(self) -> bool:
        return self.text == AUTO


@dataclass(frozen=True, slots=True)
class HourlyThrottle:
    """A usual rate, and others for parts of the day."""

    usual: Rate
    by_hour: tuple[tuple[Hours, Rate], ...] = ()

    @classmethod
    def parse(cls, text: str, flag: str = "--throttle") -> HourlyThrottle:
        """Parse a throttle; raise InvalidInput if it is not valid."""
        usual: list[Rate] = []
        by_hour: list[tuple[Hours, Rate]] = []
        for part in text.split(","):
            hours, is_for_hours, rate = part.rpartition("=")
            if is_for_hours:
                by_hour.append((Hours.parse(hours, flag), Rate.parse(rate, flag)))
            else:
                usual.append(Rate.parse(part, flag))
        if len(usual) != 1:
            raise InvalidInput(
                f"{flag}: {text!r} has {len(usual) or 'no'} rates for the rest of the day, and needs one; "
                "write it like 20MB/s,22-06=200MB/s"
            )
        for minute in range(DAY):
            both = [str(hours) for hours, _ in by_hour if hours.contain(minute)]
            if len(both) > 1:
                raise InvalidInput(f"{flag}: in {text!r} {both[0]} and {both[1]} overlap: leave one out")
        return cls(usual[0], tuple(by_hour))

    def __str__(self) -> str:
        return ",".join((self.usual.text, *(f"{hours}={rate.text}" for hours, rate in self.by_hour)))

    def at(self, minute: int) -> Rate:
        """Return the rate at a minute of the day."""
        return next((rate for hours, rate in self.by_hour if hours.contain(minute)), self.usual)

    def why(self, minute: int) -> str:
        """Say which part of the day it is."""
        part = next((str(hours) for hours, _ in self.by_hour if hours.contain(minute)), "the rest of the day")
        return f"it is {minute // 60:02}:{minute % 60:02}, and {part} has {self.at(minute).text}"
