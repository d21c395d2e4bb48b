"""`restow verify`: is a plan done, with nothing left behind?"""

from __future__ import annotations

from restow.cli.plan.files import Digest, PlanFile, SignedBy  # noqa: TC001  (typer reads it)
from restow.cli.plan.options import AsJson, Bootstrap, SnapshotFile  # noqa: TC001  (typer reads it)
from restow.cli.runs.flags import JournalFolder  # noqa: TC001  (typer reads it)

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
    from restow.execute.journal.runs import throttles_on
    from restow.plan import read_plan
    from restow.verify import verify

    plan = read_plan(file, digest=digest, signed_by=signed_by)
    now = snapshot_from(bootstrap, snapshot)
    tell(verify(plan, now, throttles_on(plan, journal)), as_json=as_json)
