"""The output of a running run: a live picture on a terminal, one line of JSON per event elsewhere.

On a terminal ctrl-C asks what to do, and the picture stays live meanwhile. Elsewhere, at the second ctrl-C
and at SIGTERM the run ends, and the cluster finishes the running reassignments. A run that cannot end
because a request hangs is cut short: its journal still says how it ended.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from restow.cli.runs.flags import can_ask
from restow.cli.shared.drawing import clean
from restow.cli.shared.frame import FAILED, complain, console, show_document
from restow.cli.shared.keys import Keys
from restow.execute.progress.outcome import Ending
from restow.execute.progress.status import RunEvent, RunListener
from restow.execute.run.control import CANCEL, LEAVE, Control, ControlRequest
from restow.execute.throttle.pace import ASKED_TO_PAUSE
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.live import Live

    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.progress.status import RunStatus

_QUESTION = "ctrl-C: [p]ause or go on, [c]ancel the moves, [l]eave them running, [n]othing?"
_LOG_ROWS = 8
_TICK_S = 1.0
_LONG_S = 3.0
"""A broker that takes longer to answer is named."""
_QUIET = ("begun", "arrived", "throttle", "throttle corrected", "run", "elected", "ended")
_GRACE_S = 3.0
"""A run that must end gets this long before we abandon the request that it waits for."""
_LAST_WORDS_S = 3.0
"""After that it gets this long to write its end to the journal."""


class Screen:
    """Shows one run and handles signals and keys."""

    def __init__(self, *, as_json: bool) -> None:
        self.interactive = can_ask(as_json=as_json)
        self.cut_short = False
        """Whether the run had to be cut short because a request hangs."""
        self._live: Live | None = None
        self._folder: str | None = None
        self._keys: Keys | None = None
        self._has_ended = False
        self._log: list[str] = []
        self._last: RunStatus | None = None
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ticker: asyncio.TimerHandle | None = None
        self._unanswered: Callable[[], Mapping[int, float]] = dict
        self._silent: dict[int, float] = {}

    @property
    def watcher(self) -> RunListener:
        return RunListener(event=self._event, status=self._status)

    @contextmanager
    def shown(self, unanswered: Callable[[], Mapping[int, float]]) -> Iterator[None]:
        """Show the run and handle signals for this block.

        `unanswered` returns the brokers that have a request to answer, and for how long they have had it.
        """
        loop = asyncio.get_running_loop()
        self._task, self._unanswered = asyncio.current_task(), unanswered
        self._ticker = loop.call_later(_TICK_S, self._tick)
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, self._interrupted, each)
        try:
            if not self.interactive:
                yield
                return
            from rich.live import Live

            with Live(console=console(), auto_refresh=False) as self._live:
                yield
        finally:
            self._live = None
            self._stop_asking()
            for timer in (self._timer, self._ticker):
                if timer is not None:
                    timer.cancel()
            for each in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(each)

    def _event(self, event: RunEvent) -> None:
        if event.kind == "run":
            self._folder = str(event.facts["folder"])
        self._has_ended = self._has_ended or event.kind == "ended"
        if not self.interactive:
            self._line(event)
        elif event.kind not in _QUIET:
            self._log = [*self._log[1 - _LOG_ROWS :], log_line(event)]
            self._draw()

    def _status(self, status: RunStatus) -> None:
        self._last = status
        if self.interactive:
            self._draw()
            return
        self._line(RunEvent(at_ms=SystemClock().now_ms(), kind="progress", facts=status.document()))

    def _tick(self) -> None:
        """Name the brokers that have not answered for a while. A request to them may hold up the run."""
        before = self._silent
        self._silent = {broker: s for broker, s in self._unanswered().items() if s >= _LONG_S}
        if self.interactive and (before or self._silent):
            self._draw()
        elif not self.interactive:
            for broker in self._silent.keys() - before.keys():
                facts = {"broker": broker, "seconds": round(self._silent[broker], 1)}
                self._line(RunEvent(at_ms=SystemClock().now_ms(), kind="no answer", facts=facts))
        self._ticker = asyncio.get_running_loop().call_later(_TICK_S, self._tick)

    def _line(self, event: RunEvent) -> None:
        show_document(event.document())

    def _draw(self) -> None:
        """Draw the question above the picture, because a low terminal cuts off the end."""
        if self._live is None:
            return
        from rich.console import Group
        from rich.text import Text

        from restow.cli.runs.view import picture

        asked = [] if self._keys is None else [Text(_QUESTION, style="bold yellow")]
        seen = [] if self._last is None else [picture(self._last)]
        silent = [Text(silent_line(self._silent), style="yellow")] if self._silent else []
        log = Text("\n".join(map(clean, self._log)), style="dim")
        self._live.update(Group(*asked, *seen, *silent, log), refresh=True)

    def _interrupted(self, which: signal.Signals) -> None:
        if self._folder is None:
            self._cut()
        elif not self.interactive or self._keys is not None or which is signal.SIGTERM:
            self._leave()
        else:
            self._keys = Keys(self._answered)
            self._draw()

    def _answered(self, key: str) -> None:
        """Act on the first known key; leave the run if the keyboard is gone."""
        if key.isspace():
            return
        self._stop_asking()
        if key == "p":
            paused = self._last is not None and self._last.paused == ASKED_TO_PAUSE
            self._request(ControlRequest(paused=not paused))
        elif key == "c":
            self._request(ControlRequest(stop=CANCEL))
        elif key in ("l", ""):
            self._leave()
        self._draw()

    def _stop_asking(self) -> None:
        if self._keys is not None:
            self._keys.close()
            self._keys = None

    def _leave(self) -> None:
        """Ask the run to end, and cut it short if it does not."""
        self._request(ControlRequest(stop=LEAVE))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_GRACE_S, self._cut)

    def _request(self, request: ControlRequest) -> None:
        if self._folder is not None:
            Control(SystemDisk(), self._folder).request(request)

    def _cut(self) -> None:
        """Abandon the hanging request. The journal already has every change that it may have made."""
        self.cut_short = True
        if self._task is not None:
            self._task.cancel()
        self._timer = asyncio.get_running_loop().call_later(_LAST_WORDS_S, self._give_up)

    def _give_up(self) -> None:
        """Exit with the connection open. The journal has the run's end or all announced changes."""
        if self._live is not None:
            self._live.stop()
        if self._has_ended:
            complain("the run has ended, and the cluster does not answer: `restow resume` when it does again")
        else:
            complain("the run does not end by itself and was cut off: `restow doctor` says what it left")
        leave_at_once(FAILED)


def silent_line(silent: Mapping[int, float]) -> str:
    """Return who has not answered and for how long, like `broker 3 has not answered for 4 s`."""
    each = (f"broker {broker} has not answered for {silent[broker]:.0f} s" for broker in sorted(silent))
    return "; ".join(each)


def log_line(event: RunEvent) -> str:
    """Return an event as one line: what happened, to what, and why (`refused: partition t-0: no answer`)."""
    facts = ", ".join(f"{name} {value}" for name, value in event.facts.items() if name != "why")
    return ": ".join(filter(None, (event.kind, facts, str(event.facts.get("why", "")))))


def leave_at_once(code: int) -> NoReturn:
    """End the process without waiting for threads whose request hangs."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def conclude(outcome: RunOutcome, *, interactive: bool, wanted: Ending = Ending.DONE) -> int:
    """Print the outcome, unless an event has done so; return exit code 0 if it is the ending `wanted`."""
    if interactive:
        from restow.cli.runs.view import draw_outcome

        draw_outcome(console(), outcome)
    return 0 if outcome.ending is wanted and not outcome.throttles_left else FAILED
