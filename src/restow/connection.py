"""A cluster to call from scripts and notebooks: every call blocks until it is done.

    with restow.connect("localhost:9092") as cluster:
        plan = restow.plan(cluster.snapshot(), drain=[3], balance=True)
        run = cluster.execute(plan, throttle="50MB/s")
        print(cluster.verify(plan).holds)

Its loop runs in a thread of its own, so it also works where a loop is running already, as in Jupyter.
"""

from __future__ import annotations

import os
import warnings
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial as bound
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from restow.client import ConnectionSettings, connected
from restow.client.properties import layers, settings
from restow.client.property_files import from_mapping
from restow.execute import running
from restow.execute.journal.runs import predictions_told, throttles_on
from restow.runtime.loop import LoopThread
from restow.snapshot.capturing import snapshot
from restow.verify import verify

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from os import PathLike
    from typing import Unpack

    from restow.client import KafkaAdmin
    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.progress.status import RunStatus
    from restow.execute.run.options import RunFlags
    from restow.execute.running import OnEvent, OnStatus
    from restow.model import Plan, Snapshot, Verdict
    from restow.model.load import LoadModel

T = TypeVar("T")


def connect(
    bootstrap_server: str,
    *,
    command_config: str | PathLike[str] | None = None,
    command_property: Mapping[str, str] | None = None,
    journal: str | PathLike[str] | None = None,
) -> Cluster:
    """Connect to a cluster, with the settings that the commands take.

        with restow.connect("localhost:9092", command_config="client.properties") as cluster:
            snapshot = cluster.snapshot()

    `command_config` is a file of Kafka's client properties, `command_property` sets single ones, such as
    `{"security.protocol": "SSL"}`. `journal` is the folder where the journals of runs are kept. The
    environment counts as it does for the commands: RESTOW_COMMAND_CONFIG, RESTOW_CLIENT_…, RESTOW_JOURNAL.

    Raises `restow.client.Unreachable` if no broker lets us in.
    """
    given = layers(
        command_config or os.environ.get("RESTOW_COMMAND_CONFIG"),
        from_mapping(command_property or {}, "command_property"),
        os.environ,
        _warn,
    )
    return Cluster(
        settings(bootstrap_server, *given, environment=os.environ, warn=_warn),
        journal or os.environ.get("RESTOW_JOURNAL"),
    )


class Cluster:
    """A cluster that we are connected to. Made by `restow.connect`; `close` it, or use `with`.

    Callbacks are called in the thread that waits. A run that is interrupted, by ctrl-C or by a callback that
    raises, is left as it is: what is under way goes on, and `resume`, `cancel` or `undo` take it from there.
    """

    def __init__(self, settings: ConnectionSettings, journal: str | PathLike[str] | None = None) -> None:
        self._bootstrap, self._journal = settings.bootstrap, journal
        self._thread = LoopThread("restow-client")
        self._stack = AsyncExitStack()
        try:
            self._admin = self._thread.run(self._stack.enter_async_context(connected(settings)))
        except BaseException:
            self._thread.close()
            raise

    def snapshot(self) -> Snapshot:
        """Return the cluster as it is now: brokers, log dirs, topics, replicas, ISRs, configs."""
        return self.ask(snapshot)

    def check(
        self,
        plan: Plan,
        *,
        throttle: str = "none",
        load: LoadModel | None = None,
        deadline: str | None = None,
        anyway: bool = False,
        **flags: Unpack[RunFlags],
    ) -> Verdict:
        """Look at everything that has to hold before such a run begins. Nothing is changed."""
        given: dict[str, Any] = {"throttle": throttle, "load": load, "deadline": deadline, "anyway": anyway}
        return self.ask(bound(running.check, plan=plan, journal=self._journal, **given, **flags))

    def execute(
        self,
        plan: Plan,
        *,
        throttle: str,
        partial: bool = False,
        load: LoadModel | None = None,
        deadline: str | None = None,
        anyway: bool = False,
        on_event: OnEvent = None,
        on_status: OnStatus = None,
        **flags: Unpack[RunFlags],
    ) -> RunOutcome:
        """Carry out a plan, move by move, within its limits, with a journal from which all can be undone.

            run = cluster.execute(plan, throttle="50MB/s", on_event=print)
            print(run.ending, run.next)

        `throttle` is a rate per broker like "50MB/s", "auto" or "none", perhaps others by the hour:
        "20MB/s,22-06=200MB/s". An incomplete plan is refused unless `partial`. `load` and `deadline` are for
        the rehearsal before it begins; what that forbids, `anyway` allows, but no log dir is overfilled.
        `on_event` hears of every event, `on_status` several times a second how far the run is. The other
        arguments are those of `restow.execute.RunFlags`.

        It returns when the run has ended, well or not: look at `is_good`. What must not begin raises
        `restow.execute.NotNow`, and nothing is changed.
        """
        given = {"load": load, "deadline": deadline, "anyway": anyway, **flags}
        return self._run(
            running.execute, on_event, on_status, plan=plan, throttle=throttle, partial=partial, **given
        )

    def resume(
        self,
        run: RunOutcome | str | None = None,
        *,
        throttle: str = "auto",
        digest: str | None = None,
        on_event: OnEvent = None,
        on_status: OnStatus = None,
        **flags: Unpack[RunFlags],
    ) -> RunOutcome:
        """Go on with a run that was killed, cancelled or left: the latest that needs it, if none is named."""
        return self._run(
            running.resume, on_event, on_status, run=run, throttle=throttle, digest=digest, **flags
        )

    def undo(
        self,
        run: RunOutcome | str | None = None,
        *,
        throttle: str = "auto",
        as_far_as_possible: bool = False,
        on_event: OnEvent = None,
        on_status: OnStatus = None,
    ) -> RunOutcome:
        """Bring back what a run has changed: the latest that moved something, if none is named.

            cluster.undo(run, throttle="50MB/s")

        It is refused if a partition cannot be brought back, unless `as_far_as_possible`.
        """
        return self._run(
            running.undo,
            on_event,
            on_status,
            run=run,
            throttle=throttle,
            as_far_as_possible=as_far_as_possible,
        )

    def cancel(self, run: RunOutcome | str | None = None, *, on_event: OnEvent = None) -> RunOutcome | None:
        """Take back what a run has under way, and its throttles. What has arrived stays.

        A run that another process carries out is told to do it, and None is returned.
        """
        return self._run(running.cancel, on_event, None, run=run)

    def verify(self, plan: Plan) -> Verdict:
        """Say whether a plan is done, with nothing left behind: its promises, its moves, no throttles.

        Its `notes` say how far off the prediction of the run was.
        """
        verdict = verify(plan, self.snapshot(), throttles_on(plan, self._journal))
        return replace(verdict, notes=predictions_told(plan, self._journal))

    def status(self) -> RunStatus:
        """Say what is being moved now, whoever began it."""
        return self.ask(bound(running.status, journal=self._journal))

    def ask(self, work: Callable[[KafkaAdmin], Awaitable[T]]) -> T:
        """Do anything else with the admin that this cluster is connected by.

        topics = cluster.ask(lambda admin: admin.describe_topics())
        """

        async def asked() -> T:
            return await work(self._admin)

        return self._thread.run(asked())

    def close(self) -> None:
        """Hang up."""
        try:
            self._thread.run(self._stack.aclose())
        finally:
            self._thread.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<restow.Cluster {self._bootstrap}>"

    def _run(
        self, work: Callable[..., Awaitable[T]], on_event: OnEvent, on_status: OnStatus, **given: Any
    ) -> T:
        """Carry out a run on the loop, and hand on what it tells in the caller's own thread."""
        calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()

        async def run() -> T:
            return await work(
                self._admin,
                journal=self._journal,
                on_event=on_event and (lambda event: calls.put(bound(on_event, event))),
                on_status=on_status and (lambda status: calls.put(bound(on_status, status))),
                **given,
            )

        return self._thread.run(run(), calls)


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=3)
