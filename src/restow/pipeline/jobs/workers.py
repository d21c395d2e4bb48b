"""What workers do with all rows of some partitions: a function from one Arrow table to columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow.pipeline.schemas import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from restow.pipeline.schemas import Field


def in_workers(
    columns: tuple[Field, ...], *steps: Callable[[Any], dict[str, Any]]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return what `mapInArrow` takes: one step after the other, on all rows that the worker gets."""

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        listed = [batch for batch in batches if batch.num_rows]
        if not listed:
            return
        rows = pa.Table.from_batches(listed)
        for step in steps:
            made = step(rows)
            rows = pa.table(made)
        yield pa.RecordBatch.from_pydict(made, schema=arrow_schema(columns))

    return work
