"""Replica placement against Kafka's own AdminUtils: `python -m benchmarks.placement [--json]`.

Both place the same partitions on the same brokers, and the answers are compared replica by replica before
anything is printed. Java's answer stays in its JVM while it is timed, the JIT compiler is warm, and what a
call between the processes costs by itself is taken off Java's time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.report import Row, best_of, print_rows, wants_json
from harness.jars import KAFKA_VERSION
from harness.jvm import AS_KAFKA, kafka_jvm
from harness.oracle import JavaError, ask_place, java_brokers, java_place
from restow.placement import Broker, place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from py4j.java_gateway import JavaGateway

PARTITIONS = 200_000
BROKERS = 1_000
RACKS = 10
FACTOR = 3
START = 7
RUNS = 5
JIT_WARM_UP = 20
TARGET = 0.5


def main() -> None:
    """Measure and print."""
    as_json = wants_json("Replica placement, ours against Kafka's.")
    shape = f"{PARTITIONS:,} partitions × {FACTOR} on {BROKERS:,} brokers"
    cases = {
        f"{shape}, no racks": [Broker(number) for number in range(BROKERS)],
        f"{shape}, {RACKS} racks": [Broker(number, f"rack-{number % RACKS}") for number in range(BROKERS)],
    }
    with kafka_jvm(options=AS_KAFKA) as gateway:
        rows = [measure(gateway, name, brokers) for name, brokers in cases.items()]
    print_rows("Replica placement", rows, as_json=as_json)


def measure(gateway: JavaGateway, name: str, brokers: Sequence[Broker]) -> Row:
    """Run one case with both, compare the answers, and return the best time of each."""
    check_same_answer(gateway, brokers)
    there = java_brokers(gateway, brokers)
    bare_call_ms = best_of(20 * RUNS, there.size)
    java_ms = best_of(
        RUNS, lambda: ask_place(gateway, there, PARTITIONS, FACTOR, START, 0), warm_up=JIT_WARM_UP
    )
    ours_ms = best_of(RUNS, lambda: place(brokers, PARTITIONS, FACTOR, start_index=START))
    return Row(
        name=name,
        ours=ours_ms,
        peer=java_ms - bare_call_ms,
        peer_name=f"Kafka {KAFKA_VERSION} AdminUtils",
        target=TARGET,
    )


def check_same_answer(gateway: JavaGateway, brokers: Sequence[Broker]) -> None:
    """Stop the benchmark if a single replica differs: a time for something else says nothing."""
    theirs = java_place(
        gateway,
        brokers,
        partitions=PARTITIONS,
        replication_factor=FACTOR,
        start_index=START,
        start_partition=0,
    )
    if isinstance(theirs, JavaError):
        raise SystemExit(f"Kafka refused to place: {theirs.name}: {theirs.message}")
    ours = place(brokers, PARTITIONS, FACTOR, start_index=START)
    in_order = np.array([theirs[partition] for partition in range(PARTITIONS)], dtype=np.int32)
    if not np.array_equal(ours, in_order):
        raise SystemExit("The two placements differ; there is nothing to compare.")


if __name__ == "__main__":
    main()
