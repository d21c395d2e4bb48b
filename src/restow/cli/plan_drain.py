"""`restow plan drain`."""

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

ABOUT = "Empty brokers, so that they can be taken away."
HELP = """Move everything off some brokers, which may be down. Nothing else moves.

\b
Examples:
  $ restow plan drain 3 -b localhost:9092 -o plan.json
"""


def command(
    brokers: Annotated[str, typer.Argument(metavar="3,4", help="The brokers to empty.")],
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
            drain=broker_ids(brokers, "BROKERS"),
            **given,
        )

    return answer_of(options, wish)
