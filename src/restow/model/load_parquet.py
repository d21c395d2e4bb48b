"""Load models as Parquet, written by the pipeline: one row per partition, for clusters of any size.

    topic, partition, cluster_id, made_ms, <resource>.leading, <resource>.following …
    <resource>.hours      in one row of each topic: 168 multiples of the load, null where never sampled
    <resource>.reached    the most that one broker was seen to carry, the same in all rows

The last two may be missing.
A folder of such files is one model, too. It has no capacities: brokers count as equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from restow.errors import InvalidDocument
from restow.model.ids import TopicPartition
from restow.model.load import WEEK_HOURS, LoadModel, Resource

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("topic", "partition", "cluster_id", "made_ms")
LEADING, FOLLOWING, HOURS, REACHED = ".leading", ".following", ".hours", ".reached"


def is_parquet(path: Path) -> bool:
    """Return whether the path is Parquet: a folder, or a file with that suffix."""
    return path.is_dir() or path.suffix == ".parquet"


def read(path: Path) -> LoadModel:
    """Read the load model in a file or a folder."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise InvalidDocument(
            f"{path} is Parquet, and pyarrow is not there to read it: pip install 'restow[collect]'"
        ) from None
    import pyarrow as pa

    try:
        table = pq.ParquetDataset(path, partitioning=None).read()
        table.validate(full=True)
    except (OSError, ValueError, TypeError, LookupError, OverflowError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidDocument(f"{path} cannot be read as Parquet: {reason}") from None
    missing = [name for name in NAMES if name not in table.column_names]
    if missing:
        raise InvalidDocument(f"{path} is no load model: it has no column {missing[0]}")
    if not table.num_rows:
        raise InvalidDocument(f"{path} has no partition: give the file of one cluster")
    for name in NAMES:
        _check_column(table, name, path)
    return _model(table, path)


def _check_column(table: Any, name: str, path: Path) -> None:
    """Refuse a column of the wrong type or with gaps."""
    import pyarrow.types as kinds

    if table.column_names.count(name) > 1:
        raise InvalidDocument(f"{path} is no load model: it has the column {name} twice")
    column = table[name]
    words = name in ("topic", "cluster_id")
    fits = kinds.is_string if words else kinds.is_integer
    kind = column.type
    if kinds.is_dictionary(kind):
        kind = kind.value_type
    if not fits(kind) and not (words and kinds.is_large_string(kind)):
        expected = "text" if words else "whole numbers"
        raise InvalidDocument(f"{path} is no load model: {name} must be {expected}, not {column.type}")
    if column.null_count:
        raise InvalidDocument(f"{path} is damaged: {column.null_count} rows have no {name}. Make it again")


def _model(table: Any, path: Path) -> LoadModel:
    clusters = table["cluster_id"].unique().to_pylist()
    if len(clusters) != 1:
        named = ", ".join(map(str, clusters[:3]))
        raise InvalidDocument(f"{path} has models of {named}: give the file of one cluster")
    names = tuple(map(TopicPartition, table["topic"].to_pylist(), table["partition"].to_pylist()))
    if len(set(names)) != len(names):
        raise InvalidDocument(f"{path} has partitions twice: give the files of one run only")
    resources = {}
    for leading in table.column_names:
        if leading.endswith(LEADING):
            name = leading.removesuffix(LEADING)
            resources[name] = Resource(
                leading=_floats(table, leading, path),
                following=_floats(table, name + FOLLOWING, path),
                hours=_hours(table, name + HOURS, path),
                reached=_reached(table, name + REACHED, path),
            )
    return LoadModel(
        cluster_id=str(clusters[0]),
        made_ms=int(max(table["made_ms"].to_pylist())),
        partitions=names,
        resources=resources,
    )


def _floats(table: Any, name: str, path: Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    if name not in table.column_names:
        raise InvalidDocument(f"{path} is no load model: it has no column {name}")
    try:
        return np.asarray(table[name].to_numpy(), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidDocument(f"{path} has no numbers in {name}: {error}") from None


def _hours(table: Any, name: str, path: Path) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Return the loads by hour of the topics that have any."""
    if name not in table.column_names:
        return {}
    rows = table.select(["topic", name]).filter(table[name].is_valid())
    found = {}
    for topic, hours in zip(rows["topic"].to_pylist(), rows[name].to_pylist(), strict=True):
        try:
            found[topic] = np.array(hours, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidDocument(f"{path} has no numbers in {name} of {topic}") from None
        odd = (found[topic] < 0) | np.isinf(found[topic])
        if found[topic].shape != (WEEK_HOURS,) or odd.any():
            raise InvalidDocument(
                f"{path} is damaged: {name} of {topic} must be {WEEK_HOURS} numbers from 0 on. Make it again"
            )
    return found


def _reached(table: Any, name: str, path: Path) -> float | None:
    if name not in table.column_names or table[name].null_count == len(table):
        return None
    return float(np.nanmax(_floats(table, name, path)))
