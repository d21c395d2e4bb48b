"""The sticky assignors' user data: encoding, and decoding of any bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.assignors import TopicPartition, get
from restow.assignors.user_data import (
    NOTHING,
    Claim,
    decode_claim,
    decode_generation,
    encode_claim,
    encode_generation,
)
from tests.unit.assignors.small_groups import same_cases

OWNED = (TopicPartition("a", 0), TopicPartition("a", 7), TopicPartition("bé", 1))
# By hand: two topics, "a" with 0 and 7, "bé" with 1.
V0 = bytes.fromhex("00000002 0001 61 00000002 00000000 00000007 0003 62c3a9 00000001 00000001")
V1 = V0 + bytes.fromhex("0000002a")

partitions = st.builds(TopicPartition, st.text(max_size=9), st.integers(-(2**31), 2**31 - 1))
generations = st.none() | st.integers(-(2**31), 2**31 - 1)


def test_encoding_equals_bytes_written_by_hand() -> None:
    assert encode_claim(OWNED, 42) == V1
    assert encode_claim(OWNED, None) == V0
    assert decode_claim(V1) == Claim(OWNED, 42)
    assert decode_claim(V0) == Claim(OWNED, None)


def test_empty_claim_differs_from_no_claim() -> None:
    assert encode_claim((), 3) == bytes(7) + b"\3"
    assert decode_claim(bytes(7) + b"\3") == Claim((), 3)
    assert decode_claim(bytes(4)) == Claim((), None)
    assert decode_claim(b"") == Claim((), None)


@same_cases
@given(owned=st.lists(partitions), generation=generations)
def test_encode_and_decode_are_a_round_trip(owned: list[TopicPartition], generation: int | None) -> None:
    first_seen = [topic for topic, _ in owned]
    by_topic = sorted(owned, key=lambda p: first_seen.index(p.topic))
    assert decode_claim(encode_claim(tuple(owned), generation)) == Claim(tuple(by_topic), generation)


def test_trailing_bytes_are_ignored() -> None:
    assert decode_claim(V1 + b"more") == Claim(OWNED, 42)
    for odd in (b"\1", b"\1\2", b"\1\2\3"):
        assert decode_claim(V0 + odd) == Claim(OWNED, None)


@pytest.mark.parametrize("length", range(1, len(V0)))
def test_truncated_data_counts_as_nothing(length: int) -> None:
    assert decode_claim(V0[:length]) == NOTHING


@pytest.mark.parametrize("length", range(len(V0), len(V1)))
def test_data_truncated_in_the_generation_is_the_older_schema(length: int) -> None:
    assert decode_claim(V1[:length]) == Claim(OWNED, None)


@pytest.mark.parametrize("wrong", [-1, -(2**31), 3, 1000, 2**31 - 1])
@pytest.mark.parametrize("at", [0, 7, 24])
def test_impossible_array_lengths_count_as_nothing(at: int, wrong: int) -> None:
    """This includes lengths that would allocate gigabytes."""
    assert struct.unpack_from(">i", V1, at)[0] in (1, 2)
    assert decode_claim(V1[:at] + struct.pack(">i", wrong) + V1[at + 4 :]) == NOTHING


@pytest.mark.parametrize("wrong", [-1, -(2**15), 1000, 2**15 - 1])
@pytest.mark.parametrize("at", [4, 19])
def test_impossible_name_lengths_count_as_nothing(at: int, wrong: int) -> None:
    assert struct.unpack_from(">h", V1, at)[0] in (1, 3)
    assert decode_claim(V1[:at] + struct.pack(">h", wrong) + V1[at + 2 :]) == NOTHING


def test_names_that_are_not_utf8_match_no_topic() -> None:
    claim = decode_claim(V1.replace(b"\xc3\xa9", b"\xff\xfe"))
    assert [p.partition for p in claim.owned] == [0, 7, 1]
    assert claim.owned[2].topic == "b\ufffd\ufffd"


@same_cases
@given(
    data=st.binary(max_size=40)
    | st.lists(st.sampled_from((b"\0\0\0\1", b"\0\1a", b"\0\0", b"\0\0\0\0", b"\xff\xff"))).map(b"".join)
)
def test_any_bytes_are_decoded(data: bytes) -> None:
    owned, generation = decode_claim(data)
    assert all(-(2**31) <= p.partition < 2**31 for p in owned)
    assert generation is None or -(2**31) <= generation < 2**31
    again = encode_claim(owned, generation)
    assert decode_claim(again).generation == generation


@same_cases
@given(at=st.integers(0, len(V1) - 1), value=st.integers(0, 255))
def test_one_wrong_byte_does_not_crash(at: int, value: int) -> None:
    owned, generation = decode_claim(V1[:at] + bytes([value]) + V1[at + 1 :])
    assert len(owned) <= 4
    assert generation is None or type(generation) is int


def test_user_data_of_a_cooperative_member_has_four_bytes() -> None:
    assert encode_generation(7) == b"\0\0\0\7"
    assert decode_generation(b"\0\0\0\7") == 7
    assert decode_generation(b"\xff\xff\xff\xff") == -1
    assert decode_generation(b"\0\0\0\7more") == 7
    assert [decode_generation(bytes(n)) for n in range(4)] == [-1, -1, -1, -1]


def test_each_assignor_has_its_user_data() -> None:
    assert get("sticky").user_data(OWNED, 42) == V1
    assert get("sticky").user_data(list(OWNED), 42) == V1
    assert get("sticky").user_data((), 1) == bytes(7) + b"\1"
    assert get("sticky").user_data(None, -1) is None
    assert get("cooperative-sticky").user_data(OWNED, 42) == b"\0\0\0\x2a"
    assert get("cooperative-sticky").user_data(None, -1) == b"\xff" * 4
    assert get("range").user_data(OWNED, 42) is None
    assert get("roundrobin").user_data(OWNED, 42) is None
