"""`restow cluster up`: run a cluster of brokers in this process, until ctrl-C or SIGTERM."""

from __future__ import annotations

from typing import Annotated

import typer

from restow.cli.cluster.broker import parse_configs
from restow.cli.cluster.listening import BrokerConfigs, ListeningOptions
from restow.cli.shared.flags import parse_names
from restow.errors import InvalidInput

ABOUT = "Start a cluster of brokers in this process."
HELP = """Start brokers that unmodified Kafka clients can use, in this process, until ctrl-C.

Broker ids count from 0, on consecutive ports from --port on; with --port 0 each takes a free one. Without
--data the cluster keeps its files in a temporary folder and deletes it at the end. With the same --data it
continues, with as many brokers or more. On a terminal a table shows brokers, leaders and replicas in sync.

The first ctrl-C shuts the brokers down in order, a second one ends the process at once.

\b
Examples:
  $ restow cluster up
  $ restow cluster up --brokers 5 --racks a,b,c --log-dirs 2 --data data --port 9092
  $ restow cluster up --port 0 --json --config log.retention.hours=24
  $ restow cluster up --listener LOGIN:SASL_PLAINTEXT --users users.txt
  $ restow cluster up --tls certificates
"""

_STORAGE = "Storage"
_MOST = 1000


def command(
    *,
    brokers: Annotated[
        int | None,
        typer.Option(
            min=1, max=_MOST, help="Number of brokers. [default: as in --data, else 3]", show_default=False
        ),
    ] = None,
    racks: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="Racks, given to the brokers in turn: a,b,c.")
    ] = None,
    log_dirs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=_MOST,
            help="Log dirs of each broker. [default: as in --data, else 1]",
            show_default=False,
            rich_help_panel=_STORAGE,
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="DIR", help="Keep all files there.", rich_help_panel=_STORAGE)
    ] = None,
    listening: ListeningOptions,
    config: BrokerConfigs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="When ready, print the addresses as one line of JSON.")
    ] = False,
) -> None:
    from restow.cli.cluster.folder import Shape, held
    from restow.cli.cluster.run import run_until_told
    from restow.cluster.config.table import InvalidConfig
    from restow.cluster.embedded import EmbeddedCluster
    from restow.cluster.security.access import Access
    from restow.runtime.loop import run

    host, port = listening.host, listening.port
    who, configs = listening.known_users(), parse_configs(config or ())
    listeners, super_users = listening.listener or (), listening.super_user or ()
    access = Access.of_cluster(listeners, who, "", super_users, listening.tls)
    shown = {**access.properties(host, [0] * len(access.listeners)), **configs}
    listening.check_reach(shown)
    asked = Shape(
        brokers=brokers, log_dirs=log_dirs, racks=parse_names(racks, "--racks") if racks is not None else None
    )
    with held(data, asked) as shape:
        ports = shape.brokers * max(len(listeners), 1)
        if port and port + ports - 1 > 65_535:
            raise InvalidInput(
                f"--port: {shape.brokers} brokers from port {port} on would need ports above 65535"
            )
        cluster = EmbeddedCluster(
            shape.brokers,
            racks=shape.racks,
            log_dirs=shape.log_dirs,
            data=data,
            host=host,
            port=port,
            properties=configs,
            listeners=listeners,
            users=who,
            super_users=super_users,
            tls=listening.tls,
        )
        try:
            run(run_until_told(cluster, as_json=as_json))
        except InvalidConfig as error:
            raise InvalidInput(f"--config: {error}") from error
