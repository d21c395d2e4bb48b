"""The common part of both placements: checks, rack modes, and randomness."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from restow.errors import (
    InvalidBrokers,
    InvalidInput,
    InvalidPartitions,
    InvalidReplicationFactor,
    RackInformationMissing,
)
from restow.placement import Broker, RackMode, place

THREE = [Broker(number) for number in range(3)]
RACKED = [Broker(0, "a"), Broker(1, "a"), Broker(2, "b")]
SOME_RACKED = [Broker(0, "a"), Broker(1), Broker(2, "b")]


@pytest.mark.parametrize(
    ("brokers", "partitions", "replication_factor", "error", "sentence"),
    [
        (THREE, 0, 1, InvalidPartitions, "The number of partitions must be larger than 0, not 0."),
        (THREE, -4, 1, InvalidPartitions, "The number of partitions must be larger than 0, not -4."),
        (THREE, 2**31 + 1, 1, InvalidPartitions, "would pass 2147483647"),
        (THREE, 1, 0, InvalidReplicationFactor, "The replication factor must be larger than 0, not 0."),
        (THREE, 1, -1, InvalidReplicationFactor, "The replication factor must be larger than 0, not -1."),
        (THREE, 1, 4, InvalidReplicationFactor, "factor 4 is larger than the number of brokers, 3; lower"),
        ([], 1, 1, InvalidBrokers, "There are no brokers to place replicas on; name at least one."),
        (
            [*THREE, Broker(2), Broker(0)],
            1,
            1,
            InvalidBrokers,
            "listed more than once: 0, 2. List each once.",
        ),
        ([Broker(-1)], 1, 1, InvalidBrokers, "Broker id -1 cannot be; Kafka's go from 0 to 2147483647."),
        ([Broker(2**31)], 1, 1, InvalidBrokers, "Broker id 2147483648 cannot be"),
        (
            SOME_RACKED,
            1,
            1,
            RackInformationMissing,
            "1 of 3 brokers have no rack (1) while the others have one. Give every broker a rack, or ignore",
        ),
    ],
)
def test_place_refuses_invalid_input_with_a_message(
    brokers: list[Broker], partitions: int, replication_factor: int, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=re.escape(sentence)):
        place(brokers, partitions, replication_factor, start_index=0)


@pytest.mark.parametrize(
    ("partitions", "replication_factor", "error"),
    [
        pytest.param(0, 0, InvalidPartitions, id="partitions before factor"),
        pytest.param(1, 0, InvalidReplicationFactor, id="factor before racks"),
        pytest.param(1, 4, InvalidReplicationFactor, id="too large a factor before racks"),
    ],
)
def test_place_raises_the_error_that_kafka_raises_first(
    partitions: int, replication_factor: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        place(SOME_RACKED, partitions, replication_factor, start_index=0)


def test_partition_ids_may_reach_the_last_but_not_pass_it() -> None:
    assert place(THREE, 2, 1, start_index=0, start_partition=2**31 - 2).shape == (2, 1)
    with pytest.raises(InvalidPartitions, match="3 partitions from id 2147483646 on"):
        place(THREE, 3, 1, start_index=0, start_partition=2**31 - 2)


def test_error_does_not_list_all_of_many_brokers_without_a_rack() -> None:
    brokers = [Broker(0, "a"), *(Broker(number) for number in range(1, 8))]
    with pytest.raises(RackInformationMissing, match=r"7 of 8 .* \(1, 2, 3, 4, 5, …\)"):
        place(brokers, 1, 1, start_index=0)


@pytest.mark.parametrize("mode", ["enforced", "safe", RackMode.ENFORCED, RackMode.SAFE])
def test_enforced_and_safe_modes_use_racks(mode: str) -> None:
    assert place(RACKED, 2, 2, start_index=0, rack_mode=mode).tolist() == [[0, 2], [2, 1]]


def test_disabled_mode_ignores_racks() -> None:
    plain = place(THREE, 9, 2, start_index=1)
    assert np.array_equal(place(RACKED, 9, 2, start_index=1, rack_mode="disabled"), plain)
    assert np.array_equal(place(SOME_RACKED, 9, 2, start_index=1, rack_mode="disabled"), plain)


def test_safe_mode_ignores_incomplete_racks() -> None:
    plain = place(THREE, 9, 2, start_index=1)
    assert np.array_equal(place(SOME_RACKED, 9, 2, start_index=1, rack_mode="safe"), plain)


def test_unknown_mode_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="no rack mode 'strict'; use one of enforced, safe, disabled"):
        place(THREE, 1, 1, rack_mode="strict")


def test_same_seed_gives_the_same_placement() -> None:
    first, second = (place(RACKED, 20, 2, rng=np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(first, second)


def test_start_and_shift_are_drawn_independently() -> None:
    rng = np.random.default_rng(1)
    brokers = [Broker(number) for number in range(4)]
    seen = {tuple(place(brokers, 1, 2, rng=rng)[0].tolist()) for _ in range(400)}
    assert seen == {(one, other) for one in range(4) for other in range(4) if one != other}


@pytest.mark.parametrize("options", [{}, {"start_index": None}, {"start_index": -1}])
def test_place_is_random_without_a_start(options: dict[str, Any]) -> None:
    brokers = [Broker(number) for number in range(500)]
    leaders = {int(place(brokers, 1, 1, **options)[0, 0]) for _ in range(20)}
    assert len(leaders) > 1


def test_fixed_start_does_not_use_the_generator() -> None:
    rng = np.random.default_rng(3)
    place(THREE, 5, 2, start_index=1, rng=rng)
    assert rng.integers(10**9) == np.random.default_rng(3).integers(10**9)
