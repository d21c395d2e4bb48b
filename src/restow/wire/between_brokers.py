"""Requests between controller and brokers: keys 4 to 7, 56 and 67, which no client sends.

Client libraries do not have them, so they are defined in `definitions/`. Kafka's field Type is `request_type`
here, because a message already has a `type` with another meaning.
"""

from __future__ import annotations

from typing import Any

from kafka.protocol.api_message import ApiMessage


def _rename_type(_: type, definition: dict[str, Any]) -> dict[str, Any]:
    for field in definition["fields"]:
        if field["name"] == "Type":
            field["name"] = "RequestType"
    return definition


def define(name: str) -> Any:
    """Return the message class made from the definition of that name."""
    attributes = {"__module__": __name__, "json_patch": classmethod(_rename_type)}
    return type(ApiMessage)(name, (ApiMessage,), attributes, load_json="restow.wire.definitions")


LeaderAndIsrRequest = define("LeaderAndIsrRequest")
LeaderAndIsrResponse = define("LeaderAndIsrResponse")
StopReplicaRequest = define("StopReplicaRequest")
StopReplicaResponse = define("StopReplicaResponse")
UpdateMetadataRequest = define("UpdateMetadataRequest")
EVERYTHING = 2
"""The type of an UpdateMetadata request that has all partitions there are: its receiver forgets others."""
UpdateMetadataResponse = define("UpdateMetadataResponse")
ControlledShutdownRequest = define("ControlledShutdownRequest")
ControlledShutdownResponse = define("ControlledShutdownResponse")
AlterPartitionRequest = define("AlterPartitionRequest")
AlterPartitionResponse = define("AlterPartitionResponse")
AllocateProducerIdsRequest = define("AllocateProducerIdsRequest")
AllocateProducerIdsResponse = define("AllocateProducerIdsResponse")
