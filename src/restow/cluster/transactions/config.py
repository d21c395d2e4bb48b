"""Settings of transactions: the supported `transaction.*` and `transactional.id.*` configs."""

from __future__ import annotations

from restow._frozen import frozen

_DAY_MS = 24 * 60 * 60 * 1000


@frozen
class TransactionConfig:
    """Defaults are Kafka's."""

    max_timeout_ms: int = 900_000
    abort_interval_ms: int = 10_000
    """How often transactions are looked for that have run into their timeout."""
    id_expiration_ms: int = 7 * _DAY_MS
    id_expiration_interval_ms: int = 3_600_000
