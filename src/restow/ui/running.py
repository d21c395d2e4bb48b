"""The addresses that begin, change, cancel, resume and undo runs. The runs are processes of their own."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from restow.errors import InvalidInput
from restow.execute.run.control import LEAVE, Control, ControlRequest
from restow.execute.throttle.hours import HourlyThrottle
from restow.runtime.disk import SystemDisk
from restow.ui.answers import form_of, number_of
from restow.ui.frame import run_address
from restow.ui.jobs import OUT, CommandJob, complaint
from restow.ui.pages.audit import audit_page
from restow.ui.pages.controls import confirm_page, run_actions, start_page
from restow.ui.pages.runs import run_page
from restow.ui.safety import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from starlette.requests import Request

    from restow.ui.frame import Shown
    from restow.ui.planning import PlanPages
    from restow.ui.run_books import RunBook
    from restow.ui.sessions import UiSession
    from restow.ui.site import Site

COMMANDS = ("cancel", "resume", "undo")
_PREVIEW_S = 120.0


class RunPages:
    """The endpoints. `framed` puts a page into the frame."""

    def __init__(self, site: Site, plans: PlanPages, framed: Callable[[Request, Shown], Response]) -> None:
        self._site, self._plans, self._framed = site, plans, framed

    def routes(self) -> list[Route]:
        """Return all addresses."""
        return [
            Route("/plans/{plan}/runs", self.execute, methods=["POST"]),
            Route("/starts/{job}", self.start, methods=["GET"]),
            Route("/runs/{run}", self.run, methods=["GET"]),
            Route("/runs/{run}/control", self.control, methods=["POST"]),
            Route("/runs/{run}/{command}", self.preview, methods=["GET"]),
            Route("/runs/{run}/{command}", self.carry_out, methods=["POST"]),
            Route("/audit", self.audit, methods=["GET"]),
        ]

    async def run(self, request: Request) -> Response:
        book, site = await self._book(request), self._site
        session = site.operator(request) if site.commands.cluster else None
        actions = "" if session is None else run_actions(site.books, book, session)
        predicted = await asyncio.to_thread(site.predictions.of, book)
        shown = run_page(site.books, book, number_of(request, "page", 1), actions, predicted)
        return self._framed(request, shown)

    async def execute(self, request: Request) -> Response:
        """Approve a plan: its cluster's id has to be typed, and its digest is pinned."""
        given = await form_of(request)
        site, operator = self._site, self._operator(request)
        stored = site.store.get(str(request.path_params["plan"]))
        if stored is None or not stored.is_there:
            raise Refused(404, "this plan is not there: it failed, or is not done")
        plan, digest = await asyncio.to_thread(site.store.read, stored)
        try:
            command = site.commands.execute_plan(given, str(stored.path), digest)
        except InvalidInput as error:
            return await self._plans.show_plan(request, stored, given, str(error))
        if given.get("cluster", "").strip() != plan.cluster_id:
            wrong = "type the id of the plan's cluster to approve it: what was typed is another"
            return await self._plans.show_plan(request, stored, given, wrong)
        facts = {"plan": stored.id, "digest": digest, "throttle": given.get("throttle", "")}
        return self._begin(operator, f"run plan {stored.title}", command, facts)

    async def start(self, request: Request) -> Response:
        job = self._site.jobs.get(str(request.path_params["job"]))
        if job is None:
            raise Refused(404, "this server has not started that: look among the runs")
        return self._framed(request, start_page(job))

    async def control(self, request: Request) -> Response:
        """Change a run that is being carried out on this machine."""
        book, given, operator = await self._book(request), await form_of(request), self._operator(request)
        if not self._site.books.is_active(book):
            raise Refused(
                409, f"run {book.name} is not being carried out on this machine: there is nothing to change"
            )
        asked = _control(given)
        self._site.audit.write(operator.name, "control", run=book.name, asked=_said(asked))
        await asyncio.to_thread(Control(SystemDisk(private=True), str(book.folder)).request, asked)
        return RedirectResponse(run_address(book.name), status_code=303)

    async def preview(self, request: Request) -> Response:
        """Say what a command would do, as the command itself says it, and ask."""
        book, command = await self._book(request), self._command(request)
        operator = self._operator(request)
        told = await self._previewed(self._site.commands.of_run(command, book.name), book)
        return self._framed(request, confirm_page(book, command, told, operator))

    async def carry_out(self, request: Request) -> Response:
        """Do it, in a process that goes on without the page."""
        book, command, given = await self._book(request), self._command(request), await form_of(request)
        operator = self._operator(request)
        flags = ["--yes"]
        if command != "cancel":
            throttle = given.get("throttle", "").strip() or "auto"
            HourlyThrottle.parse(throttle)
            flags.append(f"--throttle={throttle}")
        if command == "undo" and given.get("as_far_as_possible"):
            flags.append("--as-far-as-possible")
        line = self._site.commands.of_run(command, book.name, *flags)
        return self._begin(operator, f"{command} run {book.name}", line, {"run": book.name})

    async def audit(self, request: Request) -> Response:
        return self._framed(request, audit_page(self._site.audit.latest(), number_of(request, "page", 1)))

    def _begin(
        self, operator: UiSession, title: str, command: Sequence[str], facts: Mapping[str, object]
    ) -> Response:
        site = self._site
        under_way = [each for each in site.jobs.all() if each.lasts and not each.is_over and not each.run]
        if under_way:
            raise Refused(409, f"{under_way[0].who} has just begun to {under_way[0].title}: wait for it")
        name = site.store.new_id()
        site.audit.write(operator.name, title, id=name, **facts)
        job = CommandJob(
            id=name,
            title=title,
            who=operator.name,
            folder=site.store.folder / "runs" / name,
            leads_to=f"/starts/{name}",
            started_ms=site.clock.now_ms(),
            lasts=True,
        )
        site.jobs.start(job, command)
        return RedirectResponse(job.leads_to, status_code=303)

    async def _previewed(self, command: Sequence[str], book: RunBook) -> dict[str, Any]:
        site = self._site
        name = site.store.new_id()
        folder = site.store.folder / "previews" / name
        job = CommandJob(
            id=name, title="", who="", folder=folder, leads_to="", started_ms=site.clock.now_ms()
        )
        try:
            site.jobs.start(job, command)
            await asyncio.wait_for(job.ended.wait(), _PREVIEW_S)
            return _first_document(folder, job.code)
        except TimeoutError:
            site.jobs.stop(job)
            raise Refused(503, f"what this would do to run {book.name} was not found out in time") from None
        finally:
            await asyncio.to_thread(SystemDisk().remove_tree, str(folder))

    async def _book(self, request: Request) -> RunBook:
        """Return the run of an address. One that has just begun may not have been read yet."""
        name = str(request.path_params["run"])
        if self._site.books.get(name) is None:
            await self._site.read_journals()
        book = self._site.books.get(name)
        if book is None:
            raise Refused(404, f"there is no run {name!r}")
        return book

    def _command(self, request: Request) -> str:
        command = str(request.path_params["command"])
        if command not in COMMANDS:
            raise Refused(404, "a run can be cancelled, resumed or undone")
        return command

    def _operator(self, request: Request) -> UiSession:
        session = self._site.operator(request)
        if session is None or not self._site.commands.cluster:
            raise Refused(403, "only an operator may do this, and not on a read-only server")
        return session


def _control(given: Mapping[str, str]) -> ControlRequest:
    """Return what a form asks of a run, checked as `restow control` checks it."""
    throttle = given.get("throttle", "").strip() or None
    if throttle is not None:
        HourlyThrottle.parse(throttle)
    action = given.get("action", "")
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


def _said(asked: ControlRequest) -> dict[str, object]:
    values = {name: getattr(asked, name) for name in ("throttle", "moves_in", "moves_out", "paused", "stop")}
    return {name: value for name, value in values.items() if value is not None}


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
