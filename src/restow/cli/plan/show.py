"""`restow show`: show what a plan moves, copies and changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.place.options import Format
from restow.cli.plan.files import Approval, AsFormat, PlanFile, PlanOutput, Rollback
from restow.cli.runs.flags import JournalFolder
from restow.cli.shared.connection import AsJson
from restow.cli.shared.frame import Answer
from restow.sizes import parse_rate
from restow.text_files import write_text

if TYPE_CHECKING:
    from rich.console import Console

ABOUT = "Show what a plan does."
HELP = """Show a plan: its moves, bytes to copy, brokers before and after, the time it takes at a throttle,
and the digest, by which it can be approved.

Without a snapshot, before and after count the partitions of the plan alone, and nothing is said of consumer
groups.

\b
Examples:
  $ restow show plan.json
  $ restow show plan.json --moves --throttle 50MB/s
  $ restow show plan.json --snapshot now.json --html plan.html
  $ restow show plan.json --format kafka --rollback back.json > moves.json
"""


def command(
    *,
    file: PlanFile,
    moves: Annotated[bool, typer.Option("--moves", help="List every move.")] = False,
    throttle: Annotated[
        str | None, typer.Option(metavar="RATE", help="Show the time at this rate, like 50MB/s.")
    ] = None,
    snapshot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A file of `restow snapshot`, to count the whole cluster."),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write an HTML page; of a plan that was carried out, with its last run."
        ),
    ] = None,
    journal: JournalFolder = None,
    form: AsFormat = Format.TABLE,
    rollback: Rollback = None,
    approval: Approval,
    as_json: AsJson = False,
) -> Answer:
    from restow.cli.plan.show_view import document, draw, draw_groups, draw_judgement
    from restow.plan.drift import check_same_cluster
    from restow.plan.explain.groups import groups_touched
    from restow.plan.explain.view import view_of
    from restow.plan.judge.waves import violations_of

    rate = None if throttle is None else parse_rate(throttle, "--throttle")
    wanted = PlanOutput(form=form, rollback=rollback)
    wanted.check(as_json=as_json)
    plan = approval.read(file)
    taken = None
    if snapshot is not None:
        from restow.snapshot import read_snapshot

        taken = read_snapshot(snapshot)
        check_same_cluster(plan, taken)
    view = view_of(plan, taken)
    if html is not None:
        from restow.cli.plan.show_html import page_of
        from restow.execute.journal.runs import last_run_of

        write_text(html, page_of(plan, view, rate=rate, run=last_run_of(plan, journal)))
    violations = violations_of(plan, taken)
    groups = () if taken is None else groups_touched(taken, plan.moves)

    def drawn(console: Console) -> None:
        draw(console, plan, view, moves=moves, rate=rate)
        draw_groups(console, groups)
        draw_judgement(console, violations)

    return wanted.answer(plan, lambda: document(plan, view, rate, violations, groups), drawn, as_json=as_json)
