"""`restow pipeline rehearse`: plans in many variants, with Spark."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restow.cli.pipeline.options import SparkOptions, TableOutput, documents, watched_spark
from restow.cli.runs.flags import JournalFolder, PaceOptions
from restow.cli.shared.flags import parse_names
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import Column, draw_rows, moments, numbers, share, sizes, word, words
from restow.errors import InvalidInput
from restow.sizes import human_duration
from restow.text_files import write_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from restow.model import Snapshot
    from restow.model.load import LoadModel
    from restow.rehearse.variants import PlanToRehearse

ABOUT = "Rehearse plans in many variants: throttles, starts, faults, seeds."
HELP = """Rehearse plans with every combination of throttles, starts, faults and seeds, in parallel.

Each variant is rehearsed once per seed. Seeds draw the model's constants from their range, so a variant has a
P10, P50 and P90 of its time. A variant is on the frontier if nothing speaks against it and no other one is
both faster and cheaper for clients. What it costs clients needs a load model.

PLAN, --snapshot and --load are files, or folders with one file per plan or cluster; those of one cluster
belong together. A --what-if is one case beside the run without faults; semicolons join faults of one case.
Faults need plans of up to 300 moves, and take much longer than other rehearsals.

\b
Examples:
  $ restow pipeline rehearse plan.json --snapshot now.json --throttles 20MB/s,50MB/s,none
  $ restow pipeline rehearse plan.json --snapshot now.json --load main.parquet --html sweep.html
  $ restow pipeline rehearse plan.json --snapshot now.json --starts "every hour" --out sweep
  $ restow pipeline rehearse plan.json --snapshot now.json --what-if "broker 3 dies at 30%"
  $ restow pipeline rehearse plans --snapshot snapshots --master spark://host:7077
"""
_HOURS, _HOUR_MS = 168, 3_600_000
_EVERY_HOUR = "every hour"
_MOST = 1_000_000
_MOST_POINTS = 5_000


def command(
    *,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan file, or a folder of them.")],
    snapshot: Annotated[
        str, typer.Option(metavar="FILE", help="A file of `restow snapshot`, or a folder of them.")
    ],
    load: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A load model of `restow pipeline run`, or a folder of them."),
    ] = None,
    throttles: Annotated[
        str, typer.Option(metavar="RATES", help="Throttles to compare, with commas between them.")
    ] = "20MB/s,50MB/s,100MB/s,none",
    starts: Annotated[
        str,
        typer.Option(
            metavar="TIMES",
            help='Starts to compare: now,22:00,2026-11-20T06:00; "every hour" is each hour of the next week.',
        ),
    ] = "now",
    what_if: Annotated[
        list[str] | None,
        typer.Option(metavar="FAULTS", help='A case, like "broker 3 dies at 30%"; repeatable.'),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=10_000, help="Rehearse each variant so often.")] = 9,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write an HTML page.")] = None,
    pace: PaceOptions,
    journal: JournalFolder = None,
    spark: SparkOptions,
    output: TableOutput,
) -> Answer:
    from restow.rehearse.variants import variants_of

    wanted = parse_names(throttles, "--throttles")
    variants = variants_of(wanted, _starts_ms(starts), what_if or (), seeds)
    plans = _plans(plan, snapshot, load, journal, pace)
    if len(plans) * len(variants) > _MOST:
        raise InvalidInput(
            f"these are {len(plans) * len(variants):,} rehearsals, and at most {_MOST:,} go into one table: "
            "compare fewer throttles, starts or seeds"
        )
    for each in plans:
        each.check(wanted, what_if or ())
    with watched_spark("pipeline rehearse", spark, as_json=output.as_json) as session:
        from restow.pipeline.jobs.rehearse import by_variant, rehearsals

        found = by_variant(rehearsals(session, plans, variants)).persist()
        try:
            output.save(found)
            in_order = found.orderBy(
                "cluster",
                "plan",
                "what_if",
                "frontier",
                "p50",
                "impact",
                ascending=[True] * 3 + [False, True, True],
            )
            rows = output.first_rows(in_order)
            points = documents(in_order.limit(_MOST_POINTS)) if html is not None else []
        finally:
            found.unpersist()
    if html is not None:
        from restow.cli.pipeline.rehearse_html import page_of

        write_text(html, page_of(points, len(plans) * len(variants)))
    return output.answer("variants", [_without_infinity(row) for row in rows], _draw)


def _starts_ms(text: str) -> list[int]:
    from restow.execute.predict.moments import moment_ms
    from restow.runtime.clock import SystemClock

    now_ms = SystemClock().now_ms()
    if text.strip() == _EVERY_HOUR:
        first_ms = now_ms - now_ms % _HOUR_MS
        return [max(now_ms, first_ms + number * _HOUR_MS) for number in range(_HOURS)]
    names = parse_names(text, "--starts")
    return [now_ms if each == "now" else moment_ms(each, now_ms, "--starts") for each in names]


def _plans(
    plan: str, snapshot: str, load: str | None, journal: str | None, pace: PaceOptions
) -> list[PlanToRehearse]:
    """Read the plans, each with the snapshot and the load model of its cluster."""
    import os

    from restow.execute.journal.runs import state_folder
    from restow.execute.predict.learn import calibrate
    from restow.plan import read_load, read_plan
    from restow.plan.flow.loads import client_loads
    from restow.rehearse.variants import PlanToRehearse
    from restow.snapshot import read_snapshot

    snapshots: dict[str, Snapshot] = {}
    for path in _files(snapshot, "--snapshot"):
        taken = read_snapshot(path)
        snapshots[taken.cluster_id] = taken
    models: dict[str, LoadModel] = {}
    for path in [] if load is None else _files(load, "--load"):
        model = read_load(path)
        models[model.cluster_id] = model
    found = []
    for path in _files(plan, "PLAN"):
        asked = read_plan(path)
        now = _of_cluster(snapshots, asked.cluster_id, f"{path}: --snapshot")
        carried = None if load is None else _of_cluster(models, asked.cluster_id, f"{path}: --load")
        root = str(journal or state_folder(os.environ))
        found.append(
            PlanToRehearse(
                plan=asked,
                snapshot=now,
                loads=client_loads(carried, now, asked),
                known=calibrate(root, asked.cluster_id, carried),
                flags={
                    "dir_throttle": pace.dir_throttle,
                    "hours": pace.hours,
                    "special_last": pace.special_last,
                },
            )
        )
    return found


def _files(path: str, flag: str) -> list[str]:
    """Return a file, or all files of a folder."""
    if not Path(path).is_dir():
        return [path]
    found = sorted(str(each) for each in Path(path).iterdir() if each.is_file())
    if not found:
        raise InvalidInput(f"{flag}: there are no files in the folder {path!r}")
    return found


def _of_cluster(known: dict[str, Any], cluster_id: str, where: str) -> Any:
    if cluster_id not in known:
        raise InvalidInput(
            f"{where}: the plan is for cluster {cluster_id}, and what was given is of "
            f"{', '.join(sorted(known)[:5])}{' and others' if len(known) > 5 else ''}: give its own"
        )
    return known[cluster_id]


def _without_infinity(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with null for a time that never comes."""
    return {name: None if value == inf else value for name, value in row.items()}


def _draw(console: Console, rows: list[dict[str, Any]]) -> None:
    columns: tuple[Column, ...] = (
        words("cluster"),
        words("throttle"),
        moments("start"),
        words("what_if", "what if"),
        Column("p10", "P10", human_duration),
        Column("p50", "P50", human_duration),
        Column("p90", "P90", human_duration),
        sizes("impact"),
        Column("fullest", "fullest dir", share),
        numbers("with_problems", "with problems"),
        Column("frontier", "frontier", lambda yes: "yes" if yes else ""),
        words("limited_by", "limited by"),
    )
    if not any(row["what_if"] for row in rows):
        columns = tuple(each for each in columns if each.name != "what_if")
    draw_rows(console, columns, rows)
    for row in _worst(rows):
        console.print(f"{word(row['throttle'])}: {word(row['problems'][0])}", style="yellow")


def _worst(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for each kind of problem."""
    return list({row["problems"][0][:24]: row for row in reversed(rows) if row["problems"]}.values())
