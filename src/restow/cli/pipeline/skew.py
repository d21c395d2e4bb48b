"""`restow pipeline skew`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from restow.cli.pipeline.options import PipelineOptions, on_lake
from restow.cli.shared.frame import Answer
from restow.errors import InvalidInput

ABOUT = "Show brokers above their share, and the partitions that cause it."
HELP = """Show brokers, racks, log dirs, topics and leaders, the furthest above their share first, with the
partitions that weigh most on each. Needs the load model that `restow pipeline run` computes.

\b
Examples:
  $ restow pipeline skew --lake samples
  $ restow pipeline skew --lake samples --of log_dir --measure size
  $ restow pipeline skew --lake samples --out skew --format json
"""


@on_lake
def command(
    options: PipelineOptions,
    of: Annotated[
        str | None, typer.Option(metavar="WHAT", help="Only broker, rack, log_dir, topic or leader.")
    ] = None,
    measure: Annotated[
        str | None, typer.Option(help="Only size, bytes_in, bytes_out, messages_in, replicas or leaders.")
    ] = None,
) -> Answer:
    from restow.cli.pipeline.options import documents, opened, plain, save
    from restow.cli.pipeline.run import draw_skew
    from restow.pipeline.jobs.skew import DIMENSIONS, MEASURES
    from restow.pipeline.work import Work

    for given, known, flag in ((of, DIMENSIONS, "--of"), (measure, MEASURES, "--measure")):
        if given is not None and given not in known:
            raise InvalidInput(f"{flag} {given!r} cannot be: choose one of {', '.join(known)}")
    with opened("pipeline skew", options) as lake:
        work = Work(lake, options.scope())
        work.check()
        work.need("model")
        found: Any = work.keep("skew", work.skew())
        for name, value in (("dimension", of), ("measure", measure)):
            if value is not None:
                found = found.where(found[name] == value)
        save(found, options)
        order = ["share", "cluster", "dimension", "measure", "member"]
        rows = documents(found.orderBy(*order, ascending=[False, True, True, True, True]), options.rows)
    return Answer(
        document=lambda: {"skew": plain(rows)},
        draw=lambda console: draw_skew(console, rows),
        as_json=options.as_json,
    )
