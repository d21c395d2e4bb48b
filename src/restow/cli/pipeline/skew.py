"""`restow pipeline skew`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from restow.cli.pipeline.options import PipelineOptions
from restow.cli.shared.frame import Answer
from restow.errors import InvalidInput

ABOUT = "Show brokers above or below their share, and the partitions that cause it."
HELP = """Show brokers, racks, log dirs, topics and leaders, the furthest from their share first, with the
partitions that weigh most on each. Needs the load model that `restow pipeline run` computes.

\b
Examples:
  $ restow pipeline skew --lake samples
  $ restow pipeline skew --lake samples --of log_dir --measure size
  $ restow pipeline skew --lake samples --out skew --format json
"""


def command(
    *,
    of: Annotated[
        str | None, typer.Option(metavar="WHAT", help="Only broker, rack, log_dir, topic or leader.")
    ] = None,
    measure: Annotated[
        str | None, typer.Option(help="Only size, bytes_in, bytes_out, messages_in, replicas or leaders.")
    ] = None,
    options: PipelineOptions,
) -> Answer:
    from restow.cli.pipeline.pipeline_run import draw_skew
    from restow.pipeline.jobs.skew import DIMENSIONS, MEASURES, furthest_first

    for given, known, flag in ((of, DIMENSIONS, "--of"), (measure, MEASURES, "--measure")):
        if given is not None and given not in known:
            raise InvalidInput(f"{flag} {given!r} cannot be: choose one of {', '.join(known)}")
    with options.work("pipeline skew") as work:
        work.check()
        work.need("model")
        found: Any = work.keep("skew", work.skew())
        for name, value in (("dimension", of), ("measure", measure)):
            if value is not None:
                found = found.where(found[name] == value)
        options.output.save(found)
        rows = options.output.first_rows(furthest_first(found))
    return options.output.answer("skew", rows, draw_skew)
