"""The samples of a lake as they may arrive in another: in parts, most in time, some late, in any order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.lakes import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Part = dict[str, pa.Table]
"""Rows that arrive together, by their place in the lake below `<table>/v1`."""


def parts_of(lake: Path, *, seed: int, parts: int, late: float = 0.1) -> list[Part]:
    """Divide a lake's samples by time; this share of them arrives in any later part."""
    chance = np.random.default_rng(seed)
    found: list[Part] = [{} for _ in range(parts)]
    files = [
        (path, _read(path)) for table in SCHEMAS for path in sorted(lake.glob(f"{table}/v1/*/*/*.parquet"))
    ]
    times = np.concatenate([_times(rows) for _, rows in files])
    ends = np.quantile(times, np.arange(1, parts) / parts)
    for path, rows in files:
        number = np.searchsorted(ends, _times(rows))
        delayed = chance.random(len(number)) < late
        number = np.where(delayed, chance.integers(number, parts), number)
        place = str(path.parent.relative_to(lake))
        for each, part in enumerate(found):
            if (mine := rows.filter(pa.array(number == each))).num_rows:
                part[place] = pa.concat_tables([part[place], mine]) if place in part else mine
    return found


def arrive(lake: Path, parts: Sequence[Part], seed: int) -> None:
    """Write these parts into a lake, each place in two files whose rows lie in any order."""
    chance = random.Random(seed)  # noqa: S311
    for part in parts:
        for place, rows in part.items():
            order = list(range(rows.num_rows))
            chance.shuffle(order)
            folder = lake / place
            folder.mkdir(parents=True, exist_ok=True)
            middle = chance.randrange(len(order) + 1)
            for half in (order[:middle], order[middle:]):
                if half:
                    name = f"part-{chance.getrandbits(64):016x}.parquet"
                    pq.write_table(rows.take(pa.array(half)), folder / name)


def _read(path: Path) -> pa.Table:
    with pq.ParquetFile(path) as file:
        return file.read()


def _times(rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.asarray(pc.cast(rows["at"], pa.int64()).to_numpy())
