"""`restow groups lag`: show how far groups are behind, in messages and in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.drawing import clean, heading, put
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import LABEL, NAME, NOTHING, NUMBER, Grid
from restow.sizes import count, human_duration

if TYPE_CHECKING:
    from rich.console import Console

    from restow.client import GroupLag, PartitionLag

ABOUT = "Show how far groups are behind, in messages and in time."
HELP = """Show how far consumer groups are behind, in messages and in time, for both protocols.

Lag in messages is the end of the log less the committed offset, as Kafka's own tool counts it. Lag in time is
the age of the record that the group has to read next, found by asking brokers for offsets by timestamp; it is
right to about 1 %, and unknown for records without timestamps. Give groups to see their partitions.

\b
Examples:
  $ restow groups lag --bootstrap-server localhost:9092
  $ restow groups lag payments -b localhost:9092
  $ restow groups lag -b localhost:9092 --json
"""


def command(
    bootstrap: Bootstrap,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="GROUP…", help="Their names; all groups if none is given.")
    ] = None,
    as_json: AsJson = False,
) -> Answer:
    from restow.client import group_lags
    from restow.runtime.clock import SystemClock

    groups = on_cluster(
        bootstrap, lambda admin: group_lags(admin, SystemClock().now_ms(), names or None, in_time=True)
    )
    return Answer(
        document=lambda: {"groups": [_document(each) for each in groups]},
        draw=lambda console: _draw_partitions(console, groups) if names else _draw(console, groups),
        as_json=as_json,
    )


def _document(found: GroupLag) -> dict[str, object]:
    return {
        "name": found.group.name,
        "protocol": found.group.protocol,
        "state": found.group.state,
        "lag_messages": found.lag,
        "lag_ms": found.lag_ms,
        "error": found.error,
        "partitions": [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "committed": each.committed,
                "log_end": each.latest,
                "lag_messages": each.lag,
                "lag_ms": each.lag_ms,
                "member": None if each.member is None else each.member.id,
            }
            for each in found.partitions
        ],
    }


def _draw(console: Console, groups: tuple[GroupLag, ...]) -> None:
    table = Grid(
        ("group", NAME),
        ("protocol", LABEL),
        ("state", LABEL),
        ("members", NUMBER),
        ("partitions", NUMBER),
        ("lag", NUMBER),
        ("in time", NUMBER),
    )
    for found in groups:
        table.add_row(
            found.group.name,
            found.group.protocol,
            found.group.state,
            f"{len(found.group.members):,}",
            f"{len(found.partitions):,}",
            _messages(found.lag),
            _age(found.lag_ms),
        )
    console.print(table if groups else "no consumer groups")
    for found in groups:
        if found.error:
            put(console, f"{clean(found.group.name)}: {clean(found.error)}", style="yellow")


def _draw_partitions(console: Console, groups: tuple[GroupLag, ...]) -> None:
    for found in groups:
        heading(console, clean(found.group.name))
        lag = "unknown" if found.lag is None else count(found.lag, "message")
        put(console, f"  {found.group.state}, protocol {found.group.protocol}, {lag} behind")
        if found.error:
            put(console, f"  its offsets are unknown: {clean(found.error)}", style="yellow")
        if found.partitions:
            console.print(_table(found.partitions))


def _table(partitions: tuple[PartitionLag, ...]) -> Grid:
    table = Grid(
        ("topic", NAME),
        ("partition", NUMBER),
        ("committed", NUMBER),
        ("log end", NUMBER),
        ("lag", NUMBER),
        ("in time", NUMBER),
        ("member", NAME),
    )
    for each in partitions:
        table.add_row(
            each.partition.topic,
            str(each.partition.partition),
            _messages(each.committed),
            _messages(each.latest),
            _messages(each.lag),
            _age(each.lag_ms),
            NOTHING if each.member is None else each.member.id,
        )
    return table


def _messages(number: int | None) -> str:
    return NOTHING if number is None else f"{number:,}"


def _age(age_ms: int | None) -> str:
    return NOTHING if age_ms is None else human_duration(age_ms / 1000)
