"""`restow plan add-brokers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from restow.cli.plan_options import (
    Answer,
    AsJson,
    Band,
    Bootstrap,
    ExcludeBrokers,
    ExcludeTopics,
    Fill,
    Html,
    LoadFile,
    MaxBytes,
    MaxMoves,
    Options,
    Output,
    Seconds,
    Seed,
    SnapshotFile,
    Topics,
    answer_of,
    broker_ids,
)

if TYPE_CHECKING:
    from restow.plan.request import Request

ABOUT = "Give new brokers their share."
HELP = """Give brokers that have joined their share, and move nothing between the others.

\b
Examples:
  $ restow plan add-brokers 7,8 -b localhost:9092 -o plan.json
"""


def command(
    brokers: Annotated[str, typer.Argument(metavar="7,8", help="The brokers that are new.")],
    bootstrap: Bootstrap = None,
    snapshot: SnapshotFile = None,
    load: LoadFile = None,
    topics: Topics = None,
    exclude_topics: ExcludeTopics = None,
    exclude_brokers: ExcludeBrokers = None,
    band: Band = None,
    max_bytes: MaxBytes = None,
    max_moves: MaxMoves = None,
    fill: Fill = 0.9,
    seconds: Seconds = 60.0,
    seed: Seed = 0,
    output: Output = None,
    html: Html = None,
    as_json: AsJson = False,
) -> Answer:
    options = Options(
        bootstrap=bootstrap,
        snapshot=snapshot,
        load=load,
        topics=topics,
        exclude_topics=exclude_topics,
        exclude_brokers=exclude_brokers,
        band=band,
        max_bytes=max_bytes,
        max_moves=max_moves,
        fill=fill,
        seconds=seconds,
        seed=seed,
        output=output,
        html=html,
        as_json=as_json,
    )

    def wish(given: dict[str, Any]) -> Request:
        from restow.plan.request import Request

        return Request(
            add=broker_ids(brokers, "BROKERS"),
            **given,
        )

    return answer_of(options, wish)
