"""`restow groups describe`: show the state, the members and the assignment of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.drawing import clean, heading, put, ranges
from restow.cli.shared.frame import Answer
from restow.cli.shared.tables import LABEL, NAME, NOTHING, NUMBER, WORDS, Grid
from restow.model import by_topic
from restow.sizes import count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from restow.client import GroupLag
    from restow.client.values import GroupMember
    from restow.model import TopicPartition

ABOUT = "Show the state, members and assignment of groups."
HELP = """Show the state of consumer groups, their members, and which partitions each member has.

In a group of the protocol consumer the broker assigns. A member then has an epoch of its own, and a target;
what it still has to get or to give up is shown with it. Members of both protocols may share such a group.

\b
Examples:
  $ restow groups describe payments --bootstrap-server localhost:9092
  $ restow groups describe payments orders -b localhost:9092 --json
"""

Names = Annotated[list[str], typer.Argument(metavar="GROUP…", help="Their names.")]


def command(names: Names, bootstrap: Bootstrap, as_json: AsJson = False) -> Answer:
    from restow.client import group_lags

    groups = on_cluster(bootstrap, lambda admin: group_lags(admin, 0, names, in_time=False))
    return Answer(
        document=lambda: {"groups": [document(each) for each in groups]},
        draw=lambda console: _draw(console, groups),
        as_json=as_json,
    )


def document(found: GroupLag) -> dict[str, object]:
    """Return a group as JSON."""
    group = found.group
    return {
        "name": group.name,
        "protocol": group.protocol,
        "state": group.state,
        "epoch": group.epoch,
        "assignor": group.assignor,
        "coordinator": found.coordinator,
        "error": found.error,
        "members": [
            {
                "id": member.id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "rack": member.rack,
                "protocol": member.protocol,
                "epoch": member.epoch,
                "topics": None if member.topics is None else list(member.topics),
                "partitions": by_topic(sorted(member.held)),
                "target": None if member.target is None else by_topic(sorted(member.target)),
            }
            for member in group.members
        ],
    }


def in_words(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions like `orders 0-3, payments 1`."""
    listed = by_topic(sorted(partitions)).items()
    return ", ".join(f"{clean(topic)} {ranges(numbers, 0)}" for topic, numbers in listed) or NOTHING


def _draw(console: Console, groups: tuple[GroupLag, ...]) -> None:
    for found in groups:
        group = found.group
        heading(console, clean(group.name))
        facts = [group.state, f"protocol {group.protocol}", f"coordinator {found.coordinator}"]
        facts += [] if group.epoch is None else [f"epoch {group.epoch}"]
        facts += [] if group.assignor is None else [f"assignor {clean(group.assignor)}"]
        put(console, f"  {', '.join(facts)}, {count(len(group.members), 'member')}")
        if found.error:
            put(console, f"  its offsets are unknown: {clean(found.error)}", style="yellow")
        if group.members:
            console.print(_members(group.members, with_epochs=group.epoch is not None))


def _members(members: Iterable[GroupMember], *, with_epochs: bool) -> Grid:
    epochs = (("protocol", LABEL), ("epoch", NUMBER)) if with_epochs else ()
    table = Grid(("member", NAME), ("host", NAME), ("rack", LABEL), *epochs, ("partitions", WORDS))
    for member in members:
        shown = (member.protocol, NOTHING if member.epoch is None else str(member.epoch))
        table.add_row(
            member.id if member.instance_id is None else f"{member.id} ({member.instance_id})",
            member.host,
            member.rack or NOTHING,
            *(shown if with_epochs else ()),
            in_words(member.held) + _on_the_way(member),
        )
    return table


def _on_the_way(member: GroupMember) -> str:
    """Return what the member has still to give up and to get."""
    if member.target is None:
        return ""
    gives, gets = set(member.held) - set(member.target), set(member.target) - set(member.held)
    parts = [f"gives up {in_words(gives)}"] if gives else []
    parts += [f"waits for {in_words(gets)}"] if gets else []
    return f"; {'; '.join(parts)}" if parts else ""
