"""`restow acls`: which ACLs a command needs, and the lines that grant them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.shared.connection import AsJson
from restow.cli.shared.drawing import put
from restow.cli.shared.frame import Answer
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import Console

    from restow.model.permissions import Acl

ABOUT = "List the ACLs that each command needs."
HELP = """Show which ACLs a command needs, and print the kafka-acls lines that grant them. Asks no cluster.

\b
Examples:
  $ restow acls
  $ restow acls execute --principal User:ops
  $ restow acls plan --principal User:ops --topic orders --topic payments
"""


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND…", help="A command, such as execute or topics list. Default: all."),
    ] = None,
    principal: Annotated[
        str | None, typer.Option(metavar="TYPE:NAME", help="Print kafka-acls lines for User:ops or another.")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC", help="Grant on this topic; repeatable. Default: all.")
    ] = None,
    as_json: AsJson = False,
) -> Answer:
    from restow.model.permissions import NEEDED

    wanted = " ".join(names or ())
    if wanted.startswith("plan "):
        wanted = "plan"
    if wanted and wanted not in NEEDED:
        raise InvalidInput(f"{wanted!r} asks no cluster, or is no command; these do: {', '.join(NEEDED)}")
    if principal is not None and not all(principal.partition(":")[::2]):
        raise InvalidInput(f"--principal: {principal!r} is not TYPE:NAME; write it like User:ops")
    chosen = {wanted: NEEDED[wanted]} if wanted else NEEDED
    topics = topic or ["*"]
    lines = [] if principal is None else list(grants(chosen.values(), principal, topics))
    return Answer(
        document=lambda: {
            "commands": {name: [each._asdict() for each in acls] for name, acls in chosen.items()},
            "grants": lines,
        },
        draw=lambda console: _draw(console, chosen, lines),
        as_json=as_json,
    )


def grants(roles: Iterable[Sequence[Acl]], principal: str, topics: Sequence[str]) -> Iterator[str]:
    """Yield one line of kafka-acls for each resource, with all of its operations."""
    from shlex import quote

    operations: dict[tuple[str, ...], list[str]] = {}
    for acls in roles:
        for each in acls:
            for flags in _flags(each, topics):
                known = operations.setdefault(flags, [])
                if each.operation not in known:
                    known.append(each.operation)
    for flags, known in operations.items():
        words = ["kafka-acls.sh", "--bootstrap-server", "HOST:PORT", "--add", "--allow-principal", principal]
        for operation in known:
            words += ["--operation", operation.title().replace("_", "")]
        yield " ".join([*words[:3], *(quote(word) for word in (*words[3:], *flags))])


def _flags(acl: Acl, topics: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the flags by which kafka-acls names the resources."""
    if acl.on == "cluster":
        yield ("--cluster",)
    elif acl.on == "group":
        yield ("--group", acl.name or "*")
    else:
        yield from (("--topic", topic) for topic in topics)


def _draw(console: Console, chosen: Mapping[str, tuple[Acl, ...]], lines: Sequence[str]) -> None:
    for name, acls in chosen.items():
        put(console, f"restow {name}", style="bold")
        if not acls:
            put(console, "  no ACL: it reads only the cluster's id")
        for each in acls:
            where = "the cluster" if each.on == "cluster" else "topics" if each.on == "topic" else "groups"
            where = f"group {each.name}" if each.name else where
            note = " (optional)" if each.optional else ""
            console.print(f"  {each.operation} on {where} {each.why}{note}", soft_wrap=True)
    if lines:
        put(console)
        for line in lines:
            console.print(line, soft_wrap=True)
