"""A broker's connections to others: as controller to all brokers, as follower to leaders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.handlers import HANDLERS
from restow.cluster.net.peers import Address
from restow.cluster.replication import FetchAnswer
from restow.cluster.store import NoNode, StoreError
from restow.cluster.store.znodes import BrokerRegistration
from restow.model import TopicPartition
from restow.wire.codec import FETCH
from restow.wire.fetch import REQUEST_VERSION, DivergingEpoch, Fetched, encode_fetch_request

if TYPE_CHECKING:
    from restow.cluster.net.peers import Peers
    from restow.cluster.replication import FetchSpec
    from restow.cluster.store import Store
    from restow.wire.messages import Message

_ANSWER_S = 30.0


async def locate(store: Store, listener: str, broker_id: int) -> Address:
    """Return where a broker has registered the listener. Raises ConnectionError if it has not."""
    path = BrokerRegistration.path(broker_id)
    try:
        endpoints = BrokerRegistration.decode((await store.get(path)).data, path).endpoints
    except NoNode:
        raise ConnectionError(f"broker {broker_id} is not registered") from None
    except StoreError as error:
        raise ConnectionError(f"where broker {broker_id} is cannot be told: {error}") from error
    for endpoint in endpoints:
        if endpoint.name == listener:
            return Address(endpoint.host, endpoint.port)
    raise ConnectionError(f"broker {broker_id} has no listener {listener}")


class WireChannel:
    """Sends controller requests, each in the latest version that brokers support."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    async def call(self, broker_id: int, request: Message) -> Message:
        """Return the broker's response. Raises ConnectionError or TimeoutError if there is none."""
        api_key = request.API_KEY
        version = HANDLERS[api_key].versions[-1]
        return await self._peers.call(broker_id, api_key, version, request, timeout_s=_ANSWER_S)


class WireLeader:
    """Sends a follower's fetches to one leader."""

    def __init__(self, peers: Peers, leader_id: int) -> None:
        self._peers = peers
        self._leader_id = leader_id

    async def fetch(self, spec: FetchSpec) -> FetchAnswer:
        """Fetch from the leader. Raises ConnectionError or TimeoutError without a response."""
        answer = await self._peers.call(
            self._leader_id,
            FETCH,
            REQUEST_VERSION,
            _request(spec),
            timeout_s=spec.max_wait_ms / 1000 + _ANSWER_S,
        )
        return FetchAnswer(
            error_code=answer.error_code,
            session_id=answer.session_id,
            partitions={
                TopicPartition(topic.topic, each.partition_index): _fetched(each)
                for topic in answer.responses
                for each in topic.partitions
            },
        )

    def close(self) -> None:
        """Refuse new calls and end pending ones with ConnectionError."""
        self._peers.hang_up(self._leader_id)


def _request(spec: FetchSpec) -> tuple[bytes]:
    return encode_fetch_request(
        spec.partitions.items(),
        replica_id=spec.replica_id,
        max_wait_ms=spec.max_wait_ms,
        min_bytes=spec.min_bytes,
        max_bytes=spec.max_bytes,
        session_id=spec.session_id,
        session_epoch=spec.session_epoch,
        forgotten=spec.forgotten,
    )


def _fetched(it: Message) -> Fetched:
    diverging = it.diverging_epoch
    has_diverged = diverging is not None and diverging.epoch >= 0
    return Fetched(
        it.partition_index,
        it.error_code,
        it.high_watermark,
        it.last_stable_offset,
        it.log_start_offset,
        it.records or b"",
        diverging_epoch=DivergingEpoch(diverging.epoch, diverging.end_offset) if has_diverged else None,
    )
