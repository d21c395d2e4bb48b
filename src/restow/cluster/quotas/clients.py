"""Quotas of clients on one broker: which one holds for a client, and how long it makes the client wait.

The first of these that is set holds, for each kind of quota by itself, as in Kafka:

    user and client id · user and default client id · user
    default user and client id · default user and default client id · default user
    client id · default client id

All connections of those for whom a quota holds share what it allows: a quota for a user counts all clients of
that user together, and a default counts each user or client id by itself. Every broker counts alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.quotas.entities import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    QuotaEntity,
)
from restow.cluster.quotas.rate import SampledRate
from restow.cluster.store.znodes import EntityConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.config.configs import BrokerConfigs
    from restow.runtime.clock import Clock

ENFORCED = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE)
_DEFAULT = EntityConfig.DEFAULT
_MOST_KNOWN = 10_000
"""Clients that are remembered; of more, those without a rate are forgotten."""
_LARGEST = 0x7FFFFFFF


class ClientQuota:
    """One kind of quota as it holds for one client. Several clients may share its rate."""

    __slots__ = ("_clock", "_most_s", "_rate", "limit", "most_at_once")

    def __init__(
        self, limit: float, most_at_once: float, rate: SampledRate, clock: Clock, most_s: float
    ) -> None:
        self.limit = limit
        self.most_at_once = int(min(most_at_once, _LARGEST))
        """What a client may use that was idle before."""
        self._rate = rate
        self._clock = clock
        self._most_s = most_s

    def note(self, amount: float) -> int:
        """Count an amount. Return for how many ms the client has to be throttled."""
        now_s = self._clock.monotonic_s()
        self._rate.note(amount, now_s)
        return min(round(min(self._rate.throttle_s(self.limit, now_s), self._most_s) * 1000), _LARGEST)

    def take_back(self, amount: float) -> None:
        """Take back an amount that was counted."""
        self._rate.note(-amount, self._clock.monotonic_s())


class QuotasOfClient(NamedTuple):
    """The quotas that hold for a client, None where there is none."""

    produce: ClientQuota | None
    fetch: ClientQuota | None
    request: ClientQuota | None


class ClientQuotas:
    """All quotas of clients, as one broker enforces them."""

    def __init__(self, configs: BrokerConfigs, clock: Clock) -> None:
        self._clock = clock
        self._samples = configs.integer("quota.window.num")
        self._sample_s = configs.integer("quota.window.size.seconds")
        self._set: dict[QuotaEntity, Mapping[str, float]] = {}
        self._known: dict[tuple[str, str], QuotasOfClient] = {}
        self._rates: dict[tuple[str, str, str], SampledRate] = {}
        """By kind, and by the user and client id that share it, which are empty where all do."""
        self.is_on = False
        """Whether there is any quota to enforce. If not, nothing is counted."""

    def put(self, entity: QuotaEntity, quotas: Mapping[str, float]) -> None:
        """Replace the quotas of an entity. What has been counted stays."""
        if self._set.get(entity, {}) != quotas:
            self._set[entity] = quotas
            if not quotas:
                del self._set[entity]
            self._changed()

    def replace(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Replace all quotas."""
        found = {entity: values for entity, values in quotas.items() if values}
        if found != self._set:
            self._set = found
            self._changed()

    def of(self, user: str, client_id: str) -> QuotasOfClient:
        """Return the quotas that hold for a client."""
        found = self._known.get((user, client_id))
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._forget_idle()
            names = EntityConfig.escaped(user), EntityConfig.escaped(client_id)
            found = QuotasOfClient(*(self._quota(kind, *names) for kind in ENFORCED))
            self._known[user, client_id] = found
        return found

    def _changed(self) -> None:
        self._known.clear()
        self.is_on = any(kind in quotas for quotas in self._set.values() for kind in ENFORCED)
        if not self.is_on:
            self._rates.clear()

    def _forget_idle(self) -> None:
        now_s = self._clock.monotonic_s()
        self._rates = {each: rate for each, rate in self._rates.items() if not rate.is_idle(now_s)}
        self._known.clear()

    def _quota(self, kind: str, user: str, client_id: str) -> ClientQuota | None:
        for entity, sharing in _by_precedence(user, client_id):
            limit = self._set.get(entity, {}).get(kind)
            if limit is not None:
                rate = self._rates.setdefault(
                    (kind, *sharing), SampledRate(self._samples, float(self._sample_s))
                )
                most_at_once = limit * (self._samples - 1) * self._sample_s
                most_s = float(self._sample_s) if kind == REQUEST_PERCENTAGE else float(_LARGEST)
                return ClientQuota(limit, most_at_once, rate, self._clock, most_s)
        return None


def _by_precedence(user: str, client_id: str) -> tuple[tuple[QuotaEntity, tuple[str, str]], ...]:
    """Return what a client's quota may be set for, and by which names it is then shared."""
    both, of_user, of_client = (user, client_id), (user, ""), ("", client_id)
    return (
        (QuotaEntity(user, client_id), both),
        (QuotaEntity(user, _DEFAULT), both),
        (QuotaEntity(user), of_user),
        (QuotaEntity(_DEFAULT, client_id), both),
        (QuotaEntity(_DEFAULT, _DEFAULT), both),
        (QuotaEntity(_DEFAULT), of_user),
        (QuotaEntity(client_id=client_id), of_client),
        (QuotaEntity(client_id=_DEFAULT), of_client),
    )
