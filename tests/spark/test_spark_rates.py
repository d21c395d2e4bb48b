"""Rates and load models computed by hand, one case for each thing that may happen to a partition.

Every case is a topic of its own; one run computes all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.spark

Samples = dict[str, list[dict[str, Any]]]


def grown(*sizes: int, every: int = 60, **others: Any) -> list[dict[str, Any]]:
    """Return a leader's sizes, a minute apart."""
    return [{"at": every * number, "size": size, **others} for number, size in enumerate(sizes)]


def counted(column: str, *values: int, **others: Any) -> list[dict[str, Any]]:
    """Return log end offsets or commits, a minute apart."""
    return [{"at": 60 * number, column: value, **others} for number, value in enumerate(values)]


CASES: dict[str, Samples] = {
    "steady": {"replicas": grown(0, 600, 1800)},
    "twice": {"replicas": [*grown(0, 600, 1800), *grown(0, 600, 1800)]},
    "retention": {"replicas": grown(0, 600, 1200, 100, 700, 1300)},
    "deleted": {
        "replicas": grown(1000, 600),
        "offsets": [{"at": 0, "latest": 100, "earliest": 0}, {"at": 60, "latest": 160, "earliest": 100}],
    },
    "another leader": {
        "replicas": [
            *grown(0, 600, 1200),
            {"at": 130, "broker": 2, "size": 1300},
            {"at": 190, "broker": 2, "size": 1360},
        ],
        "assignment": [{"at": 0}, {"at": 125, "leader": 2}],
        "offsets": [
            {"at": 60 * number, "latest": 60 * number, "leader_epoch": number // 2, "broker": 1 + number // 2}
            for number in range(4)
        ],
    },
    "catching up": {"replicas": [*grown(0, 600, 1200), *grown(0, 10**9, 2 * 10**9, broker=3)]},
    "future": {"replicas": [*grown(0, 600), *grown(0, 10**9, is_future=True, log_dir="/e")]},
    "anew": {
        "replicas": [*grown(0, 600, topic_id="x"), {"at": 120, "size": 10**9, "topic_id": "y"}],
        "assignment": [{"at": 0, "topic_id": "x"}, {"at": 100, "topic_id": "y"}],
        "offsets": [
            {"at": 0, "latest": 10, "leader_epoch": 3},
            {"at": 60, "latest": 70, "leader_epoch": 3},
            {"at": 120, "latest": 10**6, "leader_epoch": 0},
        ],
    },
    "cut off": {"offsets": counted("latest", 0, 60, 120, 50, 110, 170)},
    "gap": {
        "replicas": [
            *grown(0, 600),
            *({"at": 10_000 + each["at"], "size": 9**9 + each["size"]} for each in grown(0, 600)),
        ]
    },
    "clock": {
        "replicas": [
            *grown(*range(0, 6000, 600)),
            *({"at": 60 * number - 210, "size": 600 * number} for number in range(10, 20)),
        ]
    },
    "read": {
        "replicas": grown(1000, 1000),
        "offsets": counted("latest", 100, 100),
        "groups": [
            *counted("committed", 0, 60, group="a"),
            *counted("committed", 500, 620, group="b"),
            {"at": 60, "group": "idle", "topic": None, "partition": None},
        ],
    },
    "started over": {
        "replicas": grown(1000, 1000),
        "offsets": counted("latest", 100, 100),
        "groups": counted("committed", 0, 60, 120, 0, 60, 120),
    },
    "nobody": {"replicas": grown(0, 600), "assignment": [{"at": 0, "leader": -1}]},
}


@pytest.fixture(scope="module")
def samples(rows_of: Callable[..., DataFrame]) -> list[DataFrame]:
    """Return the samples of all cases."""
    tables: Samples = {"replicas": [], "assignment": [], "offsets": [], "groups": []}
    for case, samples in CASES.items():
        for table, rows in ({"assignment": [{"at": 0}]} | samples).items():
            tables[table] += [{"topic": case} | row for row in rows]
    return [rows_of(name, rows) for name, rows in tables.items()]


@pytest.fixture(scope="module")
def windows(samples: list[DataFrame]) -> dict[str, list[Row]]:
    """Return the windows of every case, an hour each, in order."""
    from restow.pipeline.jobs.rates import Windows, rates

    made = rates(*samples, windows=Windows(seconds=3600))
    found: dict[str, list[Row]] = {case: [] for case in CASES}
    for row in made.orderBy("at").collect():
        found[row.topic].append(row)
    return found


def test_rates_do_not_broadcast_many_leaders(samples: list[DataFrame], windows: dict[str, list[Row]]) -> None:
    from restow.pipeline.jobs.rates import Windows, rates

    made = rates(*samples, windows=Windows(seconds=3600), few_leaders=False)
    rows = made.orderBy("at").collect()
    assert {case: [row for row in rows if row.topic == case] for case in windows} == windows


def test_leaders_are_broadcast_where_their_runs_are_few(
    spark: SparkSession,
    rows_of: Callable[..., DataFrame],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Twelve samples of three partitions, one of which changes its leader twice."""
    from restow.pipeline.jobs import leadership
    from restow.pipeline.lake import Lake
    from restow.pipeline.work import Work

    assignment = rows_of(
        "assignment",
        [
            {"at": at, "partition": number, "leader": 2 if (at, number) == (60, 0) else 1}
            for at in (0, 60, 120, 180)
            for number in range(3)
        ],
    )
    lake = Lake(spark, str(tmp_path / "lake"))
    lake.write(assignment, "assignment")
    monkeypatch.setattr("restow.pipeline.work.is_small", lambda _: False)
    for most, few in ((12, True), (5, True), (4, False)):
        monkeypatch.setattr(leadership, "FEW_RUNS", most)
        assert leadership.has_few_runs(assignment) == few
        Work(lake).rates().explain()
        assert ("ShuffledHashJoin" in capsys.readouterr().out) != few


@pytest.fixture(scope="module")
def the(windows: dict[str, list[Row]]) -> Callable[[str], Row]:
    def only(case: str) -> Row:
        (window,) = windows[case]
        return window

    return only


def test_bytes_in_equal_the_growth_of_the_leader(the: Callable[[str], Row]) -> None:
    window = the("steady")
    assert (window.bytes_in, window.seconds, window.samples, window.size) == (15.0, 120.0, 3, 1800)


def test_bytes_out_include_the_fetches_of_followers(the: Callable[[str], Row]) -> None:
    window = the("steady")
    assert (window.bytes_replicated, window.bytes_out, window.bytes_consumed) == (30.0, 30.0, None)


def test_repeated_sample_counts_once(the: Callable[[str], Row]) -> None:
    window = the("twice")
    assert (window.bytes_in, window.seconds, window.samples) == (15.0, 120.0, 3)


def test_intervals_around_retention_do_not_count(the: Callable[[str], Row]) -> None:
    window = the("retention")
    assert (window.bytes_in, window.seconds) == (10.0, 120.0)


def test_bytes_in_come_from_messages_where_records_were_deleted(the: Callable[[str], Row]) -> None:
    window = the("deleted")
    assert window.messages_in == 1.0
    assert window.bytes_in == pytest.approx(1.0 * 800 / 80)


def test_leader_change_keeps_messages_and_restarts_sizes(the: Callable[[str], Row]) -> None:
    window = the("another leader")
    assert (window.messages_in, window.seconds) == (1.0, 180.0)
    assert window.bytes_in == pytest.approx((1200 + 60) / 180)


@pytest.mark.parametrize("case", ["catching up", "future"])
def test_future_replica_does_not_count_for_bytes_in(the: Callable[[str], Row], case: str) -> None:
    assert the(case).bytes_in == 10.0


def test_recreated_topic_is_another_series(the: Callable[[str], Row]) -> None:
    window = the("anew")
    assert (window.bytes_in, window.messages_in) == (10.0, 1.0)


def test_truncation_does_not_count(the: Callable[[str], Row]) -> None:
    window = the("cut off")
    assert (window.messages_in, window.seconds) == (1.0, 120.0)


def test_long_gap_does_not_count(windows: dict[str, list[Row]]) -> None:
    assert [window.bytes_in for window in windows["gap"]] == [10.0, 10.0]


def test_clock_set_back_makes_no_peak(the: Callable[[str], Row]) -> None:
    window = the("clock")
    assert window.bytes_in == pytest.approx(10.0)
    assert window.seconds > 600


def test_bytes_out_include_the_commits_of_groups(the: Callable[[str], Row]) -> None:
    window = the("read")
    assert (window.messages_in, window.bytes_in) == (0.0, 0.0)
    assert window.bytes_consumed == window.bytes_out == pytest.approx((1 + 2) * 1000 / 100)


def test_reset_of_a_group_does_not_count(the: Callable[[str], Row]) -> None:
    assert the("started over").bytes_consumed == pytest.approx(1 * 10.0)


def test_rates_are_null_without_a_leader(windows: dict[str, list[Row]]) -> None:
    assert windows["nobody"] == []


def test_hour_of_the_week_counts_once_however_often_it_was_sampled(
    rows_of: Callable[..., DataFrame],
) -> None:
    from restow.pipeline.jobs.model import model
    from restow.pipeline.jobs.rates import Windows, rates

    busy = [{"at": 60 * number, "size": 600 * number} for number in range(31)]
    calm = [{"at": 3600 + 1200 * number, "size": 18_000 + 1200 * number} for number in range(2)]
    grows = [{"at": 3600 * number, "size": 1000 * number, "partition": 2} for number in range(48)]
    assignment = rows_of("assignment", [{"at": 4000, "partition": number} for number in range(3)])
    replicas = rows_of("replicas", busy + calm + grows)
    made = model(rates(replicas, assignment, windows=Windows(seconds=600)), assignment)
    known, unknown, growing = made.orderBy("partition").collect()
    # Half an hour at 10 B/s, then nothing for half an hour, then 20 minutes at 1 B/s.
    assert known.bytes_in_mean == pytest.approx((10 + 1200 / 3000) / 2)
    assert known.bytes_in_peak == pytest.approx(10)
    assert known.bytes_out_peak == pytest.approx(20)
    assert (known.hours, known.samples, known.size) == (2, 33, 19_200)
    assert 0 < known.confidence <= 2 / 168
    assert (unknown.bytes_in_mean, unknown.size, unknown.samples, unknown.confidence) == (None, None, 0, 0.0)
    assert growing.growth == pytest.approx(24_000)
    assert growing.bytes_in_p95 == pytest.approx(1000 / 3600)
