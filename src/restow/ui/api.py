"""`/api/v1`: the same as the pages, as JSON. One table has the routes and their description for OpenAPI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.routing import Route

from restow import __version__
from restow.model import TopicPartition
from restow.ui import documents
from restow.ui.answers import JsonAnswer, number_of, text_of
from restow.ui.lists import paged
from restow.ui.metrics import CONTENT_TYPE, metrics
from restow.ui.safety import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from restow.ui.site import Site

PREFIX = "/api/v1"
_ROWS = 1_000
_NUMBER, _TEXT = {"type": "integer", "minimum": 0}, {"type": "string"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRoute:
    """One address of the API: what it answers, and what it can be asked."""

    path: str
    about: str
    answer: Callable[[Site, Request], Any]
    query: tuple[tuple[str, dict[str, Any], bool], ...] = ()
    """Names of parameters with their schema, and whether they are required."""


def _cluster(site: Site, request: Request) -> Any:  # noqa: ARG001
    return documents.cluster_document(site.watch.last)


def _topics(site: Site, request: Request) -> Any:
    sums = site.watch.last.sums
    wanted = text_of(request, "search", "").lower()
    chosen = [] if sums is None else [each for each in sums.topics if wanted in each.name.lower()]
    found = paged(chosen, number_of(request, "page", 1), _ROWS)
    rows = [documents.topic_document(each) for each in found.rows]
    return {"total": found.total, "page": found.number, "pages": found.pages, "topics": rows}


def _partitions(site: Site, request: Request) -> Any:
    snapshot = site.watch.last.snapshot
    name = text_of(request, "topic")
    topic = None if snapshot is None else snapshot.topic.get(name)
    if topic is None:
        raise Refused(404, f"there is no topic {name!r}")
    found = paged(topic.partitions, number_of(request, "page", 1), _ROWS)
    rows = [documents.partition_document(TopicPartition(name, each.number), each) for each in found.rows]
    return {"total": found.total, "page": found.number, "pages": found.pages, "partitions": rows}


def _runs(site: Site, request: Request) -> Any:
    found = paged(site.books.all(), number_of(request, "page", 1), _ROWS)
    rows = [documents.run_document(site.books, each) for each in found.rows]
    return {"total": found.total, "page": found.number, "pages": found.pages, "runs": rows}


def _run(site: Site, request: Request) -> Any:
    name = str(request.path_params["run"])
    book = site.books.get(name)
    if book is None:
        raise Refused(404, f"there is no run {name!r}")
    return documents.run_details(site.books, book)


def _description(site: Site, request: Request) -> Any:  # noqa: ARG001
    return openapi()


_PAGE = ("page", _NUMBER, False)
ROUTES = (
    ApiRoute(path="/cluster", about="The cluster in numbers, its brokers and log dirs", answer=_cluster),
    ApiRoute(
        path="/topics",
        about="Topics whose names contain `search`",
        answer=_topics,
        query=(("search", _TEXT, False), _PAGE),
    ),
    ApiRoute(
        path="/partitions",
        about="The partitions of a topic",
        answer=_partitions,
        query=(("topic", _TEXT, True), _PAGE),
    ),
    ApiRoute(path="/runs", about="The runs of the journals, newest first", answer=_runs, query=(_PAGE,)),
    ApiRoute(path="/runs/{run}", about="One run with its moves and events", answer=_run),
    ApiRoute(path="/openapi.json", about="This description", answer=_description),
)


def api_routes(site: Site) -> list[Route]:
    """Return the routes of the API and of the metrics."""

    def endpoint(route: ApiRoute) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            return JsonAnswer(route.answer(site, request))

        return answer

    def measured(request: Request) -> Response:  # noqa: ARG001
        return Response(metrics(site), media_type=CONTENT_TYPE)

    return [
        *(Route(PREFIX + each.path, endpoint(each), methods=["GET"]) for each in ROUTES),
        Route("/metrics", measured, methods=["GET"]),
    ]


def openapi() -> dict[str, Any]:
    """Return the description of the API."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Restow",
            "version": __version__,
            "description": "What `restow ui` shows. Send a token of the server with each request.",
        },
        "security": [{"token": []}],
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": {PREFIX + each.path: {"get": _operation(each)} for each in ROUTES},
    }


def _operation(route: ApiRoute) -> dict[str, Any]:
    in_path = [
        {"name": part[1:-1], "in": "path", "required": True, "schema": _TEXT}
        for part in route.path.split("/")
        if part.startswith("{")
    ]
    in_query = [
        {"name": name, "in": "query", "required": required, "schema": schema}
        for name, schema, required in route.query
    ]
    error = {"description": "what is wrong, and what to do", "content": _json("error")}
    return {
        "summary": route.about,
        "parameters": in_path + in_query,
        "responses": {
            "200": {
                "description": route.about,
                "content": {"application/json": {"schema": {"type": "object"}}},
            },
            **dict.fromkeys(("400", "401", "404"), error),
        },
    }


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"type": "object", "properties": {name: _TEXT}}}}
