"""Who a client is, and what it may do."""

from __future__ import annotations

from restow.cluster.security.principal import ANONYMOUS, Principal

__all__ = ["ANONYMOUS", "Principal"]
