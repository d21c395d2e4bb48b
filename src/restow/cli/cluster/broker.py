"""`restow broker`: run one broker as a process of its own, until ctrl-C or SIGTERM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.shared.flags import INT32_MAX
from restow.cli.shared.frame import CleanFormatter
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ABOUT = "Run one broker as a process of its own."
HELP = """Run one broker in this process. Brokers that name the same ZooKeeper are one cluster.

The broker runs until ctrl-C or SIGTERM. It hands its leaderships to other brokers before it stops. Started
again with the same --data, it continues with its data. Its log goes to stderr.

\b
Examples:
  $ restow broker --id 1 --store zookeeper://127.0.0.1:2181 --data /var/lib/restow/1 --port 9092
  $ restow broker --id 2 --store zookeeper://a:2181,b:2181/kafka --data data/2 --port 0 --json \\
      --config log.retention.hours=24
"""

_STORAGE, _NETWORK = "Storage", "Network"
_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104  (refused)
OPEN_HELP = "Allow listeners beyond loopback that ask for no login: every client that reaches one comes in."
LISTENER_HELP = (
    "Listen there: NAME:PROTOCOL, with PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; repeatable, on ports in "
    "a row. Brokers use the first one themselves."
)
SUPER_HELP = "Let this user do everything, and others only what ACLs allow; repeatable."
TLS_HELP = (
    "Folder with authority.pem and server.pem, for TLS; made for loopback and --host if it has none. Without "
    "--listener, clients use TLS."
)
USERS_HELP = "File of lines NAME:PASSWORD, with which clients log in by PLAIN or SCRAM."
_LEVELS = ("debug", "info", "warning", "error")


def command(
    broker_id: Annotated[int, typer.Option("--id", min=0, max=INT32_MAX, help="The broker's id.")],
    store: Annotated[str, typer.Option(help="The metadata store: zookeeper://host:port[,…][/root].")],
    data: Annotated[str, typer.Option(help="Folder for the broker's log dirs.", rich_help_panel=_STORAGE)],
    log_dirs: Annotated[
        int, typer.Option(min=1, max=1000, help="Number of log dirs.", rich_help_panel=_STORAGE)
    ] = 1,
    host: Annotated[
        str, typer.Option(help="Address to listen on and to advertise.", rich_help_panel=_NETWORK)
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port; 0 takes a free one.", rich_help_panel=_NETWORK)
    ] = 9092,
    listener: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:PROTOCOL", help=LISTENER_HELP, rich_help_panel=_NETWORK),
    ] = None,
    users: Annotated[
        str | None, typer.Option(metavar="FILE", help=USERS_HELP, rich_help_panel=_NETWORK)
    ] = None,
    broker_user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The user as whom brokers log in to each other.", rich_help_panel=_NETWORK
        ),
    ] = None,
    super_user: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=SUPER_HELP, rich_help_panel=_NETWORK),
    ] = None,
    tls: Annotated[str | None, typer.Option(metavar="DIR", help=TLS_HELP, rich_help_panel=_NETWORK)] = None,
    without_authentication: Annotated[
        bool, typer.Option("--without-authentication", help=OPEN_HELP, rich_help_panel=_NETWORK)
    ] = False,
    rack: Annotated[str | None, typer.Option(help="The broker's rack.")] = None,
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Set a Kafka broker config; repeatable.")
    ] = None,
    log_level: Annotated[
        str, typer.Option(metavar="|".join(_LEVELS), help="Log lines of this level and above.")
    ] = "warning",
    as_json: Annotated[
        bool, typer.Option("--json", help="When ready, print one line of JSON: id, host and port.")
    ] = False,
) -> None:
    import logging
    from pathlib import Path

    from restow.cli.cluster.run import run_broker
    from restow.cluster.broker.broker import BrokerOptions
    from restow.cluster.config.table import InvalidConfig
    from restow.cluster.security.access import Access
    from restow.cluster.standalone import StoreAddress, standalone
    from restow.runtime.loop import run

    if log_level not in _LEVELS:
        raise InvalidInput(f"--log-level: {log_level!r} is not one of {', '.join(_LEVELS)}")
    if host in _EVERYWHERE:
        raise InvalidInput(f"--host: {host!r} is no address that others can reach this broker at: give one")
    access = Access.parse(listener or (), read_users(users), broker_user, super_user or (), tls)
    ports = [port + each if port else 0 for each in range(len(access.listeners))]
    properties = {**access.properties(host, ports), **parse_configs(config or ())}
    check_reach(properties, host, port, without_authentication=without_authentication)
    address = StoreAddress.parse(store)
    if access.certificates is not None:
        access.certificates.make_if_none(host)
    options = BrokerOptions(
        broker_id=broker_id,
        log_dirs=tuple(str(Path(data).absolute() / f"log-{number}") for number in range(log_dirs)),
        host=host,
        port=port,
        rack=rack,
        properties=properties,
    )
    try:
        broker = standalone(options, address)
    except InvalidConfig as error:
        raise InvalidInput(f"--config: {error}") from error
    log = logging.StreamHandler()
    log.setFormatter(CleanFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=log_level.upper(), handlers=[log])
    if log_level in ("warning", "error"):  # kazoo logs every attempt to connect
        logging.getLogger("restow.cluster.store.zookeeper_link").setLevel(logging.ERROR)
    run(run_broker(broker, as_json=as_json))


def check_reach(properties: Mapping[str, str], host: str, port: int, *, without_authentication: bool) -> None:
    """Raise InvalidInput for a listener beyond loopback that lets everybody in, unless that is meant."""
    from restow.cluster.security.broker_doors import Doors

    doors = Doors.of(properties, host, port)
    for each in doors.listeners:
        if not (is_loopback(each.host) or doors.knows_clients(each) or without_authentication):
            raise InvalidInput(
                f"listener {each.name} is at {each.host!r}, which is not a loopback address, and asks for no "
                "login: every client that reaches it comes in; give it the protocol SASL_SSL or "
                "SASL_PLAINTEXT, with --listener and --users, or if it is meant, say --without-authentication"
            )


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches the address."""
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_users(path: str | None) -> dict[str, str]:
    """Return the users in a file of lines NAME:PASSWORD; none without a file."""
    from pathlib import Path

    from restow.cluster.security.access import parse_users

    if path is None:
        return {}
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"--users: {path} cannot be read: {error}") from error
    return parse_users(text, f"--users {path}")


def parse_configs(pairs: Sequence[str]) -> dict[str, str]:
    """Parse NAME=VALUE pairs; a later value replaces an earlier one."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(f"--config: {pair!r} is not NAME=VALUE, like log.retention.hours=24")
        found[name.strip()] = value.strip()
    return found
