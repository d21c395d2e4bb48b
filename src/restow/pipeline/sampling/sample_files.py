"""Samples as Parquet files in a lake on this machine's file systems, without Spark.

    LAKE/_collect/_staging/<collector>/<number>.new/…      being written
    LAKE/_collect/_staging/<collector>/<number>/…          taken: whole, and still to be moved into the tables
    LAKE/<table>/v1/cluster=<id>/day=<day>/sample-<collector>-<number>.parquet

A sample counts as taken with the rename from `<number>.new` to `<number>`. A kill before it loses the sample;
after it, the next collector with the same checkpoint moves the remaining files. A file is only ever in one
place, so no sample is there twice, and readers see whole files: they skip folders whose names begin with an
underscore. The schemas equal those of the files that Spark writes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from restow.errors import LakeFailed
from restow.pipeline.names import STAGING, partition_value
from restow.pipeline.sampling.batches import batch_of, silent_disk
from restow.pipeline.sampling.questions import Gap, Part
from restow.pipeline.sampling.sample import GAPS_TOLD, Missing, Sample, sample_from
from restow.pipeline.schemas import ASSIGNMENT, CLUSTER, DAY, SAMPLED, VERSION, Field, Table, arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from restow.pipeline.sampling.shares import Share

_ABOUT = "sample.json"
_UNFINISHED = ".new"


class SampleFiles:
    """The files of one collector's samples in a lake, which need not exist yet."""

    def __init__(self, lake: Path, collector: str) -> None:
        self._lake = lake
        self._collector = collector
        self._staging = lake / STAGING / collector

    def stage(self, number: int, answers: Sequence[tuple[Share, Sequence[Part | Gap]]]) -> None:
        """Write a sample beside the tables. It counts as taken when this returns."""
        unfinished = self._staging / f"{number}{_UNFINISHED}"
        try:
            unfinished.mkdir(parents=True)
            sample = self._write(unfinished, number, answers)
            (unfinished / _ABOUT).write_text(json.dumps(sample.document()), encoding="utf-8")
            unfinished.rename(self._place(number))
        except BaseException as error:
            shutil.rmtree(unfinished, ignore_errors=True)
            if isinstance(error, OSError):
                raise self._failed(error) from error
            raise

    def land(self, number: int) -> Sample:
        """Move the files of a taken sample to their tables. Files that are there already stay."""
        staged = self._place(number)
        try:
            for path in sorted(staged.rglob("*.parquet")):
                target = self._lake / path.relative_to(staged)
                target.parent.mkdir(parents=True, exist_ok=True)
                path.rename(target)
            return sample_from(json.loads((staged / _ABOUT).read_bytes()))
        except OSError as error:
            raise self._failed(error) from error
        except (ValueError, LookupError, TypeError) as error:
            raise LakeFailed(f"{staged / _ABOUT} is damaged ({error}): remove {staged}") from None

    def forget(self, number: int) -> None:
        """Remove the staging folder of a sample that is in the lake and in the checkpoint."""
        shutil.rmtree(self._place(number), ignore_errors=True)

    def tidy(self, next_number: int) -> bool:
        """Remove the files of a killed collector. Return whether the next sample was taken already."""
        if not self._staging.exists():
            return False
        for each in self._staging.iterdir():
            if each.name != str(next_number):
                shutil.rmtree(each, ignore_errors=True)
        return self._place(next_number).exists()

    def close(self) -> None:
        """Remove the empty folders of staging."""
        for folder in (self._staging, self._staging.parent):
            try:
                folder.rmdir()
            except OSError:  # others use it, or it is not there
                return

    def _place(self, number: int) -> Path:
        return self._staging / str(number)

    def _write(
        self, folder: Path, number: int, answers: Sequence[tuple[Share, Sequence[Part | Gap]]]
    ) -> Sample:
        """Write one file per table, cluster and day, and count their rows."""
        rows = dict.fromkeys((each.name for each in SAMPLED), 0)
        for table in SAMPLED:
            for (cluster, day), parts in _by_folder(table, answers).items():
                where = folder / table.name / f"v{VERSION}"
                where = where / f"{CLUSTER}={partition_value(cluster)}" / f"{DAY}={day}"
                where.mkdir(parents=True)
                rows[table.name] += _write_file(
                    where / f"sample-{self._collector}-{number}.parquet", table, parts
                )
        return _summary(number, rows, answers)

    def _failed(self, error: OSError) -> LakeFailed:
        return LakeFailed(f"the sample could not be written to {str(self._lake)!r}: {error.strerror}")


def _by_folder(
    table: Table, answers: Iterable[tuple[Share, Iterable[Part | Gap]]]
) -> dict[tuple[str, str], list[tuple[Share, Part]]]:
    """Return the parts of a table that have rows, by cluster and day."""
    found: dict[tuple[str, str], list[tuple[Share, Part]]] = defaultdict(list)
    for share, told in answers:
        for part in _parts(share, told):
            if part.table == table.name and len(next(iter(part.columns.values()))):
                day = datetime.fromtimestamp(part.at_ms / 1000, UTC).date().isoformat()
                found[share.cluster, day].append((share, part))
    return found


def _parts(share: Share, told: Iterable[Part | Gap]) -> Iterator[Part]:
    for each in told:
        part = silent_disk(share, each) if isinstance(each, Gap) else each
        if part is not None:
            yield part


def _write_file(path: Path, table: Table, parts: Iterable[tuple[Share, Part]]) -> int:
    """Write a table's rows without the columns that are folders, and return their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    own = tuple(each for each in table.columns if each.name != CLUSTER)
    arrow = arrow_schema(own)
    rows = pa.Table.from_batches([batch for one in parts for batch in batch_of(arrow, *one)], arrow)
    for each in own:
        if not each.nullable and rows[each.name].null_count:
            raise LakeFailed(f"{table.name} could not be written: a {each.name} is missing")
    with path.open("wb") as file:
        pq.write_table(rows.cast(_stored(own)), file, compression="snappy", store_schema=False)
        file.flush()
        os.fsync(file.fileno())
    return int(rows.num_rows)


def _stored(own: tuple[Field, ...]) -> Any:
    """Return the schema of a file: as in Spark's files, all columns may be null."""
    import pyarrow as pa

    def loose(kind: Any) -> Any:
        return pa.list_(pa.field("element", kind.value_type)) if pa.types.is_list(kind) else kind

    return pa.schema([pa.field(each.name, loose(each.type)) for each in arrow_schema(own)])


def _summary(
    number: int, rows: dict[str, int], answers: Sequence[tuple[Share, Sequence[Part | Gap]]]
) -> Sample:
    everything = [each for _, told in answers for each in told]
    gaps = sorted((each for each in everything if isinstance(each, Gap)), key=lambda gap: gap.broker)
    return Sample(
        number=number,
        at_ms=max((each.at_ms for each in everything), default=None),
        brokers=sum(
            any(isinstance(each, Part) and each.table != ASSIGNMENT.name for each in told)
            for _, told in answers
        ),
        rows=rows,
        gaps=tuple(Missing(broker=each.broker, reason=each.told) for each in gaps[:GAPS_TOLD]),
        gap_count=len(gaps),
    )
