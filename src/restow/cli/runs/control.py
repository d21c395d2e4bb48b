"""`restow control`: change a run while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.runs.flags import BY_HOUR, RATES, JournalFolder
from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.frame import Answer, line
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from restow.client import KafkaAdmin
    from restow.execute.run.control import ControlRequest

ABOUT = "Change a run while it runs."
HELP = """Change the throttle or the concurrency of a run while it runs; pause it or continue it.

\b
Examples:
  $ restow control --throttle 20MB/s -b localhost:9092
  $ restow control --pause -b localhost:9092
  $ restow control --go-on --moves-in 2 -b localhost:9092
"""


def command(
    bootstrap: Bootstrap,
    throttle: Annotated[str | None, typer.Option(metavar=RATES, help=f"Rate per broker. {BY_HOUR}")] = None,
    moves_in: Annotated[
        int | None, typer.Option(min=1, help="Most replicas a broker receives at once.")
    ] = None,
    moves_out: Annotated[
        int | None, typer.Option(min=1, help="Most replicas a broker sends at once.")
    ] = None,
    pause: Annotated[
        bool | None, typer.Option("--pause/--go-on", help="Stop starting moves, or resume.")
    ] = None,
    leave: Annotated[bool, typer.Option("--leave", help="End the run; let running moves finish.")] = False,
    journal: JournalFolder = None,
    as_json: AsJson = False,
) -> Answer:
    from restow.execute.run.control import LEAVE, ControlRequest
    from restow.execute.throttle.hours import HourlyThrottle

    if throttle is not None:
        HourlyThrottle.parse(throttle)
    request = ControlRequest(
        throttle=throttle,
        moves_in=moves_in,
        moves_out=moves_out,
        paused=pause,
        stop=LEAVE if leave else None,
    )
    if request == ControlRequest():
        raise InvalidInput("nothing to change: give --throttle, --moves-in, --moves-out, --pause or --go-on")
    run = on_cluster(bootstrap, lambda admin: _request(admin, journal, request))
    return line(f"run {run} has been told", {"run": run, "told": True}, as_json=as_json)


async def _request(admin: KafkaAdmin, journal: str | None, request: ControlRequest) -> str:
    from restow.execute.run.control import Control
    from restow.execute.run.lock import holder_of
    from restow.execute.run.start import run_context

    world = run_context(admin, journal)
    runs = await world.runs()
    holder = holder_of(world.disk, runs.folder)
    if holder is None:
        raise InvalidInput(
            "no run is being carried out on this cluster from here: there is nothing to change"
        )
    Control(world.disk, runs.path(holder.run)).request(request)
    return holder.run
