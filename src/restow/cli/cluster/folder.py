"""The `--data` folder of `restow cluster up`: a record of the cluster's shape, and a lock for one process."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import BrokerFailed, InvalidInput
from restow.runtime.disk import SystemDisk

if TYPE_CHECKING:
    from collections.abc import Iterator

_RECORD = "cluster.json"
_LOCK = ".lock"
_BROKERS, _LOG_DIRS = 3, 1


@frozen
class Shape:
    """The numbers of brokers and log dirs and the racks that the flags give; None where a flag is missing."""

    brokers: int | None = None
    log_dirs: int | None = None
    racks: tuple[str, ...] | None = None


@frozen
class Settled:
    """A `Shape` with all defaults filled in."""

    brokers: int
    log_dirs: int
    racks: tuple[str, ...]


@contextmanager
def held(folder: str | None, asked: Shape) -> Iterator[Settled]:
    """Lock the folder for this block and settle the shape. Refuse a shape that leaves out existing data."""
    if folder is None:
        yield settle(asked, None, "")
        return
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = SystemDisk().lock(str(path / _LOCK))
    except OSError as error:
        raise InvalidInput(f"--data: {folder!r} cannot be used: {error.strerror or error}") from error
    if lock is None:
        raise BrokerFailed(
            f"another process has a cluster up in {folder!r}: stop that one, or give another --data"
        )
    try:
        shape = settle(asked, _read(path), folder)
        record = {"brokers": shape.brokers, "log_dirs": shape.log_dirs, "racks": list(shape.racks)}
        SystemDisk().write_atomically(str(path / _RECORD), json.dumps(record).encode() + b"\n")
        yield shape
    finally:
        lock.release()


def settle(asked: Shape, there: Settled | None, folder: str) -> Settled:
    """Return the flags' values, else the folder's, else the defaults."""
    if there is None:
        there = Settled(brokers=0, log_dirs=0, racks=())
    for wanted, found, flag in (
        (asked.brokers, there.brokers, "--brokers"),
        (asked.log_dirs, there.log_dirs, "--log-dirs"),
    ):
        if wanted is not None and wanted < found:
            raise InvalidInput(
                f"{flag}: {folder!r} was made with {found}, and their data would be missing with {wanted}: "
                f"give {flag} {found} or more, or another --data"
            )
    return Settled(
        brokers=asked.brokers or there.brokers or _BROKERS,
        log_dirs=asked.log_dirs or there.log_dirs or _LOG_DIRS,
        racks=there.racks if asked.racks is None else asked.racks,
    )


def _read(path: Path) -> Settled | None:
    try:
        text = (path / _RECORD).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        record = json.loads(text)
        return Settled(
            brokers=int(record["brokers"]), log_dirs=int(record["log_dirs"]), racks=tuple(record["racks"])
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"--data: {str(path / _RECORD)!r} is not what `restow cluster up` wrote there ({error}): "
            "give another folder"
        ) from error
