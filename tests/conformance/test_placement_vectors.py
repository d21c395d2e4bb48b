"""Recorded results of Kafka 3.9.1's AdminUtils, assignments and refusals alike."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from restow.errors import InvalidPartitions, InvalidReplicationFactor, RackInformationMissing
from restow.placement import Broker, place

VECTORS = Path(__file__).parent / "vectors" / "placement.jsonl.gz"

OUR_ERROR = {
    "AdminOperationException": RackInformationMissing,
    "InvalidPartitionsException": InvalidPartitions,
    "InvalidReplicationFactorException": InvalidReplicationFactor,
}


def _vectors() -> list[dict[str, Any]]:
    with gzip.open(VECTORS, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _placed(vector: dict[str, Any]) -> dict[int, list[int]]:
    replicas = place(
        [Broker(number, rack) for number, rack in vector["brokers"]],
        vector["partitions"],
        vector["replication_factor"],
        start_index=vector["start_index"],
        start_partition=vector["start_partition"],
    )
    return dict(enumerate(replicas.tolist(), start=max(0, vector["start_partition"])))


@pytest.mark.parametrize(
    "vector", [pytest.param(vector, id=f"line-{line}") for line, vector in enumerate(_vectors(), start=1)]
)
def test_placement_equals_the_recorded_result(vector: dict[str, Any]) -> None:
    if "error" in vector:
        with pytest.raises(OUR_ERROR[vector["error"]]):
            _placed(vector)
    else:
        recorded = {int(partition): replicas for partition, replicas in vector["assignment"].items()}
        assert _placed(vector) == recorded


def test_recording_covers_all_kinds_of_results() -> None:
    vectors = _vectors()
    assert len(vectors) == 400
    assert {vector.get("error") for vector in vectors} == {None, *OUR_ERROR}
    placed = [vector for vector in vectors if "assignment" in vector]
    assert {any(rack is not None for _, rack in vector["brokers"]) for vector in placed} == {True, False}
