"""What a run says while it runs: a picture that keeps up in a terminal, a line of JSON per event elsewhere.

ctrl-C asks what to do in a terminal; elsewhere, and at the second ctrl-C, the run is left to go on by itself.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from restow.cli.frame import FAILED, console
from restow.execute.control import CANCEL, LEAVE, Control, Wishes
from restow.execute.executor import Watcher
from restow.execute.standing import Event
from restow.runtime.disk import SystemDisk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.live import Live

    from restow.execute.outcome import Outcome
    from restow.execute.standing import Standing

_QUESTION = "\nctrl-C: [p]ause or go on, [c]ancel this wave, [l]eave it running, [n]othing? "
_LOG_ROWS = 8
_QUIET = ("begun", "arrived", "throttle", "throttle corrected", "run", "elected", "ended")


class Screen:
    """Watches one run."""

    def __init__(self, *, as_json: bool) -> None:
        self.interactive = not as_json and sys.stdout.isatty() and sys.stdin.isatty()
        self._live: Live | None = None
        self._folder: str | None = None
        self._paused = False
        self._asking: asyncio.Task[None] | None = None
        self._log: list[str] = []
        self._last: Standing | None = None

    @property
    def watcher(self) -> Watcher:
        return Watcher(event=self._event, standing=self._standing)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """For as long as something is to be seen, with signals answered."""
        loop = asyncio.get_running_loop()
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
            for each in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(each)

    def _event(self, event: Event) -> None:
        if event.kind == "run":
            self._folder = str(event.facts["folder"])
        if not self.interactive:
            self._line(event)
        elif event.kind not in _QUIET:
            facts = ", ".join(f"{key} {value}" for key, value in event.facts.items())
            self._log = [*self._log[1 - _LOG_ROWS :], f"{event.kind}: {facts}"]
            self._draw()

    def _standing(self, standing: Standing) -> None:
        self._last = standing
        if self.interactive:
            self._draw()
            return
        from restow.runtime.clock import SystemClock

        self._line(Event(at_ms=SystemClock().now_ms(), kind="progress", facts=standing.document()))

    def _line(self, event: Event) -> None:
        sys.stdout.write(json.dumps(event.document()) + "\n")
        sys.stdout.flush()

    def _draw(self) -> None:
        if self._live is None or self._last is None or self._asking is not None:
            return
        from rich.console import Group
        from rich.text import Text

        from restow.cli.drawing import clean
        from restow.cli.run_view import picture

        log = Text("\n".join(map(clean, self._log)), style="dim")
        self._live.update(Group(picture(self._last), log), refresh=True)

    def _interrupted(self, which: signal.Signals) -> None:
        if self._folder is None:
            raise KeyboardInterrupt
        if not self.interactive or self._asking is not None or which is signal.SIGTERM:
            Control(SystemDisk(), self._folder).wish(Wishes(stop=LEAVE))
            return
        self._asking = asyncio.get_running_loop().create_task(self._ask(self._folder))

    async def _ask(self, folder: str) -> None:
        """The run goes on while somebody thinks."""
        if self._live is not None:
            self._live.stop()
        try:
            answer = (await asyncio.to_thread(input, _QUESTION)).strip().lower()[:1]
        except EOFError:
            answer = "l"
        control = Control(SystemDisk(), folder)
        if answer == "p":
            self._paused = not self._paused
            control.wish(Wishes(paused=self._paused))
        elif answer in ("c", "l"):
            control.wish(Wishes(stop=CANCEL if answer == "c" else LEAVE))
        self._asking = None
        if self._live is not None:
            self._live.start()


def conclude(outcome: Outcome, *, interactive: bool) -> int:
    """Say how it came out, where that has not been said as an event; returns the exit code."""
    if interactive:
        from restow.cli.run_summary import draw_outcome

        draw_outcome(console(), outcome)
    return 0 if outcome.is_good else FAILED
