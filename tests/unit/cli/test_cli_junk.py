"""Random input gives a result or an `InvalidInput`, and no other error."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from restow.cli.groups.assign import assign_group
from restow.cli.groups.request import group_request
from restow.cli.place.command import place_topic
from restow.cli.place.request import PlaceRequest, place_request, read_current
from restow.cli.shared.documents import read_document
from restow.cli.shared.flags import parse_brokers, parse_topics
from restow.errors import InvalidInput

unhurried = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 12)
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "a", "t", "0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["t", "0", "id", "topics", "owned", "rack", "topic"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
group_files = st.fixed_dictionaries(
    {},
    optional={
        "partitions": st.dictionaries(st.sampled_from("tu"), st.integers(-1, 5), max_size=2) | junk,
        "members": st.lists(
            st.fixed_dictionaries(
                {"id": st.sampled_from(["a", "b", "c"]) | junk},
                optional={
                    "topics": st.lists(st.sampled_from("tuv"), max_size=3) | junk,
                    "owned": st.dictionaries(st.sampled_from("tuv"), st.lists(st.integers(0, 9)), max_size=2)
                    | junk,
                    "generation": st.integers(-2, 5) | junk,
                    "rack": st.sampled_from("ab") | junk,
                    "instance_id": st.sampled_from("xy") | junk,
                    "user_data": st.sampled_from(["", "AAAA", "AAAAAQABdAAAAAEAAAAAAAAAAQ=="]) | junk,
                },
            ),
            max_size=3,
        )
        | junk,
        "assignor": st.sampled_from(["range", "roundrobin", "sticky", "cooperative-sticky"]) | junk,
        "partition_racks": st.dictionaries(st.sampled_from("tu"), st.lists(st.lists(st.sampled_from("ab"))))
        | junk,
    },
)
place_files = st.fixed_dictionaries(
    {},
    optional={
        "brokers": st.sampled_from(["0-3", "0:a,1:b", "0-1:a,2"])
        | st.lists(st.integers(0, 4), max_size=4)
        | junk,
        "racks": st.sampled_from(["a", "a,b"]) | junk,
        "partitions": st.integers(-1, 6) | junk,
        "replication_factor": st.integers(-1, 4) | junk,
        "start_index": st.integers(0, 9) | junk,
        "start_partition": st.integers(0, 9) | junk,
        "seed": st.integers(0, 9) | junk,
        "rack_mode": st.sampled_from(["enforced", "safe", "disabled"]) | junk,
        "by_hand": st.sampled_from(["0:1,1:0", "0"]) | junk,
        "current": st.lists(st.lists(st.integers(0, 4), max_size=3), max_size=3) | junk,
        "to": st.integers(0, 6) | junk,
    },
)


def in_a_file(content: bytes, suffix: str) -> str:
    with tempfile.NamedTemporaryFile(suffix=suffix, delete=False) as file:
        file.write(content)
    return file.name


@unhurried
@given(st.text(alphabet="0123456789-:, ab²٣", max_size=20))
def test_parse_brokers_survives_random_text(text: str) -> None:
    with suppress(InvalidInput):
        assert parse_brokers(text)


@unhurried
@given(st.text(alphabet="0123456789=, ab²٣", max_size=20))
def test_parse_topics_survives_random_text(text: str) -> None:
    with suppress(InvalidInput):
        assert parse_topics(text)


@unhurried
@given(st.binary(max_size=60) | st.text(alphabet="[]{}:,-&*!|>'\"#% \n\tab01", max_size=60).map(str.encode))
def test_read_document_survives_random_bytes(content: bytes) -> None:
    for suffix in (".json", ".yaml", ""):
        path = in_a_file(content, suffix)
        try:
            with suppress(InvalidInput):
                read_document(path)
        finally:
            Path(path).unlink()


@unhurried
@given(group_files)
def test_read_group_survives_random_documents(content: dict[str, object]) -> None:
    path = in_a_file(json.dumps(content).encode(), ".json")
    try:
        with suppress(InvalidInput):
            json.dumps(assign_group(group_request(path, None, None, None, None)).document())
    finally:
        Path(path).unlink()


@unhurried
@given(place_files)
def test_read_place_file_survives_random_documents(content: dict[str, object]) -> None:
    path = in_a_file(json.dumps(content).encode(), ".json")
    try:
        with suppress(InvalidInput):
            json.dumps(place_topic(place_request(path, PlaceRequest(), None)).document())
    finally:
        Path(path).unlink()


@unhurried
@given(junk | st.fixed_dictionaries({"partitions": st.lists(junk, max_size=3)}))
def test_read_current_survives_random_documents(content: object) -> None:
    path = in_a_file(json.dumps(content).encode(), ".json")
    try:
        with suppress(InvalidInput):
            place_topic(PlaceRequest(current=read_current(path, None).replicas, brokers="0-4", to=5))
    finally:
        Path(path).unlink()
