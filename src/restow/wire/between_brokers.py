"""What a controller tells its brokers, and how a broker takes its leave: keys 4 to 7, which no client speaks.

Client libraries do not have them, so they are defined in `definitions/`. The field that Kafka calls Type is
`request_type` here: a message has a `type` of another meaning already.
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
    """The class of that name, made of the definition of that name."""
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
