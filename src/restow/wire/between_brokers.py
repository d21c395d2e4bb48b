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


def _message(name: str) -> Any:
    """Return the message class made from the definition of that name."""
    attributes = {"__module__": __name__, "json_patch": classmethod(_rename_type)}
    return type(ApiMessage)(name, (ApiMessage,), attributes, load_json="restow.wire.definitions")


LeaderAndIsrRequest = _message("LeaderAndIsrRequest")
LeaderAndIsrResponse = _message("LeaderAndIsrResponse")
StopReplicaRequest = _message("StopReplicaRequest")
StopReplicaResponse = _message("StopReplicaResponse")
UpdateMetadataRequest = _message("UpdateMetadataRequest")
UpdateMetadataResponse = _message("UpdateMetadataResponse")
ControlledShutdownRequest = _message("ControlledShutdownRequest")
ControlledShutdownResponse = _message("ControlledShutdownResponse")
AlterPartitionRequest = _message("AlterPartitionRequest")
AlterPartitionResponse = _message("AlterPartitionResponse")
AllocateProducerIdsRequest = _message("AllocateProducerIdsRequest")
AllocateProducerIdsResponse = _message("AllocateProducerIdsResponse")
