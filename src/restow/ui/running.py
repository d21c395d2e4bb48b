"""The addresses that begin, change, cancel, resume and undo runs. The runs are processes of their own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from restow.errors import InvalidInput
from restow.ui.addresses import run_address
from restow.ui.answers import form_of, number_of
from restow.ui.pages.audit import audit_page
from restow.ui.pages.controls import confirm_page, run_actions, start_page
from restow.ui.pages.runs import run_page, run_report
from restow.ui.safety import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from restow.ui.actions import Actions
    from restow.ui.frame import Shown
    from restow.ui.planning import PlanPages
    from restow.ui.run_books import RunBook
    from restow.ui.site import Site


class RunPages:
    """The endpoints. `framed` puts a page into the frame."""

    def __init__(
        self,
        site: Site,
        actions: Actions,
        plans: PlanPages,
        framed: Callable[[Request, Shown], Response],
    ) -> None:
        self._site, self._actions, self._plans, self._framed = site, actions, plans, framed

    def routes(self) -> list[Route]:
        """Return all addresses."""
        return [
            Route("/plans/{plan}/runs", self.execute, methods=["POST"]),
            Route("/starts/{job}", self.start, methods=["GET"]),
            Route("/runs/{run}", self.run, methods=["GET"]),
            Route("/runs/{run}/report", self.report, methods=["GET"]),
            Route("/runs/{run}/control", self.control, methods=["POST"]),
            Route("/runs/{run}/{command}", self.preview, methods=["GET"]),
            Route("/runs/{run}/{command}", self.carry_out, methods=["POST"]),
            Route("/audit", self.audit, methods=["GET"]),
        ]

    async def run(self, request: Request) -> Response:
        return self._run(request, await self._actions.run_at(request))

    def _run(
        self, request: Request, book: RunBook, given: Mapping[str, str] | None = None, wrong: str = ""
    ) -> Response:
        """Show a run; with a form as it was filled in, and what was wrong with it."""
        site = self._site
        session = site.operator(request) if site.commands.cluster else None
        actions = "" if session is None else run_actions(site.books, book, session, given, wrong)
        shown = run_page(site.books, book, number_of(request, "page", 1), actions)
        return self._framed(request, replace(shown, status=400) if wrong else shown)

    async def report(self, request: Request) -> Response:
        """Return the run as a file to keep."""
        book = await self._actions.run_at(request)
        text = await asyncio.to_thread(run_report, self._site.books, book)
        headers = {"content-disposition": f'attachment; filename="run-{_file_name(book.name)}.html"'}
        return Response(text, media_type="text/html", headers=headers)

    async def execute(self, request: Request) -> Response:
        """Approve a plan and begin its run."""
        given, operator = await form_of(request), self._actions.operator(request, runs=True)
        stored = self._actions.plan_at(request)
        try:
            job = await self._actions.execute(operator, stored, given)
        except InvalidInput as error:
            return await self._plans.show_plan(request, stored, given, str(error))
        return RedirectResponse(job.leads_to, status_code=303)

    async def start(self, request: Request) -> Response:
        job = self._site.jobs.get(str(request.path_params["job"]))
        if job is None:
            raise Refused(404, "this server has not started that: look among the runs")
        return self._framed(request, start_page(job))

    async def control(self, request: Request) -> Response:
        """Change a run that is being carried out on this machine."""
        book, given = await self._actions.run_at(request), await form_of(request)
        operator = self._actions.operator(request, runs=True)
        try:
            await self._actions.control(operator, book, given)
        except InvalidInput as error:
            return self._run(request, book, given, str(error))
        return RedirectResponse(run_address(book.name), status_code=303)

    async def preview(self, request: Request) -> Response:
        """Say what a command would do, as the command itself says it, and ask."""
        operator, command = self._actions.operator(request, runs=True), str(request.path_params["command"])
        book = await self._actions.run_at(request)
        told = await self._actions.preview(book, command)
        return self._framed(request, confirm_page(book, command, told, operator))

    async def carry_out(self, request: Request) -> Response:
        """Do it, in a process that goes on without the page."""
        operator, given = self._actions.operator(request, runs=True), await form_of(request)
        book = await self._actions.run_at(request)
        job = self._actions.carry_out(operator, book, str(request.path_params["command"]), given)
        return RedirectResponse(job.leads_to, status_code=303)

    async def audit(self, request: Request) -> Response:
        return self._framed(request, audit_page(self._site.audit.latest(), number_of(request, "page", 1)))


def _file_name(name: str) -> str:
    return "".join(each if each.isascii() and (each.isalnum() or each in "-_") else "_" for each in name)
