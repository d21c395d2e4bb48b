"""Consumer assignment against Kafka's and kafka-python's: `python -m benchmarks.assignors [--json]`.

Every time is that of a full answer: ours is what `assign` returns, Java's the assignment of its own class on
subscriptions and metadata laid out in the JVM beforehand. The two take turns, and the shortest time of each
counts. The JIT compiler is warm; what a call between the processes costs by itself is taken off Java's time.
Ours is checked against the peer's answer where there is one: everything assigned, and no worse balanced.

The JVM runs with the performance options of Kafka's start scripts and at the log level that applications
have, INFO, at which Kafka's sticky assignors render the whole assignment; what they log goes nowhere.
`--silent-java` takes that away too. Of groups up to some size our answers share partition objects with
earlier ones, and subscriptions that occurred before are known by their topics' numbers (Kafka's brokers'
classes are given theirs as sets of topic ids); "first answer" tells what a group pays that never met.

uniform and range of the brokers are compared with the classes of Kafka 4.3.1's group coordinator, on a group
in its own collections, as for the classic ones. Those answer with sets of numbers, some of which are computed
when they are read; ours is what brokers use, `assign_rows`, which makes no object for a partition either. "As
objects" is the time until a caller in Python has them all: read from objects, and answered in lists.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

from benchmarks.report import Row, best_of, command_line, in_turns, print_rows
from harness.jars import KAFKA_4, KAFKA_VERSION
from harness.jvm import AS_KAFKA, kafka_jvm
from harness.oracle import JavaGroup
from harness.server_oracle import ServerOracle
from restow.assignors import Member, assign, assign_rows
from restow.assignors.compare import balance_score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from py4j.java_gateway import JavaGateway

    from restow.assignors import Assignment

    Group = tuple[Mapping[str, int], tuple[Member, ...]]

RUNS = 5
SERVER_RUNS = 20
JIT_WARM_UP = 8
SEED = 2
HEAP = "6g"
MEMORY_LIMIT_MIB = 2048
SECONDS_LIMIT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A group to assign, and the promised ratio."""

    name: str
    assignor: str
    partitions: Mapping[str, int]
    members: tuple[Member, ...]
    target: float
    runs: int = RUNS
    warm_up: int = JIT_WARM_UP
    server: bool = False
    """Whether it is an assignor of brokers."""
    stranger: Callable[[str], Group] | None = None
    """Makes a group of the same shape with topics of that name, to time a first answer too."""


def main() -> None:
    """Measure and print."""
    parser = command_line("Consumer assignment, ours against Kafka's and kafka-python's.")
    parser.add_argument("--silent-java", action="store_true", help="let Kafka's classes log nothing at all")
    parser.add_argument(
        "--memory", action="store_true", help="only print the peak memory of our largest case"
    )
    parser.add_argument("--server", action="store_true", help="only compare the assignors of brokers")
    options = parser.parse_args()
    if options.memory:
        print(peak_memory_mib())
        return
    rows: list[Row] = []
    level = "OFF" if options.silent_java else "INFO"
    with kafka_jvm(KAFKA_4, heap=HEAP, log_level=level, options=AS_KAFKA) as gateway:
        for case in server_cases():
            rows += against_java(gateway, case)
    if not options.server:
        with kafka_jvm(heap=HEAP, log_level=level, options=AS_KAFKA) as gateway:
            for case in cases():
                rows += against_java(gateway, case)
        rows += [against_kafka_python(), large_halves(), memory_row()]
    print_rows("Consumer assignment", rows, as_json=options.json)


def cases() -> Iterator[Case]:
    """Yield the cases that are compared with Java."""
    topics = some_topics(80, 1_000)
    everybody = alike(1_000, topics)
    shape = "1,000 members × 80,000 partitions"
    for assignor in ("range", "roundrobin"):
        yield Case(
            name=f"{assignor}, {shape}",
            assignor=assignor,
            partitions=topics,
            members=everybody,
            target=1.0,
            stranger=partial(all_alike, 1_000, 80),
        )
    yield Case(
        name=f"sticky from nothing, {shape}",
        assignor="sticky",
        partitions=topics,
        members=everybody,
        target=0.5,
        stranger=partial(all_alike, 1_000, 80),
    )
    yield Case(
        name=f"cooperative-sticky, one leaves, {shape}",
        assignor="cooperative-sticky",
        partitions=topics,
        members=one_gone(topics, everybody),
        target=0.5,
    )
    lacking = replace(everybody[7], topics=everybody[7].topics[1:])
    yield Case(
        name=f"sticky, one member lacks one topic, {shape}",
        assignor="sticky",
        partitions=topics,
        members=(*everybody[:7], lacking, *everybody[8:]),
        target=1.0,
    )
    topics = some_topics(1_000, 1_000)
    yield Case(
        name="cooperative-sticky, one leaves, 2,000 members × 1,000,000 partitions",
        assignor="cooperative-sticky",
        partitions=topics,
        members=one_gone(topics, alike(2_000, topics)),
        target=0.2,
        warm_up=2,
    )
    topics = some_topics(400, 100)
    yield Case(
        name="sticky from nothing, 800 members with a random half of the topics, 40,000 partitions",
        assignor="sticky",
        partitions=topics,
        members=halves(800, topics),
        target=0.03,
        runs=1,
        warm_up=0,
    )


def server_cases() -> Iterator[Case]:
    """Yield the cases that are compared with the assignors of Kafka's brokers."""
    broker = partial(Case, target=0.5, server=True, runs=SERVER_RUNS)
    for count, topics, warm_up in (
        (1_000, some_topics(80, 1_000), JIT_WARM_UP),
        (2_000, some_topics(1_000, 1_000), 2),
    ):
        everybody = alike(count, topics)
        shape = f"{count:,} members × {sum(topics.values()):,} partitions"
        for name in ("uniform", "range"):
            yield broker(
                name=f"broker's {name} from nothing, {shape}",
                assignor=name,
                partitions=topics,
                members=everybody,
                warm_up=warm_up,
                stranger=partial(all_alike, 1_000, 80) if count == 1_000 else None,
            )
        yield broker(
            name=f"broker's uniform, one leaves, {shape}",
            assignor="uniform",
            partitions=topics,
            members=one_gone(topics, everybody, "uniform"),
            warm_up=warm_up,
        )
    topics = some_topics(400, 100)
    some = halves(800, topics)
    shape = "800 members with a random half of the topics, 40,000 partitions"
    for assignor, name, members in (
        ("uniform", "from nothing", some),
        ("range", "from nothing", some),
        ("uniform", "one leaves", one_gone(topics, some, "uniform")),
    ):
        yield broker(
            name=f"broker's {assignor} {name}, {shape}",
            assignor=assignor,
            partitions=topics,
            members=members,
            stranger=some_halves if name == "from nothing" else None,
        )


def some_topics(count: int, partitions: int, name: str = "topic") -> dict[str, int]:
    """Return topics of one size."""
    return {f"{name}-{number:04d}": partitions for number in range(count)}


def alike(count: int, topics: Mapping[str, int]) -> tuple[Member, ...]:
    """Return members that all subscribe to all topics."""
    everything = tuple(topics)  # Kafka's members share their sets, too
    return tuple(Member(id=f"consumer-{number:05d}", topics=everything) for number in range(count))


def halves(count: int, topics: Mapping[str, int]) -> tuple[Member, ...]:
    """Return members that each subscribe to a random half of the topics."""
    choose = random.Random(SEED)
    some = [tuple(choose.sample(list(topics), len(topics) // 2)) for _ in range(count)]
    return tuple(Member(id=f"consumer-{number:05d}", topics=mine) for number, mine in enumerate(some))


def all_alike(members: int, topics: int, name: str) -> Group:
    """Return a group whose members subscribe to all topics, of 1,000 partitions each."""
    partitions = some_topics(topics, 1_000, name)
    return partitions, alike(members, partitions)


def some_halves(name: str) -> Group:
    """Return a group of 800 members that each subscribe to a random half of 400 topics."""
    partitions = some_topics(400, 100, name)
    return partitions, halves(800, partitions)


def one_gone(
    topics: Mapping[str, int], members: Sequence[Member], assignor: str = "cooperative-sticky"
) -> tuple[Member, ...]:
    """Return a settled group from which the middle member has just left."""
    brokers = assignor == "uniform"  # they keep what was dealt as it is; clients read it from bytes
    dealt = assign_rows(assignor, topics, members)
    held = tuple(
        replace(m, owned=dealt[m.id] if brokers else tuple(dealt[m.id]), generation=1) for m in members
    )
    return held[: len(held) // 2] + held[len(held) // 2 + 1 :]


def against_java(gateway: JavaGateway, case: Case) -> list[Row]:
    """Run one case with both, and compare the answers before the times."""
    build = ServerOracle(gateway).group if case.server else partial(JavaGroup, gateway)
    there = build(case.assignor, partitions=case.partitions, members=case.members)
    check(case, assign(case.assignor, case.partitions, case.members), there.read(there.assign()))
    bare_call_ms = best_of(100, gateway.jvm.java.util.ArrayList().size)
    answer = partial(assign_rows if case.server else assign, case.assignor)
    for _ in range(case.warm_up):
        timed_once(there.ready())
    java_ms, ours_ms = in_turns(
        case.runs, there.ready, lambda: partial(answer, case.partitions, case.members)
    )
    java_ms -= bare_call_ms
    peer = f"Kafka {KAFKA_4 if case.server else KAFKA_VERSION}"
    rows = [Row(name=case.name, ours=ours_ms, peer=java_ms, peer_name=peer, target=case.target)]
    if case.server:
        objects = tuple(replace(member, owned=tuple(member.owned)) for member in case.members)
        listed_ms = best_of(RUNS, lambda: assign(case.assignor, case.partitions, objects))
        rows.append(Row(name=f"{case.name}, as objects", ours=listed_ms, peer=java_ms, peer_name=peer))
    if case.stranger is not None:
        strangers = (case.stranger(f"stranger-{run}") for run in range(RUNS))
        first_ms = min(timed_once(partial(answer, *stranger)) for stranger in strangers)
        rows.append(Row(name=f"{case.name}, first answer", ours=first_ms, peer=java_ms, peer_name=peer))
    return rows


def timed_once(call: Callable[[], object]) -> float:
    """Time one call in milliseconds; Java's sticky assignors need new state for each."""
    return best_of(1, call, warm_up=0)


def check(case: Case, ours: Assignment, theirs: Assignment) -> None:
    """Stop the benchmark if our assignment is invalid or worse."""
    given = [partition for mine in ours.values() for partition in mine]
    expected = sum(len(mine) for mine in theirs.values())
    if len(set(given)) != len(given) or len(given) < expected:
        raise SystemExit(f"{case.name}: {len(set(given))} partitions assigned, Kafka assigns {expected}")
    if balance_score(map(len, ours.values())) > balance_score(map(len, theirs.values())):
        raise SystemExit(f"{case.name}: less balanced than Kafka's answer; there is nothing to compare")


def against_kafka_python() -> Row:
    """Run kafka-python's sticky assignor in the same interpreter, on its consumer's input."""
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    topics = some_topics(40, 1_000)
    members = alike(200, topics)
    assignor = StickyPartitionAssignor()
    joined = [
        SimpleNamespace(member_id=member.id, metadata=assignor.metadata(member.topics)) for member in members
    ]
    metadata = SimpleNamespace(
        topics=lambda: set(topics), partitions_for_topic=lambda topic: set(range(topics[topic]))
    )
    return Row(
        name="sticky from nothing, 200 members × 40,000 partitions",
        ours=best_of(RUNS, lambda: assign("sticky", topics, members)),
        peer=best_of(1, lambda: assignor.assign(metadata, joined), warm_up=0),
        peer_name="kafka-python",
        target=1 / 20,
    )


def large_halves() -> Row:
    """Time the case that Java does not finish, against a limit instead."""
    topics = some_topics(1_000, 200)
    members = halves(2_000, topics)
    return Row(
        name="sticky from nothing, 2,000 members with a random half of the topics, 200,000 partitions",
        ours=best_of(RUNS, lambda: assign("sticky", topics, members)),
        peer=SECONDS_LIMIT * 1000,
        peer_name="limit",
        target=1.0,
    )


def memory_row() -> Row:
    """Return the most memory that a process takes for the largest case, its input included."""
    command = [sys.executable, "-m", "benchmarks.assignors", "--memory"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return Row(
        name="peak memory, cooperative-sticky, one leaves, 2,000 members × 1,000,000 partitions",
        ours=float(ran.stdout),
        peer=MEMORY_LIMIT_MIB,
        peer_name="limit",
        unit="MiB",
        target=1.0,
    )


def peak_memory_mib() -> float:
    """Assign the largest case in this process and return its peak memory."""
    topics = some_topics(1_000, 1_000)
    members = one_gone(topics, alike(2_000, topics))
    assign("cooperative-sticky", topics, members)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
