"""What an operator can have done, from a page or through the API. Commands are processes of their own."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from restow.errors import InvalidInput, RestowError
from restow.execute.run.control import LEAVE, Control, ControlRequest
from restow.execute.throttle.hours import HourlyThrottle
from restow.runtime.disk import SystemDisk
from restow.sizes import human_bytes
from restow.ui.addresses import plan_address, rehearsal_address, run_address
from restow.ui.jobs import OUT, CommandJob, complaint
from restow.ui.plan_store import PLAN
from restow.ui.safety import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from starlette.requests import Request

    from restow.ui.large_files import ShownPlan
    from restow.ui.plan_store import StoredPlan, StoredRehearsal
    from restow.ui.run_books import RunBook
    from restow.ui.sessions import UiSession
    from restow.ui.site import Site

RUN_COMMANDS = ("cancel", "resume", "undo")
_UPLOADED = "upload.json"
_MARK = b'"restow_plan"'
_PREVIEW_S = 120.0


class Actions:
    """The changes. Each raises `Refused` or `InvalidInput` if it must not be."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def operator(self, request: Request, *, runs: bool = False) -> UiSession:
        """Return who asks; refuse somebody who may not. `runs` demands a cluster to run on."""
        session = self._site.operator(request)
        if session is None:
            raise Refused(403, "only an operator may do this, and not on a read-only server")
        if runs and not self._site.commands.cluster:
            raise Refused(403, "these pages show a snapshot: there is no cluster here to change")
        return session

    def stored(self, name: str) -> StoredPlan:
        """Return a plan by its id."""
        found = self._site.store.get(name)
        if found is None:
            raise Refused(404, f"there is no plan {name!r}")
        return found

    def plan_at(self, request: Request) -> StoredPlan:
        """Return the plan of an address."""
        return self.stored(str(request.path_params["plan"]))

    def rehearsal_at(self, request: Request) -> StoredRehearsal:
        """Return the rehearsal of an address."""
        name = str(request.path_params["rehearsal"])
        found = self._site.store.rehearsal(self.plan_at(request), name)
        if found is None:
            raise Refused(404, f"there is no rehearsal {name!r} of this plan")
        return found

    async def read(self, stored: StoredPlan) -> ShownPlan:
        """Return a plan as pages show it."""
        if not stored.is_there:
            raise Refused(404, "this plan is not there: it failed, or is not done")
        return await asyncio.to_thread(self._site.store.read, stored)

    def reading(self, stored: StoredPlan) -> CommandJob | None:
        """Return the job that reads a large plan for the first time, which takes seconds.

        None if the plan can be read while somebody waits.
        """
        site = self._site
        job = site.jobs.get(stored.id)
        if job is not None or site.store.is_read_soon(stored):
            return None if job is None or job.is_over else job
        size = human_bytes(stored.path.stat().st_size)
        job = CommandJob(
            id=stored.id,
            title=f"read {stored.title}, {size}",
            who="",
            folder=stored.folder,
            leads_to=plan_address(stored.id),
            started_ms=site.clock.now_ms(),
            then=partial(self._prepare, stored.id),
        )
        return site.jobs.start(job, ())

    async def run_at(self, request: Request) -> RunBook:
        """Return the run of an address. One that has just begun may not have been read yet."""
        name = str(request.path_params["run"])
        if self._site.books.get(name) is None:
            await self._site.read_journals()
        book = self._site.books.get(name)
        if book is None:
            raise Refused(404, f"there is no run {name!r}")
        return book

    def make_plan(self, who: UiSession, kind: str, given: Mapping[str, str]) -> CommandJob:
        """Begin to make a plan."""
        site = self._site
        form = site.commands.plan_form(kind)
        site.commands.make_plan(form, given, PLAN)  # refuse before a folder is made
        title, asked = f"plan {form.name}", filled(given)
        name, folder = site.store.new(self._said(who, title, asked))
        command = site.commands.make_plan(form, given, str(folder / PLAN))
        prepare = partial(self._prepare, name)
        return self._start(who, name, folder, command, title, plan_address(name), asked, prepare)

    def _prepare(self, name: str, job: CommandJob) -> None:  # noqa: ARG002
        """Read a plan as soon as it is there, so that nobody who looks at it has to wait for that."""
        stored = self._site.store.get(name)
        if stored is not None and stored.is_there:
            with suppress(RestowError, OSError):  # said to those who look at it
                self._site.store.read(stored)

    async def upload(self, who: UiSession, title: str, body: bytes) -> CommandJob:
        """Take a plan file or Kafka's JSON, and let the command read it."""
        site = self._site
        if not body.strip():
            raise Refused(400, "the file is empty")
        name, folder = site.store.new(self._said(who, title, {}))
        path = folder / _UPLOADED
        await asyncio.to_thread(path.write_bytes, body)
        is_plan = _MARK in body[:10_000]
        to = str(folder / PLAN)
        command = site.commands.show(str(path)) if is_plan else site.commands.read_kafka_json(str(path), to)

        def accept(job: CommandJob) -> None:
            if is_plan and job.code == 0:
                path.rename(folder / PLAN)
            self._prepare(name, job)

        return self._start(who, name, folder, command, f"upload {title}", plan_address(name), {}, accept)

    async def rehearse(self, who: UiSession, stored: StoredPlan, given: Mapping[str, str]) -> CommandJob:
        """Begin to rehearse a plan."""
        site = self._site
        await self.read(stored)
        command = site.commands.rehearse_plan(given, str(stored.path))
        asked = filled(given)
        name, folder = site.store.new(self._said(who, "rehearsal", asked), stored)
        where = rehearsal_address(stored.id, name)
        return self._start(who, name, folder, command, f"rehearse {stored.id}", where, asked)

    async def execute(self, who: UiSession, stored: StoredPlan, given: Mapping[str, str]) -> CommandJob:
        """Approve a plan and begin its run: its cluster's id has to be given, and its digest is pinned."""
        found = await self.read(stored)
        plan, digest = found.head, found.digest
        command = self._site.commands.execute_plan(given, str(stored.path), digest)
        if given.get("cluster", "").strip() != plan.cluster_id:
            raise InvalidInput("type the id of the plan's cluster to approve it: what was typed is another")
        if (pinned := given.get("digest", "").strip()) and pinned != digest:
            raise InvalidInput(f"the digest of this plan is {digest}, not {pinned}")
        throttle = given.get("throttle", "").strip()
        HourlyThrottle.parse(throttle)
        facts = {"plan": stored.id, "digest": digest, "throttle": throttle}
        return self._begin(who, f"run {stored.title}", command, facts, plan_address(stored.id))

    async def control(self, who: UiSession, book: RunBook, given: Mapping[str, str]) -> dict[str, object]:
        """Change a run that is being carried out on this machine; return what was asked of it."""
        if not self._site.books.is_active(book):
            raise Refused(
                409, f"run {book.name} is not being carried out on this machine: there is nothing to change"
            )
        asked = _control(given)
        names = ("throttle", "moves_in", "moves_out", "paused", "stop")
        said = {name: value for name in names if (value := getattr(asked, name)) is not None}
        self._site.audit.write(who.name, "control", run=book.name, asked=said)
        await asyncio.to_thread(Control(SystemDisk(private=True), str(book.folder)).request, asked)
        return said

    async def preview(self, book: RunBook, command: str) -> dict[str, Any]:
        """Return what a command would do to a run, as the command itself says it."""
        site = self._site
        line = site.commands.of_run(_known(command), book.name)
        name = site.store.new_id()
        folder = site.store.folder / "previews" / name
        job = CommandJob(
            id=name, title="", who="", folder=folder, leads_to="", started_ms=site.clock.now_ms()
        )
        try:
            site.jobs.start(job, line)
            await asyncio.wait_for(job.ended.wait(), _PREVIEW_S)
            return _first_document(folder, job.code)
        except TimeoutError:
            site.jobs.stop(job)
            raise Refused(503, f"what this would do to run {book.name} was not found out in time") from None
        finally:
            await asyncio.to_thread(SystemDisk().remove_tree, str(folder))

    def carry_out(self, who: UiSession, book: RunBook, command: str, given: Mapping[str, str]) -> CommandJob:
        """Cancel, resume or undo a run, in a process that goes on without the server."""
        flags = ["--yes"]
        if _known(command) != "cancel":
            throttle = given.get("throttle", "").strip() or "auto"
            HourlyThrottle.parse(throttle)
            flags.append(f"--throttle={throttle}")
        if command == "undo" and given.get("as_far_as_possible"):
            flags.append("--as-far-as-possible")
        line = self._site.commands.of_run(command, book.name, *flags)
        return self._begin(
            who, f"{command} run {book.name}", line, {"run": book.name}, run_address(book.name)
        )

    def _begin(
        self, who: UiSession, title: str, command: Sequence[str], facts: Mapping[str, object], back: str
    ) -> CommandJob:
        site = self._site
        under_way = [each for each in site.jobs.all() if each.lasts and not each.is_over and not each.run]
        if under_way:
            raise Refused(409, f"{under_way[0].who} has just begun to {under_way[0].title}: wait for it")
        name = site.store.new_id()
        site.audit.write(who.name, title, id=name, **facts)
        job = CommandJob(
            id=name,
            title=title,
            who=who.name,
            folder=site.store.folder / "runs" / name,
            leads_to=f"/starts/{name}",
            started_ms=site.clock.now_ms(),
            back=back,
            lasts=True,
        )
        return site.jobs.start(job, command)

    def _start(
        self,
        who: UiSession,
        name: str,
        folder: Path,
        command: Sequence[str],
        title: str,
        leads_to: str,
        asked: Mapping[str, str],
        then: Callable[[CommandJob], object] | None = None,
    ) -> CommandJob:
        site = self._site
        site.audit.write(who.name, title, asked=dict(asked), id=name)
        job = CommandJob(
            id=name,
            title=title,
            who=who.name,
            folder=folder,
            leads_to=leads_to,
            started_ms=site.clock.now_ms(),
            then=then,
        )
        return site.jobs.start(job, command)

    def _said(self, who: UiSession, title: str, asked: Mapping[str, str]) -> dict[str, Any]:
        return {"title": title, "who": who.name, "at_ms": self._site.clock.now_ms(), "given": dict(asked)}


def filled(given: Mapping[str, str]) -> dict[str, str]:
    """Return what was filled in, without what the page adds itself."""
    return {name: value for name, value in given.items() if value and name not in ("csrf", "kind")}


def _known(command: str) -> str:
    if command not in RUN_COMMANDS:
        raise Refused(404, "a run can be cancelled, resumed or undone")
    return command


def _control(given: Mapping[str, str]) -> ControlRequest:
    """Return what is asked of a run, checked as `restow control` checks it."""
    throttle = given.get("throttle", "").strip() or None
    if throttle is not None:
        HourlyThrottle.parse(throttle)
    action = given.get("action", "")
    if action not in ("", "pause", "go on", "leave"):
        raise InvalidInput(f"action: {action!r} is none of pause, go on and leave")
    asked = ControlRequest(
        throttle=throttle,
        moves_in=_count(given, "moves_in"),
        moves_out=_count(given, "moves_out"),
        paused={"pause": True, "go on": False}.get(action),
        stop=LEAVE if action == "leave" else None,
    )
    if asked == ControlRequest():
        raise InvalidInput("nothing to change: say a throttle, how many moves, pause or go on")
    return asked


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 1_000_000):
        raise InvalidInput(f"{name}: {text!r} is not a number above zero")
    return int(text)


def _first_document(folder: Path, code: int | None) -> dict[str, Any]:
    if code != 0:
        raise Refused(409, complaint(folder) or "the command failed without a word")
    try:
        found = json.loads((folder / OUT).read_bytes().splitlines()[0])
    except (OSError, ValueError, IndexError):
        found = None
    if not isinstance(found, dict):
        raise Refused(500, "the command answered with something that is no document")
    return found
