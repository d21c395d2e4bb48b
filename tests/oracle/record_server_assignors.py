"""Record answers of the assignors in Kafka 4.3.1's brokers: `python -m tests.oracle.record_server_assignors`.

Writes `tests/conformance/vectors/server_*.jsonl.gz`: a line per group, with its rounds. The groups are drawn
from a fixed seed, so that a new recording differs only where Kafka does.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from harness.jars import KAFKA_4
from harness.jvm import kafka_jvm
from harness.server_oracle import SERVER_ASSIGNORS, ServerOracle
from restow.model import Member
from tests.judge import Group
from tests.oracle.cases import MEMBER_NAMES, TOPICS
from tests.oracle.server_groups import as_brokers_see

if TYPE_CHECKING:
    from restow.assignors import Assignment

VECTORS = Path(__file__).parent.parent / "conformance" / "vectors"
GROUPS = {"uniform": 300, "range": 300}
ROUNDS = {"uniform": 3, "range": 1}


def main() -> None:
    """Ask Kafka, and write the files."""
    with kafka_jvm(KAFKA_4) as gateway:
        broker = ServerOracle(gateway)
        for name in SERVER_ASSIGNORS:
            path = VECTORS / f"server_{name}.jsonl.gz"
            lines = [json.dumps(_recorded(broker, name, Random(seed))) for seed in range(GROUPS[name])]
            text = "".join(f"{line}\n" for line in lines)
            path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _recorded(broker: ServerOracle, name: str, random: Random) -> dict[str, Any]:
    topics = random.sample(TOPICS, random.randint(1, 5))
    partitions = {topic: random.randint(1, random.choice((6, 40))) for topic in topics}
    group = Group(partitions=partitions, members=_members(topics, random, alike=random.random() < 0.5))
    rounds = []
    for _ in range(ROUNDS[name]):
        group = as_brokers_see(group)
        given = broker.assign(name, partitions=partitions, members=group.members)
        rounds.append({"members": [_fields(m) for m in group.members], "assignment": given})
        group = _later(group, given, random)
    return {"partitions": partitions, "rounds": rounds}


def _members(topics: list[str], random: Random, *, alike: bool) -> tuple[Member, ...]:
    names = random.sample(MEMBER_NAMES, random.randint(1, 12))
    return tuple(
        Member(
            id=name,
            topics=tuple(topics if alike else random.sample(topics, random.randint(0, len(topics)))),
            instance_id=f"static-{random.randint(0, 99)}-{name}" if random.random() < 0.25 else None,
        )
        for name in names
    )


def _later(group: Group, given: Assignment, random: Random) -> Group:
    """Return the group after some members have left and others have joined."""
    stays = [replace(m, owned=tuple(given[m.id])) for m in group.members if random.random() < 0.75]
    unused = [name for name in MEMBER_NAMES if name not in {m.id for m in stays}]
    model = random.choice(group.members)
    joins = random.sample(unused, random.randint(not stays, 3))
    return replace(group, members=(*stays, *(Member(id=name, topics=model.topics) for name in joins)))


def _fields(member: Member) -> dict[str, Any]:
    fields = {"id": member.id, "topics": member.topics, "owned": member.owned}
    return fields if member.instance_id is None else {**fields, "instance_id": member.instance_id}


if __name__ == "__main__":
    main()
