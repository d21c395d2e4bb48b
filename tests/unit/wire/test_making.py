"""Structures made by name, beside those that the library makes."""

from __future__ import annotations

import pytest

from restow.wire.making import maker_of
from restow.wire.messages import DescribeLogDirsResponse, FetchResponse, LeaderAndIsrRequest
from restow.wire.writer import written

_Result = DescribeLogDirsResponse.DescribeLogDirsResult
_Topic = _Result.DescribeLogDirsTopic


def test_made_structure_is_as_one_of_the_library() -> None:
    named = {"partition_index": 3, "partition_size": 17, "offset_lag": 2}
    ours = maker_of(_Topic.DescribeLogDirsPartition)(**named)
    theirs = _Topic.DescribeLogDirsPartition(**named)
    assert ours == theirs
    assert (ours.tags, ours.unknown_tags, ours.version) == (theirs.tags, theirs.unknown_tags, theirs.version)
    assert ours.is_future_key is theirs.is_future_key is False


def test_made_structure_is_written_with_the_defaults_of_what_is_not_named() -> None:
    def answer(topic: object) -> bytes:
        result = _Result(log_dir="/data", topics=[topic], total_bytes=1, usable_bytes=1)
        return written(DescribeLogDirsResponse(results=[result]), 5)

    part = {"partition_index": 1, "partition_size": 5}
    ours = maker_of(_Topic)(name="t", partitions=[maker_of(_Topic.DescribeLogDirsPartition)(**part)])
    theirs = _Topic(name="t", partitions=[_Topic.DescribeLogDirsPartition(**part)])
    assert answer(ours) == answer(theirs)


def test_unknown_field_is_refused() -> None:
    with pytest.raises(AttributeError, match="leeder"):
        maker_of(LeaderAndIsrRequest.LeaderAndIsrPartitionState)(leeder=1)


def test_maker_of_a_structure_with_tagged_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="tagged"):
        maker_of(FetchResponse.FetchableTopicResponse.PartitionData)
