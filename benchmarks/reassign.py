"""Moving partitions, ours beside Apache Kafka: `python -m benchmarks.reassign [--json] [--quick]`.

Three brokers each, one cluster at a time. Every replica that moves is copied whole and ends up in sync, which
is checked. The whole takes about eight minutes, `--quick` about four.

    500 × 2 empty, by znode   every partition gets a replica elsewhere and another leader
    500 × 2 empty, by API     the same by AlterPartitionReassignments, until none is listed any more
    1 GiB, no throttle        12 partitions with 2 replicas, of which one goes to a broker that has nothing
    1 GiB at 20 MB/s          the same again; how far the bytes a second of the whole move are from that
    5,000 in one request      5 brokers, empty; beside ten times what 500 take
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import cluster_work
from benchmarks import reassign_work as work
from benchmarks.cluster import GIB, fresh, say
from benchmarks.contenders import KRAFT, OURS, OURS_APART, ZOOKEEPER, Contender, embedded
from benchmarks.report import Row, command_line, print_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka.admin import KafkaAdminClient

    from benchmarks.contenders import Up

MB = cluster_work.MB
EMPTY_PARTITIONS = 500
MANY_PARTITIONS = 5_000
MANY_BROKERS = 5
DATA_PARTITIONS = 12
THROTTLE_BYTES_PER_S = 20 * MB
TOLERANCE_PERCENT = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """How data moved."""

    free_mb_per_s: float
    throttled_mb_per_s: float

    @property
    def off_percent(self) -> float:
        """Return how far the throttled move was from the requested rate."""
        return abs(self.throttled_mb_per_s * MB / THROTTLE_BYTES_PER_S - 1) * 100


def main() -> None:
    """Measure and print."""
    parser = command_line("Moving partitions, beside Apache Kafka.")
    parser.add_argument("--quick", action="store_true", help="a quarter of the data and a fifth of the many")
    arguments = parser.parse_args()
    size = GIB // 4 if arguments.quick else GIB
    many = MANY_PARTITIONS // 5 if arguments.quick else MANY_PARTITIONS
    rows = [*empty_rows(), *data_rows(size), many_row(many)]
    print_rows(f"Moves on 3 brokers, {size >> 20} MiB", rows, as_json=arguments.json)


def empty_rows() -> list[Row]:
    """Measure empty partitions: the time that controllers and the brokers' bookkeeping take."""
    name = f"{EMPTY_PARTITIONS} × 2 empty"
    by_znode = partial(Row, name=f"{name}, by znode", unit="s", peer_name=ZOOKEEPER.name, target=1 / 10)
    by_api = partial(Row, name=f"{name}, by API", unit="s", peer_name=KRAFT.name, target=1.0)
    return [
        by_znode(ours=empty(OURS_APART, by_znode=True), peer=empty(ZOOKEEPER, by_znode=True)),
        by_api(ours=empty(OURS, by_znode=False), peer=empty(KRAFT, by_znode=False)),
    ]


def empty(contender: Contender, *, by_znode: bool) -> float:
    """Return the seconds to move all of them."""
    say(f"{contender.name}: {EMPTY_PARTITIONS} empty partitions …")
    with cluster_of(contender) as (up, admin):
        before, after = rotated(work.broker_ids(admin), EMPTY_PARTITIONS)
        work.create(admin, "empty", before)
        if by_znode:
            return work.move_by_znode(admin, up.zookeeper, "empty", after)
        return work.move_by_api(admin, "empty", after)


def rotated(brokers: list[int], partitions: int) -> tuple[work.Assignment, work.Assignment]:
    """Return two replicas per partition, dealt around, and the same one broker further."""
    count = len(brokers)
    before, after = (
        {
            number: [brokers[(number + first) % count], brokers[(number + first + 1) % count]]
            for number in range(partitions)
        }
        for first in (0, 1)
    )
    return before, after


def data_rows(size: int) -> list[Row]:
    """Measure partitions with records in them."""
    ours, peer = data(OURS, size), data(KRAFT, size)
    name = f"{size >> 20} MiB in {DATA_PARTITIONS} partitions"
    return [
        Row(
            name=f"{name}, no throttle",
            ours=ours.free_mb_per_s,
            peer=peer.free_mb_per_s,
            peer_name=KRAFT.name,
            unit="MB/s",
            target=1.0,
            more_is_better=True,
        ),
        Row(
            name=f"{name} at {THROTTLE_BYTES_PER_S // MB} MB/s: off by",
            ours=ours.off_percent,
            peer=peer.off_percent,
            peer_name=KRAFT.name,
            unit="%",
            limit=TOLERANCE_PERCENT,
        ),
    ]


def data(contender: Contender, size: int) -> Flow:
    """Move to an empty broker at full speed, back, and there again with a throttle."""
    say(f"{contender.name}: {size >> 20} MiB to another broker, back and there again …")
    with cluster_of(contender) as (up, admin):
        first, second, new = work.broker_ids(admin)
        here: work.Assignment = {}
        there: work.Assignment = {}
        for number in range(DATA_PARTITIONS):
            leader, follower = (first, second) if number % 2 else (second, first)
            here[number], there[number] = [leader, follower], [leader, new]
        work.create(admin, "data", here)
        cluster_work.produce(up.bootstrap, "data", DATA_PARTITIONS, size // cluster_work.RECORD_BYTES)
        free_s = work.move_by_api(admin, "data", there)
        moved = work.bytes_on(admin, new, "data")
        work.move_by_api(admin, "data", here)
        with work.throttled(admin, "data", THROTTLE_BYTES_PER_S):
            throttled_s = work.move_by_api(admin, "data", there)
        return Flow(free_mb_per_s=moved / MB / free_s, throttled_mb_per_s=moved / MB / throttled_s)


def many_row(partitions: int) -> Row:
    """Compare one large request with ten requests of a tenth each."""
    brokers = Contender(f"{OURS.name}, {MANY_BROKERS} brokers", partial(embedded, brokers=MANY_BROKERS))
    took_s = {}
    for count in (partitions // 10, partitions):
        say(f"{brokers.name}: {count:,} partitions in one request …")
        with cluster_of(brokers) as (_, admin):
            before, after = rotated(work.broker_ids(admin), count)
            work.create(admin, "many", before)
            took_s[count] = work.move_by_api(admin, "many", after)
    return Row(
        name=f"{partitions:,} × 2 in one request, {MANY_BROKERS} brokers",
        ours=took_s[partitions],
        peer=10 * took_s[partitions // 10],
        peer_name=f"ten times {partitions // 10:,}",
        unit="s",
        target=1.2,
    )


@contextmanager
def cluster_of(contender: Contender) -> Iterator[tuple[Up, KafkaAdminClient]]:
    """Start an empty cluster that has acknowledged a record; yield it with an admin client."""
    with ExitStack() as stack:
        up = stack.enter_context(fresh(contender))
        cluster_work.first_record(up.bootstrap)
        yield up, stack.enter_context(work.admin_of(up.bootstrap))


if __name__ == "__main__":
    main()
