"""Commands that pages have started, each a process of its own.

A process that plans or rehearses ends with the server. One that carries out a run belongs to nobody: it has a
session of its own, its output goes into files, and it ends when the run does.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from restow.runtime.clock import Clock

OUT, ERR = "out.json", "err.txt"
_LOOK_EVERY_S = 0.1
_MOST_AT_ONCE, _MOST_WAITING = 2, 20
_MOST_S = 3600.0
_LAST_WORDS_S = 5.0
_MOST_SAID = 4_000
_MOST_KEPT = 200
_MOST_READ = 64 * 1024


class TooBusy(RestowError):
    """So many commands wait for their turn that another one is not taken."""


@dataclass(slots=True)
class CommandJob:
    """One command that was started on a page."""

    id: str
    title: str
    who: str
    folder: Path
    leads_to: str
    """The address of what it makes."""
    started_ms: int
    back: str = ""
    """The address of what it was asked of."""
    lasts: bool = False
    """Whether it goes on without the server."""
    process: subprocess.Popen[bytes] | None = None
    code: int | None = None
    stopped: bool = False
    run: str = ""
    """The run that it carries out, once that has begun."""
    has_turn: bool = False
    """Whether it is being done; until then it waits."""
    then: Callable[[CommandJob], object] | None = None
    """What to do when it has ended, in a thread, before anybody hears of it."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        return self.ended.is_set()

    @property
    def outcome(self) -> str:
        """How its run ended, as far as it said."""
        for each in reversed(_events(self.folder)):
            if each.get("event") == "ended":
                return f"{each.get('outcome')}: {each.get('reason') or each.get('next')}"
        return ""

    @property
    def said(self) -> str:
        """What it complained about."""
        return complaint(self.folder)


def complaint(folder: Path) -> str:
    """Return the end of what a command said on stderr, without its label."""
    with suppress(OSError):
        text = (folder / ERR).read_bytes()[-_MOST_SAID:].decode(errors="replace").strip()
        return text.removeprefix("Error: ")
    return ""


def _reap(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that was told to end; end it if it does not listen."""
    try:
        process.wait(_LAST_WORDS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _events(folder: Path) -> list[dict[str, Any]]:
    """Return the first events that a run has printed, which name it, and its last ones."""
    with suppress(OSError, ValueError):
        with (folder / OUT).open("rb") as file:
            head = file.read(_MOST_READ)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(len(head), size - _MOST_READ))
            lines = (head + file.read()).splitlines()
        return [each for line in lines if isinstance(each := _parsed(line), dict)]
    return []


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


class Jobs:
    """All jobs of this server."""

    def __init__(self, clock: Clock, changed: Callable[[], object]) -> None:
        self._clock, self._changed = clock, changed
        self._jobs: dict[str, CommandJob] = {}
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def all(self) -> list[CommandJob]:
        return list(self._jobs.values())

    def get(self, name: str) -> CommandJob | None:
        return self._jobs.get(name)

    def start(self, job: CommandJob, command: Sequence[str]) -> CommandJob:
        """Start a command, or let it wait for its turn if it ends with the server.

        A job without a command consists of what it does `then`.
        """
        waiting = [each for each in self._jobs.values() if not each.is_over]
        if len(waiting) >= _MOST_WAITING:
            raise TooBusy(f"{len(waiting)} commands are not done yet: wait for them, then try again")
        while len(self._jobs) >= _MOST_KEPT and (over := [j for j in self._jobs.values() if j.is_over]):
            del self._jobs[over[0].id]
        self._jobs[job.id] = job
        job.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        task = asyncio.create_task(self._run(job, command))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def stop(self, job: CommandJob) -> None:
        """End a command that does not go on by itself."""
        job.stopped = True
        if job.process is not None and job.process.poll() is None and not job.lasts:
            with suppress(ProcessLookupError):
                os.killpg(job.process.pid, signal.SIGTERM)

    async def close(self) -> None:
        """End what ends with the server."""
        for job in self._jobs.values():
            if not job.is_over:
                self.stop(job)
        for task in list(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for job in self._jobs.values():
            if job.process is not None and not job.lasts:
                await asyncio.to_thread(_reap, job.process)

    async def _run(self, job: CommandJob, command: Sequence[str]) -> None:
        try:
            async with nullcontext() if job.lasts else self._turns:
                job.has_turn = True
                if command:
                    await self._watched(job, command)
                if job.then is not None:
                    await asyncio.to_thread(job.then, job)
        finally:
            job.ended.set()
            self._changed()

    async def _watched(self, job: CommandJob, command: Sequence[str]) -> None:
        if job.stopped:
            return
        until_s = self._clock.monotonic_s() + _MOST_S
        with (job.folder / OUT).open("wb") as out, (job.folder / ERR).open("wb") as err:
            job.process = subprocess.Popen(  # noqa: S603  (a list of arguments, without a shell)
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
        while (code := job.process.poll()) is None:
            if job.lasts and not job.run:
                self._find_run(job)
            if not job.lasts and self._clock.monotonic_s() > until_s:
                self.stop(job)
            await self._clock.sleep(_LOOK_EVERY_S)
        job.code = code
        if job.lasts and not job.run:
            self._find_run(job)

    def _find_run(self, job: CommandJob) -> None:
        for each in _events(job.folder):
            if each.get("event") == "run":
                job.run = str(each.get("folder", "")).rpartition("/")[2]
                self._changed()
                return
