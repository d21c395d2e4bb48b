"""Keep credentials out of logs."""

from __future__ import annotations

import logging


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
