"""Keep secrets out of output and logs."""

from __future__ import annotations

import logging
from typing import Any

HIDDEN = "********"


class Secret(str):
    """A string that is not shown: not by repr, str, format or in a log.

    Operations that need the value itself (`encode`, `join`, comparison) get it.
    """

    __slots__ = ()

    def reveal(self) -> str:
        """Return the plain string, to send it."""
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
    """Drops requests with a password: kafka-python logs every request that it sends, and its bytes."""

    def filter(self, record: logging.LogRecord) -> bool:
        given = record.args if isinstance(record.args, tuple) else ()
        return not any(
            isinstance(each, bytes | bytearray | memoryview) or type(each).__name__.startswith("Sasl")
            for each in given
        )


_NO_CREDENTIALS = _NoCredentials()


def keep_credentials_out_of_logs() -> None:
    """Drop the log lines of kafka-python that would show credentials, whatever the log level."""
    for name in ("kafka.net.connection", "kafka.conn", "kafka.protocol.parser"):
        logging.getLogger(name).addFilter(_NO_CREDENTIALS)
