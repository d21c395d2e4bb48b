"""The application, and the pages that only show. `planning`, `running` and `api` have the other addresses."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from restow.errors import RestowError
from restow.model import TopicPartition
from restow.ui.actions import Actions
from restow.ui.answers import form_of, number_of, text_of
from restow.ui.api import api_routes
from restow.ui.feeds import TooManyViewers
from restow.ui.frame import Around, Shown, error_page, framed, script, style
from restow.ui.pages.brokers import broker_page, broker_parts, brokers_page
from restow.ui.pages.cluster import cluster_page, cluster_parts
from restow.ui.pages.controls import start_parts
from restow.ui.pages.groups import group_page, group_parts, groups_page, groups_parts
from restow.ui.pages.login import login_page
from restow.ui.pages.partition import partition_page, partition_parts
from restow.ui.pages.plans import job_parts
from restow.ui.pages.runs import history_page, history_parts, run_parts
from restow.ui.pages.topics import topic_page, topics_page
from restow.ui.planning import PlanPages
from restow.ui.running import RunPages
from restow.ui.safety import Guard, Refused, cookie_of, refusal
from restow.ui.sessions import Sessions, TooManyAttempts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from starlette.requests import Request

    from restow.ui.site import Site


def application(site: Site) -> Guard:
    """Return the guarded application."""
    sessions = Sessions(site.clock, site.settings.tokens)
    pages = Pages(site, sessions)
    actions = Actions(site)
    plans = PlanPages(site, actions, pages.framed)
    runs = RunPages(site, actions, plans, pages.framed)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with site.awake():
            yield

    app = Starlette(
        routes=[*pages.routes(), *plans.routes(), *runs.routes(), *api_routes(site, actions)],
        lifespan=lifespan,
        exception_handlers={
            Refused: pages.refused,
            RestowError: pages.failed,
            HTTPException: pages.not_found,
            Exception: pages.broken,
        },
    )
    return Guard(
        app=app,
        sessions=sessions,
        hosts=site.settings.hosts,
        cookie=site.settings.cookie,
        read_only=site.settings.read_only,
        secure=site.settings.tls,
    )


class Pages:
    """The endpoints."""

    def __init__(self, site: Site, sessions: Sessions) -> None:
        self._site, self._sessions = site, sessions

    def routes(self) -> list[Route]:
        """Return all addresses of pages."""
        return [
            Route("/", self.cluster),
            Route("/brokers", self.brokers),
            Route("/broker", self.broker),
            Route("/topics", self.topics),
            Route("/topic", self.topic),
            Route("/partition", self.partition),
            Route("/groups", self.groups),
            Route("/group", self.group),
            Route("/runs", self.runs),
            Route("/events", self.events),
            Route("/login", self.login, methods=["GET"]),
            Route("/login", self.enter, methods=["POST"]),
            Route("/logout", self.leave, methods=["POST"]),
            Route("/static/{name}", static),
        ]

    def framed(self, request: Request, shown: Shown) -> Response:
        """Put a page into the frame."""
        return framed(shown, self._around(request))

    def _around(self, request: Request) -> Around:
        cluster = self._site.watch.last.cluster_id
        return Around(
            session=request.state.session,
            path=request.url.path,
            cluster="" if cluster is None else f"cluster {cluster}",
            read_only=self._site.settings.read_only,
        )

    def _found(self, request: Request, shown: Shown | None, what: str) -> Response:
        if shown is None:
            raise Refused(404, f"there is no {what}, or the cluster has not answered yet")
        return self.framed(request, shown)

    async def cluster(self, request: Request) -> Response:
        return self.framed(request, cluster_page(self._site.watch.last, self._site.run))

    async def brokers(self, request: Request) -> Response:
        rack, sort = request.query_params.get("rack"), text_of(request, "sort", "id")
        look = self._site.watch.last
        return self.framed(request, brokers_page(look, rack, sort, number_of(request, "page", 1)))

    async def broker(self, request: Request) -> Response:
        broker = number_of(request, "id")
        shown = broker_page(self._site.watch.last, broker, number_of(request, "page", 1))
        return self._found(request, shown, f"broker {broker}")

    async def topics(self, request: Request) -> Response:
        search, sort = text_of(request, "search", ""), text_of(request, "sort", "name")
        look = self._site.watch.last
        return self.framed(request, topics_page(look, search, sort, number_of(request, "page", 1)))

    async def topic(self, request: Request) -> Response:
        name = text_of(request, "name")
        shown = topic_page(self._site.watch.last, name, number_of(request, "page", 1))
        return self._found(request, shown, f"topic {name!r}")

    async def partition(self, request: Request) -> Response:
        name = TopicPartition(text_of(request, "topic"), number_of(request, "partition"))
        site = self._site
        plans = await asyncio.to_thread(site.waiting_plans)
        shown = partition_page(site.watch.last, name, site.books, plans)
        return self._found(request, shown, f"partition {name}")

    async def groups(self, request: Request) -> Response:
        search, sort = text_of(request, "search", ""), text_of(request, "sort", "name")
        look = self._site.watch.last
        return self.framed(request, groups_page(look, search, sort, number_of(request, "page", 1)))

    async def group(self, request: Request) -> Response:
        name = text_of(request, "name")
        shown = group_page(self._site.watch.last, name, number_of(request, "page", 1))
        return self._found(request, shown, f"group {name!r}")

    async def runs(self, request: Request) -> Response:
        return self.framed(request, history_page(self._site.books, number_of(request, "page", 1)))

    async def events(self, request: Request) -> Response:
        """Send the live parts of a page for as long as somebody looks at it."""
        render = await self._parts(request)
        page = request.url.query.removeprefix("page=").replace("&", "?", 1)
        try:
            self._site.feeds.check_room()
        except TooManyViewers as error:
            raise Refused(503, str(error)) from error
        cookie = cookie_of(request.headers, self._site.settings.cookie)
        by_token = request.state.session.csrf is None

        def still_open() -> bool:
            return by_token or (cookie is not None and self._sessions.of_cookie(cookie) is not None)

        events = self._site.feeds.events(page, render, still_open)
        return StreamingResponse(events, media_type="text/event-stream")

    async def _parts(self, request: Request) -> Callable[[], Mapping[str, str]]:
        site, page = self._site, text_of(request, "page")
        number = number_of(request, "number", 1)
        if page == "cluster":
            return lambda: cluster_parts(site.watch.last, site.run)
        if page == "broker":
            broker = number_of(request, "id")
            return lambda: broker_parts(site.watch.last, broker, number)
        if page == "groups":
            search, sort = text_of(request, "search", ""), text_of(request, "sort", "name")
            return lambda: groups_parts(site.watch.last, search, sort, number)
        if page == "group":
            name = text_of(request, "name")
            return lambda: group_parts(site.watch.last, name, number)
        if page == "partition":
            partition = TopicPartition(text_of(request, "topic"), number_of(request, "partition"))
            plans = await asyncio.to_thread(site.waiting_plans)
            return lambda: partition_parts(site.watch.last, partition, site.books, plans)
        if page == "runs":
            return lambda: history_parts(site.books, number)
        if page in ("job", "start"):
            job, parts = site.jobs.get(text_of(request, "job")), job_parts if page == "job" else start_parts
            if job is not None:
                return partial(parts, job)
        book = site.books.get(text_of(request, "name", "")) if page == "run" else None
        if book is None:
            raise Refused(404, "this page has no live parts")
        return lambda: run_parts(site.books, book, number)

    async def login(self, request: Request) -> Response:
        return self.framed(request, login_page())

    async def enter(self, request: Request) -> Response:
        form = await form_of(request)
        try:
            cookie = self._sessions.enter(form.get("token", "").strip())
        except TooManyAttempts as error:
            raise Refused(429, str(error)) from error
        if cookie is None:
            return self.framed(
                request, login_page("this is not a token that the server printed: copy all of it")
            )
        answer = RedirectResponse("/", status_code=303)
        settings = self._site.settings
        answer.set_cookie(
            settings.cookie, cookie, httponly=True, samesite="strict", secure=settings.tls, path="/"
        )
        return answer

    async def leave(self, request: Request) -> Response:
        cookie = cookie_of(request.headers, self._site.settings.cookie)
        if cookie is not None:
            self._sessions.leave(cookie)
        answer = RedirectResponse("/login", status_code=303)
        answer.delete_cookie(self._site.settings.cookie, path="/", httponly=True, samesite="strict")
        return answer

    async def refused(self, request: Request, error: Exception) -> Response:
        if isinstance(error, Refused) and not _wants_json(request):
            return error_page(error.status, str(error), self._around(request))
        status = error.status if isinstance(error, Refused) else 500
        return _called(refusal(request.scope, Refused(status, str(error))))

    async def failed(self, request: Request, error: Exception) -> Response:
        return await self.refused(request, Refused(400, str(error)))

    async def not_found(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        said = "there is no such page" if status == 404 else "this address does not take such a request"
        return await self.refused(request, Refused(status, said))

    async def broken(self, request: Request, error: Exception) -> Response:
        said = f"unexpected {type(error).__name__}. This is a bug in restow; its terminal shows where"
        return await self.refused(request, Refused(500, said))


def _wants_json(request: Request) -> bool:
    path = request.url.path
    return path.startswith(("/api/", "/events", "/metrics")) or "application/json" in request.headers.get(
        "accept", ""
    )


def _called(answer: object) -> Response:
    assert isinstance(answer, Response)  # noqa: S101  (what `refusal` returns)
    return answer


@cache
def _static() -> dict[str, tuple[str, str]]:
    icon = files("restow.ui").joinpath("icon.svg").read_text(encoding="utf-8")
    return {
        "style.css": (style(), "text/css"),
        "script.js": (script(), "text/javascript"),
        "icon.svg": (icon, "image/svg+xml"),
    }


async def static(request: Request) -> Response:
    """Return one of our own files; there are no others."""
    found = _static().get(str(request.path_params["name"]))
    if found is None:
        raise Refused(404, "there is no such file")
    text, kind = found
    return PlainTextResponse(text, media_type=kind, headers={"cache-control": "max-age=300"})
