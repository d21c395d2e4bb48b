"""Links to brokers and partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.html.page import Markup, link
from restow.ui.frame import address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.model import TopicPartition


def ids(brokers: Sequence[int]) -> str:
    """Return broker ids in their order."""
    return ", ".join(map(str, brokers))


def broker_link(broker: int) -> Markup:
    """Return a link to a broker's page."""
    return link(str(broker), address("/broker", id=broker))


def partition_link(name: TopicPartition) -> Markup:
    """Return a link to a partition's page."""
    return link(str(name), address("/partition", topic=name.topic, partition=name.partition))
