"""How clients and other brokers come in to a broker: its listeners, and the logins that they ask for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.cluster.security.authorizer import acl_settings
from restow.cluster.security.listeners import SecurityProtocol, inter_broker_listener, listeners_of
from restow.cluster.security.principal import ANONYMOUS, USER, Principal
from restow.cluster.security.settings import login_settings, peer_credentials
from restow.cluster.security.tls_settings import principal_rules, tls_files
from restow.errors import InvalidInput
from restow.runtime.tls import ClientAuth

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.security.authorizer import AclSettings
    from restow.cluster.security.listeners import ListenerSpec
    from restow.cluster.security.principal_rules import PrincipalRules
    from restow.cluster.security.settings import LoginSettings, PeerCredentials
    from restow.runtime.tls import TlsFiles


@frozen
class Doors:
    """A broker's listeners."""

    listeners: tuple[ListenerSpec, ...]
    between_brokers: ListenerSpec
    """The one at which other brokers find this one, and this one finds others."""
    logins: Mapping[str, LoginSettings]
    """Of the listeners that ask for a login, by name."""
    peer_login: PeerCredentials | None
    """How this broker logs in to others, if they ask for it."""

    tls: Mapping[str, TlsFiles]
    """Of the listeners that are encrypted, by name."""

    principal_rules: Mapping[str, PrincipalRules]
    """Of the listeners whose clients are named by their certificates, by name."""

    acls: AclSettings | None
    """Set if there is an authorizer."""

    @classmethod
    def of(cls, properties: Mapping[str, str], host: str, port: int) -> Doors:
        """Return the doors that Kafka's configs describe; one without logins by default."""
        listeners = listeners_of(properties, host, port)
        between_brokers = inter_broker_listener(properties, listeners)
        peer_login = (
            peer_credentials(properties, between_brokers) if between_brokers.protocol.has_login else None
        )
        brokers = None if peer_login is None else str(Principal(USER, peer_login.user))
        acls = acl_settings(properties, brokers)
        if acls is not None and between_brokers.protocol is SecurityProtocol.PLAINTEXT:
            _check_brokers_may_act(acls, between_brokers)
        return cls(
            acls=acls,
            listeners=listeners,
            between_brokers=between_brokers,
            logins={
                each.name: login_settings(properties, each) for each in listeners if each.protocol.has_login
            },
            tls={each.name: tls_files(properties, each) for each in listeners if each.protocol.has_tls},
            principal_rules={
                each.name: principal_rules(properties, each)
                for each in listeners
                if each.protocol is SecurityProtocol.SSL
            },
            peer_login=peer_login,
        )

    def knows_clients(self, listener: ListenerSpec) -> bool:
        """Return whether clients must say at the listener who they are, and prove it."""
        if listener.protocol.has_login:
            return True
        return listener.protocol.has_tls and self.tls[listener.name].client_auth is ClientAuth.REQUIRED

    def listener(self, name: str) -> ListenerSpec:
        """Return the listener with that name."""
        return next(each for each in self.listeners if each.name == name)

    def bound(self, name: str, port: int) -> Doors:
        """Return the doors with the port that a listener has got."""
        listeners = tuple(each.bound_to(port) if each.name == name else each for each in self.listeners)
        return replace(self, listeners=listeners)


def _check_brokers_may_act(acls: AclSettings, listener: ListenerSpec) -> None:
    """Refuse a cluster whose brokers could not send each other requests."""
    if not (acls.allows_without_acls or str(ANONYMOUS) in acls.super_users):
        raise InvalidInput(
            f"brokers reach each other at listener {listener.name} without a login, and an authorizer would "
            "refuse their requests: name a listener with a login in inter.broker.listener.name, "
            f"or add {ANONYMOUS} to super.users"
        )
