"""`restow pipeline stream`: bring samples from a topic into the lake, and keep its tables current."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restow.cli.pipeline.options import LakeFolder, SparkOptions, spark_for
from restow.cli.pipeline.pipeline_run import TableOptions, left_out
from restow.cli.shared.connection import OptionalBootstrap, on_cluster, properties_for
from restow.cli.shared.frame import show_document
from restow.errors import InvalidInput
from restow.sizes import count, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.client import KafkaAdmin
    from restow.pipeline.following import Batch

ABOUT = "Keep tables and load models current while samples arrive."
HELP = """Keep rates, load model, skew, forecast and alerts of a lake current while samples arrive in it, and
with --from-topic bring them there: those that `restow collect --to-topic` has published.

After each batch the tables are what `restow pipeline run` would make of the same samples. Only what new
samples change is computed anew, so that samples may come late and in any order. The stream runs until ctrl-C
or SIGTERM. Killed and started again, it goes on where it was. A sample counts once, however often it was
published or read; records that are no samples are counted.

\b
Examples:
  $ restow pipeline stream --lake lake --load loads
  $ restow pipeline stream --from-topic samples --lake lake --load loads -b localhost:9092
  $ restow pipeline stream --from-topic samples --lake lake --samples-only -b localhost:9092
"""


def command(
    *,
    bootstrap: OptionalBootstrap = None,
    from_topic: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Topic with samples. Default: those in the lake.")
    ] = None,
    lake: LakeFolder,
    every: Annotated[str, typer.Option(metavar="TIME", help="Interval, like 30s.")] = "30s",
    once: Annotated[bool, typer.Option("--once", help="Take what is there now and exit.")] = False,
    samples_only: Annotated[
        bool, typer.Option("--samples-only", help="Only copy samples from the topic into the lake.")
    ] = False,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder of the checkpoint of the topic. Default: in the lake."),
    ] = None,
    tables: TableOptions,
    spark: SparkOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON per batch.")] = False,
) -> None:
    from restow.cli.pipeline.streaming import Told, checkpoint_beside, say
    from restow.cli.shared.signals import told_to_stop_here

    _check(from_topic, bootstrap, checkpoint, samples_only=samples_only)
    checked, every_ms = tables.checked(), milliseconds(every, "--every")
    out: Told[Batch] = Told(_lines, as_json=as_json)
    with ExitStack() as stack:
        session = stack.enter_context(
            spark_for("pipeline stream", spark, kafka=from_topic is not None, lakes=[lake])
        )
        from restow.pipeline.current import CurrentTables, Wanted
        from restow.pipeline.following import follow_lake, follow_topic
        from restow.pipeline.lake import Lake

        place = Lake(session, lake)
        current: CurrentTables | None = None
        if from_topic is None or not samples_only:
            current = CurrentTables(place, Wanted(**checked))
            stack.enter_context(current.held())
        told = stack.enter_context(told_to_stop_here())
        if not as_json:
            say(f"{_what(from_topic, lake, samples_only=samples_only)}; ctrl-C stops")
        if from_topic is not None:
            topic = _Topic(bootstrap or "", from_topic, checkpoint or checkpoint_beside(lake, "stream"))
            follow_topic(place, current, topic, out.tell, told, every_ms=every_ms, once=once)
        elif current is not None:
            follow_lake(current, out.tell, told, every_ms=every_ms, once=once)
    if as_json:
        show_document({"batches": out.seen, "rows": out.rows})
    else:
        say(f"{count(out.rows, 'row')} in {count(out.seen, 'update')} in the lake {lake}")


def _check(
    from_topic: str | None, bootstrap: str | None, checkpoint: str | None, *, samples_only: bool
) -> None:
    if from_topic is not None and bootstrap is None:
        raise InvalidInput("--from-topic needs the cluster of the topic: say -b HOST:PORT")
    if from_topic is None and samples_only:
        raise InvalidInput("--samples-only copies from a topic: say --from-topic TOPIC")
    if from_topic is None and checkpoint is not None:
        raise InvalidInput("--checkpoint belongs to --from-topic: tables in a lake are their own checkpoint")


def _what(from_topic: str | None, lake: str, *, samples_only: bool) -> str:
    if from_topic is None:
        return f"keeping the tables of the lake {lake} current"
    more = "" if samples_only else ", and keeping its tables current"
    return f"reading {from_topic} into the lake {lake}{more}"


class _Topic:
    """The topic to read, as the cluster has it now."""

    def __init__(self, bootstrap: str, name: str, checkpoints: str) -> None:
        from restow.pipeline.topic import connector_options

        self.name = name
        self.options = connector_options(bootstrap, properties_for())
        self._bootstrap = bootstrap
        self._checkpoints = checkpoints
        self._partitions = 0

    def checkpoint(self) -> str:
        """Return the folder of the checkpoint: another one for a topic that was made anew."""
        from restow.pipeline.names import file_name

        cluster, topic_id, self._partitions = on_cluster(self._bootstrap, self._looked_at)
        parts = [file_name(each) for each in (cluster, self.name, topic_id) if each]
        return "/".join((self._checkpoints.rstrip("/"), *parts))

    def partitions(self) -> int:
        """Return how many partitions the topic had when `checkpoint` looked at it."""
        return self._partitions

    async def _looked_at(self, admin: KafkaAdmin) -> tuple[str, str, int]:
        from restow.client import BrokerError

        try:
            (topic,) = await admin.describe_topics([self.name])
        except BrokerError as error:
            raise InvalidInput(f"--from-topic: {error}") from error
        cluster = (await admin.describe_cluster()).cluster_id
        return cluster, str(topic.id or ""), len(topic.partitions)


def _lines(batch: Any) -> Iterator[str]:
    if batch.arrived is not None:
        arrived = batch.arrived
        rows = ", ".join(f"{number:,} {name}" for name, number in arrived.rows.items() if number)
        refused = f"; {count(arrived.refused, 'record')} refused: no samples" if arrived.refused else ""
        yield f"batch {arrived.number}: {rows or 'nothing'}{refused}"
    update = batch.update
    if update is None or not update.tables:
        return
    since = ", ".join(f"{name} since {moment:%Y-%m-%d %H:%M}" for name, moment in update.since.items())
    rates = "all rates" if update.whole else f"rates of {since}" if since else "no rates"
    yield f"{count(update.new_files, 'new file')}: {rates}; {', '.join(update.tables[1:])}"
    yield from (f"  {line}" for line in left_out(update.checked))
    for says in update.alerts[:5]:
        yield f"  {says}"
