"""`restow pipeline stream`: copy samples from a topic into the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.pipeline.options import SparkOptions, spark_for
from restow.cli.shared.connection import Bootstrap, on_cluster, properties_for
from restow.cli.shared.frame import show_document
from restow.errors import InvalidInput
from restow.sizes import count, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.client import KafkaAdmin
    from restow.pipeline.topic import Arrived

ABOUT = "Copy samples from a topic into the lake."
HELP = """Copy samples that `restow collect --to-topic` has published from a topic into the lake, with
Spark's Kafka connector.

The stream runs until ctrl-C or SIGTERM. Started again, it continues from its checkpoint. A sample counts
once, however often it was published or read. The output counts records that are no samples.

\b
Examples:
  $ restow pipeline stream --from-topic samples --lake lake -b localhost:9092
  $ restow pipeline stream --from-topic samples --lake lake --once -b localhost:9092
"""


def command(
    *,
    bootstrap: Bootstrap,
    from_topic: Annotated[str, typer.Option(metavar="TOPIC", help="Topic with samples.")],
    lake: Annotated[str, typer.Option(metavar="PLACE", help="Lake to write to.")],
    every: Annotated[str, typer.Option(metavar="TIME", help="Interval, like 30s.")] = "30s",
    once: Annotated[bool, typer.Option("--once", help="Read what the topic holds and exit.")] = False,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the checkpoint. Default: in the lake.")
    ] = None,
    spark: SparkOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON per batch.")] = False,
) -> None:
    from queue import SimpleQueue

    from restow.cli.pipeline.streaming import checkpoint_beside, run_until_told, say
    from restow.cli.shared.signals import told_to_stop_here

    every_ms = milliseconds(every, "--every")
    cluster = on_cluster(bootstrap, lambda admin: _looked_at(admin, from_topic))
    place = checkpoint or checkpoint_beside(lake, "stream", cluster, from_topic)
    batches: SimpleQueue[Arrived] = SimpleQueue()
    with spark_for("pipeline stream", spark, kafka=True, lakes=[lake]) as session:
        from restow.pipeline.lake import Lake
        from restow.pipeline.topic import connector_options
        from restow.pipeline.topic import from_topic as streamed

        stream = streamed(
            session,
            from_topic,
            connector_options(bootstrap, properties_for()),
            Lake(session, lake),
            batches.put,
            every_ms=every_ms,
            checkpoint=place,
            all_there_is=once,
        )
        with told_to_stop_here() as told:
            if not as_json:
                say(f"reading {from_topic} into the lake {lake}; ctrl-C stops")
            seen, rows = run_until_told(stream, batches, told, _lines, as_json=as_json)
    if as_json:
        show_document({"batches": seen, "rows": rows})
    else:
        say(f"{count(rows, 'row')} in the lake {lake}")


async def _looked_at(admin: KafkaAdmin, topic: str) -> str:
    from restow.client import BrokerError

    try:
        await admin.describe_topics([topic])
    except BrokerError as error:
        raise InvalidInput(f"--from-topic: {error}") from error
    return (await admin.describe_cluster()).cluster_id


def _lines(batch: Arrived) -> Iterator[str]:
    rows = ", ".join(f"{number:,} {name}" for name, number in batch.rows.items() if number)
    refused = f"; {count(batch.refused, 'record')} refused: no samples" if batch.refused else ""
    yield f"batch {batch.number}: {rows or 'nothing'}{refused}"
