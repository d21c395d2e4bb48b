"""The pipeline on two cores: from 30 million samples to a load model, beside DuckDB on the same files.

Sessions are started before the clock is. The lake is generated, as compaction leaves one: 1,000 brokers,
100,000 partitions with three replicas, a sample of all of them every 15 minutes, and as many samples of the
assignment. `--samples 333` makes it 100 million; `--folder` keeps lakes. With other work on the machine times
say little; processor time, which is told too, says more. `benchmarks.pipeline_fleet` has fleet and lab,
`benchmarks.pipeline_collect` what collecting costs, `benchmarks.pipeline_incremental` one more hour,
`benchmarks.pipeline_start` a small lake.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.report import Row, command_line, print_rows
from harness.big_lakes import BigLake, write_big_lake

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

_CORES = 2
_HEAP = "2500m"
_OFF = 0.001
"""How far sums over all partitions may differ from DuckDB's: by rounding only."""


@contextmanager
def session_in(folder: Path) -> Iterator[SparkSession]:
    from restow.pipeline.session import session

    conf = {
        "spark.driver.memory": _HEAP,
        "spark.local.dir": str(folder),
        "spark.sql.shuffle.partitions": "32",
    }
    with session("benchmark", master=f"local[{_CORES}]", conf=conf) as spark:
        yield spark


def _lake(folder: Path, samples: int) -> Path:
    """Generate a lake in a process of its own, so that its memory does not count for the pipeline."""
    path = folder / f"lake-{samples}"
    if not path.exists():
        made = f"from benchmarks.pipeline import make_lake; make_lake({str(path)!r}, {samples})"
        subprocess.run([sys.executable, "-c", made], check=True)
    return path


def make_lake(path: str, samples: int) -> None:
    write_big_lake(Path(path), BigLake(samples=samples))


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The time of a run, and sums of its results."""

    seconds: float
    processor_s: float
    sums: tuple[float, ...]


def ours(spark: SparkSession, lake: Path, out: Path) -> Taken:
    """Run our pipeline from files to load model files."""
    from pyspark.sql import functions as f

    from restow.pipeline.jobs.model import model_of_samples
    from restow.pipeline.lake import Lake
    from restow.pipeline.load_files import Loads, write_load

    started, used = time.perf_counter(), processor_s(spark)
    place = Lake(spark, str(lake))
    replicas, assignment = (place.read(name, distinct=False) for name in ("replicas", "assignment"))
    model_of_samples(replicas, assignment).write.parquet(str(out / "model"))
    stored = spark.read.parquet(str(out / "model"))
    write_load(Loads(model=stored), str(out / "loads"), made_ms=0)
    taken, used = time.perf_counter() - started, processor_s(spark) - used
    columns = (
        f.count("*"),
        *(f.sum(name) for name in ("bytes_in_mean", "bytes_in_p95", "growth", "samples")),
    )
    (sums,) = stored.agg(*columns).collect()
    return Taken(seconds=taken, processor_s=used, sums=tuple(map(float, sums)))


def _process(spark: SparkSession) -> Path:
    gateway = spark.sparkContext._gateway  # noqa: SLF001 (the JVM's process)
    assert gateway is not None
    return Path(f"/proc/{gateway.proc.pid}")


def processor_s(spark: SparkSession) -> float:
    """Return the processor time of the JVM and of its Python workers, living and ended."""
    driver = psutil.Process(int(_process(spark).name))
    return sum(sum(each.cpu_times()[:4]) for each in (driver, *driver.children(recursive=True)))


def _peak_gib(spark: SparkSession) -> float:
    (line,) = (each for each in (_process(spark) / "status").read_text().splitlines() if "VmHWM" in each)
    return int(line.split()[1]) / 2**20


_THEIRS = """
import sys, time
from pathlib import Path
from harness.duck import opened
with opened(Path(sys.argv[1])) as db:
    db.execute(f"set threads = {sys.argv[3]}; set temp_directory = '{sys.argv[2]}'")
    db.execute("set enable_progress_bar = false")
    started, used = time.perf_counter(), time.process_time()
    db.execute(f"copy (select * from model) to '{sys.argv[2]}/model.parquet'")
    print(time.perf_counter() - started, time.process_time() - used)
    sums = "select count(*), sum(bytes_in_mean), sum(bytes_in_p95), sum(growth), sum(samples)"
    print(*db.execute(f"{sums} from '{sys.argv[2]}/model.parquet'").fetchone())
"""


def theirs(lake: Path, out: Path) -> Taken:
    """Run the same with DuckDB, in a process of its own."""
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", _THEIRS, str(lake), str(out), str(_CORES)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    times, sums = ([float(value) for value in line.split()] for line in done.stdout.splitlines())
    return Taken(seconds=times[0], processor_s=times[1], sums=tuple(sums))


def compare(mine: Taken, other: Taken) -> None:
    """Stop the benchmark if the results differ."""
    for one, two in zip(mine.sums, other.sums, strict=True):
        assert abs(one - two) <= _OFF * abs(two), f"Spark and DuckDB differ: {mine.sums} and {other.sums}"


def measured(folder: Path, samples: int, small: int) -> Iterator[Row]:
    large_lake, small_lake = _lake(folder, samples), _lake(folder, small)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        out = Path(name)
        duck = theirs(large_lake, out / "duck")
        with session_in(out) as spark:
            ours(spark, small_lake, out / "warm-up")
            short = ours(spark, small_lake, out / "small")
            long = ours(spark, large_lake, out / "large")
            peak_gib = _peak_gib(spark)
    compare(long, duck)
    size = BigLake(samples=samples).replica_rows / 1e6
    work = f"{size:g} M samples → load model"
    yield Row(
        name=work,
        ours=long.seconds,
        peer=duck.seconds,
        peer_name="DuckDB",
        unit="s",
        target=1.2,
        limit=8 * size,
    )
    yield Row(
        name=f"{work}: processor time",
        ours=long.processor_s,
        peer=duck.processor_s,
        peer_name="DuckDB",
        unit="s",
    )
    yield Row(
        name=f"{size * small / samples:g} → {size:g} M samples",
        ours=long.seconds,
        peer=short.seconds,
        peer_name="the smaller number",
        unit="s",
        target=1.1 * samples / small,
    )
    yield Row(name=f"{work}: memory of the driver", ours=peak_gib, unit="GiB", limit=3.0)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_line(__doc__ or "")
    parser.add_argument("--samples", type=int, default=100, help="of each of 300,000 replicas")
    parser.add_argument("--folder", type=Path, help="where lakes are kept; otherwise they are thrown away")
    parser.add_argument("--model-only", action="store_true", help="leave out fleet, lab and collecting")
    given = parser.parse_args(arguments)
    small = max(2, given.samples // 10)
    with tempfile.TemporaryDirectory() as name:
        folder = given.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        rows = list(measured(folder, given.samples, small))
    if not given.model_only:
        from benchmarks.pipeline_collect import collect_rows, many_rows
        from benchmarks.pipeline_fleet import fleet_rows, lab_rows
        from benchmarks.pipeline_incremental import incremental_rows
        from benchmarks.pipeline_start import start_rows

        rows += [*start_rows(), *incremental_rows(2_000)]
        rows += [*fleet_rows(200, 5_000), *lab_rows(10_000), *collect_rows(), *many_rows()]
    print_rows("pipeline", rows, as_json=given.json)


if __name__ == "__main__":
    main()
