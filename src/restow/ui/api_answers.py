"""What each address of `/api/v1` answers."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from restow.errors import InvalidInput
from restow.model import TopicPartition
from restow.ui import documents
from restow.ui.answers import number_of, text_of
from restow.ui.large_files import comparison
from restow.ui.lists import paged
from restow.ui.safety import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from starlette.requests import Request

    from restow.ui.actions import Actions
    from restow.ui.commands import CommandForm
    from restow.ui.site import Site

_ROWS = 1_000
_MOST_FIELDS = 200


class ApiAnswers:
    """The answers. Changes need an operator's token, as the pages do."""

    def __init__(self, site: Site, actions: Actions) -> None:
        self._site, self._actions = site, actions

    async def cluster(self, request: Request) -> Any:  # noqa: ARG002
        return documents.cluster_document(self._site.watch.last)

    async def topics(self, request: Request) -> Any:
        sums = self._site.watch.last.sums
        wanted = text_of(request, "search", "").lower()
        chosen = [] if sums is None else [each for each in sums.topics if wanted in each.name.lower()]
        return _listed(request, "topics", chosen, documents.topic_document)

    async def partitions(self, request: Request) -> Any:
        snapshot = self._site.watch.last.snapshot
        name = text_of(request, "topic")
        topic = None if snapshot is None else snapshot.topic.get(name)
        if topic is None:
            raise Refused(404, f"there is no topic {name!r}")
        return _listed(
            request,
            "partitions",
            topic.partitions,
            lambda each: documents.partition_document(TopicPartition(name, each.number), each),
        )

    async def groups(self, request: Request) -> Any:
        look = self._site.watch.last.groups
        wanted = text_of(request, "search", "").lower()
        groups = () if look is None else look.groups
        chosen = [each for each in groups if wanted in each.group.name.lower()]
        found = _listed(request, "groups", chosen, documents.group_document)
        return {"at_ms": None if look is None else look.at_ms, **found}

    async def lake(self, request: Request) -> Any:  # noqa: ARG002
        return documents.lake_document(self._site.watch.last.lake)

    async def plans(self, request: Request) -> Any:
        return _listed(request, "plans", self._site.store.all(), documents.plan_line)

    async def plan(self, request: Request) -> Any:
        stored = self._actions.plan_at(request)
        job = self._site.jobs.get(stored.id)
        under_way = job is not None and not job.is_over
        told: dict[str, Any] = {**documents.plan_line(stored), "under_way": under_way}
        if stored.is_there:
            found = await self._actions.read(stored)
            told |= {"digest": found.digest, "file": await asyncio.to_thread(_json_of, stored.path)}
        return {**told, "wrong": stored.wrong if not stored.is_there else "", "told": stored.told()}

    async def compare(self, request: Request) -> Any:
        stored = [self._actions.stored(text_of(request, name)) for name in ("first", "second")]
        for each in stored:
            await self._actions.read(each)
        return asdict(await asyncio.to_thread(comparison, *(each.path for each in stored)))

    async def rehearsal(self, request: Request) -> Any:
        found = self._actions.rehearsal_at(request)
        job = self._site.jobs.get(found.id)
        under_way = job is not None and not job.is_over
        told = found.told()
        wrong = found.wrong if told is None else ""
        return {"rehearsal": found.id, "under_way": under_way, "wrong": wrong, "told": told}

    async def runs(self, request: Request) -> Any:
        books = self._site.books
        return _listed(request, "runs", books.all(), lambda each: documents.run_document(books, each))

    async def run(self, request: Request) -> Any:
        book = await self._actions.run_at(request)
        return documents.run_details(self._site.books, book)

    async def audit(self, request: Request) -> Any:
        return _listed(request, "entries", self._site.audit.latest(), dict)

    async def job(self, request: Request) -> Any:
        name = str(request.path_params["job"])
        found = self._site.jobs.get(name)
        if found is None:
            raise Refused(404, f"this server has started no command {name!r}")
        return documents.job_document(found)

    async def preview(self, request: Request) -> Any:
        self._actions.operator(request, runs=True)
        book = await self._actions.run_at(request)
        return await self._actions.preview(book, str(request.path_params["command"]))

    async def make_plan(self, request: Request) -> Any:
        operator, body = self._actions.operator(request), await _body(request)
        kind = body.get("kind")
        if not isinstance(kind, str):
            raise InvalidInput('kind is missing: it is a text like "balance"')
        form = self._site.commands.plan_form(kind)
        return documents.job_document(
            self._actions.make_plan(operator, kind, _given(form, body.get("options", {})))
        )

    async def upload(self, request: Request) -> Any:
        operator, title = self._actions.operator(request), text_of(request, "name", "upload")
        return documents.job_document(await self._actions.upload(operator, title, await request.body()))

    async def rehearse(self, request: Request) -> Any:
        operator, body = self._actions.operator(request), await _body(request)
        given = _given(self._site.commands.rehearse, body.get("options", {}))
        job = await self._actions.rehearse(operator, self._actions.plan_at(request), given)
        return documents.job_document(job)

    async def execute(self, request: Request) -> Any:
        operator, body = self._actions.operator(request, runs=True), await _body(request)
        given = _given(self._site.commands.execute, body.get("options", {}))
        given |= _texts({name: body[name] for name in ("cluster", "digest") if name in body})
        job = await self._actions.execute(operator, self._actions.plan_at(request), given)
        return documents.job_document(job)

    async def control(self, request: Request) -> Any:
        operator, body = self._actions.operator(request, runs=True), await _body(request)
        book = await self._actions.run_at(request)
        return {"run": book.name, "asked": await self._actions.control(operator, book, _texts(body))}

    async def carry_out(self, request: Request) -> Any:
        operator, body = self._actions.operator(request, runs=True), await _body(request)
        book = await self._actions.run_at(request)
        command = str(request.path_params["command"])
        return documents.job_document(self._actions.carry_out(operator, book, command, _texts(body)))


def _listed(
    request: Request, name: str, rows: Sequence[Any], document: Callable[[Any], Any]
) -> dict[str, Any]:
    found = paged(rows, number_of(request, "page", 1), _ROWS)
    shown = [document(each) for each in found.rows]
    return {"total": found.total, "page": found.number, "pages": found.pages, name: shown}


def _json_of(path: Path) -> Any:
    return json.loads(path.read_bytes())


async def _body(request: Request) -> dict[str, Any]:
    """Return the body of a change: a JSON object, perhaps empty."""
    text = await request.body()
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        raise InvalidInput('the body is not JSON: send an object like {"throttle": "50MB/s"}') from None
    if not isinstance(found, dict) or len(found) > _MOST_FIELDS:
        raise InvalidInput("the body has to be a JSON object")
    return found


def _given(form: CommandForm | None, options: Any) -> dict[str, str]:
    """Return options as a filled form. What is left out keeps the command's default."""
    if not isinstance(options, dict):
        raise InvalidInput("options has to be a JSON object")
    fields = {each.name: each for each in (() if form is None else form.fields)}
    unknown = sorted(str(name) for name in options if name not in fields)
    if unknown:
        raise InvalidInput(f"there is no option {unknown[0]!r}: there are {', '.join(sorted(fields))}")
    usual = {name: each.default for name, each in fields.items() if each.default}
    given = {**usual, **_texts(options)}
    off = {name for name, value in options.items() if value is False or value is None}
    return {name: value for name, value in given.items() if name not in off}


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Return values as a form has them: lines for a list, "yes" for true."""
    found = {}
    for name, value in values.items():
        if isinstance(value, bool):
            found[name] = "yes" if value else ""
        elif isinstance(value, str | int | float):
            found[name] = str(value)
        elif isinstance(value, list) and all(isinstance(each, str | int) for each in value):
            found[name] = "\n".join(map(str, value))
        elif value is not None:
            raise InvalidInput(f"{name}: this has to be text, a number, true, false or a list of texts")
    return found
