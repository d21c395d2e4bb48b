"""`restow broker`: run one broker as a process of its own, until ctrl-C or SIGTERM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.cluster.listening import BrokerConfigs, ListeningOptions
from restow.cli.shared.flags import INT32_MAX
from restow.cli.shared.frame import CleanFormatter
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

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
_LEVELS = ("debug", "info", "warning", "error")


def command(
    *,
    broker_id: Annotated[int, typer.Option("--id", min=0, max=INT32_MAX, help="The broker's id.")],
    store: Annotated[str, typer.Option(help="The metadata store: zookeeper://host:port[,…][/root].")],
    data: Annotated[str, typer.Option(help="Folder for the broker's log dirs.", rich_help_panel=_STORAGE)],
    log_dirs: Annotated[
        int, typer.Option(min=1, max=1000, help="Number of log dirs.", rich_help_panel=_STORAGE)
    ] = 1,
    listening: ListeningOptions,
    broker_user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The user as whom brokers log in to each other.", rich_help_panel=_NETWORK
        ),
    ] = None,
    rack: Annotated[str | None, typer.Option(help="The broker's rack.")] = None,
    config: BrokerConfigs = None,
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
    host, port = listening.host, listening.port
    if host in _EVERYWHERE:
        raise InvalidInput(f"--host: {host!r} is no address that others can reach this broker at: give one")
    access = Access.parse(
        listening.listener or (),
        listening.known_users(),
        broker_user,
        listening.super_user or (),
        listening.tls,
    )
    ports = [port + each if port else 0 for each in range(len(access.listeners))]
    properties = {**access.properties(host, ports), **parse_configs(config or ())}
    listening.check_reach(properties)
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


def parse_configs(pairs: Sequence[str]) -> dict[str, str]:
    """Parse NAME=VALUE pairs; a later value replaces an earlier one."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(f"--config: {pair!r} is not NAME=VALUE, like log.retention.hours=24")
        found[name.strip()] = value.strip()
    return found
