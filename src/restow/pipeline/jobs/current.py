"""The assignment as it is now.

Topics are dealt out to the brokers, so one look at a cluster is several answers, some seconds apart, each of
whole topics. A topic that was in none of the last answers has been deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow.pipeline.schemas import AT, CLUSTER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ONE_LOOK_S = 60
"""The answers of one look at a cluster are no further apart than this, slow brokers included."""


def current(assignment: DataFrame) -> DataFrame:
    """The rows of every topic's newest answer, without topics that are no longer there."""
    topics = assignment.groupBy(CLUSTER, "topic").agg(f.max(AT).alias(AT))
    clusters = topics.groupBy(CLUSTER).agg(f.max(AT).alias("last"))
    there = topics.join(f.broadcast(clusters), CLUSTER).where(
        f.unix_micros(AT) >= f.unix_micros("last") - ONE_LOOK_S * 1_000_000
    )
    return assignment.join(f.broadcast(there.drop("last")), [CLUSTER, "topic", AT], "left_semi")
