"""Make a small plan to compile the planner's loops, once per machine."""

from __future__ import annotations

import numpy as np

from restow.model import Copy, LiveBroker, LogDir, Partition, Snapshot, Topic, TopicPartition
from restow.model.load import LoadModel, Resource
from restow.plan.propose import propose
from restow.plan.request.request import PlanRequest

MANY, RACKS = 24, "abcabca"


def partition(number: int) -> Partition:
    on = (0, 1 + number % 4)
    copies = tuple(Copy(broker=each, log_dir=f"/d{number % 2}", size_bytes=10**6) for each in on)
    return Partition(number=number, replicas=on, isr=on, leader=0, copies=copies)


def main() -> None:
    dirs = tuple(LogDir(path=f"/d{n}", total_bytes=10**9, usable_bytes=9 * 10**8) for n in range(2))
    snapshot = Snapshot(
        cluster_id="c",
        taken_ms=0,
        controller=0,
        brokers=tuple(
            LiveBroker(id=number, host="h", port=1, rack=rack, log_dirs=dirs)
            for number, rack in enumerate(RACKS)
        ),
        topics=(Topic(name="t", partitions=tuple(map(partition, range(MANY)))),),
    )
    rising = Resource(leading=np.arange(1.0, MANY + 1), following=np.ones(MANY))
    load = LoadModel(
        cluster_id="c",
        made_ms=0,
        partitions=tuple(TopicPartition("t", number) for number in range(MANY)),
        resources={"bytes_in": rising, "bytes_out": rising},
    )
    propose(snapshot, load, PlanRequest(balance=True))


if __name__ == "__main__":
    main()
