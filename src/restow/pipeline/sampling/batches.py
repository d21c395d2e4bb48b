"""Answers of brokers as Arrow batches of a table, or of all tables in one.

The table of all, `restow.samples`, has a column `table` and every column of every table. A row fills those of
its own table, and `broker`, which answered. Missing answers are rows of the table `gaps`, with the reason as
`error`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow.pipeline.sampling.questions import Gap, Part
from restow.pipeline.sampling.shares import NOBODY
from restow.pipeline.schemas import AT, CLUSTER, DISKS, SAMPLED, Field, arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from restow.pipeline.sampling.shares import Share

TABLE = "table"
GAPS = "gaps"
_MICROSECONDS = 1000


def _everything() -> tuple[Field, ...]:
    found = {TABLE: Field(TABLE, "string")}
    for table in SAMPLED:
        for each in table.columns:
            found.setdefault(each.name, Field(each.name, each.kind, True))
    return tuple(found.values())


SAMPLES = _everything()
"""The columns of `restow.samples`."""


def batches(share: Share, answers: Iterable[Part | Gap], columns: tuple[Field, ...]) -> Iterator[Any]:
    """Yield one batch per part with rows, in the schema of its table or in that of all."""
    arrow = arrow_schema(columns)
    tagged = TABLE in arrow.names
    for answer in answers:
        if isinstance(answer, Part):
            yield from batch_of(arrow, share, answer)
            continue
        silent = silent_disk(share, answer)
        if silent is not None:
            yield from batch_of(arrow, share, silent)
        if tagged:
            part = Part(table=GAPS, at_ms=answer.at_ms, columns={"error": [answer.told]})
            yield from batch_of(arrow, share, part)


def silent_disk(share: Share, gap: Gap) -> Part | None:
    """Return the row of `disks` for a broker that did not describe its log dirs."""
    if DISKS.name not in gap.tables or share.broker == NOBODY:
        return None
    return Part(table=DISKS.name, at_ms=gap.at_ms, columns={"error": [gap.reason]})


def batch_of(arrow: Any, share: Share, part: Part) -> Iterator[Any]:
    """Yield the part's rows in this schema, if there are any."""
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
