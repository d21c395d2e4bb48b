"""Collect samples of one cluster into a lake on this machine, without Spark.

The collector keeps one connection to the cluster and asks all brokers at once. `sample_files` explains how a
sample gets into the lake whole and once, even if the collector is killed.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from restow.client import ClientError, connected, hush
from restow.errors import InvalidDocument, LakeFailed
from restow.pipeline.address import parquet_folder
from restow.pipeline.checkpoints import hold
from restow.pipeline.sampling.questions import ask_over, unanswered
from restow.pipeline.sampling.sample_files import SampleFiles
from restow.pipeline.sampling.shares import nobody, shares_of
from restow.runtime.disk import SystemDisk
from restow.runtime.memory import collector_paused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from restow.client import ConnectionSettings, KafkaAdmin
    from restow.pipeline.sampling.questions import Gap, Part
    from restow.pipeline.sampling.sample import Sample
    from restow.pipeline.sampling.shares import Share
    from restow.pipeline.sampling.where import Where
    from restow.runtime.clock import Clock

T = TypeVar("T")

_NOTES = "collector.json"
_VERSION = 1


class Collector:
    """Takes samples at the interval of `where`, and continues from its checkpoint."""

    def __init__(self, where: Where, lake: str, checkpoint: str, clock: Clock) -> None:
        self._where = where
        self._lake = parquet_folder(lake)
        self._checkpoint = Path(checkpoint)
        self._clock = clock
        self._disk = SystemDisk()

    async def run(self, said: Callable[[Sample], None], told: asyncio.Event, most: int | None = None) -> None:
        """Take samples until `told` is set, or `most` of them. `told` also ends an unfinished sample."""
        hush()
        with hold(str(self._checkpoint), self._disk):
            name, number = self._notes()
            files = SampleFiles(self._lake, name)
            try:
                if files.tidy(number):
                    said(self._land(files, name, number))
                    number += 1
                async with _Cluster(self._where.settings(), self._where, self._clock) as cluster:
                    for taken in _numbers(most):
                        if taken and not await _unless(told, self._until_due()):
                            return
                        with collector_paused():
                            answers = await _unless(told, cluster.ask())
                            if answers is None:
                                return
                            files.stage(number, answers)
                        said(self._land(files, name, number))
                        number += 1
            finally:
                files.close()

    def _land(self, files: SampleFiles, name: str, number: int) -> Sample:
        sample = files.land(number)
        self._note(name, number + 1)
        files.forget(number)
        return sample

    async def _until_due(self) -> bool:
        """Wait for the next multiple of the interval, so that samples of several collectors coincide."""
        every_ms = self._where.every_ms
        await self._clock.sleep((every_ms - self._clock.now_ms() % every_ms) / 1000)
        return True

    def _notes(self) -> tuple[str, int]:
        """Return the collector's name, which its files carry, and the number of the next sample."""
        path = str(self._checkpoint / _NOTES)
        if not self._disk.exists(path):
            name = uuid4().hex
            self._note(name, 0)
            return name, 0
        try:
            notes = json.loads(self._disk.read_bytes(path))
            version, name, number = notes["restow_collector"], str(notes["name"]), int(notes["next"])
        except (ValueError, LookupError, TypeError):
            version, name, number = None, "", -1
        if version != _VERSION or not (name.isascii() and name.isalnum()) or number < 0:
            raise InvalidDocument(f"{path} is damaged: remove it, and samples are counted from 0 again")
        return name, number

    def _note(self, name: str, number: int) -> None:
        notes = {"restow_collector": _VERSION, "name": name, "next": number}
        try:
            self._disk.write_atomically(str(self._checkpoint / _NOTES), json.dumps(notes).encode())
        except OSError as error:
            raise LakeFailed(f"{self._checkpoint} cannot be written to: {error.strerror}") from error


class _Cluster:
    """The cluster to ask, over one connection that is renewed after a failure."""

    def __init__(self, settings: ConnectionSettings, where: Where, clock: Clock) -> None:
        self._settings = settings
        self._where = where
        self._clock = clock
        self._stack = AsyncExitStack()
        self._admin: KafkaAdmin | None = None

    async def __aenter__(self) -> _Cluster:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._hang_up()

    async def ask(self) -> Sequence[tuple[Share, Sequence[Part | Gap]]]:
        """Take one sample: the answers of all brokers, and the gaps."""
        try:
            if self._admin is None:
                self._admin = await self._stack.enter_async_context(connected(self._settings))
            admin = self._admin
            shares = shares_of(await admin.describe_cluster(), await admin.describe_topics())
        except ClientError as error:
            await self._hang_up()
            share = nobody(self._where.cluster, str(error))
            return [(share, unanswered(share, self._where.tables, self._clock))]
        answers = await asyncio.gather(
            *(ask_over(admin, share, self._where.tables, self._clock) for share in shares)
        )
        return list(zip(shares, answers, strict=True))

    async def _hang_up(self) -> None:
        self._admin = None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()


def _numbers(most: int | None) -> Iterator[int]:
    number = 0
    while most is None or number < most:
        yield number
        number += 1


async def _unless(told: asyncio.Event, work: Awaitable[T]) -> T | None:
    """Return the result of `work`, or None as soon as `told` is set."""
    doing, stop = asyncio.ensure_future(work), asyncio.ensure_future(told.wait())
    try:
        await asyncio.wait({doing, stop}, return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        for each in (doing, stop):
            each.cancel()
        await asyncio.gather(doing, stop, return_exceptions=True)
