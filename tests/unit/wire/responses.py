"""Random content for the hand-written responses, and the same content for the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from restow.wire.fetch import DivergingEpoch, Fetched
from restow.wire.messages import FetchResponse, MetadataResponse, ProduceResponse
from restow.wire.metadata import NOT_ASKED_FOR, PartitionMetadata, TopicMetadata
from restow.wire.primitives import Endpoint, LeaderAndEpoch
from restow.wire.produce import Produced

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
ID = st.integers(0, 2**31 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=9) | st.just("n" * 200)
NODES = st.lists(INT32, max_size=4).map(tuple)
LEADER = st.none() | st.builds(LeaderAndEpoch, ID, ID)
ENDPOINT = st.builds(Endpoint, INT32, TEXT, INT32, st.none() | TEXT)
ENDPOINTS = st.lists(ENDPOINT, max_size=2, unique_by=lambda endpoint: endpoint.node_id).map(tuple)
RECORDS = st.none() | st.binary(max_size=40) | st.just(b"R" * 3000)
PRODUCED = st.builds(
    Produced,
    INT32,
    INT16,
    INT64,
    INT64,
    INT64,
    st.none() | TEXT,
    LEADER,
    st.lists(st.tuples(INT32, TEXT), max_size=3).map(tuple),
)
FETCHED = st.builds(
    Fetched,
    INT32,
    INT16,
    INT64,
    INT64,
    INT64,
    RECORDS,
    st.none() | st.builds(DivergingEpoch, ID, ID),
    LEADER,
)
PARTITION = st.builds(PartitionMetadata, INT32, INT32, INT32, NODES, NODES, NODES, INT16)


def produced_topics() -> SearchStrategy[dict[str, Any]]:
    """Return arguments of `encode_produce_response`."""
    topic = st.tuples(TEXT, st.lists(PRODUCED, max_size=3))
    topics = st.lists(topic, max_size=3, unique_by=lambda it: it[0])
    return st.fixed_dictionaries({"topics": topics, "throttle_time_ms": INT32, "endpoints": ENDPOINTS})


def fetched_topics(*, by_id: bool) -> SearchStrategy[dict[str, Any]]:
    """Return arguments of `encode_fetch_response`."""
    topic = st.tuples(st.uuids() if by_id else TEXT, st.lists(FETCHED, max_size=3))
    return st.fixed_dictionaries(
        {
            "topics": st.lists(topic, max_size=3),
            "throttle_time_ms": INT32,
            "error_code": INT16,
            "session_id": INT32,
            "endpoints": ENDPOINTS,
        }
    )


def metadata_parts() -> SearchStrategy[dict[str, Any]]:
    """Return arguments of `encode_metadata_response`; topics have the arguments of `TopicMetadata.encode`."""
    partitions = st.lists(PARTITION, max_size=3, unique_by=lambda it: it.partition)
    topic = st.builds(
        TopicMetadata, TEXT, topic_id=st.none() | st.uuids(), is_internal=st.booleans(), partitions=partitions
    )
    operations = st.just(NOT_ASKED_FOR) | st.integers(0, 2**31 - 1)
    arguments = st.fixed_dictionaries({"error_code": INT16, "authorized_operations": operations})
    return st.fixed_dictionaries(
        {
            "brokers": ENDPOINTS,
            "cluster_id": st.none() | TEXT,
            "controller_id": INT32,
            "topics": st.lists(st.tuples(topic, arguments), max_size=3, unique_by=lambda it: it[0].name),
            "throttle_time_ms": INT32,
            "authorized_operations": operations,
        }
    )


def library_produce(version: int, topics: Any, throttle_time_ms: int, endpoints: Any) -> ProduceResponse:
    """Return the library's message with the same content."""
    topic_class = ProduceResponse.TopicProduceResponse
    partition_class = topic_class.PartitionProduceResponse
    listed = [
        topic_class(
            name=name,
            partition_responses=[
                partition_class(
                    index=it.partition,
                    error_code=it.error_code,
                    base_offset=it.base_offset,
                    log_append_time_ms=it.log_append_time_ms,
                    log_start_offset=it.log_start_offset,
                    record_errors=[
                        partition_class.BatchIndexAndErrorMessage(
                            batch_index=number, batch_index_error_message=message
                        )
                        for number, message in it.record_errors
                    ],
                    error_message=it.error_message,
                    current_leader=_leader(partition_class, it),
                )
                for it in partitions
            ],
        )
        for name, partitions in topics
    ]
    return ProduceResponse(
        version=version,
        responses=listed,
        throttle_time_ms=throttle_time_ms,
        node_endpoints=[_endpoint(ProduceResponse, it) for it in endpoints],
    )


def library_fetch(
    version: int, topics: Any, throttle_time_ms: int, error_code: int, session_id: int, endpoints: Any
) -> FetchResponse:
    """Return the library's message with the same content."""
    topic_class = FetchResponse.FetchableTopicResponse
    key = "topic_id" if version >= 13 else "topic"
    listed = [
        topic_class(**{key: topic}, partitions=[_fetched(topic_class.PartitionData, it) for it in partitions])
        for topic, partitions in topics
    ]
    return FetchResponse(
        version=version,
        responses=listed,
        throttle_time_ms=throttle_time_ms,
        error_code=error_code,
        session_id=session_id,
        node_endpoints=[_endpoint(FetchResponse, it) for it in endpoints],
    )


def library_metadata(version: int, brokers: Any, topics: Any, authorized_operations: int, **rest: Any) -> Any:
    """Return the library's message with the same content."""
    return MetadataResponse(
        version=version,
        brokers=[MetadataResponse.MetadataResponseBroker(**it._asdict()) for it in brokers],
        topics=[_metadata_topic(topic, **arguments) for topic, arguments in topics],
        authorized_operations=_operations(authorized_operations),
        **rest,
    )


def _fetched(kind: Any, it: Fetched) -> Any:
    diverging = it.diverging_epoch
    return kind(
        partition_index=it.partition,
        error_code=it.error_code,
        high_watermark=it.high_watermark,
        last_stable_offset=it.last_stable_offset,
        log_start_offset=it.log_start_offset,
        diverging_epoch=None if diverging is None else kind.EpochEndOffset(**diverging._asdict()),
        current_leader=_leader(kind, it),
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=it.records,
    )


def _metadata_topic(topic: TopicMetadata, error_code: int, authorized_operations: int) -> Any:
    kind = MetadataResponse.MetadataResponseTopic
    return kind(
        error_code=error_code,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        authorized_operations=_operations(authorized_operations),
        partitions=[
            kind.MetadataResponsePartition(
                error_code=it.error_code,
                partition_index=it.partition,
                leader_id=it.leader_id,
                leader_epoch=it.leader_epoch,
                replica_nodes=it.replicas,
                isr_nodes=it.isr,
                offline_replicas=it.offline_replicas,
            )
            for it in topic.partitions
        ],
    )


def _operations(bits: int) -> set[int] | None:
    return None if bits == NOT_ASKED_FOR else {bit for bit in range(32) if bits >> bit & 1}


def _leader(kind: Any, it: Produced | Fetched) -> Any:
    return None if it.current_leader is None else kind.LeaderIdAndEpoch(**it.current_leader._asdict())


def _endpoint(kind: Any, it: Endpoint) -> Any:
    return kind.NodeEndpoint(**it._asdict())
