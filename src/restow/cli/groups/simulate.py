"""`restow groups simulate`: play joins, leaves and growing topics through several assignors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from restow._frozen import frozen
from restow.cli.groups.request import THE_GROUP, GroupFile, TopicCounts, group_request_or_live
from restow.cli.shared.connection import AsJson, OptionalBootstrap
from restow.cli.shared.drawing import clean, heading, put
from restow.cli.shared.flags import MAX_PARTITIONS, check_partitions, parse_names
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import NAME, NOTHING, NUMBER, Grid
from restow.errors import InvalidGroup
from restow.model import Member
from restow.sizes import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from restow.cli.groups.request import GroupRequest

ABOUT = "Play joins, leaves and growing topics through several assignors."
HELP = """Play what may happen to a consumer group through several assignors, and compare what they do.

The group comes from a cluster (--group), from a file as for `groups assign`, or from --topics and --members.
Each --then is one event; partitions stay with their members from event to event. Nothing is changed on the
cluster.

\b
  join:ID             a member joins, with the topics of the whole group
  leave:ID            a member leaves, and its partitions with it
  restart:ID          a member leaves and comes back with nothing
  grow:TOPIC=N        a topic gets more partitions, or is new
  stay                nothing happens but a rebalance

\b
Examples:
  $ restow groups simulate --group payments --then join:c4 -b localhost:9092
  $ restow groups simulate --topics orders=12 --members c1,c2,c3 \\
        --then leave:c2 --then grow:orders=18 --assignors sticky,uniform
"""


@frozen
class SimulatedStep:
    """What one assignor did about one event."""

    event: str
    moved: int
    revoked: int
    least: int
    most: int
    rounds: int
    most_lag: int | None = None


def command(
    file: GroupFile = None,
    bootstrap: OptionalBootstrap = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Take this group of the cluster.", rich_help_panel=THE_GROUP),
    ] = None,
    topics: TopicCounts = None,
    members: Annotated[
        str | None, typer.Option(metavar="ID,…", help="Member ids.", rich_help_panel=THE_GROUP)
    ] = None,
    then: Annotated[
        list[str] | None,
        typer.Option(metavar="EVENT", help="What happens next, like join:c4; may be repeated."),
    ] = None,
    assignors: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Compare these. Default: all that there are.")
    ] = None,
    as_json: AsJson = False,
) -> Answer:
    from restow.assignors import get, names

    request = group_request_or_live(bootstrap, group=group, file=file, topics=topics, members=members)
    wanted = names() if assignors is None else parse_names(assignors, "--assignors")
    events = tuple(then or ["stay"])
    for name in wanted:
        get(name)
    played = {name: play(request, name, events) for name in wanted}
    return Answer(
        document=lambda: {
            "members": len(request.members),
            "partitions": sum(request.partitions.values()),
            "assignors": {name: [_document(step) for step in steps] for name, steps in played.items()},
        },
        draw=lambda console: _draw(console, request, played),
        as_json=as_json,
    )


def play(request: GroupRequest, assignor: str, events: Sequence[str]) -> tuple[SimulatedStep, ...]:
    """Let an assignor answer one event after the other."""
    from restow.assignors import compare, settled

    members, partitions = list(request.members), dict(request.partitions)
    steps = []
    for event in events:
        before = {member.id: member.owned for member in members}
        members = _after(event, members, partitions)
        racks = request.partition_racks if partitions == request.partitions else None
        answer, rounds = settled(assignor, partitions, members, racks)
        compared = compare(before, answer)
        lags = [sum(request.lag.get(each, 0) for each in mine) for mine in answer.values()]
        counts = compared.counts.values()
        steps.append(
            SimulatedStep(
                event=event,
                moved=compared.moved,
                revoked=compared.revoked,
                least=min(counts, default=0),
                most=max(counts, default=0),
                rounds=rounds,
                most_lag=max(lags, default=0) if request.lag else None,
            )
        )
        members = [replace(member, owned=tuple(answer[member.id]), user_data=None) for member in members]
    return tuple(steps)


def _after(event: str, members: list[Member], partitions: dict[str, int]) -> list[Member]:
    """Return the members after an event; `partitions` grows in place."""
    what, _, whom = (part.strip() for part in event.partition(":"))
    if what == "stay" and not whom:
        return members
    if what == "grow":
        topic, number = _grown(event, whom)
        if number < partitions.get(topic, 0):
            raise InvalidGroup(f"--then {event!r}: {topic} has {partitions[topic]} partitions already")
        partitions[topic] = number
        check_partitions(sum(partitions.values()), f"--then {event!r}")
        return members
    known = {member.id: member for member in members}
    if what not in ("join", "leave", "restart") or not whom:
        raise InvalidGroup(
            f"--then {event!r} is no event: write join:ID, leave:ID, restart:ID, grow:TOPIC=N or stay"
        )
    if what == "join":
        if whom in known:
            raise InvalidGroup(f"--then {event!r}: {whom!r} is a member already")
        topics = tuple(dict.fromkeys(topic for member in members for topic in member.topics)) or tuple(
            partitions
        )
        return [*members, Member(id=whom, topics=topics)]
    if whom not in known:
        raise InvalidGroup(f"--then {event!r}: there is no member {whom!r}; there are {', '.join(known)}")
    if what == "leave":
        return [member for member in members if member.id != whom]
    fresh = replace(known[whom], owned=(), user_data=None, generation=None)
    return [fresh if member.id == whom else member for member in members]


def _grown(event: str, text: str) -> tuple[str, int]:
    topic, equals, number = text.rpartition("=")
    if not equals or not topic or not (number.isascii() and number.isdigit() and len(number) <= 10):
        raise InvalidGroup(f"--then {event!r}: {text!r} is not TOPIC=PARTITIONS, like orders=12")
    return topic, min(int(number), MAX_PARTITIONS + 1)


def _document(step: SimulatedStep) -> dict[str, object]:
    return {
        "event": step.event,
        "moved": step.moved,
        "revoked": step.revoked,
        "fewest": step.least,
        "most": step.most,
        "rounds": step.rounds,
        "most_lag_messages": step.most_lag,
    }


def _draw(console: Console, request: GroupRequest, played: Mapping[str, tuple[SimulatedStep, ...]]) -> None:
    whole = count(sum(request.partitions.values()), "partition")
    put(console, f"{whole}, {count(len(request.members), 'member')}", style="bold")
    for at, event in enumerate(step.event for step in next(iter(played.values()), ())):
        heading(console, clean(event))
        table = Grid(
            ("assignor", NAME),
            ("moved", NUMBER),
            ("revoked", NUMBER),
            ("fewest", NUMBER),
            ("most", NUMBER),
            ("most lag", NUMBER),
            ("rounds", NUMBER),
        )
        for name, steps in played.items():
            step = steps[at]
            table.add_row(
                name,
                f"{step.moved:,}",
                f"{step.revoked:,}",
                f"{step.least:,}",
                f"{step.most:,}",
                NOTHING if step.most_lag is None else f"{step.most_lag:,}",
                str(step.rounds),
            )
        console.print(table)
