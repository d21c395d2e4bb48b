"""`restow topics delete`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.shared.connection import AsJson, Bootstrap, on_cluster
from restow.cli.shared.drawing import clean
from restow.cli.shared.frame import Answer, line
from restow.errors import InvalidInput
from restow.sizes import count

if TYPE_CHECKING:
    from restow.client import KafkaAdmin
    from restow.model import Topic

ABOUT = "Delete topics and their data."
HELP = """Delete topics and all of their data. The command asks first; without a terminal it needs --yes.

\b
Examples:
  $ restow topics delete orders -b localhost:9092
  $ restow topics delete orders payments --yes -b localhost:9092
"""


def command(
    names: Annotated[list[str], typer.Argument(metavar="TOPIC…", help="Their names.")],
    bootstrap: Bootstrap,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> Answer:
    if not yes:
        topics = on_cluster(bootstrap, lambda admin: admin.describe_topics(names))
        if not sys.stdin.isatty():
            raise InvalidInput(f"this would delete {_what(topics)}: say --yes if that is meant")
        typer.confirm(f"Delete {_what(topics)}?", abort=True)
    on_cluster(bootstrap, lambda admin: _delete(admin, names))
    return line(f"deleted: {', '.join(names)}", {"deleted": names}, as_json=as_json)


def _what(topics: tuple[Topic, ...]) -> str:
    return ", ".join(f"{clean(topic.name)} ({count(len(topic.partitions), 'partition')})" for topic in topics)


async def _delete(admin: KafkaAdmin, names: list[str]) -> None:
    """Delete all topics that can be deleted, then raise the first error."""
    for error in (await admin.delete_topics(names)).values():
        if error is not None:
            raise error
