"""`restow rehearse`: say what a plan will do, how long it takes and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.plan.files import Approval, PlanFile
from restow.cli.runs.flags import BY_HOUR, PACE, RATES, JournalFolder, LoadFile, PaceOptions
from restow.cli.shared.connection import AsJson
from restow.cli.shared.frame import FAILED, Answer
from restow.cli.snapshot.source import SnapshotSource
from restow.text_files import write_text

if TYPE_CHECKING:
    from rich.console import Console

ABOUT = "Say what a plan will do, and how long it takes."
HELP = """Rehearse a plan: the executor runs in virtual time on a model of the cluster. Nothing is changed.

The answer has the time as a range with what limits it, rates and disks of every broker, leaders that move,
and problems: a disk that would be too full, a deadline that would be missed, a copy that would never end. The
exit code is 1 if there are problems.

The model learns from the journals of earlier runs on the cluster. Without any it guesses, says so, and gives
a wide range.

\b
Examples:
  $ restow rehearse plan.json --throttle 50MB/s -b localhost:9092
  $ restow rehearse plan.json --throttle 50MB/s --snapshot now.json --load loads/main.parquet
  $ restow rehearse plan.json --start 22:00 --deadline 06:00 -b localhost:9092
  $ restow rehearse plan.json --start auto --deadline 4h --load main.parquet -b localhost:9092
  $ restow rehearse plan.json --throttle 50MB/s --what-if "broker 3 dies at 30%" -b localhost:9092
"""


def command(
    *,
    file: PlanFile,
    source: SnapshotSource,
    load: LoadFile = None,
    throttle: Annotated[
        str | None,
        typer.Option(
            metavar=RATES,
            help=f"Rate per broker, like 50MB/s. {BY_HOUR} Default: the lowest that meets --deadline.",
            rich_help_panel=PACE,
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|auto",
            help="When it begins: 22:00, 2026-11-20T22:00, 2h; `auto` finds the hour that costs clients "
            "least. Default: now.",
        ),
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(metavar="TIME", help="When it has to be done: 06:00, or 4h after the start.")
    ] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(metavar="FAULT", help='A fault, like "broker 3 dies at 30%"; repeatable.'),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Carry out a small plan message by message, on a simulated cluster. Slower."
        ),
    ] = False,
    page_cache: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="What a broker's memory holds of its logs, like 16GB. Default: nothing is known.",
        ),
    ] = None,
    pace: PaceOptions,
    journal: JournalFolder = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write an HTML page.")] = None,
    approval: Approval,
    as_json: AsJson = False,
) -> Answer:
    from dataclasses import asdict

    from restow.cli.plan.show_view import draw_groups
    from restow.cli.runs.rehearse_view import draw
    from restow.plan import read_load
    from restow.plan.explain.groups import groups_touched
    from restow.rehearse import rehearse

    plan = approval.read(file)
    taken = source.read()
    groups = groups_touched(taken, plan.moves)
    told = rehearse(
        plan,
        taken,
        None if load is None else read_load(load),
        throttle=throttle,
        start=start,
        deadline=deadline,
        what_if=what_if or (),
        exact=exact,
        page_cache=page_cache,
        journal=journal,
        **vars(pace),
    )
    if html is not None:
        from restow.cli.runs.rehearse_html import page_of

        write_text(html, page_of(told))

    def drawn(console: Console) -> None:
        draw(console, told)
        draw_groups(console, groups)

    def document() -> dict[str, object]:
        return {**told.document(), "groups": [asdict(each) for each in groups]}

    return Answer(document=document, draw=drawn, as_json=as_json, code=0 if told.holds else FAILED)
