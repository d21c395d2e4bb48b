"""Random responses of every supported key and version survive kio's parser unchanged.

`test_wire.py` does the same with Kafka's own classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from restow.cluster.handlers import served_versions
from restow.wire import fetch, metadata, produce
from restow.wire.codec import Request, encode_response
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import RESPONSES
from restow.wire.metadata import TopicMetadata
from tests.oracle.rereading import NOT_IN_KIO, NotKnownThere, kio_message, kio_response, kio_response_schema
from tests.unit.wire.generated import messages
from tests.unit.wire.responses import fetched_topics, metadata_parts, produced_topics

if TYPE_CHECKING:
    from collections.abc import Iterable

SERVED = {(key, version) for key, versions in served_versions().items() for version in versions}
FEW = settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


CODES = tuple(ErrorCode)
TIME = st.just(-1) | st.integers(0, 10**13)
NARROW = {
    "ErrorCode": st.sampled_from(CODES),
    "PartitionErrorCode": st.sampled_from(CODES),
    "LogAppendTimeMs": TIME,
    "TransactionStartTimeMs": st.integers(0, 10**13),
    "SessionLifetimeMs": st.integers(0, 10**13),
}
"""kio validates values: error codes must exist, and timestamps be of this era."""


def narrowed(content: Any) -> Any:
    """Narrow the content of hand-written responses in the same way."""
    if isinstance(content, dict):
        return {name: narrowed(_fit(name, value)) for name, value in content.items()}
    if isinstance(content, tuple) and hasattr(content, "_asdict"):
        return content._replace(**narrowed(content._asdict()))
    if isinstance(content, list | tuple):
        return type(content)(map(narrowed, content))
    if isinstance(content, TopicMetadata):
        partitions = narrowed(tuple(content.partitions))
        return TopicMetadata(
            content.name, topic_id=content.topic_id, is_internal=content.is_internal, partitions=partitions
        )
    return content


def _fit(name: str, value: Any) -> Any:
    if name == "error_code":
        return CODES[value % len(CODES)]
    return value % 10**13 if name == "log_append_time_ms" else value


def known(versions: Iterable[int], api_key: int) -> list[int]:
    return [version for version in versions if (api_key, version) not in NOT_IN_KIO]


def test_kio_has_all_other_messages() -> None:
    missing = set()
    for key, version in SERVED:
        try:
            kio_response_schema(key, version)
        except NotKnownThere:
            missing.add((key, version))
    assert missing == NOT_IN_KIO


@pytest.mark.parametrize(("key", "version"), sorted(SERVED - NOT_IN_KIO), ids=str)
def test_kio_rereads_responses(key: int, version: int) -> None:
    """With their headers, as a broker sends them."""

    @FEW
    @given(body=messages(RESPONSES[key], version, NARROW))
    def check(body: Any) -> None:
        frame = b"".join(map(bytes, encode_response(Request(key, version, 77, None, None), body)))
        assert kio_response(key, version, frame) == frame

    check()


@pytest.mark.parametrize("version", known(produce.VERSIONS, 0))
@FEW
@given(content=produced_topics())
def test_kio_rereads_hand_written_produce_responses(version: int, content: dict[str, Any]) -> None:
    encoded = b"".join(produce.encode_produce_response(version, **narrowed(content)))
    assert kio_message(kio_response_schema(0, version), encoded) == encoded


@pytest.mark.parametrize("version", known(fetch.VERSIONS, 1))
@FEW
@given(data=st.data())
def test_kio_rereads_hand_written_fetch_responses(version: int, data: st.DataObject) -> None:
    content = narrowed(data.draw(fetched_topics(by_id=version >= 13)))
    encoded = b"".join(map(bytes, fetch.encode_fetch_response(version, **content)))
    assert kio_message(kio_response_schema(1, version), encoded) == encoded


@pytest.mark.parametrize("version", known(metadata.VERSIONS, 3))
@FEW
@given(content=metadata_parts())
def test_kio_rereads_hand_written_metadata_responses(version: int, content: dict[str, Any]) -> None:
    content = narrowed(content)
    topics = [topic.encode(version, **arguments) for topic, arguments in content["topics"]]
    encoded = b"".join(metadata.encode_metadata_response(version, **{**content, "topics": topics}))
    assert kio_message(kio_response_schema(3, version), encoded) == encoded


def test_check_finds_wrong_bytes() -> None:
    """Equivalent or additional bytes must not pass."""
    schema = kio_response_schema(12, 4)
    right = b"".join(map(bytes, encode_response(Request(12, 4, 1, None, None), RESPONSES[12]())))[5:]
    assert kio_message(schema, right) == right
    with pytest.raises(AssertionError, match="1 bytes unread"):
        kio_message(schema, right + b"\x00")
    wide = right[:-1] + b"\x80\x00"
    assert kio_message(schema, wide) == right != wide
