"""What must hold of every table, checked in each run: rows for which it does not are left out and counted.

The checks of a job's table run while it is written and cost no pass of their own. Samples stay in the lake as
they came; jobs see only those that can be used. The keys of rates need no check: a worker makes each once.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from threading import Thread
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Observation, Window
from pyspark.sql import functions as f

from restow._frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from restow.pipeline.schemas import Table

REPEATED = "the key is there twice"
WHY = "_why"
"""The column that says why a row is left out."""
_ANSWER_S = 60.0
_NOT_NEGATIVE = "a {} is negative"


@dataclass(frozen=True, slots=True)
class Expectation:
    """A sentence about rows for which it does not hold, and the SQL that tells them."""

    broken: str
    when: str


def _never_negative(what: str, *names: str) -> Expectation:
    return Expectation(_NOT_NEGATIVE.format(what), " or ".join(f"{name} < 0" for name in names))


_EXPECTED: Mapping[str, tuple[Expectation, ...]] = {
    "replicas": (_never_negative("size", "size"),),
    "offsets": (
        _never_negative("offset", "earliest", "latest"),
        Expectation("the log ends before it begins", "latest < earliest"),
    ),
    "assignment": (Expectation("a partition has no replicas", "size(replicas) = 0"),),
    "groups": (_never_negative("commit", "committed"),),
    "disks": (Expectation("more is free than there is", "usable > total"),),
    "rates": (
        _never_negative("rate", "messages_in", "bytes_in", "bytes_consumed", "bytes_replicated", "bytes_out"),
        _never_negative("time", "seconds"),
    ),
    "model": (
        _never_negative("rate", "messages_in_mean", "bytes_in_mean", "bytes_out_mean"),
        Expectation("the first sample is later than the last", "first > last"),
        Expectation("the confidence is not between 0 and 1", "confidence < 0 or confidence > 1"),
    ),
    "skew": (_never_negative("total", "total"),),
    "forecast": (
        Expectation("the soonest time is later than the latest", "soonest > latest"),
        Expectation("a limit passes before the last sample", "passes < last"),
    ),
    "alerts": (),
}
_UNKNOWN: Mapping[str, str] = {
    "rates": "bytes_in is null",
    "model": "bytes_in_mean is null or bytes_out_mean is null",
    "skew": "total is null",
    "forecast": "now is null",
}
"""Rows in which the value that matters most is not known."""


@frozen
class Checked:
    """What was found in one table."""

    table: str
    rows: int
    """Rows that were looked at, those that were left out included."""
    unknown: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    """By reason; reasons without rows are not in it."""

    @property
    def usable(self) -> int:
        return self.rows - sum(self.dropped.values())

    def document(self) -> dict[str, object]:
        share = self.unknown / self.rows if self.rows else 0.0
        return {
            "table": self.table,
            "rows": self.rows,
            "unknown_share": round(share, 6),
            "dropped": dict(self.dropped),
        }


class Expected:
    """The good rows of a job's result. `checked` tells the rest once they are written."""

    def __init__(self, rows: DataFrame, about: Table) -> None:
        self._about = about
        self._observation = Observation()
        counted = flagged(rows, about).observe(self._observation, *_counts(about, f.col(WHY)))
        self.rows = counted.where(f.col(WHY).isNull()).drop(WHY)

    def checked(self) -> Checked | None:
        """Return what was found when the rows were written; None if Spark does not tell.

        It answers once it has heard of the end of the query, and has no answer where there were no rows.
        """
        told: list[dict[str, Any]] = []

        def ask() -> None:
            with suppress(PySparkException, Py4JError):
                told.append(self._observation.get)

        asking = Thread(target=ask, daemon=True)
        asking.start()
        asking.join(_ANSWER_S)
        return _checked(self._about.name, told[0]) if told else None


def flagged(rows: DataFrame, about: Table) -> DataFrame:
    """Return all rows, each with why it is no good; null if it is good."""
    repeated = not about.by_day
    if repeated:
        again = Window.partitionBy(*about.key).orderBy(f.xxhash64(*about.names))
        rows = rows.select("*", (f.row_number().over(again) > 1).alias("_again"))
    return rows.select(*about.names, _why(about, repeated=repeated).alias(WHY))


def by_reason(rows: DataFrame, about: Table) -> DataFrame:
    """Count flagged rows by the reason why they are left out; the reason is null for those that stay."""
    unknown = f.expr(_UNKNOWN.get(about.name, "false"))
    return rows.groupBy(f.lit(about.name).alias("table"), f.col(WHY).alias("left_out_because")).agg(
        f.count(f.lit(1)).alias("rows"), f.count(f.when(unknown, 1)).alias("unknown")
    )


def usable(rows: DataFrame, about: Table) -> DataFrame:
    """Return the samples that jobs can use."""
    return rows.where(_why(about, repeated=False).isNull())


def check(tables: Sequence[tuple[DataFrame, Table]]) -> list[Checked]:
    """Count the rows of some tables, and those that no job can use, with one query for all of them."""
    counts = [
        rows.select(_why(about, repeated=False).alias(WHY), "*")
        .agg(*_counts(about, f.col(WHY)))
        .select(f.lit(about.name).alias("table"), "*")
        for rows, about in tables
    ]
    if not counts:
        return []
    together = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), counts)
    told = {row["table"]: row.asDict() for row in together.collect()}
    return [_checked(about.name, told[about.name]) for _, about in tables]


def _why(about: Table, *, repeated: bool) -> Column:
    """Return why a row is no good; null if it is."""
    reasons = [f.when(f.expr(each.when), f.lit(each.broken)) for each in _EXPECTED.get(about.name, ())]
    if repeated:
        reasons.append(f.when(f.col("_again"), f.lit(REPEATED)))
    return f.coalesce(*reasons, f.lit(None).cast("string"))


def _reasons(name: str) -> tuple[str, ...]:
    return (*(each.broken for each in _EXPECTED.get(name, ())), REPEATED)


def _counts(about: Table, why: Column) -> Iterable[Column]:
    unknown = f.expr(_UNKNOWN.get(about.name, "false"))
    yield f.count(f.lit(1)).alias("rows")
    yield f.count(f.when(unknown, 1)).alias("unknown")
    for number, reason in enumerate(_reasons(about.name)):
        yield f.count(f.when(why == reason, 1)).alias(f"dropped_{number}")


def _checked(name: str, told: Mapping[str, Any]) -> Checked:
    counts = {reason: told.get(f"dropped_{number}") or 0 for number, reason in enumerate(_reasons(name))}
    return Checked(
        table=name,
        rows=told.get("rows", 0),
        unknown=told.get("unknown", 0),
        dropped={reason: count for reason, count in counts.items() if count},
    )
