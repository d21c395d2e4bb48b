"""The pace: hours, the control file, and the automatic throttle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from restow.errors import InvalidInput
from restow.execute.run.control import BadControl, Control, ControlRequest
from restow.execute.run.options import RunOptions
from restow.execute.throttle.auto import FLOOR, Signs, decide, first
from restow.execute.throttle.hours import Hours
from restow.execute.throttle.pace import Pace
from restow.runtime.disk import SystemDisk
from tests.clock import SleepingClock

if TYPE_CHECKING:
    from pathlib import Path

MB = 10**6


def test_hours_contain_their_minutes() -> None:
    night = Hours.parse("22:00-06:00")
    assert [night.contain(hour * 60) for hour in (21, 22, 23, 0, 5, 6)] == [
        False,
        True,
        True,
        True,
        True,
        False,
    ]
    day = Hours.parse("9:30-17:00")
    assert [day.contain(minute) for minute in (569, 570, 1019, 1020)] == [False, True, True, False]
    assert str(night) == "22:00-06:00"


@pytest.mark.parametrize("text", ["", "22", "25:00-03:00", "10:00-10:00", "10:00-24:30", "10:60-11:00"])
def test_invalid_hours_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="part of the day"):
        Hours.parse(text)


def test_control_reports_requests_once_and_adds_them_up(tmp_path: Path) -> None:
    control = Control(SystemDisk(), str(tmp_path))
    assert control.news() is None
    control.request(ControlRequest(throttle="5MB"))
    assert control.news() == ControlRequest(throttle="5MB")
    assert control.news() is None
    control.request(ControlRequest(paused=True))
    control.request(ControlRequest(paused=False, moves_in=3))
    assert control.news() == ControlRequest(throttle="5MB", paused=False, moves_in=3, gone_on=3)
    control.request(ControlRequest(moves_in=4))
    assert control.news() == ControlRequest(throttle="5MB", paused=False, moves_in=4, gone_on=3)
    control.clear()
    assert control.news() is None


@pytest.mark.parametrize("text", ["{", "[]", '{"speed": 3}'])
def test_invalid_control_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "control.json").write_text(text)
    with pytest.raises(BadControl):
        Control(SystemDisk(), str(tmp_path)).news()


def signs(**changes: object) -> Signs:
    usual: dict[str, object] = {"incoming": 5.0 * MB, "copied": 20.0 * MB, "latency_s": 0.01}
    return Signs(**{**usual, **changes})  # type: ignore[arg-type]


def test_automatic_throttle_starts_from_the_produced_bytes() -> None:
    assert first(signs()).rate == 10 * MB
    assert first(signs(incoming=40.0 * MB)).rate == 80 * MB


def test_automatic_throttle_rises_while_it_is_used_up() -> None:
    assert decide(20 * MB, signs(), 0.01).rate == 25 * MB
    assert decide(40 * MB, signs(), 0.01).rate == 40 * MB


def test_automatic_throttle_is_cut_on_signs_of_harm() -> None:
    assert decide(40 * MB, signs(shrunk=2), 0.01).rate == 10 * MB
    slow = decide(20 * MB, signs(latency_s=0.2), 0.01)
    assert slow.rate == 10 * MB
    assert slow.reason == "requests take 200 ms, before it was 10 ms"
    assert decide(FLOOR, signs(shrunk=1, copied=0.0), 0.01).rate == FLOOR


def test_automatic_throttle_ignores_small_latencies() -> None:
    assert decide(20 * MB, signs(latency_s=0.04), 0.001).rate == 25 * MB


def test_automatic_throttle_rises_when_replicas_fall_behind() -> None:
    assert decide(10 * MB, signs(lag_grows=True, incoming=80.0 * MB, copied=0.0), 0.01).rate == 100 * MB


def test_next_look_is_soon_after_a_change() -> None:
    """Where nothing ends for long, brokers are not asked more often than configured."""
    clock = SleepingClock()
    nobody: Any = None
    pace = Pace(clock, nobody, RunOptions(look_every_s=0.1), nobody, nobody, nobody)
    asked = []
    for _ in range(200):
        asked.append(pace.until_next_look_s(0.0, some_wait=True))
        clock.now_s += asked[-1]
    assert asked == sorted(asked)
    assert asked[0] < 0.02
    assert asked[-1] == 0.1
    pace.something_changed()
    assert pace.until_next_look_s(0.0, some_wait=True) == asked[0]
    assert asked[0] < pace.until_next_look_s(0.0, some_wait=False) < 0.1
    assert pace.until_next_look_s(0.07, some_wait=True) == 0.07
    assert pace.until_next_look_s(7.0, some_wait=True) == 0.1
