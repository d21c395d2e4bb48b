"""One more hour of samples on a week of them: an incremental run beside a whole one, on two cores.

A week has two samples an hour of each partition's three replicas. Both runs go from the samples to all tables
and load models; the incremental one finds what the week's run has left.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.pipeline import session_in
from benchmarks.report import Row, command_line, print_rows
from harness.big_lakes import BigLake, write_big_lake

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

_EVERY_S = 1800
_WEEK, _HOUR = 7 * 24 * 3600 // _EVERY_S, 3600 // _EVERY_S


def _taken(spark: SparkSession, folder: Path, *, incremental: bool) -> float:
    """Run the pipeline on the lake, and return the seconds."""
    import restow

    started = time.perf_counter()
    restow.pipeline(folder / "lake", spark=spark, load=folder / "loads", incremental=incremental)
    return time.perf_counter() - started


def incremental_rows(partitions: int) -> Iterator[Row]:
    week = BigLake(partitions=partitions, brokers=100, samples=_WEEK, every_s=_EVERY_S)
    more = BigLake(partitions=partitions, brokers=100, samples=_WEEK + _HOUR, every_s=_EVERY_S)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_big_lake(folder / "lake", week)
        with session_in(folder) as spark:
            _taken(spark, folder, incremental=True)
            write_big_lake(folder / "lake", more, begin=_WEEK)
            hour = _taken(spark, folder, incremental=True)
            whole = _taken(spark, folder, incremental=False)
    yield Row(
        name=f"one more hour on a week of {week.replica_rows / 1e6:g} M samples",
        ours=hour,
        peer=whole,
        peer_name="a whole run",
        unit="s",
        target=0.1,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_line(__doc__ or "")
    parser.add_argument("--partitions", type=int, default=30_000)
    given = parser.parse_args(arguments)
    print_rows("pipeline, incremental", incremental_rows(given.partitions), as_json=given.json)


if __name__ == "__main__":
    main()
