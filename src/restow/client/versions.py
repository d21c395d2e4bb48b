"""The supported versions of several brokers, requested at the same time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.client.errors import BrokerError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.client.admin import Admin
    from restow.model import BrokerId


async def versions_of(
    admin: Admin, brokers: Iterable[BrokerId]
) -> dict[BrokerId, Mapping[int, tuple[int, int]]]:
    """Return the versions of the brokers that answer; the others delay nothing."""
    asked = tuple(brokers)
    answers = await asyncio.gather(*(_versions(admin, broker) for broker in asked))
    return {broker: told for broker, told in zip(asked, answers, strict=True) if told is not None}


async def _versions(admin: Admin, broker: BrokerId) -> Mapping[int, tuple[int, int]] | None:
    try:
        return await admin.api_versions(broker)
    except (BrokerError, Unreachable):
        return None
