"""The consumer group that `restow groups assign` works on, read from flags or from a file.

The file, in JSON or YAML (everything but `partitions` and `members` may be left out):

    assignor: sticky
    partitions: {orders: 12, payments: 6}
    members:
      - id: c1
        topics: [orders, payments]        # left out: all topics
        instance_id: consumer-1
        rack: a
        owned: {orders: [0, 1]}           # or [[orders, 0], [orders, 1]]
        generation: 4
        user_data: AAAA                   # base64, as the member's assignor wrote it
    partition_racks: {orders: [[a, b], [b, c], …]}
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from restow._frozen import frozen
from restow.cli.shared.documents import read_document
from restow.cli.shared.flags import (
    INT32_MAX,
    MAX_MEMBERS,
    MAX_PARTITIONS,
    check_partitions,
    parse_names,
    parse_topics,
)
from restow.errors import InvalidGroup
from restow.model import Member, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restow.cli.shared.documents import DocumentNode

DEFAULT_ASSIGNOR = "cooperative-sticky"
THE_GROUP = "The group"

GroupFile: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="FILE", help="The group as JSON or YAML; - reads standard input.")
]
TopicCounts: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="TOPIC=N,…", help="Topics and their partition counts.", rich_help_panel=THE_GROUP),
]

_GROUP_KEYS = ("assignor", "partitions", "members", "partition_racks")
_MEMBER_KEYS = ("id", "topics", "instance_id", "rack", "owned", "generation", "user_data")
_RESULT_KEYS = ("assignor", "generation", "partitions", "assignment", "unassigned", "comparison")


@frozen
class GroupRequest:
    """A group's topics and members, and the assignor to use."""

    assignor: str
    partitions: Mapping[str, int]
    members: tuple[Member, ...]
    partition_racks: Mapping[str, tuple[tuple[str | None, ...], ...]] | None = None
    departed: Mapping[str, Sequence[TopicPartition]] = field(default_factory=dict)
    """The partitions that departed members owned in the previous round."""
    lag: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The messages that the group is behind, where that is known."""


@frozen
class Previous:
    """The outcome of an earlier round, as `--json` printed it."""

    generation: int = 0
    owned: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)


def group_request_or_live(
    bootstrap: str | None,
    *,
    group: str | None,
    file: str | None,
    assignor: str | None = None,
    topics: str | None,
    members: str | None,
    previous: str | None = None,
) -> GroupRequest:
    """Return a group of a cluster, if one is named, else what file and flags say."""
    if group is None:
        return group_request(file, assignor, topics, members, previous)
    if bootstrap is None:
        raise InvalidGroup(f"--group {group}: on which cluster? Give --bootstrap-server HOST:PORT too")
    for flag, given in (("FILE", file), ("--topics", topics), ("--previous", previous)):
        if given is not None:
            raise InvalidGroup(f"--group and {flag} exclude each other: the cluster knows the group")
    from restow.cli.groups.live import live_group

    live = live_group(bootstrap, group)
    known = {member.id: member for member in live.members}
    if members is not None:
        named = parse_names(members, "--members")
        here = tuple(known.get(name) or Member(id=name, topics=tuple(live.partitions)) for name in named)
        gone = {member.id: member.owned for member in live.members if member.id not in named}
        live = replace(live, members=here, departed=gone)
    return live if assignor is None else replace(live, assignor=assignor)


def group_request(
    file: str | None, assignor: str | None, topics: str | None, members: str | None, previous: str | None
) -> GroupRequest:
    """Merge file and flags; a flag overrides the file."""
    request = read_group(file) if file is not None else None
    if request is None and (topics is None or members is None):
        missing = " and ".join(
            flag for flag, given in (("--topics", topics), ("--members", members)) if given is None
        )
        raise InvalidGroup(
            f"no group to assign: name a FILE or give {missing}, like --topics orders=12 --members c1,c2,c3"
        )
    partitions = parse_topics(topics) if topics is not None else dict(request.partitions if request else {})
    if members is not None:
        known = {member.id: member for member in request.members} if request else {}
        named = parse_names(members, "--members")
        group = tuple(known.get(name) or Member(id=name, topics=tuple(partitions)) for name in named)
    else:
        group = request.members if request else ()
    departed: Mapping[str, Sequence[TopicPartition]] = {}
    if previous is not None:
        last = read_previous(previous)
        group = _with_previous(group, last)
        here = {member.id for member in group}
        departed = {member: owned for member, owned in last.owned.items() if member not in here}
    return GroupRequest(
        assignor=assignor or (request.assignor if request else DEFAULT_ASSIGNOR),
        partitions=partitions,
        members=group,
        partition_racks=request.partition_racks if request and topics is None else None,
        departed=departed,
    )


def _with_previous(members: tuple[Member, ...], previous: Previous) -> tuple[Member, ...]:
    return tuple(
        replace(member, owned=previous.owned[member.id], generation=previous.generation, user_data=None)
        if member.id in previous.owned
        else member
        for member in members
    )


def read_group(path: str) -> GroupRequest:
    """Read a group file."""
    document = read_document(path)
    fields = document.record(_GROUP_KEYS)
    for key in ("partitions", "members"):
        if key not in fields:
            document.fail(f"{key!r} is missing: a group needs the topics' partition counts and its members")
    partitions = {topic: n.integer(0, MAX_PARTITIONS) for topic, n in fields["partitions"].mapping().items()}
    check_partitions(sum(partitions.values()), f"{document.source}, partitions")
    members = fields["members"].items()
    if len(members) > MAX_MEMBERS:
        fields["members"].fail(f"more than {MAX_MEMBERS:,} members is more than Restow will deal to")
    racks = fields.get("partition_racks")
    return GroupRequest(
        assignor=fields["assignor"].text() if "assignor" in fields else DEFAULT_ASSIGNOR,
        partitions=partitions,
        members=tuple(_member(node, tuple(partitions)) for node in members),
        partition_racks=None if racks is None else _partition_racks(racks, partitions),
    )


def read_previous(path: str) -> Previous:
    """Read the output of an earlier `restow groups assign --json`."""
    document = read_document(path)
    fields = document.record(_RESULT_KEYS)
    if "assignment" not in fields:
        document.fail("'assignment' is missing: expected the output of `restow groups assign … --json`")
    owned = {member: _owned(node) for member, node in fields["assignment"].mapping().items()}
    generation = fields["generation"].integer(-1, INT32_MAX - 1) if "generation" in fields else 0
    return Previous(generation=generation, owned=owned)


def _member(node: DocumentNode, all_topics: tuple[str, ...]) -> Member:
    fields = node.record(_MEMBER_KEYS)
    if "id" not in fields:
        node.fail("'id' is missing: every member needs one")
    return Member(
        id=fields["id"].text(),
        topics=tuple(t.text() for t in fields["topics"].items()) if "topics" in fields else all_topics,
        instance_id=fields["instance_id"].text() if "instance_id" in fields else None,
        rack=fields["rack"].text() if "rack" in fields else None,
        owned=_owned(fields["owned"]) if "owned" in fields else (),
        generation=fields["generation"].integer(-1, INT32_MAX) if "generation" in fields else None,
        user_data=_base64(fields["user_data"]) if "user_data" in fields else None,
    )


def _owned(node: DocumentNode) -> tuple[TopicPartition, ...]:
    """Read `{orders: [0, 1]}` or `[[orders, 0], [orders, 1]]`."""
    if isinstance(node.value, list):
        return tuple(_topic_partition(pair) for pair in node.items())
    if not isinstance(node.value, dict):
        node.fail("expected {TOPIC: [PARTITION, …]} or [[TOPIC, PARTITION], …]")
    return tuple(
        TopicPartition(topic, partition.integer(0, INT32_MAX))
        for topic, partitions in node.mapping().items()
        for partition in partitions.items()
    )


def _topic_partition(node: DocumentNode) -> TopicPartition:
    pair = node.items()
    if len(pair) != 2:
        node.fail(f"expected [TOPIC, PARTITION], found {len(pair)} items")
    return TopicPartition(pair[0].text(), pair[1].integer(0, INT32_MAX))


def _base64(node: DocumentNode) -> bytes:
    if node.value == "":
        return b""
    try:
        return base64.b64decode(node.text(), validate=True)
    except (binascii.Error, ValueError) as error:
        node.fail(f"not base64: {error}")


def _partition_racks(
    node: DocumentNode, partitions: Mapping[str, int]
) -> dict[str, tuple[tuple[str | None, ...], ...]]:
    found: dict[str, tuple[tuple[str | None, ...], ...]] = {}
    for topic, racks in node.mapping().items():
        if topic not in partitions:
            racks.fail(f"{topic!r} is not among the topics under 'partitions'")
        rows = racks.items()
        if len(rows) != partitions[topic]:
            racks.fail(
                f"{len(rows)} lists of racks for {partitions[topic]} partitions: give one per partition"
            )
        found[topic] = tuple(
            tuple(None if rack.value is None else rack.text() for rack in row.items()) for row in rows
        )
    return found
