"""Connections of commands to a cluster: flags, environment variables, and Kafka's property files.

A command takes a parameter of type `Bootstrap` and passes it to `on_cluster`. The connection options are the
same for all commands, so `Command` adds them to every command with `--bootstrap-server`, and keeps their
values for `on_cluster`.
"""

from __future__ import annotations

import os
from contextvars import ContextVar
from dataclasses import field, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from restow.cli.shared.options import flattened, section

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from typer.core import TyperCommand, TyperGroup

    from restow.client import ConnectionSettings, KafkaAdmin
    from restow.client.property_files import Property

T = TypeVar("T")

PANEL = "Connection"
BOOTSTRAP = "--bootstrap-server"
_SERVERS, _CONFIG = "RESTOW_BOOTSTRAP_SERVER", "RESTOW_COMMAND_CONFIG"

_BOOTSTRAP_SERVER = typer.Option(
    BOOTSTRAP,
    "-b",
    metavar="HOST:PORT[,…]",
    envvar=_SERVERS,
    help="Brokers to connect to first; any of the cluster.",
    rich_help_panel=PANEL,
)
Bootstrap: TypeAlias = Annotated[str, _BOOTSTRAP_SERVER]
OptionalBootstrap: TypeAlias = Annotated[str | None, _BOOTSTRAP_SERVER]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@section(PANEL)
class Manner:
    """How to connect. `Command` adds these options to every command with `--bootstrap-server`."""

    command_config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", envvar=_CONFIG, help="Read Kafka client properties: TLS, SASL, timeouts."
        ),
    ] = None
    command_property: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=VALUE",
            help="Set one client property, such as security.protocol=SSL; secrets go into files "
            "(sasl.password.file=/run/secrets/kafka) or the environment (RESTOW_CLIENT_SASL_PASSWORD).",
        ),
    ] = field(default_factory=list)


_said: ContextVar[Manner | None] = ContextVar("restow_connection", default=None)


def _connecting(manner: Manner) -> None:
    """Declare the options for `_options`."""


def add_connection_options(command: TyperCommand | TyperGroup) -> None:
    """Add the connection options to a command, except those that it declares itself."""
    taken = {flag for param in command.params for flag in param.opts}
    if BOOTSTRAP in taken:
        command.params += [option for option in _options() if taken.isdisjoint(option.opts)]


@cache
def _options() -> tuple[Any, ...]:
    """Return the options. Each stores its value itself; the command's function does not receive it."""
    application = typer.Typer(add_completion=False)
    application.command()(flattened(_connecting))
    found = tuple(typer.main.get_command(application).params)
    for option in found:
        option.expose_value = False
        option.callback = _keep
    return found


def _keep(context: Any, option: Any, value: Any) -> Any:  # noqa: ARG001
    _said.set(replace(_said.get() or Manner(), **{option.name: value}))
    return value


def connection_flags() -> list[str]:
    """Return the connection options of this command as flags for another one."""
    how = _said.get() or Manner()
    given = [] if how.command_config is None else ["--command-config", how.command_config]
    return given + [part for each in how.command_property for part in ("--command-property", each)]


def flags_for_the_same(bootstrap: str | None) -> list[str]:
    """Return the flags by which another command reaches the cluster, except what the environment says."""
    how = _said.get() or Manner()
    given = {"-b": bootstrap, "--command-config": how.command_config}
    told = {"-b": os.environ.get(_SERVERS), "--command-config": os.environ.get(_CONFIG)}
    return [part for flag, value in given.items() if value and value != told[flag] for part in (flag, value)]


def settings_for(bootstrap: str, how: Manner | None = None) -> ConnectionSettings:
    """Merge file, environment and command line; a later source overrides."""
    from restow.client.properties import settings

    return settings(bootstrap, *_layers(how), environment=os.environ, warn=_warn_once)


def properties_for() -> dict[str, str]:
    """Return the settings as Kafka properties, for Spark's connector. Secrets are in clear text."""
    from restow.client.secret_files import resolve

    found = resolve(_layers(None), os.environ, _warn_once)
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


def on_cluster(bootstrap: str, work: Callable[[KafkaAdmin], Awaitable[T]]) -> T:
    """Connect, run `work`, disconnect."""
    from restow.client import ask_cluster, hush

    hush()
    return ask_cluster(settings_for(bootstrap), work)
