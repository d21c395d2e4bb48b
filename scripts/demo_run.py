"""The story's run: `restow execute` with its live view, while a broker is killed and comes back."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from restow.cli.runs.screen import Screen, conclude
from restow.cli.runs.view import predicted_line, until
from restow.cli.shared.connection import on_cluster
from restow.execute.progress.status import RunListener
from restow.execute.run.options import expecting, run_options
from restow.execute.run.start import execute, run_context
from restow.plan import read_load, read_plan
from restow.sizes import human_bytes

if TYPE_CHECKING:
    from demo_stage import Stage

    from restow.client import KafkaAdmin
    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.progress.status import RunEvent, RunStatus

KILL_AT = 0.35
AWAY_S = 6.0
_LINE_EVERY_S = 1.0
_BAR = 30


@dataclass
class Run:
    """A run of a plan, with what was observed."""

    stage: Stage
    plan: str
    throttle: str
    journal: str
    victim: int
    load: str
    began: float = 0.0
    done: list[tuple[float, int]] = field(default_factory=list)
    """When so many bytes had been copied."""
    moments: list[tuple[float, str, bool]] = field(default_factory=list)
    to_do_bytes: int = 0
    outcome: RunOutcome | None = None
    _killer: threading.Thread | None = None
    _last_line: float = 0.0

    def carry_out(self) -> bool:
        """Execute the plan with the command's own screen; return whether it succeeded."""
        plan = read_plan(self.plan)
        options = run_options(
            throttle=self.throttle,
            dir_throttle=None,
            hours=None,
            max_under_replicated=0,
            max_latency_ms=None,
            special_last=True,
            elect=True,
            give_up_after=120,
        )
        options = expecting(options, load=read_load(self.load))
        screen = Screen(as_json=False)
        watcher = RunListener(
            event=lambda event: self._event(event, screen),
            status=lambda status: self._status(status, screen),
        )

        async def work(admin: KafkaAdmin) -> RunOutcome:
            with screen.shown(lambda: admin.unanswered):
                return await execute(run_context(admin, self.journal), plan, options, watcher)

        self.outcome = on_cluster(self.stage.bootstrap, work)
        if self._killer is not None:
            self._killer.join()
        self.note(f"{self.outcome.ending.value}")
        conclude(self.outcome, interactive=True)
        return self.outcome.is_good

    @property
    def seconds(self) -> float:
        """Return how long the run took."""
        return 0.0 if self.outcome is None or self.outcome.summary is None else self.outcome.summary.seconds

    @property
    def killed(self) -> bool:
        return self._killer is not None

    def note(self, what: str, *, bad: bool = False) -> None:
        self.moments.append((time.time(), what, bad))

    def _event(self, event: RunEvent, screen: Screen) -> None:
        if event.kind == "run":
            self.began = time.time()
        if screen.interactive:
            screen.watcher.event(event)
        elif event.kind in ("paused", "going on", "throttle off"):
            print(f"  {event.kind}: {', '.join(map(str, event.facts.values()))}", flush=True)

    def _status(self, status: RunStatus, screen: Screen) -> None:
        report = status.report
        self.to_do_bytes = max(self.to_do_bytes, report.to_do_bytes)
        self.done.append((time.time(), report.done_bytes))
        if self._killer is None and report.done_bytes >= KILL_AT * report.to_do_bytes > 0:
            self._killer = threading.Thread(target=self._kill, daemon=True)
            self._killer.start()
        if screen.interactive:
            screen.watcher.status(status)
        elif time.monotonic() - self._last_line >= _LINE_EVERY_S:
            self._last_line = time.monotonic()
            self._line(status)

    def _line(self, status: RunStatus) -> None:
        """Print a line per second where there is no terminal."""
        report = status.report
        full = int(_BAR * report.done_bytes / (report.to_do_bytes or 1))
        words = f"{human_bytes(report.done_bytes)} of {human_bytes(report.to_do_bytes)}"
        state = status.paused or status.waits or until(report.eta_s)
        if status.predicted is not None and not status.ended:
            state += f"; {predicted_line(status.predicted)}"
        print(f"  {'█' * full:·<{_BAR}}  {words}, {human_bytes(report.rate)}/s, {state}", flush=True)

    def _kill(self) -> None:
        """Kill the broker without warning, and start it again with its old files."""
        self.note(f"broker {self.victim} killed", bad=True)
        self._say(f"  ✗ broker {self.victim} is killed")
        self.stage.cluster.kill_broker(self.victim)
        time.sleep(AWAY_S)
        self.stage.cluster.start_broker(self.victim)
        self.note(f"broker {self.victim} back")
        self._say(f"  ✓ broker {self.victim} is back")

    @staticmethod
    def _say(line: str) -> None:
        if not sys.stdout.isatty():
            print(line, flush=True)
