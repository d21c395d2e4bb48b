"""`restow reassign`: Apache's kafka-reassign-partitions, with the same flags, lines and exit codes."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from restow import __version__
from restow.cli.shared.connection import Manner, settings_for
from restow.cli.shared.drawing import clean_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.client import ConnectionSettings
    from restow.kafka_tool import Arguments

ABOUT = "Apache's kafka-reassign-partitions: same flags, lines and exit codes."
HELP = """Act as Apache's kafka-reassign-partitions: generate, execute, verify, list or cancel reassignments.
Flags, files, lines and exit codes are the same, so that scripts go on working. For something safer see
`plan from-json` and `execute`.

\b
Actions (exactly one):
  --generate    propose a layout: --topics-to-move-json-file FILE --broker-list 1,2,3
                [--disable-rack-aware]
  --execute     start moves: --reassignment-json-file FILE [--throttle BYTES/S]
                [--replica-alter-log-dirs-throttle BYTES/S] [--timeout MS] [--additional]
                [--disallow-replication-factor-change]
  --verify      show the progress, clear throttles at the end: --reassignment-json-file FILE
                [--preserve-throttles]
  --list        list running reassignments
  --version     print the version, whatever other flags are given
  --cancel      cancel moves: --reassignment-json-file FILE
                [--preserve-throttles] [--timeout MS]

\b
Connection:
  --bootstrap-server HOST:PORT[,…]    any brokers of the cluster
  --command-config FILE               Kafka's client properties
  --zookeeper HOST:PORT[/ROOT]        instead, for clusters older than 2.4

\b
Examples:
  $ restow reassign --list --bootstrap-server localhost:9092
  $ restow reassign --bootstrap-server localhost:9092 --verify --reassignment-json-file moves.json
"""
SETTINGS: dict[Any, Any] = {"ignore_unknown_options": True, "allow_extra_args": True}


def command(ctx: typer.Context) -> None:
    raise typer.Exit(reassign(ctx.args))


def reassign(given: Sequence[str]) -> int:
    """Run one call; report wrong flags on stderr."""
    from restow.client import connected, hush, zookeeper_connected
    from restow.kafka_tool import UsageError, asks_for_version, parse_arguments, run_tool
    from restow.runtime.clock import SystemClock

    try:
        if asks_for_version(given):
            _say(__version__)
            return 0
        arguments = parse_arguments(given)
    except UsageError as error:
        sys.stderr.write(f"{clean_lines(str(error))}\nSee restow reassign --help.\n")
        return 1
    hush()

    def connect() -> Any:
        if arguments.by_nodes:
            return zookeeper_connected(arguments.text("zookeeper"))
        return connected(_settings(arguments))

    return asyncio.run(run_tool(arguments, connect, read=_read, say=_say, clock=SystemClock()))


def _settings(arguments: Arguments) -> ConnectionSettings:
    config = arguments.text("command-config") if "command-config" in arguments.values else None
    return settings_for(arguments.text("bootstrap-server"), Manner(command_config=config))


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise OSError(f"Unable to read file {path}: {getattr(error, 'strerror', None) or error}") from None


def _say(line: str) -> None:
    sys.stdout.write(f"{clean_lines(line)}\n")
    sys.stdout.flush()
