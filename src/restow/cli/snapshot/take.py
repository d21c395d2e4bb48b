"""`restow snapshot`: write the state of a cluster to a file. `restow snapshot diff` compares two files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.shared.connection import AsJson, OptionalBootstrap
from restow.cli.shared.drawing import clean, put
from restow.cli.shared.frame import Answer
from restow.cli.snapshot.source import SnapshotSource
from restow.sizes import count

if TYPE_CHECKING:
    from rich.console import Console

    from restow.model import Snapshot

HELP = """Write the state of a cluster to a file.

It has brokers, racks, log dirs with sizes and free space, partitions, leaders, ISRs, configs, running
reassignments, throttles, and consumer groups with what their members read. The file is sorted and has one
partition per line, so that `diff` can compare it, like `restow snapshot diff`.

\b
Examples:
  $ restow snapshot -o now.json --bootstrap-server localhost:9092
  $ restow snapshot -b localhost:9092 --json
"""


def command(
    ctx: typer.Context,
    bootstrap: OptionalBootstrap = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file.")
    ] = None,
    as_json: AsJson = False,
) -> Answer | None:
    from restow.snapshot import write_snapshot

    if ctx.invoked_subcommand is not None:
        return None
    taken = SnapshotSource(bootstrap=bootstrap).read()
    if output is not None:
        write_snapshot(taken, output)
    return Answer(
        document=lambda: _document(taken),
        draw=lambda console: _draw(console, taken, output),
        as_json=as_json,
    )


def _document(taken: Snapshot) -> object:
    import json

    from restow.snapshot.text import dumps

    return json.loads(dumps(taken))


def _draw(console: Console, taken: Snapshot, output: str | None) -> None:
    partitions = [partition for _, partition in taken.all_partitions()]
    controller = "not known" if taken.controller is None else taken.controller
    put(console, f"cluster {clean(taken.cluster_id)}, controller {controller}", style="bold")
    put(
        console,
        f"{count(len(taken.brokers), 'broker')}, {count(len(taken.topics), 'topic')}, "
        f"{count(len(partitions), 'partition')}, {count(len(taken.groups), 'consumer group')}",
    )
    behind = sum(len(each.isr) < len(each.replicas) for each in partitions)
    moving = sum(each.moving for each in partitions)
    put(console, f"{behind:,} under-replicated, {moving:,} moving")
    for broker in taken.brokers:
        for each in broker.log_dirs:
            if each.cordoned or each.failed:
                state = "failed" if each.failed else "cordoned"
                put(console, f"broker {broker.id}, {state} log dir: {clean(each.path)}", style="yellow")
    if output is not None:
        put(console, f"The snapshot is in {output}.")
