"""The addresses of plans and rehearsals."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from restow.errors import InvalidInput
from restow.plan.files.kafka_json import there_and_back
from restow.plan.judge.compare import compare
from restow.ui.answers import form_of, number_of, text_of
from restow.ui.jobs import CommandJob
from restow.ui.pages.plans import (
    approve_form,
    compare_page,
    new_plan_page,
    plan_address,
    plan_page,
    plans_page,
    unfinished_page,
)
from restow.ui.pages.rehearsals import rehearsal_address, rehearsal_page, rehearsals_of, rehearse_form
from restow.ui.plan_store import PLAN
from restow.ui.safety import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from starlette.requests import Request

    from restow.ui.frame import Shown
    from restow.ui.plan_store import StoredPlan, StoredRehearsal
    from restow.ui.sessions import UiSession
    from restow.ui.site import Site

_UPLOADED = "upload.json"
_MARK = b'"restow_plan"'


class PlanPages:
    """The endpoints. `framed` puts a page into the frame."""

    def __init__(self, site: Site, framed: Callable[[Request, Shown], Response]) -> None:
        self._site, self._framed = site, framed

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
        return self._framed(request, new_plan_page(form, self._operator(request), {}))

    async def make(self, request: Request) -> Response:
        given = await form_of(request)
        site = self._site
        form = site.commands.plan_form(given.get("kind", ""))
        asked = _filled(given)
        try:
            site.commands.make_plan(form, given, PLAN)
        except InvalidInput as error:
            return self._framed(request, new_plan_page(form, self._operator(request), given, str(error)))
        name, folder = site.store.new(self._said(request, f"plan {form.name}", asked))
        command = site.commands.make_plan(form, given, str(folder / PLAN))
        self._start(request, name, folder, command, f"plan {form.name}", plan_address(name), asked)
        return RedirectResponse(plan_address(name), status_code=303)

    async def upload(self, request: Request) -> Response:
        """Take a plan file or Kafka's JSON as the body, and let the command read it."""
        site, title = self._site, text_of(request, "name", "upload")
        body = await request.body()
        if not body.strip():
            raise Refused(400, "the file is empty")
        name, folder = site.store.new(self._said(request, title, {}))
        path = folder / _UPLOADED
        await asyncio.to_thread(path.write_bytes, body)
        is_plan = _MARK in body[:10_000]
        to = str(folder / PLAN)
        command = site.commands.show(str(path)) if is_plan else site.commands.read_kafka_json(str(path), to)

        def accept(job: CommandJob) -> None:
            if is_plan and job.code == 0:
                path.rename(folder / PLAN)

        self._start(request, name, folder, command, f"upload {title}", plan_address(name), {}, accept)
        return JSONResponse({"location": plan_address(name)})

    async def compare(self, request: Request) -> Response:
        first, second = (self._stored(text_of(request, name)) for name in ("first", "second"))
        plans = [(await self._read(each))[0] for each in (first, second)]
        return self._framed(request, compare_page(first, second, compare(*plans)))

    async def plan(self, request: Request) -> Response:
        return await self.show_plan(request, self._stored(str(request.path_params["plan"])))

    async def show_plan(
        self, request: Request, stored: StoredPlan, given: Mapping[str, str] | None = None, wrong: str = ""
    ) -> Response:
        """Show a plan; with a form as it was filled in, and what was wrong with it."""
        site, session = self._site, self._site.operator(request)
        if not stored.is_there:
            return self._framed(request, unfinished_page(stored, site.jobs.get(stored.id)))
        plan, digest = await self._read(stored)
        actions = rehearsals_of(stored)
        commands = site.commands
        rehearses = "cluster" not in (given or {})
        if session is not None and commands.rehearse is not None:
            filled = (given or {}, wrong) if rehearses else ({}, "")
            actions += rehearse_form(stored, commands.rehearse, session, *filled)
        if session is not None and commands.execute is not None and commands.cluster:
            filled = ({}, "") if rehearses else (given or {}, wrong)
            actions += approve_form(stored, plan, commands.execute, session, *filled)
        number = number_of(request, "page", 1)
        shown = plan_page(stored, plan, digest, site.watch.last.snapshot, number, actions)
        return self._framed(request, shown)

    async def download(self, request: Request) -> Response:
        stored = self._stored(str(request.path_params["plan"]))
        plan, _ = await self._read(stored)
        form = text_of(request, "form", "restow")
        if form == "restow":
            text = await asyncio.to_thread(stored.path.read_bytes)
        else:
            documents = dict(zip(("kafka", "rollback"), there_and_back(plan), strict=True))
            if form not in documents:
                raise Refused(400, "a plan is downloaded as restow, kafka or rollback")
            text = json.dumps(documents[form]).encode()
        name = f"{stored.id}.{form}.json"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="application/json", headers=headers)

    async def rehearse(self, request: Request) -> Response:
        given = await form_of(request)
        stored, site = self._stored(str(request.path_params["plan"])), self._site
        await self._read(stored)
        try:
            command = site.commands.rehearse_plan(given, str(stored.path))
        except InvalidInput as error:
            return await self.show_plan(request, stored, given, str(error))
        asked = _filled(given)
        name, folder = site.store.new(self._said(request, "rehearsal", asked), stored)
        where = rehearsal_address(stored.id, name)
        self._start(request, name, folder, command, f"rehearse {stored.id}", where, asked)
        return RedirectResponse(where, status_code=303)

    async def rehearsal(self, request: Request) -> Response:
        stored = self._stored(str(request.path_params["plan"]))
        name = str(request.path_params["rehearsal"])
        found: StoredRehearsal | None = self._site.store.rehearsal(stored, name)
        if found is None:
            raise Refused(404, f"there is no rehearsal {name!r} of this plan")
        job, number = self._site.jobs.get(name), number_of(request, "page", 1)
        return self._framed(request, rehearsal_page(stored, found, job, number))

    def _start(
        self,
        request: Request,
        name: str,
        folder: Path,
        command: Sequence[str],
        title: str,
        leads_to: str,
        asked: Mapping[str, str],
        then: Callable[[CommandJob], object] | None = None,
    ) -> None:
        site, who = self._site, self._operator(request).name
        site.audit.write(who, title, asked=dict(asked), id=name)
        job = CommandJob(
            id=name,
            title=title,
            who=who,
            folder=folder,
            leads_to=leads_to,
            started_ms=site.clock.now_ms(),
            then=then,
        )
        site.jobs.start(job, command)

    def _said(self, request: Request, title: str, asked: Mapping[str, str]) -> dict[str, Any]:
        who = self._operator(request).name
        return {"title": title, "who": who, "at_ms": self._site.clock.now_ms(), "given": dict(asked)}

    def _operator(self, request: Request) -> UiSession:
        session = self._site.operator(request)
        if session is None:
            raise Refused(403, "only an operator may do this, and not on a read-only server")
        return session

    def _stored(self, name: str) -> StoredPlan:
        found = self._site.store.get(name)
        if found is None:
            raise Refused(404, f"there is no plan {name!r}")
        return found

    async def _read(self, stored: StoredPlan) -> Any:
        if not stored.is_there:
            raise Refused(404, "this plan is not there: it failed, or is not done")
        return await asyncio.to_thread(self._site.store.read, stored)


def _filled(given: Mapping[str, str]) -> dict[str, str]:
    """Return what was filled in, without what the page adds itself."""
    return {name: value for name, value in given.items() if value and name not in ("csrf", "kind")}
