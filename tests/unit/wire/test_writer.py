"""The writer writes what the library's encoder does."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from restow.wire.messages import (
    REQUESTS,
    RESPONSES,
    MetadataRequest,
)
from restow.wire.reader import reader_of
from restow.wire.writer import writer_of
from tests.unit.wire.generated import messages, versions_of

ALL = [*REQUESTS.values(), *RESPONSES.values()]
EVERY_VERSION = [(message, version) for message in ALL for version in versions_of(message)]


@pytest.mark.parametrize("message", ALL, ids=lambda message: message.name)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_writer_writes_what_the_library_does(message, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions_of(message)))
    sent = data.draw(messages(message, version))
    written = writer_of(message, version)(sent)
    assert written == bytes(sent.encode(version=version))
    got, _ = reader_of(message, version)(written, 0)
    assert writer_of(message, version)(got) == written


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION, ids=lambda it: getattr(it, "name", it))
def test_fields_that_nobody_has_set_have_their_defaults(message, version: int) -> None:
    assert writer_of(message, version)(message()) == bytes(message().encode(version=version))


def test_no_list_is_an_empty_one_where_it_cannot_be_null() -> None:
    """Metadata 0 asks for all topics by naming none."""
    for version in versions_of(MetadataRequest):
        written = writer_of(MetadataRequest, version)(MetadataRequest(topics=None))
        assert written == bytes(MetadataRequest(topics=None).encode(version=version))


def test_long_texts_and_arrays_have_long_lengths() -> None:
    topics = [MetadataRequest.MetadataRequestTopic(name="a" * length) for length in (126, 127, 128, 20_000)]
    for version in versions_of(MetadataRequest):
        sent = MetadataRequest(topics=topics * 50)
        assert writer_of(MetadataRequest, version)(sent) == bytes(sent.encode(version=version))
