"""Answers of brokers as Arrow batches of a table, or of all tables in one.

The table of all, `restow.samples`, has a column `table` and every column of every table; a row has those of
its own, and `broker`, who told it. What is missing has rows there, too: of the table `gaps`, with the reason
as `error`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StringType, StructField, StructType

from restow.pipeline.schemas import AT, CLUSTER, DISKS, SAMPLED
from restow.pipeline.sources.questions import Gap, Part
from restow.pipeline.sources.shares import NOBODY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from restow.pipeline.sources.shares import Share

TABLE = "table"
GAPS = "gaps"
_MICROSECONDS = 1000


def _everything() -> StructType:
    fields = {TABLE: StructField(TABLE, StringType(), False)}
    for table in SAMPLED:
        for each in table.schema.fields:
            fields.setdefault(each.name, StructField(each.name, each.dataType, True))
    return StructType(list(fields.values()))


SAMPLES = _everything()
"""The schema of `restow.samples`."""


def batches(share: Share, answers: Iterable[Part | Gap], schema: StructType) -> Iterator[Any]:
    """One batch per part that has rows, in the schema of its table or in that of all."""
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(schema)
    tagged = TABLE in schema.names
    for answer in answers:
        if isinstance(answer, Part):
            yield from _batch(arrow, share, answer)
            continue
        if DISKS.name in answer.tables and share.broker != NOBODY:
            part = Part(table=DISKS.name, at_ms=answer.at_ms, columns={"error": [answer.reason]})
            yield from _batch(arrow, share, part)
        if tagged:
            said = [f"{', '.join(answer.tables)}: {answer.reason}"]
            part = Part(table=GAPS, at_ms=answer.at_ms, columns={"error": said})
            yield from _batch(arrow, share, part)


def _batch(arrow: Any, share: Share, part: Part) -> Iterator[Any]:
    import pyarrow as pa

    rows = len(next(iter(part.columns.values())))
    if not rows:
        return
    at = part.at_ms * _MICROSECONDS
    same: dict[str, object] = {TABLE: part.table, CLUSTER: share.cluster, AT: at, "broker": share.broker}
    if part.table == DISKS.name:
        same["rack"] = share.rack

    def column(field: Any) -> Any:
        if field.name in part.columns:
            return pa.array(part.columns[field.name], type=field.type)
        value = same.get(field.name)
        return pa.nulls(rows, field.type) if value is None else pa.repeat(pa.scalar(value, field.type), rows)

    yield pa.RecordBatch.from_arrays([column(field) for field in arrow], schema=arrow)
