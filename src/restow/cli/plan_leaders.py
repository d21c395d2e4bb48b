"""`restow plan leaders`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
)

if TYPE_CHECKING:
    from restow.plan.request import Request

ABOUT = "Even out leaders; no data moves."
HELP = """Change which replica leads, so that leaders, their traffic and their work are even.
Nothing is copied.

\b
Examples:
  $ restow plan leaders -b localhost:9092 -o plan.json
"""


def command(
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
            leaders=True,
            **given,
        )

    return answer_of(options, wish)
