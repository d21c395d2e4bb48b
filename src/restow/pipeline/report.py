"""The HTML report of the pipeline: skew and its causes, forecasts, and possible plans.

`gather` reads from Spark only what fits on a page; `report_of` draws it.
"""

from __future__ import annotations

from dataclasses import field
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as f

from restow._frozen import frozen
from restow.html.page import ReportPage, Section, Tile, paragraph, subtitle, table
from restow.html.plots import Bar, Line, amount, bars, lines
from restow.pipeline.findings import note

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from restow.pipeline.work import Work

    Rows = Sequence[Mapping[str, Any]]

BAND = 0.09
CLUSTERS = 12
"""The page shows this many clusters, the most uneven ones."""
_MEMBERS, _WINDOWS, _ROWS = 24, 400, 20
_TRAFFIC = ("bytes_in", "bytes_out")
_FILLED_AT_MOST = 0.1
_NEVER = "9999-01-01"
_MEASURES = (
    ("size", "B", "Bytes on disk"),
    ("bytes_in", "B/s", "Bytes written per second"),
    ("bytes_out", "B/s", "Bytes read per second, by consumers and followers"),
    ("leaders", "", "Leaders"),
)
_NAMED = {"broker": "broker ", "leader": "broker ", "rack": "rack "}


@frozen
class Found:
    """Rows of the pipeline's tables for one page."""

    skew: Rows = field(default_factory=tuple)
    forecast: Rows = field(default_factory=tuple)
    traffic: Rows = field(default_factory=tuple)
    """cluster, at, bytes_in, bytes_out: the traffic of whole clusters by window; null if unknown."""
    fleet: Rows = field(default_factory=tuple)
    lab: Rows = field(default_factory=tuple)


def gather(work: Work) -> Found:
    """Read the tables in the lake; skip those that no job has written."""
    skew = work.made("skew").where(f.col("measure").isin(*(name for name, *_ in _MEASURES)))
    worst = (
        skew.where("dimension = 'broker'")
        .groupBy("cluster")
        .agg(f.max("max_share").alias("worst"))
        .orderBy(f.desc("worst"), "cluster")
        .limit(CLUSTERS)
    )
    shown = f.broadcast(worst.select("cluster"))
    ranked = skew.join(shown, "cluster").where("dimension in ('broker', 'rack', 'log_dir')")
    traffic = (
        traffic_of(work.made("rates").join(shown, "cluster"), work.samples("assignment", distinct=False))
        .orderBy(f.desc("at"))
        .limit(_WINDOWS * CLUSTERS)
    )
    soon = work.made("forecast").orderBy(f.asc_nulls_last("passes"), f.desc(f.col("now") / f.col("limit")))
    return Found(
        skew=_rows(ranked.orderBy("cluster", "dimension", f.desc("share")).limit(CLUSTERS * 1000)),
        forecast=_rows(soon.limit(_ROWS)),
        traffic=sorted(_rows(traffic), key=itemgetter("cluster", "at")),
        fleet=_rows(work.made("fleet").drop("plan").orderBy(f.desc("urgency"), "cluster").limit(_ROWS)),
        lab=_rows(
            work.made("lab")
            .orderBy(f.desc_nulls_last("skew_now"), "cluster", "group", "assignor")
            .limit(2 * _ROWS)
        ),
    )


def traffic_of(rates: DataFrame, assignment: DataFrame) -> DataFrame:
    """Return the traffic of whole clusters by window: cluster, at, bytes_in, bytes_out.

    A partition that existed but has no rate in a window counts with the mean of its windows. If such
    estimates are more than a tenth of the total, the window is null.
    """
    key = ("cluster", "topic", "partition")
    newest = Window.partitionBy("cluster").orderBy(f.desc("at"))
    windows = (
        rates.select("cluster", "at")
        .distinct()
        .withColumn("ends", f.coalesce(f.lag("at").over(newest), f.lit(_NEVER).cast("timestamp")))
        .withColumn("rank", f.row_number().over(newest))
        .where(f.col("rank") <= _WINDOWS)
    )
    seen = assignment.groupBy(*key).agg(f.min("at").alias("first"), f.max("at").alias("last"))
    there = seen.join(f.broadcast(windows), "cluster").where("first < ends and last >= at").select(*key, "at")
    usual = rates.groupBy(*key).agg(*(f.avg(name).alias(f"usual_{name}") for name in _TRAFFIC))
    whole = there.join(usual, [*key], "left").join(rates.select(*key, "at", *_TRAFFIC), [*key, "at"], "left")
    summed = whole.groupBy("cluster", "at").agg(
        *(each for name in _TRAFFIC for each in _known_and_filled(name))
    )
    return summed.select("cluster", "at", *(_if_known(name) for name in _TRAFFIC))


def _known_and_filled(name: str) -> tuple[Column, Column]:
    filled = f.sum(f.when(f.col(name).isNull(), f.col(f"usual_{name}")))
    return f.sum(name).alias(name), f.coalesce(filled, f.lit(0.0)).alias(f"filled_{name}")


def _if_known(name: str) -> Column:
    both = f.col(name) + f.col(f"filled_{name}")
    return f.when(f.col(f"filled_{name}") <= _FILLED_AT_MOST * both, both).alias(name)


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def report_of(found: Found, *, title: str, lead: str) -> ReportPage:
    """Return the page."""
    return ReportPage(
        title=title,
        lead=lead,
        tiles=_tiles(found),
        sections=tuple(sections_of(found)),
        footer="A share is what each would have if all were even; plans keep brokers in the band around it.",
    )


def sections_of(found: Found) -> Iterable[Section]:
    """Yield the sections that have content."""
    by_cluster = {name: list(rows) for name, rows in groupby(found.skew, itemgetter("cluster"))}
    traffic = {name: list(rows) for name, rows in groupby(found.traffic, itemgetter("cluster"))}
    if found.fleet:
        yield _fleet(found.fleet)
    for cluster, rows in by_cluster.items():
        yield _skew(cluster, rows, traffic.get(cluster, ()))
    if found.forecast:
        yield _forecast(found.forecast)
    if found.lab:
        yield _lab(found.lab)


def _tiles(found: Found) -> tuple[Tile, ...]:
    brokers = [row for row in found.skew if row["dimension"] == "broker" and row["total"] is not None]
    clusters = {row["cluster"] for row in found.skew}
    sizes = [row["total"] for row in brokers if row["measure"] == "size"]
    tiles = [
        Tile(value=f"{len(clusters)}", name="cluster" if len(clusters) == 1 else "clusters"),
        Tile(value=f"{len(sizes):,}", name="brokers"),
        Tile(value=amount(sum(sizes)), name="on disk"),
    ]
    compared = [row for row in brokers if row["share"] is not None]
    if compared:
        worst = max(compared, key=itemgetter("share"))
        name = f"{worst['measure'].replace('_', ' ')} of broker {worst['member']}, times its share"
        tiles.append(
            Tile(value=f"{worst['share']:.2f} ×", name=name, kind="bad" if worst["share"] > 1.2 else "")
        )
    return tuple(tiles)


def _skew(cluster: str, rows: Rows, traffic: Rows) -> Section:
    parts: list[str] = []
    for measure, unit, words in _MEASURES:
        drawn = _members(rows, "broker", measure)
        if any(bar.value for bar in drawn):
            parts += [subtitle(f"{words}, by broker"), bars(drawn, unit=unit, band=BAND, label=words)]
    for dimension, words in (("rack", "Bytes on disk, by rack"), ("log_dir", "Bytes on disk, by log dir")):
        drawn = _members(rows, dimension, "size")
        if len(drawn) > 1 and any(bar.value for bar in drawn):
            parts += [subtitle(words), bars(drawn, band=BAND, label=words)]
    if len(traffic) > 1:
        drawn_lines = [
            Line(name=words, points=tuple((row["at"].timestamp(), row[name]) for row in traffic))
            for name, words in (("bytes_in", "in"), ("bytes_out", "out"))
        ]
        parts += [
            subtitle("All of it over time"),
            lines(drawn_lines, unit="B/s", label="traffic over time"),
            paragraph(
                "A gap in a line means that too little is known: the first sample of a counter gives no rate."
            ),
        ]
    parts += [subtitle("The partitions that weigh most on the busiest brokers"), _causes(rows)]
    return Section(
        title=f"Cluster {cluster}",
        note="The shaded area is an even share and the band around it; bars outside it are highlighted.",
        parts=tuple(parts),
    )


def _members(rows: Rows, dimension: str, measure: str) -> list[Bar]:
    """Return the members by name; if there are too many, those furthest from their share."""
    found = [row for row in rows if row["dimension"] == dimension and row["measure"] == measure]
    kept = sorted(found, key=lambda row: -abs((row["share"] or 0.0) - 1))[:_MEMBERS]
    return [
        Bar(
            name=_short(f"{_NAMED.get(dimension, '')}{row['member']}"),
            value=row["total"],
            share=row["mean"],
            note=f"{dimension} {row['member']}" + _unknown(row),
        )
        for row in sorted(kept, key=lambda row: _natural(row["member"]))
    ]


def _unknown(row: Mapping[str, Any]) -> str:
    return f", without {row['unknown']:,} partitions of unknown load" if row["unknown"] else ""


def _natural(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (2**62, name)


def _short(name: str) -> str:
    return name if len(name) <= 14 else f"{name[:4]}…{name[-9:]}"


def _causes(rows: Rows) -> str:
    """Return the causes on the broker furthest above its share, by measure."""
    listed = []
    for measure, unit, words in _MEASURES[:3]:
        brokers = [
            row
            for row in rows
            if row["dimension"] == "broker" and row["measure"] == measure and row["share"] is not None
        ]
        for worst in sorted(brokers, key=itemgetter("share"))[-1:]:
            for cause in worst["causes"] if worst["share"] > 1 + BAND else ():
                name = f"{cause['topic']}-{cause['partition']}"
                listed.append((words, f"broker {worst['member']}", name, amount(cause["value"], unit)))
    return table(("of", "on", "partition", "carries"), listed, left=3)


def _forecast(rows: Rows) -> Section:
    return Section(
        title="When limits are passed",
        note="A straight line through the hours seen, give or take two standard errors of its slope.",
        parts=(
            table(
                ("cluster", "what", "now", "limit", "growth a day", "passes", "soonest", "latest", "why not"),
                (
                    (
                        row["cluster"],
                        f"{row['measure']} of broker {row['broker']} {_short(row['log_dir'] or '')}".strip(),
                        *(_known(row[name]) for name in ("now", "limit", "growth")),
                        *(_day(row[when]) for when in ("passes", "soonest", "latest")),
                        note(row),
                    )
                    for row in rows
                ),
                left=2,
            ),
        ),
    )


def _day(moment: Any) -> str:
    return "–" if moment is None else moment.strftime("%Y-%m-%d")


def _known(value: float | None) -> str:
    return "–" if value is None else amount(value)


def _fleet(rows: Rows) -> Section:
    return Section(
        title="The fleet, the most urgent first",
        parts=(
            table(
                ("cluster", "because", "urgency", "brokers", "replicas", "moves", "to copy", "disk", "after"),
                (
                    (
                        row["cluster"],
                        row["error"] or row["because"],
                        f"{row['urgency']:.2f}",
                        *(_count(row[name]) for name in ("brokers", "replicas", "moves")),
                        _known(row["copied"]),
                        *(_times(row[name]) for name in ("disk_before", "disk_after")),
                    )
                    for row in rows
                ),
                left=2,
            ),
        ),
    )


def _lab(rows: Rows) -> Section:
    heads = ("group", "assignor", "members", "partitions", "skew now", "then", "lag skew", "then", "moved")
    return Section(
        title="Consumer groups, with every assignor",
        note="The busiest member over the mean, of partitions and of lag; moved: partitions that would "
        "change owners now.",
        parts=(
            table(
                heads,
                (
                    (
                        row["group"],
                        row["assignor"],
                        *(_count(row[name]) for name in ("members", "partitions")),
                        *(_times(row[name]) for name in ("skew_now", "skew", "lag_skew_now", "lag_skew")),
                        _count(row["moved"]),
                    )
                    for row in rows
                ),
                left=2,
            ),
        ),
    )


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _times(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} ×"
