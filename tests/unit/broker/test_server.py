"""Requests in, responses out: in order, whatever comes."""

from __future__ import annotations

import asyncio
import os
import struct
from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.handlers import HANDLERS, Handler, served_versions
from restow.cluster.net.server import ServerLimits, serve
from restow.cluster.store import StoreError, StoreUnavailable
from restow.runtime.clock import SystemClock
from restow.runtime.network import SystemNetwork
from restow.wire.codec import encode_request
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import (
    ApiVersionsRequest,
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
)
from tests.unit.broker.conversations import HOST, Client, bare_services, run

if TYPE_CHECKING:
    from restow.cluster.broker.services import RequestContext
    from restow.runtime.protocols import Listener
    from restow.wire.codec import Request

FETCH = 1
API_VERSIONS = 18
HEARTBEAT = 12


class Session:
    """A session with a store that may be in doubt."""

    def __init__(self) -> None:
        self.in_doubt = False
        self.error: StoreError | None = None

    async def confirm(self) -> None:
        if self.error is not None:
            raise self.error
        self.in_doubt = False


async def listening(session: Session | None = None, **options: Any) -> Listener:
    services = bare_services(SystemClock(), session or Session())
    return await serve(SystemNetwork(), HOST, 0, services, ServerLimits(**options))


def software(**fields: str) -> Any:
    named = {"client_software_name": "test", "client_software_version": "1.0", **fields}
    return ApiVersionsRequest(**named)


@pytest.mark.parametrize("version", range(5))
def test_api_versions_offers_registered_handlers(version: int) -> None:
    async def scenario() -> None:
        listener = await listening()
        client = await Client.connect(listener.port)
        client.ask(API_VERSIONS, version, 7, software())
        answer = await client.answer(API_VERSIONS, version)
        assert answer.error_code == 0
        offered = {each.api_key: range(each.min_version, each.max_version + 1) for each in answer.api_keys}
        assert offered == served_versions()
        await listener.close()

    run(scenario())


def test_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    async def scenario() -> None:
        listener = await listening()
        client = await Client.connect(listener.port)
        client.connection.send(struct.pack(">hhi", API_VERSIONS, 99, 5) + b"whatever that may be")
        answer = await client.answer(API_VERSIONS, 0)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [(each.api_key, each.min_version, each.max_version) for each in answer.api_keys] == [
            (API_VERSIONS, 0, 4)
        ]
        client.ask(API_VERSIONS, 4, 6, software())
        assert (await client.answer(API_VERSIONS, 4)).error_code == 0
        await listener.close()

    run(scenario())


@pytest.mark.parametrize("name", ["", "-a", "a b", "ü", "a-"])
def test_api_versions_refuses_invalid_client_names(name: str) -> None:
    async def scenario() -> None:
        listener = await listening()
        client = await Client.connect(listener.port)
        client.ask(API_VERSIONS, 3, 1, software(client_software_name=name))
        assert (await client.answer(API_VERSIONS, 3)).error_code == ErrorCode.INVALID_REQUEST
        await listener.close()

    run(scenario())


def test_broker_asks_its_store_before_it_answers_after_a_standstill() -> None:
    async def scenario() -> None:
        session = Session()
        listener = await listening(session)
        client = await Client.connect(listener.port)
        session.in_doubt = True
        client.ask(API_VERSIONS, 3, 1, software())
        assert (await client.answer(API_VERSIONS, 3)).error_code == 0
        assert not session.in_doubt
        session.in_doubt, session.error = True, StoreUnavailable("the connection was lost")
        client.ask(API_VERSIONS, 3, 2, software())
        await client.is_closed.wait()
        assert client.frames.empty()
        await listener.close()

    run(scenario())


def test_responses_come_in_the_order_of_the_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later requests finish earlier, and all have started by then."""
    count = 200
    gates = [asyncio.Event() for _ in range(count)]
    begun: list[int] = []

    async def handle(request: Any, _: Any) -> Any:
        number = request.correlation_id
        begun.append(number)
        if number + 1 < min(count, 32):
            await gates[number + 1].wait()
        gates[number].set()
        return HeartbeatResponse()

    monkeypatch.setitem(HANDLERS, HEARTBEAT, Handler(range(5), handle))

    async def scenario() -> None:
        listener = await listening()
        client = await Client.connect(listener.port)
        for number in range(count):
            client.ask(HEARTBEAT, 4, number, HeartbeatRequest(group_id="g", generation_id=1, member_id="m"))
        assert [await client.number() for _ in range(count)] == list(range(count))
        assert begun == list(range(count))
        await listener.close()

    run(scenario())


def test_waiting_fetch_is_ended_by_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower with more to ask for must not wait until the leader has data."""
    asked_again = asyncio.Event()

    async def handle(request: Any, _: Any) -> Any:
        if request.correlation_id == 1:
            await asked_again.wait()
        asked_again.set()
        return FetchResponse(session_id=7, responses=[])

    monkeypatch.setitem(HANDLERS, FETCH, Handler(range(4, 18), handle))

    async def scenario() -> None:
        listener = await listening()
        client = await Client.connect(listener.port)
        for number in (1, 2):
            client.ask(FETCH, 12, number, FetchRequest(topics=[], forgotten_topics_data=[]))
        assert [await client.number(), await client.number()] == [1, 2]
        await listener.close()

    run(scenario())


def test_failing_handler_closes_only_its_own_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handle(request: Any, _: Any) -> Any:
        raise RuntimeError("not foreseen")

    monkeypatch.setitem(HANDLERS, HEARTBEAT, Handler(range(5), handle))

    async def scenario() -> None:
        listener = await listening()
        unlucky, other = await Client.connect(listener.port), await Client.connect(listener.port)
        unlucky.ask(HEARTBEAT, 4, 1, HeartbeatRequest(group_id="g", generation_id=1, member_id="m"))
        await unlucky.is_closed.wait()
        other.ask(API_VERSIONS, 4, 2, software())
        assert await other.number() == 2
        await listener.close()

    run(scenario())


def test_waiting_requests_end_with_their_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = [], []

    async def handle(request: Any, _: Any) -> Any:
        begun.append(request.correlation_id)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(request.correlation_id)

    monkeypatch.setitem(HANDLERS, HEARTBEAT, Handler(range(5), handle))

    async def scenario() -> None:
        listener = await listening()
        client = await Client.connect(listener.port)
        for number in range(3):
            client.ask(HEARTBEAT, 4, number, HeartbeatRequest(group_id="g", generation_id=1, member_id="m"))
        while len(begun) < 3:
            await asyncio.sleep(0.01)
        assert ended == []
        client.connection.close()
        await client.is_closed.wait()
        while len(ended) < 3:
            await asyncio.sleep(0.01)
        assert sorted(ended) == [0, 1, 2]
        await listener.close()

    run(scenario())


BAD_FRAMES = {
    "empty": b"",
    "too short for a header": b"\x00\x12\x00",
    "a key that nobody knows": struct.pack(">hhih", 999, 0, 1, -1),
    "a version that is not served": struct.pack(">hhih", 3, 99, 1, -1),
    "a negative version": struct.pack(">hhih", 3, -1, 1, -1),
    "a client id that is cut off": struct.pack(">hhih", 3, 0, 1, 100) + b"x",
    "a body that is cut off": struct.pack(">hhih", 3, 0, 1, -1) + b"\x00\x00",
    "an array of two milliards": struct.pack(">hhihi", 3, 0, 1, -1, 2**31 - 1),
    "text that is not UTF-8": struct.pack(">hhihih", 3, 0, 1, -1, 1, 2) + b"\xff\xff",
}


@pytest.mark.parametrize("frame", BAD_FRAMES.values(), ids=BAD_FRAMES.keys())
def test_invalid_frames_close_the_connection(frame: bytes) -> None:
    async def scenario() -> None:
        listener = await listening()
        client, other = await Client.connect(listener.port), await Client.connect(listener.port)
        client.connection.send(frame)
        await client.is_closed.wait()
        assert client.frames.empty()
        other.ask(API_VERSIONS, 0, 4, software())
        assert await other.number() == 4
        await listener.close()

    run(scenario())


def test_server_survives_random_bytes() -> None:
    async def scenario() -> None:
        listener = await listening(max_frame_bytes=1000)
        for _ in range(100):
            reader, writer = await asyncio.open_connection(HOST, listener.port)
            writer.write(os.urandom(200))
            writer.close()
            await writer.wait_closed()
            del reader
        client = await Client.connect(listener.port)
        client.ask(API_VERSIONS, 0, 3, software())
        assert await client.number() == 3
        await listener.close()

    run(scenario())


def test_server_stops_reading_from_client_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Responses of a megabyte each: only a few are made for a client that leaves them; in the end it gets
    all.
    """
    count, size = 400, 1_000_000
    begun = 0

    async def handle(request: Any, _: Any) -> Any:
        nonlocal begun
        begun += 1
        return (bytes(size),)

    monkeypatch.setitem(HANDLERS, HEARTBEAT, Handler(range(5), handle))

    async def scenario() -> None:
        listener = await listening()
        reader, writer = await asyncio.open_connection(HOST, listener.port, limit=1024)
        body = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        for number in range(count):
            frame = b"".join(encode_request(HEARTBEAT, 3, number, "slow", body))
            writer.write(struct.pack(">i", len(frame)) + frame)
        settled = 0
        while not begun or begun != settled:
            settled = begun
            await asyncio.sleep(0.1)
        assert 0 < begun < count // 2
        for number in range(count):
            length, correlation_id = struct.unpack(">ii", await reader.readexactly(8))
            assert correlation_id == number
            await reader.readexactly(length - 4)
        assert begun == count
        writer.close()
        await writer.wait_closed()
        await listener.close()

    run(scenario())


def test_waiting_large_requests_are_limited_over_all_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Small requests are still accepted, and a response makes room again."""
    go_on = asyncio.Event()
    begun: list[Request] = []

    async def slow(request: Request, context: RequestContext) -> Any:
        begun.append(request)
        await go_on.wait()
        return HeartbeatResponse(error_code=0)

    monkeypatch.setitem(HANDLERS, HEARTBEAT, Handler(HANDLERS[HEARTBEAT].versions, slow))

    async def scenario() -> None:
        listener = await listening(max_backlog_bytes=400_000)
        clients = [await Client.connect(listener.port) for _ in range(4)]
        large = HeartbeatRequest(
            group_id="g", generation_id=1, member_id="m" * 30_000, group_instance_id=None
        )
        larger = HeartbeatRequest(
            group_id="g" * 30_000, generation_id=1, member_id="m" * 30_000, group_instance_id="i" * 30_000
        )
        for client in clients[:3]:
            client.ask(HEARTBEAT, 3, 1, larger)
            client.ask(HEARTBEAT, 3, 2, large)
        while len(begun) < 6:
            await asyncio.sleep(0.01)
        clients[3].ask(HEARTBEAT, 3, 1, larger)
        await clients[3].is_closed.wait()
        go_on.set()
        for client in clients[:3]:
            assert [await client.number(), await client.number()] == [1, 2]
        again = await Client.connect(listener.port)
        again.ask(HEARTBEAT, 3, 1, larger)
        assert await again.number() == 1
        await listener.close()

    run(scenario())
