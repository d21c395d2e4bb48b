"""One large group of each protocol beside Apache Kafka: `python -m benchmarks.groups [--json]`.

One broker each, one cluster at a time, with Kafka's defaults; the classic group waits a second for further
members before its first rebalance. Members share one topic and do at once what the broker says, so that
only the broker's time counts. Members of the protocol `consumer` share some connections; a classic one has
its own, because a broker answers on it only when all have joined.

    joins            until all members have been answered once
    last join to stable    from then on until all partitions are held, and every member is in the last epoch
    classic, first join to stable    until all members are assigned in the same generation
    broker's CPU     used meanwhile
    idle CPU         of the broker, in percent of one core, with a heartbeat of each member every 5 s
"""

from __future__ import annotations

import asyncio
import struct
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.contenders import bytecode, embedded, servers
from benchmarks.report import Row, command_line, print_rows
from harness.apache import apache_kafka
from harness.jvm import AS_KAFKA
from restow.wire import messages
from restow.wire.codec import encode_request, parse_response
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    import psutil

TOPIC = "t"
GROUP = "crew"
CONNECTIONS = 20
BEAT_S = 5.0
IDLE_S = 20.0
AT_REST = 0.1
"""The share of a core that a broker uses when it has nothing to do."""
HEARTBEAT_VERSION = 1
CLASSIC_GROUP = "classic crew"
CLASSIC_BEAT_S = 0.2
SETTINGS = {
    "group_initial_rebalance_delay_ms": "1000",
    "group_consumer_assignment_interval_ms": "1000",
}


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


class ClassicMember:
    """A member of the classic protocol. If it leads, it gives each member a range."""

    def __init__(self, connection: Connection, partitions: int) -> None:
        self._connection = connection
        self._partitions = partitions
        self._id = ""
        self.generation = -1

    async def stay(self, group: Sequence[ClassicMember]) -> None:
        """Join, and stay until all are assigned in one generation."""
        while len({member.generation for member in group}) > 1 or self.generation < 0:
            if self.generation < 0:
                await self._join()
                continue
            await asyncio.sleep(CLASSIC_BEAT_S)
            body = messages.HeartbeatRequest(
                group_id=CLASSIC_GROUP,
                generation_id=self.generation,
                member_id=self._id,
                group_instance_id=None,
            )
            if (await self._connection.ask(4, body)).error_code:
                self.generation = -1

    async def _join(self) -> None:
        request = messages.JoinGroupRequest
        said = messages.ConsumerProtocolSubscription(
            version=1, topics=[TOPIC], user_data=None, owned_partitions=[]
        )
        protocol = request.JoinGroupRequestProtocol(name="range", metadata=bytes(said.encode()))
        answer = await self._connection.ask(
            7,
            request(
                group_id=CLASSIC_GROUP,
                session_timeout_ms=45_000,
                rebalance_timeout_ms=300_000,
                protocol_type="consumer",
                member_id=self._id,
                group_instance_id=None,
                protocols=[protocol],
            ),
        )
        self._id = answer.member_id
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return
        members = sorted(each.member_id for each in answer.members) if answer.leader == self._id else []
        synced = await self._connection.ask(
            5,
            messages.SyncGroupRequest(
                group_id=CLASSIC_GROUP,
                generation_id=answer.generation_id,
                member_id=self._id,
                group_instance_id=None,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[self._share(members, place) for place in range(len(members))],
            ),
        )
        if not synced.error_code:
            self.generation = answer.generation_id
        elif synced.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
            raise RuntimeError(f"member {self._id}: error {synced.error_code}")

    def _share(self, members: Sequence[str], place: int) -> Any:
        first, end = (at * self._partitions // len(members) for at in (place, place + 1))
        given = messages.ConsumerProtocolAssignment
        mine = given.TopicPartition(topic=TOPIC, partitions=list(range(first, end)))
        return messages.SyncGroupRequest.SyncGroupRequestAssignment(
            member_id=members[place],
            assignment=bytes(given(version=1, assigned_partitions=[mine], user_data=None).encode()),
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of one cluster."""

    joins_s: float
    stable_s: float
    cpu_s: float
    idle_percent: float
    classic_s: float
    classic_cpu_s: float


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
        with embedded(places[0], 1, **SETTINGS) as up:
            ours = asyncio.run(measure(up.bootstrap, up.brokers, options.members, options.partitions))
        settings = {name.replace("_", "."): value for name, value in SETTINGS.items()}
        with apache_kafka(
            places[1], version="4.3.1", heap="1G", options=(*AS_KAFKA, "-Xms1G"), settings=settings
        ) as cluster:
            processes = servers(cluster.processes)  # those are shells, which use no time themselves
            peer = asyncio.run(measure(cluster.bootstrap, processes, options.members, options.partitions))
    shape = f"{options.members:,} members × {options.partitions:,} partitions"
    beats = f"{options.members:,} members, a heartbeat each {BEAT_S:g} s"
    row = partial(Row, peer_name="Apache Kafka 4.3.1")
    rows = [
        row(name=f"joins, {shape}", ours=ours.joins_s * 1e3, peer=peer.joins_s * 1e3),
        row(
            name=f"last join to stable, {shape}",
            ours=ours.stable_s * 1e3,
            peer=peer.stable_s * 1e3,
            target=1.0,
        ),
        row(name=f"broker's CPU, {shape}", ours=ours.cpu_s * 1e3, peer=peer.cpu_s * 1e3),
        row(
            name=f"idle CPU, {beats}",
            ours=ours.idle_percent,
            peer=peer.idle_percent,
            unit="% of a core",
            limit=10.0,
        ),
        row(
            name=f"classic, first join to stable, {shape}",
            ours=ours.classic_s * 1e3,
            peer=peer.classic_s * 1e3,
            target=1.0,
        ),
        row(
            name=f"classic, broker's CPU, {shape}",
            ours=ours.classic_cpu_s * 1e3,
            peer=peer.classic_cpu_s * 1e3,
        ),
    ]
    print_rows("Groups", rows, as_json=options.json)


async def measure(
    bootstrap: str, brokers: Iterable[psutil.Process], members: int, partitions: int
) -> Measured:
    """Let a group of each protocol form, and rest."""
    processes = tuple(brokers)
    connections = [await Connection.to(bootstrap) for _ in range(CONNECTIONS)]
    await _prepare(connections[0], partitions)
    await _rest(processes)
    group = [GroupMember(f"member-{n:05}", connections[n % CONNECTIONS]) for n in range(members)]
    used, started = _cpu_s(processes), time.monotonic()
    await asyncio.gather(*(member.beat() for member in group))
    joined = time.monotonic()
    while not _is_stable(group, partitions):
        await asyncio.gather(*(member.beat() for member in group))
    stable, cpu_s = time.monotonic(), _cpu_s(processes) - used
    idle = await _idle(group, processes)
    own = [await Connection.to(bootstrap) for _ in range(members)]
    classic = [ClassicMember(connection, partitions) for connection in own]
    used, began = _cpu_s(processes), time.monotonic()
    await asyncio.gather(*(member.stay(classic) for member in classic))
    classic_s, classic_cpu_s = time.monotonic() - began, _cpu_s(processes) - used
    for connection in (*connections, *own):
        connection.close()
    return Measured(joined - started, stable - joined, cpu_s, idle, classic_s, classic_cpu_s)


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


async def _rest(brokers: Sequence[psutil.Process]) -> None:
    """Wait until brokers have made the topic's folders, and do nothing any more; a minute at most."""
    for _ in range(60):
        used = _cpu_s(brokers)
        await asyncio.sleep(1)
        if _cpu_s(brokers) - used < AT_REST:
            return


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
