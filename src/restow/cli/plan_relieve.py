"""`restow plan relieve`."""

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
    shares,
)
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from restow.plan.request import Request

ABOUT = "Take from brokers that are above a limit."
HELP = """Take just enough from brokers that have more than a limit, in multiples of their share.

\b
Examples:
  $ restow plan relieve disk=1.2 -b localhost:9092 -o plan.json
"""


def command(
    limits: Annotated[list[str], typer.Argument(metavar="GOAL=LIMIT…", help="Goals, each with its limit.")],
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
            relieve=limits_of(limits),
            **given,
        )

    return answer_of(options, wish)


def limits_of(items: list[str]) -> dict[str, float]:
    """`disk=1.2`: goals, each with the most that a broker may have of it in multiples of its share."""
    found = {}
    for goal, limit in shares(items, "LIMIT", ()).items():
        if limit is None or limit <= 1:
            raise InvalidInput(f"{goal}: a limit is a number above 1, like disk=1.2")
        found[goal] = limit
    if not found:
        raise InvalidInput("say which goals and how much, like disk=1.2")
    return found
