"""Logins by Kerberos: our own ticket before any broker is asked, and the errors of Kerberos in words.

    a ticket    in the credential cache of kinit; another program renews it
    a keytab    Kerberos gets the ticket with it, keeps it in memory, and gets the next one when it expires

Kerberos reads its settings from the environment, so all logins of a process are by the same principal.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restow._frozen import frozen
from restow.client.errors import LoginRefused, Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterator

_IN_MEMORY = "MEMORY:restow"
_KDC_IS_UNREACHABLE = -1_765_328_228
"""KRB5_KDC_UNREACH of krb5.h."""


@frozen
class KerberosLogin:
    """The owner of a ticket and the files it comes from. Only the contents of these files are secret."""

    principal: str = ""
    """Empty for the principal of the ticket, or the first one in the keytab."""
    keytab: str = ""
    ticket_cache: str = ""
    """Empty for the cache that Kerberos uses by itself."""

    def get(self) -> None:
        """Get our ticket, or see that there is one. Raise LoginRefused, or Unreachable without a KDC."""
        try:
            gssapi = import_module("gssapi")
        except (ImportError, OSError) as error:
            raise LoginRefused(
                f"the Python package gssapi cannot be loaded ({error}): install the libraries of Kerberos "
                "(Debian: libgssapi-krb5-2)"
            ) from None
        if self.keytab:
            os.environ["KRB5_CLIENT_KTNAME"] = f"FILE:{_readable(self.keytab, 'keytab')}"
            os.environ["KRB5CCNAME"] = _IN_MEMORY
        elif self.ticket_cache:
            os.environ["KRB5CCNAME"] = f"FILE:{_readable(self.ticket_cache, 'ticket cache')}"
        failed, advice = self._without_a_ticket()
        with _in_words(failed, advice):
            name = gssapi.Name(self.principal, gssapi.NameType.kerberos_principal) if self.principal else None
            try:
                lifetime = gssapi.Credentials(name=name, usage="initiate").lifetime
            except gssapi.exceptions.ExpiredCredentialsError:
                lifetime = 0
        if lifetime == 0:
            raise LoginRefused(f"the Kerberos ticket has expired{advice}")
        _say_errors_in_words()

    def _without_a_ticket(self) -> tuple[str, str]:
        """Return what is missing, and what to do."""
        who = f" for {self.principal}" if self.principal else ""
        if self.keytab:
            return (
                f"Kerberos gives no ticket{who} by the keytab {self.keytab!r}",
                ": check that the keytab has the principal and its present key (klist -k), and the realm",
            )
        return f"there is no Kerberos ticket{who}", ": run kinit, or give keyTab in sasl.jaas.config"


def _readable(name: str, what: str) -> str:
    """Return the path of a file that Kerberos shall read; what it says itself about another is unclear."""
    path = name.removeprefix("FILE:")
    try:
        Path(path).open("rb").close()
    except OSError as error:
        raise LoginRefused(f"the {what} {path!r} cannot be read: {error.strerror}") from None
    return path


def _say_errors_in_words() -> None:
    """Let the library's logins raise our errors: also those of later connections, which it opens itself."""
    from kafka.net.sasl import SASL_MECHANISMS, register_sasl_mechanism
    from kafka.net.sasl.gssapi import SaslMechanismGSSAPI

    class InWords(SaslMechanismGSSAPI):  # type: ignore[misc]
        def __init__(self, **config: Any) -> None:
            self._server = f"{config['sasl_kerberos_service_name']}/{config['host']}"
            advice = ": check sasl.kerberos.service.name, and that brokers go by their names in Kerberos"
            with _in_words(f"Kerberos gives no ticket for {self._server}", advice):
                super().__init__(**config)

        def receive(self, auth_bytes: bytes) -> None:
            with _in_words(f"the login at {self._server} failed", ""):
                super().receive(auth_bytes)

    if SASL_MECHANISMS.get("GSSAPI") is SaslMechanismGSSAPI:
        register_sasl_mechanism("GSSAPI", InWords, overwrite=True)


@contextmanager
def _in_words(failed: str, advice: str) -> Iterator[None]:
    """Raise errors of Kerberos as ours."""
    gssapi = import_module("gssapi")
    try:
        yield
    except gssapi.exceptions.GSSError as error:
        code = error.min_code or error.maj_code  # the first says more, if there is one
        why = "; ".join(error.get_all_statuses(code, is_maj=not error.min_code))
        if error.min_code & 0xFFFFFFFF == _KDC_IS_UNREACHABLE & 0xFFFFFFFF:
            raise Unreachable(f"{failed} ({why}): check krb5.conf, and that the KDC is up") from None
        raise LoginRefused(f"{failed} ({why}){advice}") from None
