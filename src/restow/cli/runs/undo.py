"""`restow undo`: move replicas back to where they were before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.runs.flags import JournalFolder, RunName, Throttle, Yes, carry_out, preview
from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.drawing import clean
from restow.cli.shared.frame import Answer
from restow.sizes import count, human_bytes

if TYPE_CHECKING:
    from restow.client import KafkaAdmin
    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.progress.status import RunListener
    from restow.execute.run.start import RunContext
    from restow.model import Plan

ABOUT = "Move replicas back to where they were before a run."
HELP = """Move replicas back to where they were before a run, newest first, and cancel its running moves.

First it checks that the original brokers are alive. Without --yes the command prints what it would move; on a
terminal it then asks.

\b
Examples:
  $ restow undo -b localhost:9092
  $ restow undo --yes --throttle 50MB/s -b localhost:9092
"""


def command(
    bootstrap: Bootstrap,
    run: RunName = None,
    throttle: Throttle = "auto",
    as_far_as_possible: Annotated[
        bool, typer.Option("--as-far-as-possible", help="Skip partitions that cannot be moved back.")
    ] = False,
    journal: JournalFolder = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> Answer | None:
    from restow.execute.run.options import run_options
    from restow.execute.run.start import undo

    options = run_options(throttle=throttle)

    async def work(world: RunContext, watcher: RunListener) -> RunOutcome:
        return await undo(world, options, watcher, run, as_far_as_possible=as_far_as_possible)

    if not yes:
        name, plan = on_cluster(
            bootstrap, lambda admin: _way_back(admin, journal, run, as_far_as_possible=as_far_as_possible)
        )
        sentence = (
            f"run {clean(name)}: {count(len(plan.moves), 'partition')} would be moved back, with "
            f"{human_bytes(plan.bytes_to_copy)} to copy"
        )
        told = preview(
            sentence, _document(name, plan), "Move them back?", "Add --yes to do it", as_json=as_json
        )
        if told is not None:
            return told
    carry_out(bootstrap, journal, work, as_json=as_json)
    return None


def _document(name: str, plan: Plan) -> dict[str, object]:
    return {
        "run": name,
        "moves": [
            {"partition": str(move.partition), "before": list(move.before), "after": list(move.after)}
            for move in plan.moves
        ],
        "bytes_to_copy": plan.bytes_to_copy,
    }


async def _way_back(
    admin: KafkaAdmin, journal: str | None, name: str | None, *, as_far_as_possible: bool
) -> tuple[str, Plan]:
    from restow.execute.run.start import run_context, way_back

    world = run_context(admin, journal)
    runs = await world.runs()
    run = runs.get(name) if name else runs.last_to_move()
    plan, _ = await way_back(world, run, as_far_as_possible=as_far_as_possible)
    return run.name, plan
