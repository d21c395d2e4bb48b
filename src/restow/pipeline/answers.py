"""The newest answers of clusters and brokers: whoever asks for what is there now reads no older samples."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow._frozen import frozen
from restow.pipeline.jobs.leadership import ONE_LOOK_S
from restow.pipeline.schemas import AT, CLUSTER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date

    from pyspark.sql import DataFrame

Answers = dict[tuple[str, int | None], int]
"""When each cluster, or each of its brokers, answered last: microseconds since 1970."""

ANSWERING = {"assignment": False, "replicas": True, "disks": True}
"""The tables of samples with answers of each broker, or else of the cluster."""


@frozen
class Recent:
    """The samples of some days from then on."""

    days: frozenset[date]
    since: datetime


def newest_answers(samples: Mapping[str, DataFrame]) -> dict[str, Answers]:
    """Return the newest answers in some of these tables, with one query for all of them."""
    found: dict[str, Answers] = {name: {} for name in samples}
    asked = [
        (rows.where("not is_future") if name == "replicas" else rows)
        .select(
            f.lit(name).alias("name"),
            CLUSTER,
            (f.col("broker") if ANSWERING[name] else f.lit(None).cast("int")).alias("broker"),
            AT,
        )
        .groupBy("name", CLUSTER, "broker")
        .agg(f.max(f.unix_micros(AT)).alias("us"))
        for name, rows in samples.items()
    ]
    if asked:
        for row in reduce(lambda one, other: one.unionByName(other), asked).collect():
            found[row["name"]][row[CLUSTER], row["broker"]] = row["us"]
    return found


def recent(newest: Iterable[int]) -> Recent | None:
    """Return which samples hold these answers, with the rest of the look that each belongs to."""
    ends = [datetime.fromtimestamp(us / 1e6, UTC) for us in newest]
    if not ends:
        return None
    look = timedelta(seconds=ONE_LOOK_S + 1)
    days = {moment.date() for end in ends for moment in (end - look, end)}
    return Recent(days=frozenset(days), since=min(ends) - look)
