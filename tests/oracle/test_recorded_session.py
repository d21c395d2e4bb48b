"""Responses of brokers to real clients, to each other and to our own client, through other parsers.

kio and Kafka's own classes decode each response and encode it again to the same bytes. Kafka does the same
with the requests between brokers. No client is between the bytes and the check.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from restow.cluster.handlers import served_versions
from restow.wire.messages import REQUESTS
from tests.clients.embedded import embedded
from tests.oracle import client_sessions
from tests.oracle.raw_session import ask_everything
from tests.oracle.recording import Recording, recorded
from tests.oracle.rereading import (
    BETWEEN_BROKERS,
    NOT_IN_3_9,
    NOT_IN_KIO,
    JavaFrames,
    NotKnownThere,
    kio_request,
    kio_response,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from py4j.java_gateway import JavaGateway

    from tests.oracle.recording import Exchange

FETCH = 1
_MOST_TOLD = 5


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Every version of every request."""
    with recorded() as recording:
        asyncio.run(asyncio.wait_for(ask_everything(tmp_path_factory.mktemp("raw")), 300))
    return recording


@pytest.fixture(scope="module")
def by_clients() -> Recording:
    """Three clients, then a broker that stops in order and starts again."""
    with recorded() as recording, embedded(3, fsync=False) as cluster:
        client_sessions.with_kafka_python(cluster.bootstrap)
        client_sessions.with_confluent(cluster.bootstrap)
        client_sessions.with_aiokafka(cluster.bootstrap)
        cluster.stop(2)
        cluster.start(2)
    return recording


@pytest.fixture(scope="module")
def by_java(gateway: JavaGateway) -> Recording:
    with recorded() as recording, embedded(3, fsync=False) as cluster:
        client_sessions.with_java(gateway, cluster.bootstrap)
    return recording


@pytest.fixture(scope="module")
def java(gateway: JavaGateway) -> JavaFrames:
    return JavaFrames(gateway)


def differences(
    exchanges: Iterable[Exchange], again: Callable[[Exchange], bytes], sent: Callable[[Exchange], bytes]
) -> Iterator[str]:
    for exchange in exchanges:
        try:
            written = again(exchange)
        except NotKnownThere:
            if (exchange.api_key, exchange.version) not in NOT_IN_KIO | NOT_IN_3_9:
                yield f"{exchange!r} is not known there"
            continue
        except Exception as error:  # noqa: BLE001 (whatever a parser raises is told with the frame)
            yield f"{exchange!r} cannot be read: {error}\n  {sent(exchange).hex()}"
            continue
        if written != sent(exchange):
            yield f"{exchange!r} comes back changed\n  {sent(exchange).hex()}\n  {written.hex()}"


def check(
    exchanges: Iterable[Exchange], again: Callable[[Exchange], bytes], sent: Callable[[Exchange], bytes]
) -> None:
    found = list(differences(exchanges, again, sent))
    assert not found, f"{len(found)} frames, the first of them:\n" + "\n".join(found[:_MOST_TOLD])


def response(exchange: Exchange) -> bytes:
    return exchange.response


def request_of(exchange: Exchange) -> bytes:
    return exchange.request


def by_kio(exchange: Exchange) -> bytes:
    return kio_response(exchange.api_key, exchange.version, exchange.response)


def own(recording: Recording) -> list[Exchange]:
    """Return the exchanges between brokers."""
    return [
        each
        for each in recording
        if each.api_key in BETWEEN_BROKERS or (each.api_key == FETCH and b"-fetch" in each.request[8:40])
    ]


def test_recording_has_every_version(raw: Recording) -> None:
    seen = raw.versions()
    missing = {
        key: sorted(set(versions) - seen.get(key, set()))
        for key, versions in served_versions().items()
        if set(versions) - seen.get(key, set())
    }
    assert not missing, "\n" + "\n".join(
        f"{key:3} {REQUESTS[key].__name__:40} seen {sorted(seen.get(key, ()))}, not {versions}"
        for key, versions in missing.items()
    )


def test_recording_has_exchanges_of_clients_and_brokers(by_clients: Recording) -> None:
    """Without these exchanges the other checks would mean nothing."""
    assert BETWEEN_BROKERS | {0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 18, 19, 20, 21, 22, 32, 37, 44, 60} <= (
        by_clients.versions().keys()
    )
    assert {each.api_key for each in own(by_clients)} == BETWEEN_BROKERS | {FETCH}
    assert len(by_clients) > 300


def test_kio_rereads_every_version(raw: Recording) -> None:
    check(raw, by_kio, response)


def test_kio_rereads_responses_to_clients(by_clients: Recording) -> None:
    check(by_clients, by_kio, response)


def test_kio_rereads_requests_of_followers(by_clients: Recording) -> None:
    fetches = [each for each in own(by_clients) if each.api_key == FETCH]
    check(fetches, lambda it: kio_request(it.api_key, it.version, it.request), request_of)


@pytest.mark.jvm
def test_java_rereads_every_version(raw: Recording, java: JavaFrames) -> None:
    check(raw, java.response, response)


@pytest.mark.jvm
def test_java_rereads_responses_to_clients(by_clients: Recording, java: JavaFrames) -> None:
    check(by_clients, java.response, response)


@pytest.mark.jvm
def test_java_rereads_requests_between_brokers(by_clients: Recording, java: JavaFrames) -> None:
    check(own(by_clients), java.request, request_of)


@pytest.mark.jvm
def test_java_rereads_responses_to_java_clients(by_java: Recording, java: JavaFrames) -> None:
    assert {0, 1, 3, 8, 10, 11, 14, 16, 18, 19, 20, 32, 35, 37, 44} <= by_java.versions().keys()
    check(by_java, by_kio, response)
    check(by_java, java.response, response)


@pytest.mark.jvm
def test_check_finds_an_extra_byte(raw: Recording, java: JavaFrames) -> None:
    spoiled = [each._replace(response=each.response + b"\x00") for each in raw if each.version > 3][:20]
    spoiled = [each for each in spoiled if each.api_key not in BETWEEN_BROKERS]
    assert spoiled
    for again in (by_kio, java.response):
        assert len(list(differences(spoiled, again, response))) == len(spoiled)
