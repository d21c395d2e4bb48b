"""`restow collect`: sample a cluster periodically into a lake or a topic."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restow.cli.pipeline.options import SparkOptions, spark_for
from restow.cli.shared.connection import Bootstrap, on_cluster, properties_for
from restow.cli.shared.frame import show_document
from restow.errors import InvalidInput, LakeFailed
from restow.sizes import count, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.client import KafkaAdmin
    from restow.pipeline.collect import Put
    from restow.pipeline.sampling.sample import Sample

ABOUT = "Sample a cluster periodically."
HELP = """Sample a cluster periodically into a lake or a topic: sizes, offsets, assignment, groups and
log dirs, as its brokers report them.

Collection runs until ctrl-C or SIGTERM. Started again, it continues from its checkpoint and writes each
sample exactly once. A broker that does not answer is missing from the sample, and the output names it.
`restow pipeline` makes load models from the samples.

A lake in a folder needs no Spark (pip install 'restow[collect]'). Collection uses Spark for a lake on another
file system (s3a://…), for an Iceberg or Delta lake, with --to-topic, and with --master or --conf.

\b
Examples:
  $ restow collect --every 30s --lake lake -b localhost:9092
  $ restow collect --once --lake lake -b localhost:9092
  $ restow collect --to-topic samples -b localhost:9092
"""


def command(
    *,
    bootstrap: Bootstrap,
    lake: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="Write to this lake: a folder, or any other place of a lake."),
    ] = None,
    to_topic: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Publish samples to this topic instead.")
    ] = None,
    every: Annotated[str, typer.Option(metavar="TIME", help="Interval, like 30s or 5m.")] = "30s",
    once: Annotated[bool, typer.Option("--once", help="Take one sample and exit.")] = False,
    samples: Annotated[int | None, typer.Option(min=1, help="Exit after this many samples.")] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Folder of the checkpoint. Default: in the lake or the user's state folder."
        ),
    ] = None,
    spark: SparkOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON per sample.")] = False,
) -> None:
    from restow.pipeline.address import PARQUET, lake_address
    from restow.pipeline.checkpoints import local_path

    if (lake is None) == (to_topic is None):
        raise InvalidInput("where to? Say either --lake DIR or --to-topic TOPIC")
    if once and samples is not None:
        raise InvalidInput("--once and --samples exclude each other")
    every_ms = None if once else milliseconds(every, "--every")
    address = None if lake is None else lake_address(lake)
    cluster = on_cluster(bootstrap, lambda admin: _looked_at(admin, to_topic))
    place = checkpoint or _checkpoint(cluster, lake, to_topic)
    needs_spark = address is None or address.kind != PARQUET or any(vars(spark).values())
    folder = None if needs_spark else local_path(lake or "")
    noted_in = local_path(place)
    if folder is not None and noted_in is not None:
        options = {**properties_for(), "bootstrap.servers": bootstrap, "cluster": cluster}
        if every_ms is not None:
            options["every"] = f"{every_ms}ms"
        _collect_here(options, folder, noted_in, most=1 if once else samples, as_json=as_json)
        return
    lakes = [] if lake is None else [lake]
    with spark_for("collect", spark, kafka=to_topic is not None, lakes=lakes) as session:
        _collect(
            session,
            bootstrap,
            lake=lake,
            topic=to_topic,
            every_ms=every_ms,
            samples=samples,
            cluster=cluster,
            checkpoint=place,
            as_json=as_json,
        )


async def _looked_at(admin: KafkaAdmin, topic: str | None) -> str:
    """Return the cluster's id, and check that the topic exists before Spark starts."""
    from restow.client import BrokerError

    if topic is not None:
        try:
            await admin.describe_topics([topic])
        except BrokerError as error:
            raise InvalidInput(
                f"--to-topic: {error}; make it with `restow topics create {topic} --partitions 6`"
            ) from error
    return (await admin.describe_cluster()).cluster_id


def _checkpoint(cluster: str, lake: str | None, topic: str | None) -> str:
    """Return the checkpoint's folder: in the lake, where no reader looks, or in the state folder."""
    from restow.cli.pipeline.streaming import checkpoint_beside
    from restow.execute.journal.runs import state_folder
    from restow.pipeline.names import file_name

    if lake is not None:
        return checkpoint_beside(lake, "collect", cluster)
    return f"{state_folder(os.environ)}/collect/{file_name(cluster)}/{file_name(topic or '')}"


def _collect_here(
    options: dict[str, str], lake: str, checkpoint: str, *, most: int | None, as_json: bool
) -> None:
    """Sample from this process and write the lake's files without Spark."""
    from restow.cli.pipeline.streaming import Told
    from restow.pipeline.sampling.collector import Collector
    from restow.pipeline.sampling.where import Where
    from restow.pipeline.schemas import SAMPLED
    from restow.runtime.clock import SystemClock

    _need_pyarrow()
    where = Where(options, [each.name for each in SAMPLED], "restow collect")
    batches: Told[Sample] = Told(_lines, as_json=as_json)
    _say_begin(where.cluster, f"the lake {lake}", lake, checkpoint, as_json=as_json)

    async def main() -> None:
        from restow.cli.shared.signals import told_to_stop

        with told_to_stop() as told:
            await Collector(where, lake, checkpoint, SystemClock()).run(batches.tell, told, most)

    asyncio.run(main())
    _say_end(batches.seen, batches.rows, f"the lake {lake}", as_json=as_json)


def _need_pyarrow() -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise LakeFailed(f"pyarrow is not installed ({error}): pip install 'restow[collect]'") from error


def _say_begin(cluster: str, into: str, where: str, checkpoint: str, *, as_json: bool) -> None:
    from restow.cli.pipeline.streaming import say

    if as_json:
        show_document({"cluster": cluster, "into": where, "checkpoint": checkpoint})
    else:
        say(f"collecting from {cluster} into {into}; ctrl-C stops")


def _say_end(seen: int, rows: int, into: str, *, as_json: bool) -> None:
    from restow.cli.pipeline.streaming import say

    if as_json:
        show_document({"samples": seen, "rows": rows})
    else:
        say(f"{count(seen, 'sample')} with {count(rows, 'row')} in {into}")


def _collect(
    spark: Any,
    bootstrap: str,
    *,
    lake: str | None,
    topic: str | None,
    every_ms: int | None,
    samples: int | None,
    cluster: str,
    checkpoint: str,
    as_json: bool,
) -> None:
    from queue import SimpleQueue

    from restow.cli.pipeline.streaming import run_until_told
    from restow.cli.shared.signals import told_to_stop_here
    from restow.pipeline.collect import collecting

    properties = properties_for()
    batches: SimpleQueue[Sample] = SimpleQueue()
    stream = collecting(
        spark,
        {**properties, "bootstrap.servers": bootstrap, "cluster": cluster},
        _put(spark, bootstrap, properties, lake, topic),
        batches.put,
        every_ms=every_ms,
        checkpoint=checkpoint,
        most=samples,
    )
    into = f"the lake {lake}" if lake is not None else f"the topic {topic}"
    with told_to_stop_here() as told:
        _say_begin(cluster, into, lake or topic or "", checkpoint, as_json=as_json)
        seen, rows = run_until_told(stream, batches, told, _lines, as_json=as_json)
    _say_end(seen, rows, into, as_json=as_json)


def _put(spark: Any, bootstrap: str, properties: dict[str, str], lake: str | None, topic: str | None) -> Put:
    if lake is not None:
        from restow.pipeline.collect import into_lake
        from restow.pipeline.lake import Lake

        return into_lake(Lake(spark, lake))
    from restow.pipeline.topic import connector_options, into_topic

    return into_topic(topic or "", connector_options(bootstrap, properties))


def _lines(sample: Sample) -> Iterator[str]:
    rows = ", ".join(f"{number:,} {name}" for name, number in sample.rows.items() if number)
    when = (sample.at or "")[11:19]
    yield f"{when} sample {sample.number}: {rows or 'nothing'} from {count(sample.brokers, 'broker')}"
    for gap in sample.gaps:
        who = f"broker {gap.broker}" if gap.broker >= 0 else "the cluster"
        yield f"  {who} did not tell: {gap.reason}"
    if sample.gap_count > len(sample.gaps):
        yield f"  and {count(sample.gap_count - len(sample.gaps), 'more gap')}"
