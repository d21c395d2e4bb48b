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
    from collections.abc import Iterator

    from rich.live import Live

    from restow.execute.progress.outcome import RunOutcome
    from restow.execute.progress.status import RunStatus

_QUESTION = "ctrl-C: [p]ause or go on, [c]ancel the moves, [l]eave them running, [n]othing?"
_LOG_ROWS = 8
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

    @property
    def watcher(self) -> RunListener:
        return RunListener(event=self._event, status=self._status)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the run and handle signals for this block."""
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
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
            if self._timer is not None:
                self._timer.cancel()
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
        log = Text("\n".join(map(clean, self._log)), style="dim")
        self._live.update(Group(*asked, *seen, log), refresh=True)

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
