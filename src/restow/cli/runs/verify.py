"""`restow verify`: check that a plan is done and nothing is left over."""

from __future__ import annotations

from dataclasses import replace

from restow.cli.plan.files import Approval, PlanFile
from restow.cli.runs.flags import JournalFolder
from restow.cli.shared.connection import AsJson
from restow.cli.shared.frame import Answer
from restow.cli.snapshot.source import SnapshotSource

ABOUT = "Check that a plan is done and nothing is left over."
HELP = """Check that a plan is done. First its goals, against the cluster's present state with new partitions:
the broker is empty or leads nothing, the replication factor is reached, replicas are on separate racks,
goals are in their bands. Then its moves: replicas in place, in order and in sync, no reassignment running,
leaders and log dirs as planned, no throttles left over.

Each check shows what it found (? where it could not be made) and names what is left to do. The exit code is 0
only if all hold. A line below them says how far off the prediction of the run was; it decides nothing.

\b
Examples:
  $ restow verify plan.json --bootstrap-server localhost:9092
  $ restow verify plan.json --snapshot after.json --json
"""


def command(
    *,
    file: PlanFile,
    source: SnapshotSource,
    journal: JournalFolder = None,
    approval: Approval,
    as_json: AsJson = False,
) -> Answer:
    from restow.cli.runs.verdict_view import verdict_answer
    from restow.execute.journal.runs import predictions_told, throttles_on
    from restow.verify import verify

    plan = approval.read(file)
    verdict = verify(plan, source.read(), throttles_on(plan, journal))
    verdict = replace(verdict, notes=predictions_told(plan, journal))
    return verdict_answer(verdict, as_json=as_json)
