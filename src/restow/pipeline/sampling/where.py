"""The sampler's options: Kafka's client properties by name, tables and interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.client.properties import settings
from restow.client.property_files import Property
from restow.errors import InvalidInput
from restow.sizes import milliseconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restow.client import ConnectionSettings

BOOTSTRAP, EVERY, CLUSTER = "bootstrap.servers", "every", "cluster"
EVERY_DEFAULT = "30s"
_PATIENCE = {"request.timeout.ms": "10000"}
"""Shorter timeouts than a command's: a sample should not wait long for one broker."""


class Where:
    """The options of a sampler: connection, tables, interval."""

    def __init__(self, options: Mapping[str, str], tables: Sequence[str], name: str) -> None:
        given = {key.lower(): value for key, value in options.items()}
        if not given.get(BOOTSTRAP):
            raise InvalidInput(f'{name}: which cluster? Add .option("{BOOTSTRAP}", "localhost:9092")')
        self.tables = tuple(tables)
        self.cluster = given.pop(CLUSTER, "")
        self.every_ms = milliseconds(given.pop(EVERY, EVERY_DEFAULT), f"{name}, option {EVERY}")
        self.bootstrap = given.pop(BOOTSTRAP)
        self.name = name
        self._properties = _PATIENCE | given
        self.settings()

    def settings(self) -> ConnectionSettings:
        """Make the connection settings, in each process anew: a TLS context cannot be pickled."""
        where = f"{self.name}, option"
        layer = {key: Property(value, where) for key, value in self._properties.items()}
        return settings(self.bootstrap, layer)
