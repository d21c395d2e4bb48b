"""One run per cluster: a lock on this machine, and a mark on the cluster itself.

The lock is by cluster id, with a note about its holder. The kernel releases it when its process ends, however
it ends; the note counts only while the lock is held. The mark keeps a run on another machine from starting:
it is a member of the group `__restow_run`, with data about the run
([0004](../../../docs/decisions/0004-mark-of-a-run.md)).
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from restow._frozen import frozen
from restow.client import SESSION_S, BrokerError, ClientError
from restow.errors import RestowError
from restow.execute.progress.status import RunEvent
from restow.execute.run.offsets_topic import create_offsets_topic
from restow.model.permissions import RUN_GROUP
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from contextlib import AbstractAsyncContextManager

    from restow.client import GroupLockHolder
    from restow.execute.journal.runs import Runs
    from restow.execute.progress.status import RunListener
    from restow.execute.run.start import RunContext
    from restow.model import Plan
    from restow.runtime.disk import Disk


_LOCK, _NOTE = "lock", "holder.json"
_MOST = 10**14
"""More than any process id, and any time that can be shown."""


class ClusterLocked(RestowError):
    """Another process is executing a run on this cluster."""


class BadStateFolder(RestowError):
    """The folder for journals is another user's, open to all users, or broken. Nothing was changed."""


@frozen
class ProcessIdentity:
    """A process, its machine and its user."""

    pid: int
    host: str
    user: str

    @classmethod
    def own(cls) -> ProcessIdentity:
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = str(os.getuid())
        return cls(pid=os.getpid(), host=platform.node(), user=user)


@frozen
class Holder(ProcessIdentity):
    """The process that executes a run."""

    run: str
    since_ms: int | None = None


@contextmanager
def cluster_lock(disk: Disk, folder: str, holder: Holder) -> Iterator[None]:
    """Hold the lock of the cluster whose runs are in this folder, or raise an error that names its holder."""
    try:
        disk.make_directory(folder.rpartition("/")[0] or folder)
        disk.make_directory(folder)
        lock = disk.lock(f"{folder}/{_LOCK}")
        if lock is not None:
            note = json.dumps(asdict(holder)).encode()
            disk.write_atomically(f"{folder}/{_NOTE}", note, durable=False)
    except OSError as error:
        raise BadStateFolder(
            f"{error.filename or folder} cannot be used for journals: {error.strerror or error}. Put it in "
            "order, or choose another folder with --journal"
        ) from error
    if lock is None:
        raise ClusterLocked(_who(disk, folder))
    try:
        yield
    finally:
        lock.release()


def holder_of(disk: Disk, folder: str) -> Holder | None:
    """Return the present holder of the lock; None if it is free or the note is not readable."""
    if not disk.exists(f"{folder}/{_LOCK}"):
        return None
    try:
        lock = disk.lock(f"{folder}/{_LOCK}")
    except OSError:
        return None
    if lock is not None:
        lock.release()
        return None
    return _note(disk, folder)


def _note(disk: Disk, folder: str) -> Holder | None:
    try:
        return holder_from(disk.read_bytes(f"{folder}/{_NOTE}"))
    except OSError:
        return None


def holder_from(note: bytes) -> Holder | None:
    """Read a holder's note; None if it is not valid."""
    try:
        said = json.loads(note)
        texts = [said[key] for key in ("host", "user", "run")]
        pid, since_ms = said["pid"], said.get("since_ms")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    numbers = [pid] if since_ms is None else [pid, since_ms]
    if not all(type(each) is int and 0 <= each < _MOST for each in numbers):
        return None
    if not all(isinstance(each, str) for each in texts):
        return None
    host, user, run = texts
    return Holder(pid=pid, host=host, user=user, run=run, since_ms=since_ms)


def _who(disk: Disk, folder: str) -> str:
    holder = _note(disk, folder)
    if holder is None:
        return f"another run holds {folder}/{_LOCK}: wait until it has ended"
    return (
        f"{holder.user} is at it: run {holder.run}, process {holder.pid} on {holder.host}. Look at it with "
        f"`restow watch`, change it with `restow control`, or wait until it has ended"
    )


GROUP = RUN_GROUP
_IDENTITY = "identity"
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")


class RunGroupLock(Protocol):
    """A lock on the cluster that one process at a time can hold."""

    lost_to: GroupLockHolder | None

    async def holder(self) -> GroupLockHolder | None:
        """Return the present holder without taking the lock."""

    def kept(self) -> AbstractAsyncContextManager[None]:
        """Take the lock, and keep it until the context ends."""

    async def taken(self) -> GroupLockHolder | None:
        """Wait for the answer; return the other holder, or None if the lock is ours."""


class GroupLocks(Protocol):
    """Makes locks on one cluster."""

    def __call__(self, group: str, instance_id: str, said: bytes) -> RunGroupLock: ...


class Mark:
    """The mark of one run; the cluster may not support one."""

    def __init__(self, group_lock: RunGroupLock | None) -> None:
        self._group_lock = group_lock

    @property
    def lost_to(self) -> str | None:
        """Say which run holds the cluster instead of ours; None while ours does."""
        other = None if self._group_lock is None else self._group_lock.lost_to
        return None if other is None else who_is(other)

    async def confirm(self, world: RunContext, watcher: RunListener) -> None:
        """Refuse, before any change, if another run has the mark. Warn where no mark can be set."""
        if self._group_lock is None:
            return
        try:
            other = await self._group_lock.taken()
        except ClientError as error:
            facts = {"why": _why_unmarked(error)}
            watcher.event(RunEvent(at_ms=world.clock.now_ms(), kind="warned", facts=facts))
            return
        if other is not None:
            raise ClusterLocked(_refusal(other))


@asynccontextmanager
async def claimed(world: RunContext, runs: Runs, run: str, plan: Plan | None = None) -> AsyncIterator[Mark]:
    """Hold this machine's lock and the cluster's mark; `Mark.confirm` says whether the mark is ours."""
    holder = Holder(**asdict(world.process), run=run, since_ms=world.clock.now_ms())
    with cluster_lock(world.disk, runs.folder, holder):
        if world.group_locks is None:
            yield Mark(None)
            return
        group_lock = world.group_locks(GROUP, _identity(world, runs), json.dumps(asdict(holder)).encode())
        if (other := await _occupant(group_lock)) is not None:
            raise ClusterLocked(_refusal(other))
        if plan is not None:
            await create_offsets_topic(world.admin, plan)
        async with group_lock.kept():
            yield Mark(group_lock)


async def other_at_it(world: RunContext, runs: Runs) -> str | None:
    """Say who executes a run from another machine; None if that is nobody or cannot be asked."""
    if world.group_locks is None:
        return None
    other = await _occupant(world.group_locks(GROUP, _identity(world, runs, make=False), b""))
    return None if other is None else who_is(other)


async def _occupant(group_lock: RunGroupLock) -> GroupLockHolder | None:
    """Return the holder of the lock; None on an error, which comes up again when the lock is taken."""
    try:
        return await group_lock.holder()
    except ClientError:
        return None


def _identity(world: RunContext, runs: Runs, *, make: bool = True) -> str:
    """Return our identity for the cluster: this machine and this folder.

    The holder of the folder's lock knows that no other process with this identity is alive, so it may replace
    one that was killed.
    """
    path = f"{runs.folder}/{_IDENTITY}"
    try:
        drawn = world.disk.read_bytes(path).decode(errors="replace") if world.disk.exists(path) else ""
        if not drawn and make:
            drawn = world.chance.uuid().hex
            world.disk.write_atomically(path, drawn.encode())
    except OSError as error:
        raise BadStateFolder(f"{path} cannot be used: {error.strerror or error}. Remove it") from error
    return _UNFIT.sub("_", f"restow-{world.process.host[:100]}-{drawn[:64]}")


def who_is(other: GroupLockHolder) -> str:
    """Name a member of the group as precisely as its data allows."""
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


def _refusal(other: GroupLockHolder) -> str:
    return (
        f"somebody else carries out a run on this cluster: {who_is(other)}. Wait until it has ended. If "
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
    """Make another member's text safe for one line of a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:100])
