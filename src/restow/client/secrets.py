"""Words that must not be seen, and what keeps a library from telling them."""

from __future__ import annotations

import logging
from typing import Any

HIDDEN = "********"


class Secret(str):
    """A word that works like any other but does not show itself: not by repr, str, format or in a log.

    What needs the word itself (`encode`, `join`, comparison) gets it.
    """

    __slots__ = ()

    def reveal(self) -> str:
        """The bare word, for whoever has to send it."""
        return "".join(self)

    def __repr__(self) -> str:
        return f"'{HIDDEN}'"

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __reduce__(self) -> Any:
        raise TypeError("a secret is not to be pickled")


class _NoCredentials(logging.Filter):
    """kafka-python logs every request as it is sent, and its bytes; some of them carry a password."""

    def filter(self, record: logging.LogRecord) -> bool:
        given = record.args if isinstance(record.args, tuple) else ()
        return not any(
            isinstance(each, bytes | bytearray | memoryview) or type(each).__name__.startswith("Sasl")
            for each in given
        )


_NO_CREDENTIALS = _NoCredentials()


def keep_credentials_out_of_logs() -> None:
    """Drop the lines of kafka-python that would show them, whatever level somebody asked for."""
    for name in ("kafka.net.connection", "kafka.conn", "kafka.protocol.parser"):
        logging.getLogger(name).addFilter(_NO_CREDENTIALS)
