"""`restow verify`: is a plan done, with nothing left behind?"""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.plan_options import AsJson, Bootstrap, SnapshotFile, read_text

ABOUT = "Whether a plan is done, with nothing left behind."
HELP = """Say whether a plan is done: replicas in place and in order, in sync, nothing moving, leaders and
directories as wanted, no throttles left. Each check comes with what was seen; exit code 0 only if all hold.

\b
Examples:
  $ restow verify plan.json --bootstrap-server localhost:9092
  $ restow verify plan.json --snapshot after.json --json
"""


def command(
    file: Annotated[str, typer.Argument(metavar="PLAN", help="A plan file.")],
    bootstrap: Bootstrap = None,
    snapshot: SnapshotFile = None,
    as_json: AsJson = False,
) -> None:
    from restow.cli.snapshots import snapshot_from
    from restow.cli.verdict_view import tell
    from restow.plan.text import loads
    from restow.verify.plan_done import verify_plan

    plan = loads(read_text(file), file)
    tell(verify_plan(plan, snapshot_from(bootstrap, snapshot)), as_json=as_json)
