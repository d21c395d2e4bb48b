"""What a client may ask before, during and after its login, and when it is closed."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.net.server import Door, serve
from restow.cluster.security.login import LoginParts
from restow.cluster.security.oauth import TokenRules
from restow.cluster.security.plain import plain_token
from restow.cluster.security.settings import LoginSettings
from restow.runtime.chance import SeededChance
from restow.runtime.clock import SystemClock
from restow.runtime.network import SystemNetwork
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import (
    ApiVersionsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from tests.unit.broker.conversations import HOST, Client, bare_services, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PLAIN = "PLAIN"
HANDSHAKE, AUTHENTICATE, METADATA, API_VERSIONS = 17, 36, 3, 18
ALICE = plain_token("alice", "secret")


class Hours(SystemClock):
    """A clock whose monotonic time the test advances."""

    ahead_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.ahead_s


@asynccontextmanager
async def door(clock: Hours, max_reauth_ms: int = 0, *, logs_in: bool = True) -> AsyncIterator[Client]:
    """Connect to a listener, which asks for a login or does not."""
    settings = LoginSettings(
        mechanisms=(PLAIN,),
        users={PLAIN: {"alice": "secret", "bob": "another"}},
        tokens=TokenRules(),
        max_reauth_ms={PLAIN: max_reauth_ms},
        failure_delay_ms=1,
    )
    users: Any = None
    parts = LoginParts(settings=settings, users=users, clock=clock, chance=SeededChance(1))
    entrance = Door(logins=parts if logs_in else None)
    listener = await serve(SystemNetwork(), HOST, 0, bare_services(clock), door=entrance)
    try:
        yield await Client.connect(listener.port)
    finally:
        await listener.close()


async def handshake(client: Client, mechanism: str = PLAIN, version: int = 1) -> ErrorCode:
    client.ask(HANDSHAKE, version, 1, SaslHandshakeRequest(mechanism=mechanism))
    answer = await client.answer(HANDSHAKE, version)
    return ErrorCode.of(answer.error_code)


async def authenticate(client: Client, token: bytes = ALICE) -> Any:
    client.ask(AUTHENTICATE, 2, 2, SaslAuthenticateRequest(auth_bytes=token))
    return await client.answer(AUTHENTICATE, 2)


async def is_served(client: Client) -> bool:
    """Return whether a request is answered; FindCoordinator of no known kind needs nothing else."""
    client.ask(API_VERSIONS, 0, 9, ApiVersionsRequest())
    return bool((await client.answer(API_VERSIONS, 0)).api_keys)


async def is_closed_after(client: Client, api_key: int = METADATA) -> bool:
    client.ask(api_key, 1, 9, MetadataRequest(topics=[]))
    await client.is_closed.wait()
    return client.frames.empty()


def test_only_logins_and_versions_are_answered_before_a_login() -> None:
    async def scenario() -> None:
        async with door(Hours()) as client:
            assert await is_served(client)
            assert await handshake(client) == ErrorCode.NONE
            assert await is_served(client)
            assert await is_closed_after(client)
        async with door(Hours()) as client:
            assert await is_closed_after(client)

    run(scenario())


def test_large_request_before_a_login_closes_the_connection() -> None:
    async def scenario() -> None:
        async with door(Hours()) as client:
            await handshake(client)
            client.ask(AUTHENTICATE, 0, 2, SaslAuthenticateRequest(auth_bytes=bytes(600_000)))
            await client.is_closed.wait()
            assert client.frames.empty()

    run(scenario())


def test_requests_sent_behind_the_login_are_answered() -> None:
    async def scenario() -> None:
        async with door(Hours()) as client:
            client.ask(HANDSHAKE, 1, 1, SaslHandshakeRequest(mechanism=PLAIN))
            client.ask(AUTHENTICATE, 2, 2, SaslAuthenticateRequest(auth_bytes=ALICE))
            client.ask(AUTHENTICATE, 2, 3, SaslAuthenticateRequest(auth_bytes=ALICE))
            assert (await client.answer(HANDSHAKE, 1)).error_code == 0
            assert (await client.answer(AUTHENTICATE, 2)).error_code == 0
            late = await client.answer(AUTHENTICATE, 2)
            assert late.error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert await is_served(client)

    run(scenario())


def test_unknown_mechanism_is_answered_and_the_connection_closed() -> None:
    async def scenario() -> None:
        async with door(Hours()) as client:
            client.ask(HANDSHAKE, 1, 1, SaslHandshakeRequest(mechanism="GSSAPI"))
            answer = await client.answer(HANDSHAKE, 1)
            assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
            assert answer.mechanisms == [PLAIN]
            await client.is_closed.wait()

    run(scenario())


@pytest.mark.parametrize(
    "token", [b"", b"\0alice\0wrong", b"\0mallory\0secret", b"bob\0alice\0secret", b"\0alice\0"]
)
def test_failed_login_is_answered_and_the_connection_closed(token: bytes) -> None:
    async def scenario() -> None:
        async with door(Hours()) as client:
            await handshake(client)
            answer = await authenticate(client, token)
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert "secret" not in answer.error_message
            await client.is_closed.wait()

    run(scenario())


def test_second_handshake_in_a_login_is_refused_and_the_connection_closed() -> None:
    async def scenario() -> None:
        async with door(Hours()) as client:
            await handshake(client)
            assert await handshake(client) == ErrorCode.ILLEGAL_SASL_STATE
            await client.is_closed.wait()

    run(scenario())


def test_listener_without_logins_refuses_them() -> None:
    async def scenario() -> None:
        async with door(Hours(), logs_in=False) as client:
            assert await handshake(client) == ErrorCode.ILLEGAL_SASL_STATE
            assert (await authenticate(client)).error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert await is_served(client)

    run(scenario())


def test_tokens_come_in_bare_frames_after_a_handshake_of_version_0() -> None:
    async def scenario() -> None:
        async with door(Hours()) as client:
            assert await handshake(client, version=0) == ErrorCode.NONE
            client.connection.send(ALICE)
            assert await client.frames.get() == b""
            assert await is_served(client)
        async with door(Hours()) as client:
            await handshake(client, version=0)
            client.connection.send(plain_token("alice", "wrong"))
            await client.is_closed.wait()
            assert client.frames.empty()

    run(scenario())


def test_session_ends_unless_the_client_logs_in_again() -> None:
    async def scenario() -> None:
        clock = Hours()
        async with door(clock, max_reauth_ms=3_600_000) as client:
            await handshake(client)
            assert (await authenticate(client)).session_lifetime_ms == 3_600_000
            clock.ahead_s += 3_000
            assert await handshake(client) == ErrorCode.NONE
            assert (await authenticate(client)).error_code == ErrorCode.NONE
            clock.ahead_s += 3_000
            assert await is_served(client)
            clock.ahead_s += 3_000
            assert await is_closed_after(client)

    run(scenario())


def test_login_is_repeated_after_the_session_has_ended() -> None:
    async def scenario() -> None:
        clock = Hours()
        async with door(clock, max_reauth_ms=3_600_000) as client:
            await handshake(client)
            await authenticate(client)
            clock.ahead_s += 4_000
            assert await handshake(client) == ErrorCode.NONE
            assert (await authenticate(client)).error_code == ErrorCode.NONE
            assert await is_served(client)

    run(scenario())


def test_repeated_login_may_not_change_the_user() -> None:
    async def scenario() -> None:
        clock = Hours()
        async with door(clock, max_reauth_ms=3_600_000) as client:
            await handshake(client)
            await authenticate(client)
            clock.ahead_s += 3_000
            await handshake(client)
            answer = await authenticate(client, plain_token("bob", "another"))
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert "Cannot change principals" in answer.error_message
            await client.is_closed.wait()

    run(scenario())
