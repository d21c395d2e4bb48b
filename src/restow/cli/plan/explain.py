"""`restow plan explain`: why a partition moves, why a broker stays out of band, and what would help."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.plan.options import PlanOptions
from restow.cli.shared.drawing import put
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import LABEL, NUMBER, Grid
from restow.errors import InvalidInput
from restow.sizes import count, human_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from restow.plan.explain.why import GoalOfBroker, Saving, WhyBroker, WhyPartition

ABOUT = "Say why a partition moves, or why a broker stays out of band."
HELP = """Plan as the other commands do, and explain one partition or one broker of that plan: why a replica
moves, why it goes where it goes, why a broker stays out of band, and which rule binds.

For every rule that could be relaxed (bands, racks, exclusions, how full disks may be) the plan is made again
without it, to say how many bytes that would save. --seconds is the limit of each search. Without a request,
the plan is one to balance the cluster. No plan is written.

\b
Examples:
  $ restow plan explain orders-7 -b localhost:9092
  $ restow plan explain 3 --drain 4 --balance --snapshot now.json --load load.json
"""


def command(
    what: Annotated[
        str, typer.Argument(metavar="PARTITION|BROKER", help="A partition like orders-7, or a broker's id.")
    ],
    options: PlanOptions,
) -> Answer:
    for flag, given in (
        ("--output", options.output.output),
        ("--html", options.html),
        ("--rollback", options.output.rollback),
    ):
        if given is not None:
            raise InvalidInput(f"{flag}: explain writes no plan: leave it out, or use restow plan balance")
    found = options.explain(what)
    return Answer(
        document=lambda: asdict(found), draw=lambda console: draw(console, found), as_json=options.as_json
    )


def draw(console: Console, found: WhyPartition | WhyBroker) -> None:
    """Draw the answer as tables and sentences."""
    from restow.plan.explain.why import WhyPartition

    if isinstance(found, WhyPartition):
        _draw_partition(console, found)
    else:
        _draw_broker(console, found)
    _draw_savings(console, found.savings)


def _draw_partition(console: Console, found: WhyPartition) -> None:
    way = (
        f"{list(found.before)} → {list(found.after)}"
        if found.before != found.after
        else f"{list(found.before)}"
    )
    put(console, f"{found.partition}: {human_bytes(found.size_bytes)}, {way}", style="bold")
    put(console, found.reason)
    for each in found.moves:
        where = f"from broker {each.source} " if each.source is not None else ""
        to = f"to broker {each.target}" if each.target is not None else "is removed"
        put(
            console,
            f"a replica {where}{to}: {human_bytes(each.copied_bytes)} to copy, "
            f"{human_bytes(each.freed_bytes)} freed",
        )
        for reason, many in sorted(each.others.items(), key=lambda one: -one[1]):
            put(console, f"  {count(many, 'other broker')}: {reason}", style="dim")
    for broker, goals in found.brokers.items():
        put(console, f"broker {broker}", style="bold")
        _draw_goals(console, goals)


def _draw_broker(console: Console, found: WhyBroker) -> None:
    put(console, f"broker {found.broker}: {found.role}", style="bold")
    put(
        console,
        f"{count(found.comes, 'replica')} come ({human_bytes(found.comes_bytes)}), "
        f"{found.goes:,} go ({human_bytes(found.goes_bytes)})",
    )
    for reason, many in sorted(found.goes_because.items(), key=lambda one: -one[1]):
        put(console, f"  {many:,} go for {reason}", style="dim")
    _draw_goals(console, found.goals)
    for each in found.unmet:
        put(console, each.text, style="yellow")
    for sentence in found.binding:
        put(console, f"what binds: {sentence}")


def _draw_goals(console: Console, goals: Sequence[GoalOfBroker]) -> None:
    table = Grid(
        ("goal", LABEL), *((each, NUMBER) for each in ("before", "after", "from", "to")), ("", LABEL)
    )
    for each in goals:
        limits = ("–", "–") if each.state == "no band" else (f"{each.lowest:,.6g}", f"{each.highest:,.6g}")
        state = f"{each.state}, at its edge" if each.binds and each.state == "in band" else each.state
        table.add_row(each.goal, f"{each.before:,.6g}", f"{each.after:,.6g}", *limits, state)
    console.print(table)


def _draw_savings(console: Console, savings: Sequence[Saving]) -> None:
    if not savings:
        return
    table = Grid(
        ("if this were allowed", LABEL), ("to copy", NUMBER), ("saved", NUMBER), ("out of band", NUMBER)
    )
    for each in savings:
        saved = (
            human_bytes(each.saved_bytes) if each.saved_bytes >= 0 else f"-{human_bytes(-each.saved_bytes)}"
        )
        table.add_row(each.rule, human_bytes(each.copied_bytes), saved, f"{each.out_of_band:,}")
    console.print(table)
