"""`restow undo`: bring back what a run has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.connection import AsJson, Bootstrap, on_cluster
from restow.cli.frame import Answer
from restow.cli.run_flags import JournalFolder, RunName, Throttle, Yes, carry_out, world_of

if TYPE_CHECKING:
    from restow.client import KafkaAdmin
    from restow.execute.executor import Watcher
    from restow.execute.outcome import Outcome
    from restow.execute.start import World
    from restow.model import Plan

ABOUT = "Bring back what a run has changed."
HELP = """Bring back what a run has changed, the newest first: what is under way and what has arrived.

First it is checked that the original replicas are alive. Without --yes it says what would be moved.

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
        bool, typer.Option("--as-far-as-possible", help="Leave out what cannot be brought back.")
    ] = False,
    journal: JournalFolder = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> Answer | None:
    from restow.execute.options import Options
    from restow.execute.rates import parse_throttle
    from restow.execute.start import undo
    from restow.execute.throttles import Wanted

    auto, rate = parse_throttle(throttle)
    options = Options(throttle=Wanted(rate=rate, dir_rate=rate), auto=auto)

    async def work(world: World, watcher: Watcher) -> Outcome:
        return await undo(world, options, watcher, run, as_far_as_possible=as_far_as_possible)

    if yes:
        carry_out(bootstrap, journal, work, as_json=as_json)
        return None
    name, plan = on_cluster(
        bootstrap, lambda admin: _way_back(admin, journal, run, as_far_as_possible=as_far_as_possible)
    )
    return Answer(
        document=lambda: {
            "run": name,
            "moves": [
                {"partition": str(move.partition), "before": list(move.before), "after": list(move.after)}
                for move in plan.moves
            ],
            "bytes_to_copy": plan.bytes_to_copy,
        },
        draw=lambda console: console.print(
            f"run {name}: {len(plan.moves)} partitions would be moved back, with {plan.bytes_to_copy:,} "
            "bytes to copy. Add --yes to do it"
        ),
        as_json=as_json,
    )


async def _way_back(
    admin: KafkaAdmin, journal: str | None, name: str | None, *, as_far_as_possible: bool
) -> tuple[str, Plan]:
    from restow.execute.undo import inverse
    from restow.runtime.clock import SystemClock
    from restow.snapshot import capture

    runs = await world_of(admin, journal).runs()
    run = runs.get(name) if name else runs.last_to_move()
    snapshot = await capture(admin, SystemClock())
    return run.name, inverse(run, snapshot, as_far_as_possible=as_far_as_possible)
