"""`restow broker-check`: check whether a broker can be removed from the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.frame import Answer

if TYPE_CHECKING:
    from restow.client import KafkaAdmin
    from restow.model import Verdict

ABOUT = "Check whether a broker can be removed."
HELP = """Check whether a broker can be removed: it has no replicas, no leaders, no reassignments, no
coordinators and no data on disk, and is not the controller. Exit code 0 only if all checks hold.

\b
Examples:
  $ restow broker-check 3 --bootstrap-server localhost:9092
  $ restow broker-check 3 -b localhost:9092 --json
"""


def command(
    broker: Annotated[int, typer.Argument(metavar="BROKER", min=0, help="The broker's id.")],
    bootstrap: Bootstrap,
    as_json: AsJson = False,
) -> Answer:
    from restow.cli.runs.verdict_view import verdict_answer

    return verdict_answer(on_cluster(bootstrap, lambda admin: _check(admin, broker)), as_json=as_json)


async def _check(admin: KafkaAdmin, broker: int) -> Verdict:
    from restow.runtime.clock import SystemClock
    from restow.snapshot import capture
    from restow.verify import broker_check

    snapshot = await capture(admin, SystemClock())
    quorum = await admin.describe_metadata_quorum()
    return broker_check(snapshot, broker, voters=None if quorum is None else quorum.voters)
