"""The addresses of plans and rehearsals."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from restow.errors import InvalidInput
from restow.html.page import link
from restow.ui.answers import form_of, number_of, text_of
from restow.ui.large_files import comparison, kafka_files
from restow.ui.moves import MoveFilter
from restow.ui.pages.comparison import compare_page
from restow.ui.pages.plans import (
    ROWS,
    approve_form,
    new_plan_page,
    plan_page,
    plans_page,
    unfinished_page,
)
from restow.ui.pages.rehearsals import rehearsal_page, rehearsals_of, rehearse_form
from restow.ui.plan_views import broker_changes
from restow.ui.safety import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from restow.plan.explain.view import BrokerChange
    from restow.ui.actions import Actions
    from restow.ui.frame import Shown
    from restow.ui.large_files import ShownPlan
    from restow.ui.plan_store import StoredPlan
    from restow.ui.site import Site


_KEPT_S = 30.0


class PlanPages:
    """The endpoints. `framed` puts a page into the frame."""

    def __init__(self, site: Site, actions: Actions, framed: Callable[[Request, Shown], Response]) -> None:
        self._site, self._actions, self._framed = site, actions, framed
        self._changes: dict[str, tuple[float, tuple[BrokerChange, ...]]] = {}

    def routes(self) -> list[Route]:
        """Return all addresses."""
        return [
            Route("/plans", self.plans, methods=["GET"]),
            Route("/plans", self.make, methods=["POST"]),
            Route("/plans/new", self.new, methods=["GET"]),
            Route("/plans/upload", self.upload, methods=["POST"]),
            Route("/plans/compare", self.compare, methods=["GET"]),
            Route("/plans/{plan}", self.plan, methods=["GET"]),
            Route("/plans/{plan}/download", self.download, methods=["GET"]),
            Route("/plans/{plan}/rehearsals", self.rehearse, methods=["POST"]),
            Route("/plans/{plan}/rehearsals/{rehearsal}", self.rehearsal, methods=["GET"]),
        ]

    async def plans(self, request: Request) -> Response:
        site = self._site
        number = number_of(request, "page", 1)
        shown = plans_page(site.store.all(), site.commands, site.operator(request), number)
        return self._framed(request, shown)

    async def new(self, request: Request) -> Response:
        form = self._site.commands.plan_form(text_of(request, "kind"))
        return self._framed(request, new_plan_page(form, self._actions.operator(request), {}))

    async def make(self, request: Request) -> Response:
        given, operator = await form_of(request), self._actions.operator(request)
        form = self._site.commands.plan_form(given.get("kind", ""))
        try:
            job = self._actions.make_plan(operator, form.name, given)
        except InvalidInput as error:
            return self._framed(request, new_plan_page(form, operator, given, str(error)))
        return RedirectResponse(job.leads_to, status_code=303)

    async def upload(self, request: Request) -> Response:
        """Take a plan file or Kafka's JSON as the body."""
        if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            raise Refused(415, "a browser without scripts cannot upload here: send the file with curl")
        title, operator = text_of(request, "name", "upload"), self._actions.operator(request)
        job = await self._actions.upload(operator, title, await request.body())
        return JSONResponse({"location": job.leads_to})

    async def compare(self, request: Request) -> Response:
        first, second = (self._actions.stored(text_of(request, name)) for name in ("first", "second"))
        plans = await self._actions.read(first), await self._actions.read(second)
        found = await asyncio.to_thread(comparison, first.path, second.path)
        look = self._site.watch.last
        brokers = [await asyncio.to_thread(broker_changes, each, look) for each in plans]
        return self._framed(request, compare_page((first, second), plans, found, brokers))

    async def plan(self, request: Request) -> Response:
        return await self.show_plan(request, self._actions.plan_at(request))

    async def show_plan(
        self, request: Request, stored: StoredPlan, given: Mapping[str, str] | None = None, wrong: str = ""
    ) -> Response:
        """Show a plan; with a form as it was filled in, and what was wrong with it."""
        site, session = self._site, self._site.operator(request)
        if not stored.is_there:
            return self._framed(request, unfinished_page(stored, site.jobs.get(stored.id)))
        if (job := self._actions.reading(stored)) is not None:
            return self._framed(request, unfinished_page(stored, job))
        found = await self._actions.read(stored)
        actions = rehearsals_of(stored)
        commands = site.commands
        rehearses = "cluster" not in (given or {})
        if session is not None and commands.rehearse is not None:
            filled = (given or {}, wrong) if rehearses else ({}, "")
            actions += rehearse_form(stored, commands.rehearse, session, *filled)
        if session is not None and commands.execute is not None and commands.cluster:
            filled = ({}, "") if rehearses else (given or {}, wrong)
            actions += approve_form(stored, found, commands.execute, session, *filled)
        wanted = _wanted(request)
        moves = await asyncio.to_thread(found.moves.page, number_of(request, "page", 1), ROWS, wanted)
        brokers = await self._broker_changes(stored.id, found)
        shown = plan_page(stored, found, brokers, moves, wanted, actions)
        if wrong:
            told = _wrong(wrong, "rehearse" if rehearses else "approve")
            shown = replace(shown, body=f"{told}{shown.body}", status=400)
        return self._framed(request, shown)

    async def _broker_changes(self, name: str, found: ShownPlan) -> tuple[BrokerChange, ...]:
        """Return what a plan changes by broker. That takes a second of a large plan, so it is kept."""
        now_s = self._site.clock.monotonic_s()
        known = self._changes.get(name)
        if known is None or now_s - known[0] > _KEPT_S:
            look = self._site.watch.last
            known = now_s, await asyncio.to_thread(broker_changes, found, look)
            if look.snapshot is not None:
                self._changes = {name: known}
        return known[1]

    async def download(self, request: Request) -> Response:
        """Return a plan as a file: Restow's, Kafka's JSON, or Kafka's JSON of the way back."""
        stored = self._actions.plan_at(request)
        await self._actions.read(stored)
        form = text_of(request, "form", "restow")
        if form == "restow":
            text = await asyncio.to_thread(stored.path.read_bytes)
        else:
            names = ("kafka", "rollback")
            if form not in names:
                raise Refused(400, "a plan is downloaded as restow, kafka or rollback")
            files = await asyncio.to_thread(kafka_files, stored.path)
            text = json.dumps(files[names.index(form)]).encode()
        name = f"{stored.id}.{form}.json"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="application/json", headers=headers)

    async def rehearse(self, request: Request) -> Response:
        given, operator = await form_of(request), self._actions.operator(request)
        stored = self._actions.plan_at(request)
        try:
            job = await self._actions.rehearse(operator, stored, given)
        except InvalidInput as error:
            return await self.show_plan(request, stored, given, str(error))
        return RedirectResponse(job.leads_to, status_code=303)

    async def rehearsal(self, request: Request) -> Response:
        stored, found = self._actions.plan_at(request), self._actions.rehearsal_at(request)
        job, number = self._site.jobs.get(found.id), number_of(request, "page", 1)
        session, form = self._site.operator(request), self._site.commands.rehearse
        given = {str(key): str(value) for key, value in dict(found.request.get("given", {})).items()}
        again = "" if session is None or form is None else rehearse_form(stored, form, session, given)
        return self._framed(request, rehearsal_page(stored, found, job, number, again))


def _wrong(words: str, form: str) -> str:
    """Return what was wrong with a form that stands far below."""
    return f"<p class='bad' role='alert'>{escape(words)} {link('To the form', f'#{form}')}</p>"


def _wanted(request: Request) -> MoveFilter:
    """Return which moves of a plan somebody wants to see. An empty field of the form asks for all."""
    broker = number_of(request, "broker") if text_of(request, "broker", "") else None
    return MoveFilter(topic=text_of(request, "topic", "").strip(), broker=broker)
