"""A visitor of the pages: it calls the ASGI application itself, without sockets."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from restow.model import Copy, LiveBroker, LogDir, Partition, Snapshot, Topic
from restow.runtime.clock import SystemClock
from restow.ui.app import application
from restow.ui.sessions import UiRole
from restow.ui.site import Site, UiSettings
from restow.ui.watching import look_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from pathlib import Path

    from restow.ui.commands import CommandLine
    from restow.ui.groups import GroupsLook
    from restow.ui.safety import Guard

T = TypeVar("T")
OPERATOR, VIEWER = "the-operators-token", "the-viewers-token"
HOST = "127.0.0.1:8080"
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def document(self) -> Any:
        return json.loads(self.text)


@dataclass
class Visitor:
    """A browser with a cookie jar of one cookie."""

    app: Guard
    host: str = HOST
    cookie: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    runner: asyncio.Runner | None = None
    """One loop for all requests, if what they start is to go on between them."""

    def get(self, address: str, **headers: str) -> Answered:
        return self.send("GET", address, [b""], headers)

    def post(self, address: str, form: Mapping[str, str] | None = None, **headers: str) -> Answered:
        return self.send("POST", address, [urlencode(form or {}).encode()], {"content-type": FORM, **headers})

    def enter(self, token: str = OPERATOR) -> Visitor:
        """Exchange a token for the cookie."""
        answered = self.post("/login", {"token": token})
        assert answered.status == 303, answered.text
        return self

    @property
    def csrf(self) -> str:
        """The token that the pages carry."""
        return self.get("/runs").text.partition("name='csrf' value='")[2].partition("'")[0]

    def until(self, happened: Callable[[], object]) -> None:
        """Let the loop run until something has happened."""
        while not happened():
            self.run(asyncio.sleep(0.02))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(work) if self.runner is None else self.runner.run(work)

    def send(
        self, method: str, address: str, body: Iterable[bytes], headers: Mapping[str, str] | None = None
    ) -> Answered:
        given = {"host": self.host, **self.headers, **(headers or {})}
        if self.cookie:
            given["cookie"] = self.cookie
        answered = self.run(_asked(self.app, method, address, list(body), given))
        if "set-cookie" in answered.headers:
            self.cookie = answered.headers["set-cookie"].partition(";")[0]
        return answered


async def _asked(
    app: Guard, method: str, address: str, body: list[bytes], headers: Mapping[str, str]
) -> Answered:
    path, _, query = address.partition("?")
    parts = [
        {"type": "http.request", "body": each, "more_body": number + 1 < len(body)}
        for number, each in enumerate(body)
    ]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if parts:
            return parts.pop(0)
        return await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8080),
    }
    await app(scope, receive, send)
    start = next(each for each in sent if each["type"] == "http.response.start")
    text = b"".join(each.get("body", b"") for each in sent if each["type"] == "http.response.body")
    return Answered(
        status=start["status"],
        headers={name.decode(): value.decode() for name, value in start["headers"]},
        text=text.decode(),
    )


class StillCluster:
    """A cluster that always looks the same, or that is away."""

    def __init__(self, shown: Snapshot) -> None:
        self.shown = shown
        self.away: Exception | None = None

    def snapshot(self) -> Snapshot:
        if self.away is not None:
            raise self.away
        return self.shown

    def groups(self, now_ms: int) -> GroupsLook | None:
        return None

    def close(self) -> None:
        pass


def a_snapshot(cluster_id: str = "the-cluster", name: str = "orders") -> Snapshot:
    """Return three brokers in two racks with two topics; broker 9 is down, and a partition moves."""
    dirs = (LogDir(path="/data/a", total_bytes=1_000, usable_bytes=400), LogDir(path="/data/b"))
    brokers = tuple(
        LiveBroker(id=each, host=f"host-{each}", port=9092, rack="ab"[each % 2], log_dirs=dirs)
        for each in (1, 2, 3)
    )

    def copies(*replicas: int) -> tuple[Copy, ...]:
        return tuple(Copy(each, "/data/a", 100) for each in replicas)

    orders = (
        Partition(0, (1, 2), (1, 2), 1, copies=copies(1, 2)),
        Partition(1, (1, 9), (1,), 1, copies=copies(1)),
        Partition(2, (3, 1, 2), (1, 2), 2, adding=(3,), removing=(1,), copies=copies(1, 2, 3)),
    )
    lost = (Partition(0, (9,), (), None),)
    return Snapshot(
        cluster_id=cluster_id,
        taken_ms=1_790_000_000_000,
        controller=2,
        brokers=brokers,
        topics=(Topic(name="lost", partitions=lost), Topic(name=name, partitions=orders)),
    )


def a_site(
    folder: Path, shown: Snapshot | None = None, commands: CommandLine | None = None, **settings: Any
) -> Site:
    """Return a site that has seen the cluster once and has read its journals."""
    tokens = {OPERATOR: UiRole.OPERATOR, VIEWER: UiRole.VIEWER}
    source = StillCluster(shown or a_snapshot())
    site = Site(UiSettings(tokens=tokens, journal=str(folder), **settings), source, SystemClock(), commands)
    site.watch.last = look_of(source.snapshot())
    site.books.refresh(source.shown.cluster_id)
    return site


def a_visitor(folder: Path, shown: Snapshot | None = None, **settings: Any) -> Visitor:
    """Return an operator who has entered."""
    return Visitor(application(a_site(folder, shown, **settings))).enter()
