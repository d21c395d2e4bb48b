"""The picture of a run: what it says, and that names from a cluster cannot spoil it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from restow.cli.run_view import duration, picture, until
from restow.execute.progress import BrokerPart, Copying, Eta, Report
from restow.execute.standing import Standing
from restow.execute.stillness import Cause, Still
from restow.model import TopicPartition

GB = 10**9


def standing(**changes: object) -> Standing:
    name = TopicPartition("orders\x1b[2J", 0)
    report = Report(
        done_bytes=2 * GB,
        to_do_bytes=8 * GB,
        rate=50e6,
        eta=Eta(soonest_s=120, latest_s=300),
        brokers=(BrokerPart(broker=4, done_bytes=2 * GB, to_do_bytes=8 * GB, replicas=1),),
        copying=(
            Copying(
                partition=name, broker=4, leader=1, size_bytes=3 * GB, copied_bytes=2 * GB, in_sync=False
            ),
        ),
        still=(
            Still(
                partition=name,
                broker=4,
                cause=Cause.DEAD_TARGET,
                evidence="broker 4 is not there",
                advice="bring it back",
            ),
        ),
    )
    usual: dict[str, object] = {
        "run": "20261115-082137",
        "report": report,
        "steps_done": 3,
        "steps_left": 9,
        "under_way": 1,
        "throttle": 50_000_000,
        "auto": True,
        "paused": None,
        "waits": None,
        "under_replicated": 0,
        "offline": 0,
        "latency_s": 0.003,
    }
    return Standing(**{**usual, **changes})  # type: ignore[arg-type]


def drawn(what: Standing) -> str:
    page = Console(width=120, file=io.StringIO(), color_system=None)
    with page.capture() as captured:
        page.print(picture(what))
    return captured.get()


def test_everything_is_in_it() -> None:
    text = drawn(standing())
    for words in (
        "run 20261115-082137   3 of 12 steps done, 1 under way   throttle 50.0 MB/s (auto)",
        "2.0 GB of 8.0 GB   50.0 MB/s   2.0 min to 5.0 min left",
        "dead target: broker 4 is not there: bring it back",
        "0 under-replicated, 0 offline, requests take 3 ms",
    ):
        assert words in text
    assert "\x1b" not in text


def test_a_pause_says_why() -> None:
    assert "paused: asked to pause" in drawn(standing(paused="asked to pause"))
    assert "waits: broker 3 is not there" in drawn(standing(waits="broker 3 is not there"))


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (89, "89 s"), (90, "1.5 min"), (1200, "20 min"), (7200, "2.0 h")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_no_estimate() -> None:
    assert until(None) == "no estimate yet"
