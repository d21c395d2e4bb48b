"""`restow resume`: continue a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow.cli.plan.files import Digest
from restow.cli.runs.flags import (
    JournalFolder,
    RunName,
    RunSettings,
    Throttle,
    Yes,
    carry_out,
    preview,
)
from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.drawing import clean
from restow.cli.shared.frame import Answer
from restow.sizes import count

if TYPE_CHECKING:
    from restow.client import KafkaAdmin

ABOUT = "Continue a run that was killed, cancelled or left."
HELP = """Continue a run that was killed, cancelled or left running, from the cluster's present state.

Without --yes the command prints what is left to do; on a terminal it then asks.

\b
Examples:
  $ restow resume -b localhost:9092
  $ restow resume --yes --throttle 50MB/s -b localhost:9092
"""


def command(
    *,
    bootstrap: Bootstrap,
    run: RunName = None,
    throttle: Throttle = "auto",
    settings: RunSettings,
    journal: JournalFolder = None,
    digest: Digest = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> Answer | None:
    from restow.execute.run.start import resume

    options = settings.options(throttle)
    if not yes:
        left = on_cluster(bootstrap, lambda admin: _left(admin, journal, run))
        told = preview(_sentence(left), left, "Go on?", "Add --yes to go on", as_json=as_json)
        if told is not None:
            return told
    carry_out(
        bootstrap,
        journal,
        lambda world, watcher: resume(world, options, watcher, run, digest),
        as_json=as_json,
    )
    return None


def _sentence(left: dict[str, Any]) -> str:
    from restow.plan.drift import REBASE
    from restow.sizes import some

    partitions, alone = left["partitions_left"], left["left_alone"]
    told = (
        f"run {clean(str(left['run']))}: {count(partitions, 'partition')} "
        f"{'is' if partitions == 1 else 'are'} left with {count(left['steps_left'], 'step')}, "
        f"{left['under_way']} of them under way, "
        f"{count(left['throttles'], 'throttle setting')} on"
    )
    if alone:
        told += f"; {count(len(alone), 'partition')} would be left out ({clean(some(alone))}): {REBASE}"
    return told


async def _left(admin: KafkaAdmin, journal: str | None, name: str | None) -> dict[str, Any]:
    from restow.execute.run.start import run_context, run_to_resume
    from restow.execute.run.steps import chains_of
    from restow.runtime.clock import SystemClock
    from restow.snapshot import capture

    runs = await run_context(admin, journal).runs()
    run = runs.get(name) if name else run_to_resume(runs)
    snapshot = await capture(admin, SystemClock())
    chains = chains_of(run.ledger.plan, snapshot, run.ledger.topic_ids, run.ledger.submitted)
    return {
        "run": run.name,
        "partitions_left": len(chains.steps),
        "steps_left": sum(map(len, chains.steps)),
        "under_way": len(chains.in_progress),
        "throttles": len(run.ledger.ours),
        "left_alone": {str(partition): reason for partition, reason in chains.strange.items()},
    }
