"""`restow plan balance`."""

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

ABOUT = "Bring every goal into its band."
HELP = """Even out disks, traffic, replicas and leaders with the fewest bytes copied.

Every goal has a band around each broker's share; what is in its bands is not moved. Other wishes can be
fulfilled by the same plan: emptying brokers, fixing racks, spreading each topic.

\b
Examples:
  $ restow plan balance -b localhost:9092 -o plan.json
  $ restow plan balance --snapshot now.json --load load.json --band 0.05 --drain 3
"""


def command(
    bootstrap: Bootstrap = None,
    snapshot: SnapshotFile = None,
    load: LoadFile = None,
    drain: Annotated[str | None, typer.Option(metavar="1,2", help="Empty these brokers too.")] = None,
    fix_racks: Annotated[bool, typer.Option(help="Spread replicas over racks too.")] = False,
    disks: Annotated[bool, typer.Option(help="Even out log dirs within brokers too.")] = False,
    spread_topics: Annotated[bool, typer.Option(help="Spread each topic over the brokers too.")] = False,
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
            balance=True,
            drain=broker_ids(drain, "--drain"),
            fix_racks=fix_racks,
            disks=disks,
            spread_topics=spread_topics,
            **given,
        )

    return answer_of(options, wish)
