"""One more hour of samples on a week of them: an incremental run beside a whole one, on two cores.

A week has a sample of each partition's three replicas every five minutes. Both runs go from the samples to
all tables and load models; the incremental one finds what the run before has left. It has done another hour
before, so that neither run waits for Java to compile.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.pipeline import processor_s, session_in
from benchmarks.report import Row, command_line, print_rows
from harness.big_lakes import BigLake, write_big_lake

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

_EVERY_S = 300
_WEEK, _HOUR = 7 * 24 * 3600 // _EVERY_S, 3600 // _EVERY_S


def _taken(spark: SparkSession, folder: Path, *, incremental: bool) -> tuple[float, float]:
    """Run the pipeline on the lake, and return the seconds and the processor time."""
    import restow

    started, used = time.perf_counter(), processor_s(spark)
    restow.pipeline(folder / "lake", spark=spark, load=folder / "loads", incremental=incremental)
    return time.perf_counter() - started, processor_s(spark) - used


def incremental_rows(partitions: int) -> Iterator[Row]:
    week, *later = (
        BigLake(partitions=partitions, brokers=100, samples=samples, every_s=_EVERY_S)
        for samples in range(_WEEK, _WEEK + 2 * _HOUR + 1, _HOUR)
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_big_lake(folder / "lake", week)
        with session_in(folder) as spark:
            _taken(spark, folder, incremental=True)
            for more in later:
                write_big_lake(folder / "lake", more, begin=more.samples - _HOUR)
                hour, hour_used = _taken(spark, folder, incremental=True)
            whole, whole_used = _taken(spark, folder, incremental=False)
    work = f"one more hour on a week of {week.replica_rows / 1e6:.3g} M samples"
    for row, ours, peer, target in (
        (work, hour, whole, 0.1),
        (f"{work}: processor time", hour_used, whole_used, None),
    ):
        yield Row(name=row, ours=ours, peer=peer, peer_name="a whole run", unit="s", target=target)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_line(__doc__ or "")
    parser.add_argument("--partitions", type=int, default=2_000)
    given = parser.parse_args(arguments)
    print_rows("pipeline, incremental", incremental_rows(given.partitions), as_json=given.json)


if __name__ == "__main__":
    main()
