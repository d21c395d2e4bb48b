"""Simulate many brokers for a collector: `python many_brokers_child.py BROKERS PARTITIONS SILENT`.

Each listens on a port of its own and answers over Kafka's protocol. An answer is encoded when it is first
asked for; later it is the same bytes, so that the brokers take little of the processor. The last SILENT ones
accept connections and never answer. The process prints in one line of JSON where the first one listens.
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from restow.wire.codec import Codec, encode_response
from restow.wire.messages import (
    ApiVersionsResponse,
    DescribeLogDirsResponse,
    ListGroupsResponse,
    ListOffsetsResponse,
    MetadataResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.wire.codec import Request
    from restow.wire.messages import Message

_VERSIONS = {2: range(1, 8), 3: range(10), 16: range(5), 18: range(5), 35: range(1, 5)}
_PER_TOPIC, _COPIES, _SIZE = 100, 3, 1_000_000_000
_REST = slice(8, None)
"""A request after its correlation id."""


class ManyBrokers:
    def __init__(self, brokers: int, partitions: int, silent: int) -> None:
        self._brokers, self._partitions = brokers, partitions
        self._answering = brokers - silent
        self._codec = Codec(_VERSIONS)
        self._known: dict[tuple[int, bytes], bytes] = {}
        self._ports: list[int] = []
        self._servers: list[asyncio.Server] = []

    async def listen(self) -> int:
        """Listen with all brokers; return the first one's port."""
        for broker in range(self._brokers):
            server = await asyncio.start_server(partial(self._serve, broker), "127.0.0.1", 0, limit=1 << 24)
            self._ports.append(server.sockets[0].getsockname()[1])
            self._servers.append(server)
        return self._ports[0]

    async def _serve(self, broker: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                payload = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
                if broker < self._answering:
                    frame = payload[4:8] + self._answer(broker, payload)
                    writer.write(len(frame).to_bytes(4) + frame)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, broker: int, payload: bytes) -> bytes:
        """Return the response after its correlation id."""
        key = (broker, payload[:4] + payload[_REST])
        if key not in self._known:
            request = self._codec.parse_request(payload)
            body = self._body(broker, request)
            self._known[key] = b"".join(map(bytes, encode_response(request, body)))[4:]
        return self._known[key]

    def _body(self, broker: int, request: Request) -> Message:
        if request.api_key == 18:
            kind = ApiVersionsResponse.ApiVersion
            known = [
                kind(api_key=key, min_version=each[0], max_version=each[-1])
                for key, each in _VERSIONS.items()
            ]
            return ApiVersionsResponse(error_code=0, api_keys=known)
        if request.api_key == 16:
            return ListGroupsResponse(error_code=0, groups=[])
        if request.api_key == 35:
            return self._log_dirs(broker)
        return self._metadata(request) if request.api_key == 3 else _offsets(request)

    def _metadata(self, request: Request) -> Message:
        asked = request.body.topics
        numbers = (
            range(self._partitions // _PER_TOPIC)
            if asked is None
            else [int(each.name.removeprefix("topic-")) for each in asked]
        )
        node = MetadataResponse.MetadataResponseBroker
        nodes = [
            node(node_id=broker, host="127.0.0.1", port=port, rack=f"rack-{broker % 3}")
            for broker, port in enumerate(self._ports)
        ]
        topics = [self._topic(number) for number in numbers]
        return MetadataResponse(brokers=nodes, cluster_id="many", controller_id=0, topics=topics)

    def _topic(self, number: int) -> Message:
        kind = MetadataResponse.MetadataResponseTopic
        partitions = [
            kind.MetadataResponsePartition(
                error_code=0,
                partition_index=partition,
                leader_id=replicas[0],
                leader_epoch=1,
                replica_nodes=replicas,
                isr_nodes=replicas,
                offline_replicas=[],
            )
            for partition in range(_PER_TOPIC)
            if (replicas := self._replicas(number * _PER_TOPIC + partition))
        ]
        return kind(
            error_code=0,
            name=_name(number),
            topic_id=UUID(int=number + 1),
            is_internal=False,
            partitions=partitions,
        )

    def _replicas(self, partition: int) -> list[int]:
        return [(partition + copy) % self._brokers for copy in range(_COPIES)]

    def _log_dirs(self, broker: int) -> Message:
        kind = DescribeLogDirsResponse.DescribeLogDirsResult
        topic = kind.DescribeLogDirsTopic
        held: dict[str, list[Message]] = {}
        for partition in self._held(broker):
            row = topic.DescribeLogDirsPartition(
                partition_index=partition % _PER_TOPIC,
                partition_size=_SIZE,
                offset_lag=0,
                is_future_key=False,
            )
            held.setdefault(_name(partition // _PER_TOPIC), []).append(row)
        topics = [topic(name=name, partitions=rows) for name, rows in held.items()]
        space = {"total_bytes": 1 << 42, "usable_bytes": 1 << 41}
        return DescribeLogDirsResponse(results=[kind(error_code=0, log_dir="/data", topics=topics, **space)])

    def _held(self, broker: int) -> Iterator[int]:
        for copy in range(_COPIES):
            yield from range((broker - copy) % self._brokers, self._partitions, self._brokers)


def _offsets(request: Request) -> Message:
    kind = ListOffsetsResponse.ListOffsetsTopicResponse
    topics = [
        kind(
            name=topic.name,
            partitions=[
                kind.ListOffsetsPartitionResponse(
                    partition_index=each.partition_index,
                    error_code=0,
                    timestamp=-1,
                    offset=0 if each.timestamp == -2 else 1_000_000,
                    leader_epoch=1,
                )
                for each in topic.partitions
            ],
        )
        for topic in request.body.topics
    ]
    return ListOffsetsResponse(topics=topics)


def _name(topic: int) -> str:
    return f"topic-{topic:05}"


async def main(brokers: int, partitions: int, silent: int) -> None:
    port = await ManyBrokers(brokers, partitions, silent).listen()
    print(json.dumps({"bootstrap": f"127.0.0.1:{port}"}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
