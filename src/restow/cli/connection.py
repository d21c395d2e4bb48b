"""How commands reach a cluster: one flag, or its environment variable."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from restow.client import KafkaAdmin

T = TypeVar("T")

PANEL = "Connection"

Bootstrap: TypeAlias = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT[,…]",
        envvar="RESTOW_BOOTSTRAP_SERVER",
        help="Brokers to ask first; any of the cluster will do.",
        rich_help_panel=PANEL,
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")]


def hush() -> None:
    """What kafka-python has to say of each attempt to connect is no answer to a person."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)


def on_cluster(bootstrap: str, work: Callable[[KafkaAdmin], Awaitable[T]]) -> T:
    """Connect, do it, hang up."""
    from restow.client import Settings, connected

    hush()

    async def main() -> T:
        async with connected(Settings(bootstrap=bootstrap)) as admin:
            return await work(admin)

    return asyncio.run(main())
