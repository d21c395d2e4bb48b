"""Logins with a password, from the line in `sasl.jaas.config`."""

from __future__ import annotations

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.model.jaas import SHAPE, parse_entry
from restow.runtime.secrets import Secret


@frozen
class Login:
    """A user and password from a JAAS line, and their family of mechanisms."""

    family: str
    """"PLAIN" or "SCRAM"."""
    username: str
    password: Secret


def parse_login(text: str, where: str) -> Login:
    """Parse an entry that logs in with a password."""
    entry = parse_entry(text, where)
    options = entry.options
    if options.get("tokenauth", "false").lower() == "true":
        raise InvalidInput(f"{where}: restow cannot log in with a delegation token; give a user and password")
    for name in ("username", "password"):
        if name not in options:
            raise InvalidInput(f"{where}: it has no {name}; {SHAPE}")
    return Login(family=entry.family, username=options["username"], password=Secret(options["password"]))
