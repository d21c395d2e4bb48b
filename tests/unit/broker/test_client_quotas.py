"""Quotas of clients: which one holds, and what a broker does to a client that exceeds it."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.config.configs import BrokerConfigs
from restow.cluster.quotas import ClientQuotas, QuotaEntity
from restow.cluster.quotas import clients as client_quotas
from restow.wire import messages
from restow.wire.records import Record, build
from tests.quota_requests import alteration, question, shown
from tests.unit.broker.harm import until
from tests.unit.broker.test_handler_rules import Bench, on_bench, produce

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PRODUCE, FETCH, METADATA, DESCRIBE, ALTER = 0, 1, 3, 48, 49
RATE, CONSUMER_RATE, PERCENTAGE = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
USER, CLIENT, DEFAULT = "CN=a b", "app", "<default>"
BY_PRECEDENCE = [
    {"user": USER, "client-id": CLIENT},
    {"user": USER, "client-id": None},
    {"user": USER},
    {"user": None, "client-id": CLIENT},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": CLIENT},
    {"client-id": None},
]


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic_s(self) -> float:
        return self.now_s


def quotas_of(*entities: Mapping[str, str | None], clock: Any = None) -> ClientQuotas:
    """Return quotas of 100, 101, 102 … bytes per second for these."""
    quotas = ClientQuotas(BrokerConfigs(), clock or Hand())
    for number, each in enumerate(entities):
        quotas.put(QuotaEntity.of(tuple(each.items())), {RATE: 100.0 + number})
    return quotas


@pytest.mark.parametrize("first", range(len(BY_PRECEDENCE)))
def test_quota_that_names_the_client_most_closely_holds(first: int) -> None:
    found = quotas_of(*BY_PRECEDENCE[first:]).of(USER, CLIENT)
    assert found.produce is not None
    assert found.produce.limit == 100.0
    assert (found.fetch, found.request) == (None, None)


@pytest.mark.parametrize(
    ("entity", "shared"),
    [
        ({"user": USER}, {(USER, "app"), (USER, "other")}),
        ({"user": None}, {(USER, "app"), (USER, "other")}),
        ({"client-id": CLIENT}, {(USER, "app"), ("bob", "app")}),
        ({"client-id": None}, {(USER, "app"), ("bob", "app")}),
        ({"user": None, "client-id": None}, {(USER, "app")}),
        ({"user": USER, "client-id": CLIENT}, {(USER, "app")}),
    ],
)
def test_clients_for_whom_a_quota_holds_together_share_it(
    entity: Mapping[str, str | None], shared: set[tuple[str, str]]
) -> None:
    quotas = quotas_of(entity)
    mine = quotas.of(USER, CLIENT).produce
    assert mine is not None
    mine.note(1_000_000)
    everybody = set(product((USER, "bob"), ("app", "other")))
    found = {each: quotas.of(*each).produce for each in everybody}
    assert {each for each, quota in found.items() if quota is not None and quota.note(1)} == shared


def test_user_who_is_called_default_is_an_ordinary_one() -> None:
    quotas = quotas_of({"user": DEFAULT})
    assert quotas.of("alice", CLIENT).produce is None
    assert quotas.of(DEFAULT, CLIENT).produce is not None


def test_changed_quota_judges_what_was_counted_before() -> None:
    quotas = quotas_of({"user": None})
    first = quotas.of(USER, CLIENT).produce
    assert first is not None
    assert not first.note(900)
    quotas.put(QuotaEntity.of((("user", None),)), {RATE: 10.0})
    changed = quotas.of(USER, CLIENT).produce
    assert changed is not None
    assert changed.note(100) == 90_000
    quotas.put(QuotaEntity.of((("user", None),)), {})
    assert quotas.of(USER, CLIENT).produce is None
    assert not quotas.is_on


def test_request_quota_throttles_for_one_sample_at_most() -> None:
    quotas = ClientQuotas(BrokerConfigs({"quota.window.size.seconds": "2"}), Hand())  # type: ignore[arg-type]
    quotas.put(QuotaEntity(user=DEFAULT), {PERCENTAGE: 1.0})
    found = quotas.of(USER, CLIENT).request
    assert found is not None
    assert found.note(1_000_000) == 2_000


def test_idle_clients_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_quotas, "_MOST_KNOWN", 3)
    clock = Hand()
    quotas = quotas_of({"client-id": None}, clock=clock)
    for number in range(20):
        quota = quotas.of("", str(number)).produce
        assert quota is not None
        quota.note(2_000)
        clock.now_s += 4
    assert len(quotas._known) <= 3
    assert len(quotas._rates) <= 6
    again = quotas.of("", "19").produce
    assert again is not None
    assert again.note(0) > 0


async def set_quota(bench: Bench, quotas: Mapping[str, float | None], **who: str | None) -> None:
    """Set a quota, and wait until the first broker obeys."""
    entity = {kind.replace("_", "-"): name for kind, name in who.items()} or {"user": None}
    answer = await bench.ask(ALTER, 1, alteration((entity, quotas)), broker=1)
    assert not answer.entries[0].error_code
    obeyed = bench.cluster.brokers[0].services.client_quotas
    wanted = {key: value for key, value in quotas.items() if value is not None}
    await until(lambda: obeyed._set.get(QuotaEntity.of(tuple(entity.items())), {}) == wanted)


def large(size: int = 100_000) -> Any:
    return produce(records=build([Record(0, 1_000, None, b"x" * size)]))


def test_quota_is_told_by_every_broker_until_it_is_removed(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await set_quota(bench, {RATE: 1e6, PERCENTAGE: 12.5}, user="alice", client_id=None)
        for broker in (0, 1):
            answer = await bench.ask(DESCRIBE, 1, question(), broker=broker)
            assert shown(answer) == {(("client-id", None), ("user", "alice")): {RATE: 1e6, PERCENTAGE: 12.5}}
        await set_quota(bench, {RATE: None, PERCENTAGE: None}, user="alice", client_id=None)
        assert shown(await bench.ask(DESCRIBE, 1, question())) == {}
        for bad in (0.0, -1.0, float("nan"), float("inf")):
            answer = await bench.ask(ALTER, 1, alteration(({"user": "alice"}, {RATE: bad})))
            assert answer.entries[0].error_code == 42, bad

    on_bench(tmp_path, scenario)


def test_throttled_producer_is_told_and_not_read(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await set_quota(bench, {RATE: 1.0})
        client = bench.clients[0]
        answer = await bench.ask(PRODUCE, 9, large())
        assert not answer.responses[0].partition_responses[0].error_code
        assert answer.throttle_time_ms > 10_000_000
        client.ask(METADATA, 4, 2, messages.MetadataRequest(topics=[]))
        other = await type(client).connect(int(bench.cluster.brokers[0].address.rpartition(":")[2]))
        for number in range(20):
            other.ask(METADATA, 4, number, messages.MetadataRequest(topics=[]))
            await other.answer(METADATA, 4)
        assert client.frames.empty(), "the connection is read although it is throttled"
        other.connection.close()

    on_bench(tmp_path, scenario)


@pytest.mark.parametrize("version", range(3, 12))
def test_throttled_producer_is_served_again(tmp_path: Path, version: int) -> None:
    async def scenario(bench: Bench) -> None:
        await set_quota(bench, {RATE: 9_999.0})
        answer = await bench.ask(PRODUCE, version, large())
        assert 0 < answer.throttle_time_ms < 1000
        assert (await bench.ask(METADATA, 4, messages.MetadataRequest(topics=[]))).brokers

    on_bench(tmp_path, scenario)


def test_throttled_producer_without_acks_is_not_read(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await set_quota(bench, {RATE: 9_999.0})
        body = large()
        body.acks = 0
        bench.clients[0].ask(PRODUCE, 9, 1, body)
        connection = bench.clients[0]
        connection.ask(METADATA, 4, 2, messages.MetadataRequest(topics=[]))
        assert await connection.number() == 2

    on_bench(tmp_path, scenario)


def fetch(*, session: int = 0, epoch: int = -1, offset: int = 0, most: int = 1_000_000) -> Any:
    kind = messages.FetchRequest
    partition = kind.FetchTopic.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=most)
    return kind(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=most,
        session_id=session,
        session_epoch=epoch,
        topics=[kind.FetchTopic(topic="t", partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
    )


@pytest.mark.parametrize("offset", [0, 1])
def test_throttled_consumer_gets_the_same_answer_later(tmp_path: Path, offset: int) -> None:
    """Within its session: the empty response changes nothing there, not even what it knows of an end."""

    async def scenario(bench: Bench) -> None:
        await bench.produced()
        ask = partial(bench.ask, FETCH, 12)
        began = await ask(fetch(epoch=0))
        records = began.responses[0].partitions[0].records
        assert records
        await set_quota(bench, {CONSUMER_RATE: 300.0})
        quota = bench.cluster.brokers[0].services.client_quotas.of("ANONYMOUS", "test").fetch
        assert quota is not None
        quota.note(2_995)
        answer = await ask(fetch(session=began.session_id, epoch=1, offset=offset))
        assert answer.throttle_time_ms > 0
        assert (answer.responses, answer.error_code, answer.session_id) == ([], 0, began.session_id)
        quota.take_back(2_995)
        unchanged = messages.FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1_000_000,
            session_id=began.session_id,
            session_epoch=2,
            topics=[],
            forgotten_topics_data=[],
            rack_id="",
        )
        answer = await ask(unchanged)
        assert not answer.throttle_time_ms
        told = answer.responses[0].partitions[0]
        assert (bytes(told.records), told.high_watermark) == (records if offset == 0 else b"", 1)

    on_bench(tmp_path, scenario)


@pytest.mark.parametrize("version", [4, 6, 12])
def test_throttled_consumer_begins_no_session(tmp_path: Path, version: int) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.produced()
        await set_quota(bench, {CONSUMER_RATE: 300.0})
        services = bench.cluster.brokers[0].services
        quota = services.client_quotas.of("ANONYMOUS", "test").fetch
        assert quota is not None
        quota.note(3_000)
        sessions = services.replicas.sessions
        before = {each for each, it in sessions._sessions.items() if it.fetching.replica_id < 0}
        answer = await bench.ask(FETCH, version, fetch(epoch=0))
        assert (answer.responses, answer.session_id) == ([], 0)
        assert answer.throttle_time_ms > 0
        assert {each for each, it in sessions._sessions.items() if it.fetching.replica_id < 0} == before

    on_bench(tmp_path, scenario)


def test_consumer_may_read_what_a_whole_window_allows(tmp_path: Path) -> None:
    """A response larger than that would be throttled each time, and the consumer would never get on."""

    async def scenario(bench: Bench) -> None:
        for _ in range(10):
            await bench.ask(PRODUCE, 9, large(10_000))
        await set_quota(bench, {CONSUMER_RATE: 3_000.0})
        answer = await bench.ask(FETCH, 12, fetch())
        assert not answer.throttle_time_ms
        assert 10_000 < len(answer.responses[0].partitions[0].records) < 30_000

    on_bench(tmp_path, scenario)


def test_request_quota_throttles_all_requests(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await set_quota(bench, {PERCENTAGE: 1e-9}, client_id="test")
        answer = await bench.ask(METADATA, 9, messages.MetadataRequest(topics=[]))
        assert 0 < answer.throttle_time_ms <= 1000
        assert answer.brokers

    on_bench(tmp_path, scenario)


def test_followers_are_not_throttled(tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        await set_quota(bench, {CONSUMER_RATE: 1.0, RATE: 1.0, PERCENTAGE: 1e-9})
        appended = await bench.ask(PRODUCE, 9, large())  # to all replicas, so the follower has fetched it
        assert not appended.responses[0].partition_responses[0].error_code

    on_bench(tmp_path, scenario)
