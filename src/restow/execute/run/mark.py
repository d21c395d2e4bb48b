"""Mark a run on the cluster itself, so that a second one on another machine is refused.

The lock beside the journals holds on one machine. On the cluster the mark is a member of the group
`__restow_run`, which says who carries out what ([0004](../../../docs/decisions/0004-mark-of-a-run.md)).
"""

from __future__ import annotations

import json
import platform
import re
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from restow.client import SESSION_S, BrokerError, ClientError
from restow.execute.progress.standing import RunEvent
from restow.execute.run.lock import BadStateFolder, ClusterLocked, Holder, cluster_lock, holder_from
from restow.model.permissions import RUN_GROUP
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from restow.client import Occupant
    from restow.execute.journal.runs import Runs
    from restow.execute.run.executor import RunListener
    from restow.execute.run.start import RunContext

GROUP = RUN_GROUP
_IDENTITY = "identity"
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")


class RunSeat(Protocol):
    """A place on the cluster that one process at a time can hold."""

    lost_to: Occupant | None

    async def occupant(self) -> Occupant | None:
        """Say who else holds it, without taking it."""

    def kept(self) -> AbstractAsyncContextManager[None]:
        """Take it and keep it meanwhile."""

    async def taken(self) -> Occupant | None:
        """Wait until it is taken; return who else has it, or None."""


class Seats(Protocol):
    """Make seats on one cluster."""

    def __call__(self, group: str, instance_id: str, said: bytes) -> RunSeat: ...


class Mark:
    """The mark of one run, where there is one."""

    def __init__(self, seat: RunSeat | None) -> None:
        self._seat = seat

    @property
    def lost_to(self) -> str | None:
        """Say who holds the cluster instead of us, once that has happened."""
        other = None if self._seat is None else self._seat.lost_to
        return None if other is None else who_is(other)

    async def confirm(self, world: RunContext, watcher: RunListener) -> None:
        """Refuse if somebody else has it; before anything is changed. Warn where no mark can be set."""
        if self._seat is None:
            return
        try:
            other = await self._seat.taken()
        except ClientError as error:
            facts = {"why": _why_unmarked(error)}
            watcher.event(RunEvent(at_ms=world.clock.now_ms(), kind="warned", facts=facts))
            return
        if other is not None:
            raise ClusterLocked(_refusal(other))


@asynccontextmanager
async def claimed(world: RunContext, runs: Runs, run: str) -> AsyncIterator[Mark]:
    """Hold the lock of this machine and the mark on the cluster; `Mark.confirm` says whether it is ours."""
    holder = Holder.this_process(run, since_ms=world.clock.now_ms())
    with cluster_lock(world.disk, runs.folder, holder):
        if world.seats is None:
            yield Mark(None)
            return
        seat = world.seats(GROUP, _identity(world, runs), json.dumps(asdict(holder)).encode())
        if (other := await _occupant(seat)) is not None:
            raise ClusterLocked(_refusal(other))
        async with seat.kept():
            yield Mark(seat)


async def other_at_it(world: RunContext, runs: Runs) -> str | None:
    """Say who carries out a run from elsewhere; changes nothing. None also where that cannot be asked."""
    if world.seats is None:
        return None
    other = await _occupant(world.seats(GROUP, _identity(world, runs, make=False), b""))
    return None if other is None else who_is(other)


async def _occupant(seat: RunSeat) -> Occupant | None:
    """What cannot be asked now is asked again when the seat is taken, and told then."""
    try:
        return await seat.occupant()
    except ClientError:
        return None


def _identity(world: RunContext, runs: Runs, *, make: bool = True) -> str:
    """Who we are to the cluster: this machine and this folder.

    Whoever holds the folder's lock knows that no other process of this identity lives, and may take the
    place of one that was killed.
    """
    path = f"{runs.folder}/{_IDENTITY}"
    try:
        drawn = world.disk.read_bytes(path).decode(errors="replace") if world.disk.exists(path) else ""
        if not drawn and make:
            drawn = world.chance.uuid().hex
            world.disk.write_atomically(path, drawn.encode())
    except OSError as error:
        raise BadStateFolder(f"{path} cannot be used: {error.strerror or error}. Remove it") from error
    return _UNFIT.sub("_", f"restow-{platform.node()[:100]}-{drawn[:64]}")


def who_is(other: Occupant) -> str:
    """Name a member of the group as well as it has said who it is."""
    holder = holder_from(other.said)
    if holder is None:
        where = f" from {_clean(other.host)}" if other.host else ""
        return f"a member of the group {GROUP}{where} that does not say who it is"
    since = ""
    if holder.since_ms is not None:
        since = f", since {datetime.fromtimestamp(holder.since_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return (
        f"{_clean(holder.user)}, with run {_clean(holder.run)}, process {holder.pid} on "
        f"{_clean(holder.host)}{since}"
    )


def _refusal(other: Occupant) -> str:
    return (
        f"another machine carries out a run on this cluster: {who_is(other)}. Wait until it has ended. If "
        f"that process is dead, the cluster forgets it within {SESSION_S:.0f} s"
    )


def _why_unmarked(error: ClientError) -> str:
    hint = ""
    if isinstance(error, BrokerError) and error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
        hint = f"; it needs READ on the group {GROUP}"
    return (
        f"the run cannot be marked on the cluster ({error}){hint}. Nothing keeps a run from another machine "
        "from starting meanwhile"
    )


def _clean(text: str) -> str:
    """What others say of themselves, fit for a line of a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:100])
