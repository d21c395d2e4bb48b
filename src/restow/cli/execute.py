"""`restow execute`: carry out a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.connection import Bootstrap  # noqa: TC001  (typer reads it)
from restow.cli.run_flags import (
    DirThrottle,
    Elect,
    GiveUp,
    HoursOnly,
    JournalFolder,
    MaxLatency,
    MaxUnderReplicated,
    SpecialLast,
    Throttle,
    carry_out,
    options_from,
)

if TYPE_CHECKING:
    from restow.model import Plan

ABOUT = "Carry out a plan."
HELP = """Carry out a plan, move by move, within its limits, with a journal from which all can be undone.

In a terminal it shows how far it is, and ctrl-C asks: pause, cancel this wave, leave running. Elsewhere it
prints one line of JSON per event.

\b
Examples:
  $ restow execute plan.json --throttle 50MB/s -b localhost:9092
  $ restow execute plan.json --throttle auto --hours 22:00-06:00 -b localhost:9092
  $ restow execute plan.json --throttle none --json -b localhost:9092
"""


def command(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan, as `restow plan` makes them.")],
    bootstrap: Bootstrap,
    throttle: Throttle,
    dir_throttle: DirThrottle = None,
    hours: HoursOnly = None,
    max_under_replicated: MaxUnderReplicated = 0,
    max_latency_ms: MaxLatency = None,
    special_last: SpecialLast = True,
    elect: Elect = True,
    give_up_after: GiveUp = 600,
    journal: JournalFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON per event.")] = False,
) -> None:
    from restow.execute.start import execute

    wanted = read_plan(plan)
    options = options_from(
        throttle=throttle,
        dir_throttle=dir_throttle,
        hours=hours,
        max_under_replicated=max_under_replicated,
        max_latency_ms=max_latency_ms,
        special_last=special_last,
        elect=elect,
        give_up_after=give_up_after,
    )
    carry_out(
        bootstrap, journal, lambda world, watcher: execute(world, wanted, options, watcher), as_json=as_json
    )


def read_plan(path: str) -> Plan:
    """A plan from a file, or a sentence that says what is wrong with it."""
    from restow.errors import InvalidDocument
    from restow.plan.text import loads

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidDocument(f"{path!r} cannot be read: {reason}") from error
    return loads(text, path)
