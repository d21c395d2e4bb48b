"""What a server of pages knows: the cluster, the runs, the sessions and who is looking."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import RestowError
from restow.ui.audit import AuditLog
from restow.ui.commands import CommandLine
from restow.ui.feeds import Feeds
from restow.ui.jobs import Jobs
from restow.ui.lake import LakeWatch
from restow.ui.plan_store import PlanStore
from restow.ui.run_books import RunBooks
from restow.ui.safety import Refused
from restow.ui.watching import ClusterWatch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.requests import Request

    from restow.execute.progress.status import RunStatus
    from restow.runtime.clock import Clock
    from restow.ui.large_files import ShownPlan
    from restow.ui.plan_store import StoredPlan
    from restow.ui.sessions import UiRole, UiSession
    from restow.ui.watching import WatchedCluster

_RUNS_EVERY_S = 0.25
_WAITING_PLANS = 4


@frozen
class UiSettings:
    """How the server is reached, and what it may do."""

    tokens: Mapping[str, UiRole]
    journal: str
    """The folder that holds the journals."""
    host: str = "127.0.0.1"
    port: int = 8080
    names: tuple[str, ...] = ()
    """Further names by which browsers reach it, perhaps with a port."""
    lake: str | None = None
    load: str | None = None
    """The load model in a file."""
    recorded_lake: str | None = None
    """What `/api/v1/lake` answered once, instead of a lake."""
    read_only: bool = False
    certificate: str | None = None
    key: str | None = None

    @property
    def tls(self) -> bool:
        return self.certificate is not None

    @property
    def cookie(self) -> str:
        """The name of the cookie. Browsers share cookies between the ports of a host."""
        return f"restow_{self.port}"

    @property
    def hosts(self) -> frozenset[str]:
        """The values of the Host header that are taken."""
        own = (self.host, "localhost", "127.0.0.1", "[::1]", *self.names)
        usual = ("", "443" if self.tls else "80")
        found = set()
        for name in own:
            bare = f"[{name}]" if name.count(":") > 1 and not name.startswith("[") else name
            has_port = ":" in bare.rpartition("]")[2]
            found.add(bare.lower() if has_port else f"{bare}:{self.port}".lower())
            if not has_port and str(self.port) in usual:
                found.add(bare.lower())
        return frozenset(found)


class Site:
    """All of it."""

    def __init__(
        self,
        settings: UiSettings,
        source: WatchedCluster,
        clock: Clock,
        commands: CommandLine | None = None,
    ) -> None:
        self.settings, self.clock = settings, clock
        self.commands = commands or CommandLine()
        self.feeds = Feeds()
        lake = LakeWatch(settings.lake, settings.load, settings.recorded_lake)
        self.watch = ClusterWatch(source, clock, self._cluster_changed, lake)
        self.books = RunBooks(settings.journal)
        self.jobs = Jobs(clock, self._jobs_changed)
        self._store: tuple[str, PlanStore] | None = None

    @property
    def run(self) -> RunStatus | None:
        """The status of the run that is being carried out on this machine."""
        holder = self.books.holder
        book = None if holder is None else self.books.get(holder.run)
        return None if book is None else book.status

    @property
    def store(self) -> PlanStore:
        """The plans of this cluster."""
        cluster_id = self.watch.last.cluster_id
        if cluster_id is None:
            raise Refused(503, "the cluster has not answered yet, so its plans are not known: wait a moment")
        if self._store is None or self._store[0] != cluster_id:
            self._store = (cluster_id, PlanStore(self.settings.journal, cluster_id, self.clock))
        return self._store[1]

    def waiting_plans(self) -> list[tuple[StoredPlan, ShownPlan]]:
        """Return the latest plans that were made here and that no run has carried out. It reads files."""
        if self.watch.last.cluster_id is None:
            return []
        done = {each.digest for each in self.books.all()}
        found = []
        for stored in self.store.all()[:_WAITING_PLANS]:
            with suppress(RestowError, OSError):
                read = self.store.read(stored)
                if read.digest not in done:
                    found.append((stored, read))
        return found

    @property
    def audit(self) -> AuditLog:
        """The log of what was asked for on these pages."""
        return AuditLog(self.store.folder, self.clock)

    def operator(self, request: Request) -> UiSession | None:
        """Return who asks, if it is somebody who may change something here."""
        session: UiSession | None = request.state.session
        may = session is not None and session.may_change and not self.settings.read_only
        return session if may else None

    @asynccontextmanager
    async def awake(self) -> AsyncIterator[None]:
        """Look at the cluster and the journals during this block."""
        tasks = [asyncio.create_task(work) for work in (self.watch.keep_looking(), self._keep_reading())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task
            await self.jobs.close()

    async def _keep_reading(self) -> None:
        while True:
            await self.read_journals()
            await self.clock.sleep(_RUNS_EVERY_S)

    async def read_journals(self) -> None:
        """Read what is new in the journals, and tell those who look at it."""
        cluster_id = self.watch.last.cluster_id
        if cluster_id is None:
            return
        changed = await asyncio.to_thread(self.books.refresh, cluster_id)
        if changed:
            for kind in ("runs", "run", "cluster"):
                self.feeds.change(kind)

    def _jobs_changed(self) -> None:
        self.feeds.change("job")
        self.feeds.change("start")

    def _cluster_changed(self) -> None:
        for kind in ("cluster", "broker", "groups", "group", "topic", "partition"):
            self.feeds.change(kind)
