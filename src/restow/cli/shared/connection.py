"""How commands reach a cluster: flags, their environment variables, and Kafka's own property files.

A command names the brokers to ask as a parameter of the type `Bootstrap` and hands them to `on_cluster`. The
options that say how to talk to them are the same for all, so `Command` adds them to every command that has
`--bootstrap-server`; what they were given is kept for `on_cluster`, which needs it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from typer.core import TyperCommand, TyperGroup

    from restow.client import ConnectionSettings, KafkaAdmin
    from restow.client.property_files import Property

T = TypeVar("T")

PANEL = "Connection"
BOOTSTRAP = "--bootstrap-server"

Bootstrap: TypeAlias = Annotated[
    str,
    typer.Option(
        BOOTSTRAP,
        "-b",
        metavar="HOST:PORT[,…]",
        envvar="RESTOW_BOOTSTRAP_SERVER",
        help="Brokers to ask first; any of the cluster will do.",
        rich_help_panel=PANEL,
    ),
]
CommandConfig: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        envvar="RESTOW_COMMAND_CONFIG",
        help="Kafka's client.properties: TLS, login, timeouts.",
        rich_help_panel=PANEL,
    ),
]
CommandProperties: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--command-property",
        metavar="NAME=VALUE",
        help="Set one of these properties, such as security.protocol=SSL; secrets go into files "
        "(sasl.password.file=/run/secrets/kafka) or the environment (RESTOW_CLIENT_SASL_PASSWORD).",
        rich_help_panel=PANEL,
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How to talk to the cluster, as it was said on the command line."""

    command_config: str | None = None
    command_property: tuple[str, ...] = ()


_said: ContextVar[Manner | None] = ContextVar("restow_connection", default=None)


def _shared(command_config: CommandConfig = None, command_property: CommandProperties = []) -> None:  # noqa: B006
    """Nothing but the options, for `typer` to make them of."""


def add_connection_options(command: TyperCommand | TyperGroup) -> None:
    """What every command has that talks to a cluster. An option that it has itself stays its own."""
    taken = {flag for param in command.params for flag in param.opts}
    if BOOTSTRAP in taken:
        command.params += [option for option in _options() if taken.isdisjoint(option.opts)]


@cache
def _options() -> tuple[Any, ...]:
    """Each keeps what it is given, or its default, and the command does not see it."""
    application = typer.Typer(add_completion=False)
    application.command()(_shared)
    found = tuple(typer.main.get_command(application).params)
    for option in found:
        option.expose_value = False
        option.callback = _keep
    return found


def _keep(context: Any, option: Any, value: Any) -> Any:  # noqa: ARG001
    said = _said.get() or Manner()
    if option.multiple:
        _said.set(replace(said, command_property=tuple(value or ())))
    else:
        _said.set(replace(said, command_config=value))
    return value


def settings_for(bootstrap: str, how: Manner | None = None) -> ConnectionSettings:
    """File, environment, command line: what is said later counts more."""
    from restow.client.properties import settings

    return settings(bootstrap, *_layers(how), environment=os.environ, warn=_warn_once)


def properties_for(how: Manner | None = None) -> dict[str, str]:
    """The same as Kafka's properties by name, for whoever connects elsewhere. Secrets are bare in it."""
    from restow.client.secret_files import resolve

    found = resolve(_layers(how), os.environ, _warn_once)
    return {name: "".join(each.value) for name, each in found.items()}


@cache
def _warn_once(message: str) -> None:
    from restow.cli.shared.frame import warn

    warn(message)


def _layers(how: Manner | None) -> tuple[Mapping[str, Property], ...]:
    from restow.client.properties import layers
    from restow.client.property_files import from_flags

    how = how or _said.get() or Manner()
    return layers(how.command_config, from_flags(how.command_property), os.environ, _warn_once)


def hush() -> None:
    """What kafka-python has to say of each attempt to connect is no answer to a person."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)


def on_cluster(bootstrap: str, work: Callable[[KafkaAdmin], Awaitable[T]]) -> T:
    """Connect, do it, hang up."""
    from restow.client import connected

    hush()
    settings = settings_for(bootstrap)

    async def main() -> T:
        async with connected(settings) as admin:
            return await work(admin)

    return asyncio.run(main())
