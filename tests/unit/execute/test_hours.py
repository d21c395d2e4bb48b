"""Throttles by the hour: parsing, the rate at a time, and a run across hours."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from restow.errors import InvalidInput
from restow.execute.run.control import ControlRequest
from restow.execute.run.options import RunOptions
from restow.execute.throttle.hours import HourlyThrottle
from restow.execute.throttle.throttles import FOLLOWER_RATE, ThrottleRates
from tests.unit.execute.fake_admin import MB
from tests.unit.execute.stage import Stage, control_of, plan_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.execute.progress.status import RunEvent

NIGHT = "1MB/s,22-06=5MB/s"


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the local time zone to Berlin."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def options(text: str) -> RunOptions:
    wanted = HourlyThrottle.parse(text)
    return RunOptions(
        throttle=ThrottleRates(rate=wanted.usual.bytes_per_s),
        hourly=wanted if wanted.by_hour else None,
        look_every_s=20,
        survey_every_s=60,
    )


def set_clock(stage: Stage, *when: int) -> None:
    """Set the local time."""
    year, month, day, hour, minute, second = (*when, 0)[:6]
    stage.clock.now_s = datetime(year, month, day, hour, minute, second).astimezone().timestamp()


def changes(stage: Stage) -> list[tuple[str, str, str]]:
    """Return when the throttle changed by the hour, to what and why."""

    def told(event: RunEvent) -> tuple[str, str, str]:
        at = datetime.fromtimestamp(event.at_ms / 1000).astimezone()
        return f"{at:%d %H:%M %Z}", str(event.facts["throttle"]), str(event.facts["why"])

    return [told(each) for each in stage.events if each.kind == "throttle by hour"]


def rates_set(stage: Stage) -> list[str]:
    """Return the rates that brokers were given, in order, once for each change."""
    found = [
        str(each.facts["value"])
        for each in stage.events
        if each.kind == "throttle" and each.facts["key"] == FOLLOWER_RATE and each.facts["value"]
    ]
    return [rate for at, rate in enumerate(found) if at == 0 or found[at - 1] != rate]


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        (
            "20MB/s,22-06=200MB/s",
            {"21:59": "20MB/s", "22:00": "200MB/s", "05:59": "200MB/s", "06:00": "20MB/s"},
        ),
        ("auto,08:30-17:00=5MB/s", {"08:29": "auto", "08:30": "5MB/s", "17:00": "auto"}),
        (
            "5MB/s,0-6=none,12-13=1MB/s",
            {"00:00": "none", "06:00": "5MB/s", "12:59": "1MB/s", "13:00": "5MB/s"},
        ),
    ],
)
def test_hourly_throttle_applies_in_its_part_of_the_day(text: str, rates: dict[str, str]) -> None:
    throttle = HourlyThrottle.parse(text)

    def minute(clock: str) -> int:
        hour, _, rest = clock.partition(":")
        return int(hour) * 60 + int(rest)

    assert {clock: throttle.at(minute(clock)).text for clock in rates} == rates
    assert HourlyThrottle.parse(str(throttle)) == throttle


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("22-06=200MB/s", "has no rates for the rest of the day"),
        ("1MB/s,2MB/s", "has 2 rates for the rest of the day"),
        ("1MB/s,22-06=5", "has no unit"),
        ("1MB/s,22-26=5MB/s", "is not a part of the day"),
        ("1MB/s,22-22=5MB/s", "is no part of the day"),
        ("1MB/s,22-06=5MB/s,05:30-07=2MB/s", "22:00-06:00 and 05:30-07:00 overlap"),
        ("1MB/s,=5MB/s", "is not a part of the day"),
        ("", "is not a rate"),
    ],
)
def test_invalid_hourly_throttle_is_refused_with_the_reason(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        HourlyThrottle.parse(text)


@pytest.mark.usefixtures("berlin")
def test_run_across_midnight_changes_its_throttle_by_the_hour(stage: Stage) -> None:
    set_clock(stage, 2026, 11, 16, 21, 59, 30)
    stage.admin.rate = 3_000
    assert stage.execute(plan_for(stage, [(1, 3)]), options(NIGHT)).is_good
    assert [each[:2] for each in changes(stage)[:3]] == [
        ("16 21:59 CET", "1MB/s"),
        ("16 22:00 CET", "5MB/s"),
        ("17 06:00 CET", "1MB/s"),
    ]
    assert changes(stage)[1][2] == "it is 22:00, and 22:00-06:00 has 5MB/s"
    assert rates_set(stage)[:3] == [str(1 * MB), str(5 * MB), str(1 * MB)]
    assert stage.statuses[0].by_hour == "1MB/s,22:00-06:00=5MB/s"
    assert stage.admin.set_ == {}


@pytest.mark.usefixtures("berlin")
def test_hour_that_occurs_twice_counts_twice(stage: Stage) -> None:
    """Summer time ends on 25 October 2026 at three, which becomes two again."""
    set_clock(stage, 2026, 10, 25, 1, 50)
    stage.admin.rate = 5_000
    assert stage.execute(plan_for(stage, [(1, 3)]), options("1MB/s,02:00-02:30=5MB/s")).is_good
    assert [each[:2] for each in changes(stage)[:5]] == [
        ("25 01:50 CEST", "1MB/s"),
        ("25 02:00 CEST", "5MB/s"),
        ("25 02:30 CEST", "1MB/s"),
        ("25 02:00 CET", "5MB/s"),
        ("25 02:30 CET", "1MB/s"),
    ]


@pytest.mark.usefixtures("berlin")
def test_skipped_hour_does_not_count(stage: Stage) -> None:
    """Summer time begins on 29 March 2026 at two, which becomes three."""
    set_clock(stage, 2026, 3, 29, 1, 50)
    stage.admin.rate = 10_000
    assert stage.execute(plan_for(stage, [(1, 3)]), options("1MB/s,02:00-03:30=5MB/s")).is_good
    assert [each[:2] for each in changes(stage)[:3]] == [
        ("29 01:50 CET", "1MB/s"),
        ("29 03:00 CEST", "5MB/s"),
        ("29 03:30 CEST", "1MB/s"),
    ]


@pytest.mark.usefixtures("berlin")
def test_control_sets_and_removes_a_throttle_by_the_hour(stage: Stage) -> None:
    set_clock(stage, 2026, 11, 16, 21, 50)
    stage.admin.rate = 40_000
    stage.after(60, lambda: control_of(stage).request(ControlRequest(throttle=NIGHT)))
    stage.after(1200, lambda: control_of(stage).request(ControlRequest(throttle="3MB/s")))
    assert stage.execute(plan_for(stage, [(1, 3)]), options("2MB/s")).is_good
    assert rates_set(stage) == [str(rate * MB) for rate in (2, 1, 5, 3)]
    wanted = [each.facts["throttle"] for each in stage.events if each.kind == "throttle requested"]
    assert wanted == ["1MB/s,22:00-06:00=5MB/s", "3MB/s"]


@pytest.mark.usefixtures("berlin")
def test_log_dir_copies_follow_the_throttle_unless_they_have_their_own(stage: Stage) -> None:
    set_clock(stage, 2026, 11, 16, 21, 59, 50)
    stage.admin.rate = 1_000_000
    assert stage.execute(plan_for(stage, [(1, 3)]), options(NIGHT)).is_good
    assert {each.dir_throttle for each in stage.statuses} == {1 * MB, 5 * MB}
