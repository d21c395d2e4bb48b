"""Tables that are kept current equal those that are made at once, whatever comes when."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.arrivals import arrive, parts_of
from harness.lakes import write_faulty_lake
from restow.errors import InvalidInput
from restow.pipeline.files import HadoopFiles
from tests.often import of_many
from tests.spark.kept_tables import (
    TABLES,
    WINDOW,
    assert_as_in_one_run,
    assert_equal_rows,
    assert_keeps_what_all_samples_make,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from restow.pipeline.current import CurrentTables
    from restow.pipeline.lake import Lake

pytestmark = pytest.mark.spark

SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 8))]
WIDTH_S = 900
HOUR = 3600


class Killed(BaseException):
    """Simulates the end of the process."""


def batch_rates(lake: Lake) -> DataFrame:
    from restow.pipeline.jobs.rates import Windows
    from restow.pipeline.work import Work

    return Work(lake).rates(Windows(seconds=WIDTH_S))


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_equal_those_of_a_batch_however_samples_arrive(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    """Two days of samples with every fault arrive in parts, a tenth of them late."""
    from restow.pipeline.jobs.rates import TABLE, Windows
    from restow.pipeline.keeping import Keeper
    from restow.pipeline.lake import Lake

    write_faulty_lake(tmp_path / "source", seed=seed, topics=2, samples=60, every_s=3000)
    parts = parts_of(tmp_path / "source", seed=seed, parts=of_many(4, often=2))
    lake = Lake(spark, str(tmp_path / "lake"))
    windows = Windows(seconds=WIDTH_S)
    keeper = Keeper(lake, windows)
    for number, part in enumerate(parts):
        arrive(tmp_path / "lake", [part], seed + number)
        done = keeper.round()
        assert done.whole == (number == 0)
        rates = batch_rates(lake).localCheckpoint()
        assert assert_equal_rows(lake.read("rates"), rates, TABLE.key) > 50 * (number + 1)
        assert_keeps_what_all_samples_make(keeper, lake, rates, windows)
    assert not keeper.round().since_us


def test_rates_of_an_older_version_are_read_and_replaced(spark: SparkSession, tmp_path: Path) -> None:
    """Before rates were kept by day, their files lay in the folder of the cluster."""
    from restow.pipeline.jobs.rates import TABLE, Windows
    from restow.pipeline.keeping import Keeper
    from restow.pipeline.lake import Lake
    from restow.pipeline.work import Work

    write_faulty_lake(tmp_path / "lake", seed=1, topics=1, samples=60, every_s=3000)
    lake = Lake(spark, str(tmp_path / "lake"))
    expected = batch_rates(lake).localCheckpoint()
    lake.write(expected, "rates")
    days = 0
    for number, file in enumerate(sorted((tmp_path / "lake" / "rates").glob("v1/cluster=*/day=*/*.parquet"))):
        file.rename(file.parents[1] / f"{number}.parquet")
        days += 1
    assert days > 1
    for folder in (tmp_path / "lake" / "rates").glob("v1/cluster=*/day=*"):
        shutil.rmtree(folder)
    assert assert_equal_rows(lake.read("rates"), expected, TABLE.key) > 50
    assert not Work(lake).made("rates").isEmpty()
    Keeper(lake, Windows(seconds=WIDTH_S)).round()
    assert assert_equal_rows(lake.read("rates"), expected, TABLE.key) > 50
    assert not list((tmp_path / "lake" / "rates").glob("v1/cluster=*/*.parquet"))


@pytest.fixture
def told(spark: SparkSession, tmp_path: Path, rows_of: Callable[..., DataFrame]) -> Told:
    from restow.pipeline.lake import Lake

    return Told(Lake(spark, str(tmp_path / "lake")), rows_of)


class Told:
    """A lake to which hand-made samples are told, and its rates."""

    def __init__(self, lake: Lake, rows_of: Callable[..., DataFrame]) -> None:
        from restow.pipeline.jobs.rates import Windows
        from restow.pipeline.keeping import Keeper

        self.lake = lake
        self._windows = Windows(seconds=WIDTH_S)
        self.keeper = Keeper(lake, self._windows)
        self._rows_of = rows_of

    def tell(self, **tables: list[dict[str, Any]]) -> None:
        for name, rows in tables.items():
            self.lake.write(self._rows_of(name, rows), name)

    def since_h(self) -> float | None:
        """Do a round, compare with a batch, and return since which hour rates were computed."""
        from restow.pipeline.jobs.rates import TABLE
        from tests.spark.conftest import START

        done = self.keeper.round()
        rates = batch_rates(self.lake).localCheckpoint()
        assert_equal_rows(self.lake.read("rates"), rates, TABLE.key)
        assert_keeps_what_all_samples_make(self.keeper, self.lake, rates, self._windows)
        since = done.since_us.get("c")
        return None if since is None else (since / 1e6 - START.timestamp()) / HOUR


def sizes(*hours: float, **others: Any) -> list[dict[str, Any]]:
    return [{"at": int(hour * HOUR), "size": int(1000 * (hour + 100)), **others} for hour in hours]


def test_in_order_samples_change_only_the_end(told: Told) -> None:
    """A gap lasts two hours: so far back may the interval before a new sample begin."""
    told.tell(assignment=[{"at": 0}], replicas=sizes(*range(40)))
    told.since_h()
    told.tell(assignment=[{"at": 40 * HOUR}], replicas=sizes(40))
    assert told.since_h() == 38
    assert told.since_h() is None


def test_late_sample_changes_what_follows_it(told: Told) -> None:
    told.tell(assignment=[{"at": 0}], replicas=sizes(*range(40)))
    told.since_h()
    told.tell(replicas=sizes(10.5, size=0))
    assert told.since_h() == 8.5


def test_partition_whose_assignment_comes_last_is_computed_from_its_first_sample(told: Told) -> None:
    """Nothing leads before the first sample of the assignment, which then holds for all earlier times."""
    told.tell(assignment=[{"at": 0}], replicas=[*sizes(*range(40)), *sizes(5, 6, 39, topic="new")])
    told.since_h()
    told.tell(assignment=[{"at": 39 * HOUR, "topic": "new"}])
    assert told.since_h() == 3


def test_leader_that_is_known_late_is_known_from_then_on(told: Told) -> None:
    both = [*sizes(*range(40), broker=1), *sizes(*range(40), broker=2)]
    told.tell(assignment=[{"at": 0}, {"at": 30 * HOUR}], replicas=both)
    told.since_h()
    told.tell(assignment=[{"at": 12 * HOUR, "leader": 2}])
    assert told.since_h() == 10
    told.tell(assignment=[{"at": -HOUR, "leader": 2}])
    assert told.since_h() == -3


def test_group_that_commits_again_changes_the_time_between(told: Told) -> None:
    """Before it is known that it goes on, consumers fetch nothing after the last commit."""
    commits = [{"at": hour * HOUR, "committed": hour} for hour in (1, 2, 3)]
    told.tell(assignment=[{"at": 0}], replicas=sizes(*range(40)), groups=commits)
    told.since_h()
    told.tell(groups=[{"at": 39 * HOUR, "committed": 5}])
    assert told.since_h() == 3
    told.tell(groups=[{"at": 30 * HOUR, "committed": 4}])
    assert told.since_h() == 28


def test_compaction_and_removed_days_change_from_there_on(told: Told, tmp_path: Path) -> None:
    for hours in (range(5), range(5, 40)):
        told.tell(assignment=[{"at": hours[0] * HOUR}], replicas=sizes(*hours))
    told.since_h()
    assert told.lake.compact("replicas") > 0
    assert told.since_h() == -2
    shutil.rmtree(tmp_path / "lake" / "replicas" / "v1" / "cluster=c" / "day=2024-09-03")
    assert told.since_h() == 22
    assert {row["at"].day for row in told.lake.read("rates").collect()} == {2}


def test_batch_with_other_windows_makes_all_rates_new_in_the_next_round(told: Told) -> None:
    from restow.pipeline.work import Work

    told.tell(assignment=[{"at": 0}], replicas=sizes(*range(30)))
    told.since_h()
    work = Work(told.lake)
    work.keep("rates", work.rates())
    assert told.keeper.kept.record() is None
    told.since_h()
    assert told.keeper.kept.record() is not None


def current(lake: Lake, loads: Path) -> CurrentTables:
    from restow.pipeline.current import CurrentTables, Wanted
    from restow.pipeline.jobs.forecast import ForecastLimits

    return CurrentTables(lake, Wanted(window=WINDOW, limits=ForecastLimits(), load=str(loads)))


@pytest.mark.classic
@pytest.mark.parametrize("seed", SEEDS)
def test_update_ends_with_the_tables_of_one_run_wherever_it_was_killed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Each update dies at a random change of a file, before or after it, until one gets to its end."""
    from restow.pipeline.lake import Lake

    write_faulty_lake(tmp_path / "source", seed=seed, clusters=2, topics=1, samples=30, every_s=3000)
    parts = parts_of(tmp_path / "source", seed=seed, parts=2)
    chance = random.Random(seed)
    fatal = Fatal(monkeypatch)
    lake = Lake(spark, str(tmp_path / "lake"))
    for number, part in enumerate(parts):
        arrive(tmp_path / "lake", [part], seed + number)
        for most in (30, 60)[: of_many(2, often=number)]:
            fatal.after(chance.randrange(most), late=chance.random() < 0.5)
            try:
                current(lake, tmp_path / "loads").update()
            except Killed:
                continue
        fatal.never()
        current(lake, tmp_path / "loads").update()
    assert not current(lake, tmp_path / "loads").update().tables
    assert_as_in_one_run(spark, tmp_path / "lake", tmp_path / "loads", parts, tmp_path / "batch")


class Fatal:
    """Ends the process, as it were, at one of the next changes of files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._left: int | None = None
        self._late = False
        for name in ("move", "remove", "write_text"):
            monkeypatch.setattr(HadoopFiles, name, self._deadly(getattr(HadoopFiles, name)))

    def after(self, changes: int, *, late: bool) -> None:
        self._left, self._late = changes, late

    def never(self) -> None:
        self._left = None

    def _deadly(self, change: Callable[..., None]) -> Callable[..., None]:
        def dying(*arguments: Any) -> None:
            if self._left is None:
                return change(*arguments)
            self._left -= 1
            if self._left < 0 and not self._late:
                raise Killed
            change(*arguments)
            if self._left < 0:
                raise Killed
            return None

        return dying


def test_incremental_run_makes_all_tables_from_new_samples(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks up the newest answers in what it keeps, as it does where a lake is large."""
    import restow
    from restow.pipeline.jobs.rates import TABLE, Windows
    from restow.pipeline.keeping import Keeper
    from restow.pipeline.lake import Lake

    write_faulty_lake(tmp_path / "source", seed=3, clusters=1, topics=1, samples=20, every_s=3000)
    before, new = parts_of(tmp_path / "source", seed=3, parts=2)
    lake = Lake(spark, str(tmp_path / "lake"))
    arrive(tmp_path / "lake", [before], 0)
    Keeper(lake, Windows(seconds=WIDTH_S)).round()
    arrive(tmp_path / "lake", [new], 1)
    monkeypatch.setattr("restow.pipeline.work.is_small", lambda _: False)
    loads = tmp_path / "loads"
    done = restow.pipeline(tmp_path / "lake", spark=spark, window=WINDOW, load=loads, incremental=True)
    assert done.tables == TABLES
    assert {each.table for each in done.checked} >= {"replicas", *TABLES}
    assert not any(each.dropped for each in done.checked)
    assert assert_equal_rows(lake.read("rates"), batch_rates(lake), TABLE.key) > 10
    monkeypatch.undo()
    assert_as_in_one_run(spark, tmp_path / "lake", loads, [before, new], tmp_path / "batch")
    with pytest.raises(InvalidInput, match="leave out --cluster, --since and --until"):
        restow.pipeline(tmp_path / "lake", spark=spark, cluster=["c"], incremental=True)
