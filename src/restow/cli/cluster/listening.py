"""The options about listeners, logins and TLS that `restow broker` and `restow cluster up` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from restow.cli.shared.options import section
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

BrokerConfigs: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="Set a Kafka broker config; repeatable.")
]


@section("Network")
class ListeningOptions:
    """Where brokers listen, and who may do what there."""

    host: Annotated[str, typer.Option(help="Address to listen on and to advertise.")] = "127.0.0.1"
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="First of the ports in a row; 0 takes free ones.")
    ] = 9092
    listener: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:PROTOCOL",
            help="Listen there: NAME:PROTOCOL, with PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; repeatable, "
            "on ports in a row. Brokers use the first one themselves.",
        ),
    ] = None
    users: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="File of lines NAME:PASSWORD, with which clients log in by PLAIN or SCRAM."
        ),
    ] = None
    super_user: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Let this user do everything, and others only what ACLs allow; repeatable."
        ),
    ] = None
    tls: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder with authority.pem and server.pem, for TLS; made for loopback and --host if it has "
            "none. Without --listener, clients use TLS.",
        ),
    ] = None
    without_authentication: Annotated[
        bool,
        typer.Option(
            "--without-authentication",
            help="Allow listeners beyond loopback that ask for no login: every client that reaches one "
            "comes in.",
        ),
    ] = False

    def known_users(self) -> dict[str, str]:
        """Return the users in the file of lines NAME:PASSWORD; none without a file."""
        from pathlib import Path

        from restow.cluster.security.access import parse_users

        if self.users is None:
            return {}
        try:
            text = Path(self.users).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"--users: {self.users} cannot be read: {error}") from error
        return parse_users(text, f"--users {self.users}")

    def check_reach(self, properties: Mapping[str, str]) -> None:
        """Raise InvalidInput for a listener beyond loopback that lets everybody in, unless that is meant."""
        from restow.cluster.security.broker_doors import Doors
        from restow.runtime.ports import is_loopback

        doors = Doors.of(properties, self.host, self.port)
        for each in doors.listeners:
            if not (is_loopback(each.host) or doors.knows_clients(each) or self.without_authentication):
                raise InvalidInput(
                    f"listener {each.name} is at {each.host!r}, which is not a loopback address, and asks "
                    "for no login: every client that reaches it comes in; give it the protocol SASL_SSL or "
                    "SASL_PLAINTEXT, with --listener and --users, or if it is meant, say "
                    "--without-authentication"
                )
