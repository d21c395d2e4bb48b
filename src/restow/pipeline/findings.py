"""What the jobs have found about one cluster, read without Spark from a lake on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from restow._frozen import frozen
from restow.errors import LakeFailed
from restow.model import TopicPartition
from restow.model.load import BYTES_IN, BYTES_OUT, WEEK_HOURS, LoadModel, Resource
from restow.pipeline.address import parquet_folder
from restow.pipeline.names import partition_value, value_of
from restow.pipeline.schemas import AT, CLUSTER, DAY, VERSION
from restow.sizes import some

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

TABLES = ("model", "rates", "forecast")
_RATES = (BYTES_IN, BYTES_OUT)
_ROWS_AT_ONCE = 200_000
_HOUR_US, _MONDAY_H = 3_600_000_000, 72
"""1970 began on a Thursday: its first hour is the 72nd of a week that begins on Monday."""
_FORECAST_TIMES = ("last", "passes", "soonest", "latest")


@frozen
class LakeFindings:
    """What is known of a cluster; what no job has computed yet is empty or None."""

    load: LoadModel | None
    """The mean load of each partition."""
    week: Mapping[str, Sequence[float | None]]
    """By rate: bytes per second of all partitions in the 168 hours of the week, from Monday midnight UTC.

    None in an hour without samples.
    """
    forecast: Sequence[Mapping[str, Any]]
    """The rows that `restow pipeline forecast` shows, in its order; times in milliseconds since 1970."""


def read_findings(lake: str, cluster_id: str) -> LakeFindings:
    """Read the tables of the jobs. Raise `LakeFailed` if that cannot be, or if they are of other clusters."""
    root = parquet_folder(lake)
    files = {name: _files(root, name, cluster_id) for name in TABLES}
    if not any(files.values()):
        raise LakeFailed(_why_empty(root, lake, cluster_id))
    model = _read(files["model"], ("topic", "partition", "last", "bytes_in_mean", "bytes_out_mean"))
    return LakeFindings(
        load=None if model is None or not model.num_rows else _load(model, cluster_id),
        week={} if model is None else _week(files["rates"], model),
        forecast=_forecast(_read(files["forecast"], None)),
    )


def stamps(lake: str, cluster_id: str) -> tuple[tuple[str, int], ...]:
    """Return what changes when a job has written its table anew."""
    root, found = parquet_folder(lake), []
    for name in TABLES:
        for path in _files(root, name, cluster_id):
            try:
                found.append((str(path), path.stat().st_mtime_ns))
            except OSError:  # a job is just replacing it
                continue
    return tuple(found)


def _files(root: Path, table: str, cluster_id: str) -> list[Path]:
    folder = root / table / f"v{VERSION}" / f"{CLUSTER}={partition_value(cluster_id)}"
    try:
        found = [*folder.glob("*.parquet"), *folder.glob(f"{DAY}=*/*.parquet")]
        return sorted(each for each in found if not each.name.startswith(("_", ".")))
    except OSError as error:
        raise LakeFailed(f"the lake {str(root)!r} cannot be read: {error.strerror or error}") from error


def _why_empty(root: Path, lake: str, cluster_id: str) -> str:
    if not root.is_dir():
        return f"there is no lake at {lake!r} on this machine: `restow collect --lake` begins one"
    homes = [root / name / f"v{VERSION}" for name in (*TABLES, "assignment")]
    folders = {each.name for home in homes for each in home.glob(f"{CLUSTER}=*")}
    others = sorted(value_of(each.partition("=")[2]) for each in folders)
    if cluster_id in others:
        return f"no job has run on the lake {lake!r} yet: `restow pipeline run --lake {lake}` computes them"
    if not others:
        return f"{lake!r} has no samples: `restow collect --lake {lake}` takes them"
    return f"the lake {lake!r} is of other clusters ({some(others, 3)}), not of {cluster_id}"


def _batches(files: Sequence[Path], columns: Sequence[str] | None) -> Iterator[Any]:
    """Yield the rows of files, some at a time, with an error that names the file."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise LakeFailed(
            "a lake is Parquet, and pyarrow is not there: pip install 'restow[collect]'"
        ) from None
    for path in files:
        try:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches(_ROWS_AT_ONCE, columns=None if columns is None else [*columns])
        except (OSError, ValueError, TypeError, LookupError, pa.ArrowException) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise LakeFailed(
                f"{path} cannot be read: {reason}. `restow pipeline run` makes it anew"
            ) from error


def _read(files: Sequence[Path], columns: Sequence[str] | None) -> Any:
    import pyarrow as pa

    found = list(_batches(files, columns))
    return pa.Table.from_batches(found) if found else None


def _load(model: Any, cluster_id: str) -> LoadModel:
    """Return the model as the planner reads it: an unknown load is 0, followers receive and send nothing."""
    names = tuple(map(TopicPartition, model["topic"].to_pylist(), model["partition"].to_pylist()))
    comes, goes = (_numbers(model, f"{name}_mean") for name in _RATES)
    last = [each for each in model["last"].to_pylist() if each is not None]
    return LoadModel(
        cluster_id=cluster_id,
        made_ms=int(max(last).timestamp() * 1000) if last else 0,
        partitions=names,
        resources={
            BYTES_IN: Resource(leading=comes, following=comes),
            BYTES_OUT: Resource(leading=goes, following=np.zeros_like(goes)),
        },
    )


def _numbers(table: Any, name: str) -> NDArray[np.float64]:
    return np.nan_to_num(np.asarray(table[name].to_numpy(zero_copy_only=False), dtype=np.float64))


def _week(files: Sequence[Path], model: Any) -> dict[str, list[float | None]]:
    """Return the load in each hour of the week.

    An hour compares the partitions that were sampled in it with their own means, as `jobs/hours.py` does, so
    that a partition without samples in some hour makes it look neither calm nor busy.
    """
    import pyarrow as pa

    usual = pa.table(
        {name: model[name] for name in ("topic", "partition", "bytes_in_mean", "bytes_out_mean")}
    )
    carried = {name: np.zeros((2, WEEK_HOURS)) for name in _RATES}
    for batch in _batches(files, ("topic", "partition", AT, "seconds", *_RATES)):
        rows = pa.Table.from_batches([batch]).join(usual, ["topic", "partition"], join_type="inner")
        micros = rows[AT].cast(pa.timestamp("us", rows[AT].type.tz)).cast(pa.int64()).to_numpy()
        hours = (micros // _HOUR_US + _MONDAY_H) % WEEK_HOURS
        seconds = _numbers(rows, "seconds")
        for name in _RATES:
            rate = np.asarray(rows[name].to_numpy(zero_copy_only=False), dtype=np.float64)
            mean = _numbers(rows, f"{name}_mean")
            known = ~np.isnan(rate) & (mean > 0)
            for line, values in enumerate((rate, mean)):
                weights = (values * seconds)[known]
                carried[name][line] += np.bincount(hours[known], weights, minlength=WEEK_HOURS)
    return {
        name: [float(has / usually * total) if usually > 0 else None for has, usually in carried[name].T]
        for name in _RATES
        if (total := float(_numbers(model, f"{name}_mean").sum())) > 0
    }


def _forecast(table: Any) -> list[dict[str, Any]]:
    rows = [] if table is None else table.to_pylist()
    for row in rows:
        for name in _FORECAST_TIMES:
            row[name] = None if row[name] is None else int(row[name].timestamp() * 1000)

    def soonest(row: Mapping[str, Any]) -> tuple[object, ...]:
        never = row["passes"] is None
        full = row["now"] / row["limit"] if row["now"] is not None and row["limit"] else -1.0
        first = never, 0 if never else row["passes"], -full
        return *first, row["broker"], row["log_dir"] or "", row["measure"]

    return sorted(rows, key=soonest)


def note(row: Mapping[str, Any]) -> str:
    """Return why some of a row's times are missing; an empty text if none is."""
    if row["passes"] is None:
        return str(row["why"])
    lacking = [each for each in ("soonest", "latest") if row[each] is None]
    reasons = {row[f"why_{each}"] for each in lacking}
    if len(reasons) == 1 and len(lacking) == 2:
        return f"no band: {reasons.pop()}"
    return "; ".join(f"no {each}: {row[f'why_{each}']} at that end of the band" for each in lacking)
