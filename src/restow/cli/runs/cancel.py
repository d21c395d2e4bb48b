"""`restow cancel`: cancel the running reassignments of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cli.runs.flags import JournalFolder, RunName, Yes, carry_out, preview
from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.drawing import clean
from restow.cli.shared.frame import Answer, line
from restow.sizes import count

if TYPE_CHECKING:
    from restow.client import KafkaAdmin
    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.progress.status import RunListener
    from restow.execute.run.start import RunContext

ABOUT = "Cancel the running reassignments of a run."
HELP = """Cancel the running reassignments of a run and remove its throttles. Finished moves stay.

If the run's process is alive, that process cancels. Without --yes the command prints what it would cancel;
on a terminal it then asks.

\b
Examples:
  $ restow cancel -b localhost:9092
  $ restow cancel --yes -b localhost:9092
"""


def command(
    bootstrap: Bootstrap,
    run: RunName = None,
    journal: JournalFolder = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> Answer | None:
    from restow.execute.run.start import cancel

    told: list[bool] = []

    async def work(world: RunContext, watcher: RunListener) -> RunOutcome | None:
        outcome = await cancel(world, watcher, run)
        told.append(outcome is None)
        return outcome

    if not yes:
        name, moves, throttles = on_cluster(bootstrap, lambda admin: _under_way(admin, journal, run))
        sentence = (
            f"run {clean(name)}: {count(len(moves), 'move')} and {count(throttles, 'throttle setting')} "
            "would be taken back"
        )
        found = {"run": name, "under_way": moves, "throttles": throttles}
        asked = preview(sentence, found, "Take it back?", "Add --yes to do it", as_json=as_json)
        if asked is not None:
            return asked
    carry_out(bootstrap, journal, work, as_json=as_json, cancels=True)
    if told != [True]:
        return None
    return line("the run has been told to cancel; `restow watch` shows it", {"told": True}, as_json=as_json)


async def _under_way(admin: KafkaAdmin, journal: str | None, name: str | None) -> tuple[str, list[str], int]:
    from restow.execute.journal.ledger import still_moving
    from restow.execute.run.start import run_context
    from restow.snapshot import capture

    world = run_context(admin, journal)
    runs = await world.runs()
    run = runs.get(name) if name else runs.latest(unsettled=True)
    moving = still_moving(run.ledger, await capture(admin, world.clock))
    return run.name, [str(partition) for partition in moving], len(run.ledger.ours)
