"""`restow groups assign`: assign a consumer group's partitions to its members."""

from __future__ import annotations

from dataclasses import asdict, field
from typing import TYPE_CHECKING, Annotated

import typer

from restow._frozen import frozen
from restow.cli.groups.request import THE_GROUP, GroupFile, TopicCounts, group_request_or_live
from restow.cli.shared.connection import OptionalBootstrap
from restow.cli.shared.drawing import DEFAULT_ROWS
from restow.cli.shared.frame import Answer, save_document
from restow.cli.shared.options import section
from restow.model import by_topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restow.assignors import AssignmentComparison, Assignor
    from restow.cli.groups.request import GroupRequest
    from restow.model import TopicPartition

ABOUT = "Assign a group's partitions to its members."
HELP = """Assign a group's partitions to its members, and compare with the previous assignment.

A consumer group shares the partitions of its topics: exactly one member reads each. An assignor, which runs
in one of the clients or in the broker, decides which. Restow computes the assignment without a cluster: try
an assignor before you switch to it, or see why a group is lopsided and what a rebalance would move.

\b
  range               per topic, consecutive partitions; lines up topics of one size
  roundrobin          all partitions in one row, given to members in turn
  sticky              as even as possible, then as few moves as possible
  cooperative-sticky  the same in two rounds: a member gives a partition up in one and
                      another gets it in the next, so that all others go on reading
  uniform             even and sticky: the default of brokers for group.protocol=consumer

\b
Examples:
  $ restow groups assign --assignor range \\
        --topics orders=12,payments=6 --members c1,c2,c3
  $ restow groups assign group.yaml --assignor sticky
  $ restow groups assign --topics orders=12 --members c1,c2,c3 --save round1.json
  $ restow groups assign --topics orders=12 --members c1,c2,c3,c4 \\
        --previous round1.json
  $ restow groups assign --group payments --assignor uniform -b localhost:9092

\b
A file can also hold racks, subscriptions and the partitions that each member owns.
  partitions: {orders: 12, payments: 6}
  members:
    - {id: c1, rack: a, owned: {orders: [0, 1, 2]}, generation: 4}
    - {id: c2, topics: [orders]}
"""


@frozen
class GroupReport:
    """An assignment and its difference to the previous one."""

    assignor: str
    cooperative: bool
    generation: int
    partitions: Mapping[str, int]
    before: Mapping[str, Sequence[TopicPartition]]
    after: Mapping[str, Sequence[TopicPartition]]
    comparison: AssignmentComparison
    subscribed: frozenset[str] = frozenset()
    """Topics that at least one member subscribes to."""
    unassigned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def had_before(self) -> bool:
        return any(self.before.values())

    def now_of(self, member: str) -> frozenset[TopicPartition]:
        return frozenset(self.after[member])

    def before_of(self, member: str) -> frozenset[TopicPartition]:
        return frozenset(self.before.get(member, ()))

    def by_topic(self, member: str) -> dict[str, list[int]]:
        """Return the member's partitions per topic, both ascending."""
        return by_topic(sorted(self.after[member]))

    def document(self) -> dict[str, object]:
        """Return the document that `--json` prints and `--previous` reads."""
        return {
            "assignor": self.assignor,
            "generation": self.generation,
            "partitions": dict(self.partitions),
            "assignment": {member: self.by_topic(member) for member in self.after},
            "unassigned": {topic: list(partitions) for topic, partitions in self.unassigned.items()},
            "comparison": asdict(self.comparison),
        }


def assign_group(request: GroupRequest) -> GroupReport:
    """Ask the assignor, and compare its answer with what the members owned."""
    from restow.assignors import assign, compare, get

    assignor = get(request.assignor)
    after = assign(
        request.assignor,
        partitions=request.partitions,
        members=request.members,
        partition_racks=request.partition_racks,
    )
    before = {**_held_before(request, assignor), **request.departed}
    return GroupReport(
        assignor=request.assignor,
        cooperative=assignor.cooperative,
        generation=max((member.generation or 0 for member in request.members), default=0) + 1,
        partitions=request.partitions,
        before=before,
        after=after,
        comparison=compare(before, after),
        subscribed=frozenset(topic for member in request.members for topic in member.topics),
        unassigned=_unassigned(request.partitions, after),
    )


def _held_before(request: GroupRequest, assignor: Assignor) -> dict[str, tuple[TopicPartition, ...]]:
    """Return the partitions that each member owned. The highest generation's claim counts, none on a tie."""
    from restow.assignors.sticky import Sticky

    claims: dict[TopicPartition, dict[str, int]] = {}
    for member in request.members:
        owned, generation = member.owned, member.generation
        if isinstance(assignor, Sticky):
            owned, generation = assignor.claim(member)
        for where in owned:
            claims.setdefault(where, {})[member.id] = -1 if generation is None else generation
    held: dict[str, list[TopicPartition]] = {member.id: [] for member in request.members}
    for where, claimants in claims.items():
        highest = max(claimants.values())
        rightful = [member for member, generation in claimants.items() if generation == highest]
        if len(rightful) == 1:
            held[rightful[0]].append(where)
    return {member: tuple(owned) for member, owned in held.items()}


def _unassigned(
    partitions: Mapping[str, int], after: Mapping[str, Sequence[TopicPartition]]
) -> dict[str, tuple[int, ...]]:
    taken = {where for owned in after.values() for where in owned}
    free = {
        topic: tuple(p for p in range(size) if (topic, p) not in taken) for topic, size in partitions.items()
    }
    return {topic: waiting for topic, waiting in free.items() if waiting}


def complete_assignor(incomplete: str) -> list[str]:
    """Return the assignors whose names begin like this, for the shell's completion."""
    from restow.assignors import names

    return [name for name in names() if name.startswith(incomplete)]


@section(THE_GROUP)
class GroupOptions:
    """The group, and the assignor that it asks."""

    assignor: Annotated[
        str | None,
        typer.Option(
            "--assignor",
            "-a",
            metavar="NAME",
            help="Use this assignor. Default: the file's, else cooperative-sticky.",
            autocompletion=complete_assignor,
        ),
    ] = None
    topics: TopicCounts = None
    members: Annotated[
        str | None,
        typer.Option(
            metavar="ID,…",
            help="Member ids, each subscribed to all topics. With a FILE: keep only these; new ids join.",
        ),
    ] = None
    group: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Take this group of the cluster, with the partitions that its members have now.",
        ),
    ] = None
    previous: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Read what the members own now from the --json output of the previous round."
        ),
    ] = None


@section("Output")
class AssignOutput:
    """What is printed and written."""

    save: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write the JSON document to this file too, for the next round's --previous."
        ),
    ] = None
    rows: Annotated[
        int, typer.Option(min=0, metavar="N", help="Draw at most this many members; 0 draws all.")
    ] = DEFAULT_ROWS
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of pictures.")] = False


def command(
    *, file: GroupFile = None, asked: GroupOptions, bootstrap: OptionalBootstrap = None, output: AssignOutput
) -> Answer:
    from restow.cli.groups.view import draw_group

    request = group_request_or_live(bootstrap, file=file, **vars(asked))
    report = assign_group(request)
    if output.save is not None:
        save_document(output.save, report.document())
    return Answer(
        document=report.document,
        draw=lambda console: draw_group(console, report, output.rows),
        as_json=output.as_json,
    )
