"""`restow verify`: is a plan done, with nothing left behind?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cli.plan.files import Digest, PlanFile, SignedBy  # noqa: TC001  (typer reads it)
from restow.cli.plan.options import AsJson, Bootstrap, SnapshotFile  # noqa: TC001  (typer reads it)
from restow.cli.runs.flags import JournalFolder  # noqa: TC001  (typer reads it)

if TYPE_CHECKING:
    from restow.execute.throttle.throttles import Setting
    from restow.model import Plan

ABOUT = "Whether a plan is done, with nothing left behind."
HELP = """Say whether a plan is done. First what it promised, against the cluster as it is now, partitions
that are new included: the broker is empty or leads nothing, the factor is reached, racks are apart, goals are
in their bands. Then its moves: replicas in place and in order, in sync, nothing moving, leaders and
directories as wanted, no throttles left of it.

Each check comes with what was seen (? where it could not be made), and with what is left by name. The exit
code is 0 only if all hold.

\b
Examples:
  $ restow verify plan.json --bootstrap-server localhost:9092
  $ restow verify plan.json --snapshot after.json --json
"""


def command(
    file: PlanFile,
    bootstrap: Bootstrap = None,
    snapshot: SnapshotFile = None,
    journal: JournalFolder = None,
    digest: Digest = None,
    signed_by: SignedBy = None,
    as_json: AsJson = False,
) -> None:
    from restow.cli.runs.verdict_view import tell
    from restow.cli.snapshot.files import snapshot_from
    from restow.plan import read_plan
    from restow.verify.plan_done import verify_plan

    plan = read_plan(file, digest=digest, signed_by=signed_by)
    now = snapshot_from(bootstrap, snapshot)
    tell(verify_plan(plan, now, _throttles_of(plan, journal)), as_json=as_json)


def _throttles_of(plan: Plan, journal: str | None) -> set[Setting] | None:
    """What the runs of this plan have on, as far as their journals know; None if there was no such run."""
    from restow.cli.runs.flags import runs_here

    runs, _ = runs_here(journal, plan.cluster_id).sound(plan.cluster_id)
    of_this = [run.ledger for run in runs if run.ledger.plan.moves == plan.moves]
    return {setting for ledger in of_this for setting in ledger.ours} if of_this else None
