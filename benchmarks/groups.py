"""One large group of the protocol `consumer` beside Apache Kafka: `python -m benchmarks.groups [--json]`.

One broker each, one cluster at a time. A thousand members share some connections and one topic. Members send
the next heartbeat as soon as the last one is answered, so that only the broker's time counts.

    joins            until all members have been answered once
    last join to stable    from then on until all partitions are held, and every member is in the last epoch
    idle CPU         of the broker, in percent of one core, with a heartbeat of each member every 5 s
"""

from __future__ import annotations

import asyncio
import struct
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.contenders import bytecode, embedded, servers
from benchmarks.report import Row, command_line, print_rows
from harness.apache import apache_kafka
from harness.jvm import AS_KAFKA
from restow.wire import messages
from restow.wire.codec import encode_request, parse_response

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    import psutil

TOPIC = "t"
GROUP = "crew"
CONNECTIONS = 20
BEAT_S = 5.0
IDLE_S = 20.0
HEARTBEAT_VERSION = 1


class Connection:
    """A connection that sends one request after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._lock = asyncio.Lock()
        self._number = 0

    @classmethod
    async def to(cls, bootstrap: str) -> Connection:
        host, port = bootstrap.split(",", maxsplit=1)[0].rsplit(":", 1)
        return cls(*await asyncio.open_connection(host, int(port)))

    async def ask(self, version: int, body: Any) -> Any:
        async with self._lock:
            self._number += 1
            frame = b"".join(map(bytes, encode_request(body.API_KEY, version, self._number, "bench", body)))
            self._writer.write(struct.pack(">i", len(frame)) + frame)
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            return parse_response(body.API_KEY, version, await self._reader.readexactly(size)).body

    def close(self) -> None:
        self._writer.close()


@dataclass(slots=True)
class GroupMember:
    """A member that does at once what the broker says."""

    id: str
    connection: Connection
    epoch: int = 0
    held: dict[UUID, list[int]] = field(default_factory=dict)

    async def beat(self) -> None:
        """Send one heartbeat, with everything that it holds, and take up the answer."""
        request = messages.ConsumerGroupHeartbeatRequest
        fields: dict[str, Any] = {"group_id": GROUP, "member_id": self.id, "member_epoch": self.epoch}
        if self.epoch == 0:
            fields |= {"rebalance_timeout_ms": 300_000, "subscribed_topic_names": [TOPIC]}
        fields["topic_partitions"] = [
            request.TopicPartitions(topic_id=topic, partitions=numbers)
            for topic, numbers in self.held.items()
        ]
        answer = await self.connection.ask(HEARTBEAT_VERSION, request(**fields))
        if answer.error_code:
            raise RuntimeError(f"member {self.id} in epoch {self.epoch}: error {answer.error_code}")
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.held = {each.topic_id: list(each.partitions) for each in answer.assignment.topic_partitions}

    @property
    def count(self) -> int:
        return sum(map(len, self.held.values()))


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of one cluster."""

    joins_s: float
    stable_s: float
    idle_percent: float


def main() -> None:
    """Measure and print."""
    parser = command_line("One large group of the protocol consumer, ours against Apache Kafka's.")
    parser.add_argument("--members", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=2_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="restow-groups-") as folder, bytecode():
        places = [Path(folder) / name for name in ("ours", "apache")]
        for place in places:
            place.mkdir()
        with embedded(places[0], 1) as up:
            ours = asyncio.run(measure(up.bootstrap, up.brokers, options.members, options.partitions))
        with apache_kafka(places[1], version="4.3.1", heap="1G", options=(*AS_KAFKA, "-Xms1G")) as cluster:
            processes = servers(cluster.processes)  # those are shells, which use no time themselves
            peer = asyncio.run(measure(cluster.bootstrap, processes, options.members, options.partitions))
    shape = f"{options.members:,} members × {options.partitions:,} partitions"
    name = "Apache Kafka 4.3.1"
    rows = [
        Row(name=f"joins, {shape}", ours=ours.joins_s * 1e3, peer=peer.joins_s * 1e3, peer_name=name),
        Row(
            name=f"last join to stable, {shape}",
            ours=ours.stable_s * 1e3,
            peer=peer.stable_s * 1e3,
            peer_name=name,
            target=1.0,
        ),
        Row(
            name=f"idle CPU, {options.members:,} members, a heartbeat each {BEAT_S:g} s",
            ours=ours.idle_percent,
            peer=peer.idle_percent,
            peer_name=name,
            unit="% of a core",
            limit=10.0,
        ),
    ]
    print_rows("Groups", rows, as_json=options.json)


async def measure(
    bootstrap: str, brokers: Iterable[psutil.Process], members: int, partitions: int
) -> Measured:
    """Let a group form, and rest."""
    connections = [await Connection.to(bootstrap) for _ in range(CONNECTIONS)]
    await _prepare(connections[0], partitions)
    group = [GroupMember(f"member-{n:05}", connections[n % CONNECTIONS]) for n in range(members)]
    started = time.monotonic()
    await asyncio.gather(*(member.beat() for member in group))
    joined = time.monotonic()
    while not _is_stable(group, partitions):
        await asyncio.gather(*(member.beat() for member in group))
    stable = time.monotonic()
    idle = await _idle(group, tuple(brokers))
    for connection in connections:
        connection.close()
    return Measured(joined - started, stable - joined, idle)


def _is_stable(group: Sequence[GroupMember], partitions: int) -> bool:
    even = {partitions // len(group), -(-partitions // len(group))}
    return len({member.epoch for member in group}) == 1 and {member.count for member in group} <= even


async def _prepare(connection: Connection, partitions: int) -> None:
    """Create the topic and the group's coordinator, and wait for both."""
    create = messages.CreateTopicsRequest
    topic = create.CreatableTopic(name=TOPIC, num_partitions=partitions, replication_factor=1)
    await connection.ask(7, create(topics=[topic], timeout_ms=60_000))
    while True:
        found = await connection.ask(4, messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]))
        asked = [messages.MetadataRequest.MetadataRequestTopic(name=TOPIC)]
        (known,) = (await connection.ask(12, messages.MetadataRequest(topics=asked))).topics
        ready = len(known.partitions) == partitions and not any(each.error_code for each in known.partitions)
        listed = await connection.ask(4, messages.ListGroupsRequest(states_filter=[]))
        if not found.coordinators[0].error_code and not listed.error_code and ready:
            return
        await asyncio.sleep(0.1)


async def _idle(group: Sequence[GroupMember], brokers: Sequence[psutil.Process]) -> float:
    """Return the brokers' share of a core while members do no more than to stay."""
    for member in group:
        member.held = {}

    async def stay(member: GroupMember, first_s: float) -> None:
        await asyncio.sleep(first_s)
        request = messages.ConsumerGroupHeartbeatRequest
        while time.monotonic() < until:
            body = request(group_id=GROUP, member_id=member.id, member_epoch=member.epoch)
            await member.connection.ask(HEARTBEAT_VERSION, body)
            await asyncio.sleep(BEAT_S)

    until = time.monotonic() + BEAT_S + IDLE_S
    beating = asyncio.gather(
        *(stay(member, BEAT_S * number / len(group)) for number, member in enumerate(group))
    )
    await asyncio.sleep(BEAT_S)
    before, begun = _cpu_s(brokers), time.monotonic()
    await asyncio.sleep(IDLE_S)
    used, seconds = _cpu_s(brokers) - before, time.monotonic() - begun
    await beating
    return 100 * used / seconds


def _cpu_s(processes: Iterable[psutil.Process]) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in processes)


if __name__ == "__main__":
    main()
