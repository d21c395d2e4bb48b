"""`/api/v1`: the same as the pages, as JSON. One table has the routes and their description for OpenAPI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.routing import Route

from restow import __version__
from restow._frozen import frozen
from restow.ui.actions import RUN_COMMANDS
from restow.ui.answers import JsonAnswer
from restow.ui.api_answers import ApiAnswers
from restow.ui.commands import CommandLine
from restow.ui.metrics import CONTENT_TYPE, metrics

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from restow.ui.actions import Actions
    from restow.ui.commands import CommandField, CommandForm
    from restow.ui.site import Site

PREFIX = "/api/v1"
_ABOUT = (
    "What `restow ui` shows and does. Programs send a token of the server with each request (Authorization: "
    "Bearer). Requests that change something need the operator's token; those of a browser's session also "
    "need the session's CSRF token in x-csrf-token. A command goes on after its request is answered: "
    "ask its job."
)
_NUMBER: dict[str, Any] = {"type": "integer", "minimum": 0}
_TEXT: dict[str, Any] = {"type": "string"}
_SWITCH: dict[str, Any] = {"type": "boolean"}
_OBJECT: dict[str, Any] = {"type": "object"}
_FILE = "application/octet-stream"
_ERRORS = {
    "400": "the request is wrong: what, and what to do",
    "401": "no token, or one that is not known",
    "403": "a viewer may not do this, the server is read-only, or the CSRF token is missing",
    "404": "there is no such thing",
}
_CONFLICT = {
    "409": "not now: somebody else has begun it, or the command refuses it",
    "413": "it is too large",
}


@frozen
class ApiRoute:
    """One address of the API: what it answers, and what it can be asked."""

    path: str
    about: str
    answer: str
    """The method of `ApiAnswers`."""
    query: tuple[tuple[str, dict[str, Any], bool], ...] = ()
    """Names of parameters with their schema, and whether they are required."""
    method: str = "GET"
    body: Callable[[CommandLine], dict[str, Any]] | None = None
    takes: str = "application/json"
    status: int = 200


def _object(required: tuple[str, ...] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _options(form: CommandForm | None) -> dict[str, Any]:
    fields = () if form is None else form.fields
    found = _object(tuple(each.name for each in fields if each.required))
    found["properties"] = {each.name: _option(each) for each in fields}
    return {**found, "additionalProperties": False}


def _option(field: CommandField) -> dict[str, Any]:
    kind = (
        _SWITCH
        if field.is_switch
        else {"type": ["string", "number", "array"]}
        if field.many
        else {"type": ["string", "number"]}
    )
    usual = {"default": field.default == "yes" if field.is_switch else field.default} if field.default else {}
    return {**kind, **usual, "description": field.about}


def _plan_body(commands: CommandLine) -> dict[str, Any]:
    kinds = [
        _object(("kind",), kind={"const": each.name, "description": each.about}, options=_options(each))
        for each in commands.plans
    ]
    return {"oneOf": kinds} if kinds else _OBJECT


def _execute_body(commands: CommandLine) -> dict[str, Any]:
    cluster = {**_TEXT, "description": "The id of the plan's cluster, to approve the plan."}
    digest = {**_TEXT, "description": "The digest of the plan; if given, another one is refused."}
    return _object(("cluster",), cluster=cluster, digest=digest, options=_options(commands.execute))


def _control_body(_: CommandLine) -> dict[str, Any]:
    action = {"enum": ["pause", "go on", "leave"]}
    return _object(throttle=_TEXT, moves_in=_NUMBER, moves_out=_NUMBER, action=action)


def _carry_out_body(_: CommandLine) -> dict[str, Any]:
    throttle = {**_TEXT, "description": "For resume and undo: a rate per broker like 50MB/s, auto or none."}
    partly = {**_SWITCH, "description": "For undo: skip what cannot be moved back."}
    return _object(throttle=throttle, as_far_as_possible=partly)


_PAGE = ("page", _NUMBER, False)
_SEARCH = ("search", _TEXT, False)
ROUTES = (
    ApiRoute(path="/cluster", about="The cluster in numbers, its brokers and log dirs", answer="cluster"),
    ApiRoute(
        path="/topics", about="Topics whose names contain `search`", answer="topics", query=(_SEARCH, _PAGE)
    ),
    ApiRoute(
        path="/partitions",
        about="The partitions of a topic",
        answer="partitions",
        query=(("topic", _TEXT, True), _PAGE),
    ),
    ApiRoute(
        path="/groups",
        about="Consumer groups whose names contain `search`: lag, members and what they own",
        answer="groups",
        query=(_SEARCH, _PAGE),
    ),
    ApiRoute(path="/lake", about="Load by hour of the week, and forecasts", answer="lake"),
    ApiRoute(path="/plans", about="The plans that were made here", answer="plans", query=(_PAGE,)),
    ApiRoute(path="/plans/{plan}", about="One plan: its file, its digest, what was said", answer="plan"),
    ApiRoute(
        path="/compare",
        about="Two plans side by side",
        answer="compare",
        query=(("first", _TEXT, True), ("second", _TEXT, True)),
    ),
    ApiRoute(path="/plans/{plan}/rehearsals/{rehearsal}", about="One rehearsal", answer="rehearsal"),
    ApiRoute(path="/runs", about="The runs of the journals, newest first", answer="runs", query=(_PAGE,)),
    ApiRoute(path="/runs/{run}", about="One run with its moves and events", answer="run"),
    ApiRoute(path="/audit", about="Who asked for what, newest first", answer="audit", query=(_PAGE,)),
    ApiRoute(path="/jobs/{job}", about="A command: whether it is done, and how", answer="job"),
    ApiRoute(
        path="/plans",
        about="Make a plan, with the options of `restow plan …`",
        answer="make_plan",
        method="POST",
        body=_plan_body,
        status=202,
    ),
    ApiRoute(
        path="/plans/upload",
        about="Take a plan file, or Kafka's reassignment JSON, as the body",
        answer="upload",
        query=(("name", _TEXT, False),),
        method="POST",
        body=lambda _: _OBJECT,
        takes=_FILE,
        status=202,
    ),
    ApiRoute(
        path="/plans/{plan}/rehearsals",
        about="Rehearse a plan, with the options of `restow rehearse`",
        answer="rehearse",
        method="POST",
        body=lambda commands: _object(options=_options(commands.rehearse)),
        status=202,
    ),
    ApiRoute(
        path="/plans/{plan}/runs",
        about="Approve a plan and begin its run, with the options of `restow execute`",
        answer="execute",
        method="POST",
        body=_execute_body,
        status=202,
    ),
    ApiRoute(
        path="/runs/{run}/control",
        about="Change a run under way: throttle, moves per broker, pause, go on, leave",
        answer="control",
        method="POST",
        body=_control_body,
    ),
    ApiRoute(
        path="/runs/{run}/{command}",
        about=f"What a command ({', '.join(RUN_COMMANDS)}) would do to a run; nothing is changed",
        answer="preview",
    ),
    ApiRoute(
        path="/runs/{run}/{command}",
        about=f"Carry out a command ({', '.join(RUN_COMMANDS)}) on a run",
        answer="carry_out",
        method="POST",
        body=_carry_out_body,
        status=202,
    ),
)


def api_routes(site: Site, actions: Actions) -> list[Route]:
    """Return the routes of the API and of the metrics."""
    answers = ApiAnswers(site, actions)

    def endpoint(route: ApiRoute) -> Callable[[Request], Awaitable[Response]]:
        ask = getattr(answers, route.answer)

        async def answer(request: Request) -> Response:
            return JsonAnswer(await ask(request), status_code=route.status)

        return answer

    async def measured(request: Request) -> Response:  # noqa: ARG001
        return Response(metrics(site), media_type=CONTENT_TYPE)

    async def described(request: Request) -> Response:  # noqa: ARG001
        return JsonAnswer(openapi(site.commands))

    return [
        Route(f"{PREFIX}/openapi.json", described, methods=["GET"]),
        *(Route(PREFIX + each.path, endpoint(each), methods=[each.method]) for each in ROUTES),
        Route("/metrics", measured, methods=["GET"]),
    ]


def openapi(commands: CommandLine = CommandLine()) -> dict[str, Any]:  # noqa: B008 (frozen)
    """Return the description of the API, with the options that these commands have."""
    paths: dict[str, dict[str, Any]] = {}
    for each in ROUTES:
        paths.setdefault(PREFIX + each.path, {})[each.method.lower()] = _operation(each, commands)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Restow", "version": __version__, "description": _ABOUT},
        "security": [{"token": []}],
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "restow_8080"},
                "csrf": {"type": "apiKey", "in": "header", "name": "x-csrf-token"},
            }
        },
        "paths": paths,
    }


def _operation(route: ApiRoute, commands: CommandLine) -> dict[str, Any]:
    in_path = [
        {"name": part[1:-1], "in": "path", "required": True, "schema": _TEXT}
        for part in route.path.split("/")
        if part.startswith("{")
    ]
    in_query = [
        {"name": name, "in": "query", "required": required, "schema": schema}
        for name, schema, required in route.query
    ]
    changes = route.method != "GET"
    errors = {**_ERRORS, **(_CONFLICT if changes else {})}
    found: dict[str, Any] = {
        "operationId": route.answer,
        "summary": route.about,
        "parameters": in_path + in_query,
        "security": [{"token": []}, {"session": [], **({"csrf": []} if changes else {})}],
        "responses": {
            str(route.status): {"description": route.about, "content": _json(_OBJECT)},
            **{
                code: {"description": words, "content": _json(_object(error=_TEXT))}
                for code, words in errors.items()
            },
        },
    }
    if route.body is not None:
        found["requestBody"] = {"content": {route.takes: {"schema": route.body(commands)}}}
    return found


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
