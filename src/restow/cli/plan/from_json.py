"""`restow plan from-json`: a pinned plan from Kafka's reassignment JSON."""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.plan.files import PlanOutput
from restow.cli.plan.options import USUAL, ExecutionLimits, Fill
from restow.cli.shared.connection import AsJson
from restow.cli.shared.frame import Answer
from restow.cli.snapshot.source import SnapshotSource
from restow.text_files import read_text

ABOUT = "Turn Kafka's reassignment JSON into a plan."
HELP = """Turn Kafka's reassignment JSON into a plan: pinned to the present replicas, with the bytes to copy,
and in an order that keeps the limits at every moment. The cluster does not change.

What is never exceeded: how full a log dir gets (old and new copies counted), how many extra copies a
partition has, how many replicas a broker receives and sends. `__consumer_offsets` and `__transaction_state`
come last.

\b
Examples:
  $ restow plan from-json moves.json -b localhost:9092 -o plan.json
  $ restow plan from-json moves.json --snapshot now.json --extra-copies 3 -o plan.json
"""


def command(
    *,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The JSON file for kafka-reassign-partitions.")],
    source: SnapshotSource,
    limits: ExecutionLimits,
    fill: Fill = USUAL.fill,
    title: Annotated[str, typer.Option(help="The plan's title.")] = "",
    output: PlanOutput,
    as_json: AsJson = False,
) -> Answer:
    from restow.cli.plan.show_view import document, draw
    from restow.plan.explain.view import view_of
    from restow.plan.files.kafka_json import check_reassignment, parse_reassignment
    from restow.plan.pin import plan_from_targets

    output.check(as_json=as_json)
    requested = limits.requested(fill)
    targets = parse_reassignment(read_text(file), file)
    check_reassignment(targets, file)
    taken = source.read()
    plan = plan_from_targets(taken, targets, created_ms=taken.taken_ms, limits=requested, title=title)
    view = view_of(plan, taken)
    return output.answer(
        plan,
        lambda: document(plan, view),
        lambda console: draw(console, plan, view),
        source.address,
        as_json=as_json,
    )
