"""Capture: the controller, hidden topics, and other missing permissions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from restow.client import BrokerError, ConfigResource
from restow.model import TopicPartition
from restow.model.permissions import Permissions
from restow.snapshot import capture
from restow.wire.error_codes import ErrorCode
from tests.clock import SleepingClock
from tests.unit.execute.fake_admin import FakeAdmin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.client import BrokerLogDirs, Config
    from restow.model import Topic

NOBODY: frozenset[str] = frozenset()


def admin_with(*topics: str) -> FakeAdmin:
    admin = FakeAdmin(SleepingClock(), {1, 2})
    for name in topics:
        admin.add(name, [(1, 2)])
    return admin


@pytest.mark.parametrize(
    ("told", "controller"),
    [(100, 100), (None, None), (BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), None)],
)
def test_capture_has_no_controller_where_the_cluster_does_not_report_one(
    told: int | BrokerError | None, controller: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = admin_with()

    async def ask() -> int | None:
        if isinstance(told, BrokerError):
            raise told
        return told

    monkeypatch.setattr(admin, "controller", ask)
    assert asyncio.run(capture(admin, admin.clock)).controller == controller


def hide(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin, hidden: set[str]) -> None:
    """Leave topics out of the metadata, as brokers do without the ACL to describe them."""
    all_of_them = admin.describe_topics

    async def visible(names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        return tuple(topic for topic in await all_of_them(names) if topic.name not in hidden)

    monkeypatch.setattr(admin, "describe_topics", visible)


def test_capture_names_topics_in_log_dirs_that_may_not_be_described(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = admin_with("seen", "secret", "just-deleted")
    hide(monkeypatch, admin, {"secret", "just-deleted"})
    admin.allowed = Permissions(topics={"secret": NOBODY, "just-deleted": None})
    found = asyncio.run(capture(admin, admin.clock))
    assert found.hidden_topics == ("secret",)
    assert [topic.name for topic in found.topics] == ["seen"]


def test_capture_asks_for_no_permissions_while_every_topic_is_visible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admin = admin_with("seen")

    async def never(topics: Sequence[str] = ()) -> Permissions:
        raise AssertionError(topics)

    monkeypatch.setattr(admin, "permissions", never)
    assert asyncio.run(capture(admin, admin.clock)).hidden_topics == ()


def test_capture_looks_again_when_a_move_ends_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the partition would seem to be at rest on brokers 1, 2 and 3, with broker 3 out of sync."""
    admin = admin_with("t")
    admin.brokers = {1, 2, 3}
    name = TopicPartition("t", 0)
    admin.assignments[name] = admin.assignments[name].reassign_to((3, 1))
    log_dirs = admin.describe_log_dirs

    async def ending(brokers: Iterable[int]) -> Mapping[int, BrokerLogDirs | BrokerError]:
        admin.tick(3600)
        return await log_dirs(brokers)

    monkeypatch.setattr(admin, "describe_log_dirs", ending)
    (partition,) = asyncio.run(capture(admin, admin.clock)).topics[0].partitions
    assert (partition.replicas, partition.isr, partition.moving) == ((3, 1), (3, 1), False)


def test_capture_names_the_acls_missing_for_configs_and_log_dirs(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = admin_with("a", "b")
    cluster, topic = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED

    async def no_disks(brokers: Iterable[int]) -> Mapping[int, BrokerLogDirs | BrokerError]:
        return {broker: BrokerError(cluster) for broker in brokers}

    async def some_configs(
        of: Iterable[ConfigResource],
    ) -> Mapping[ConfigResource, Mapping[str, Config] | BrokerError]:
        answers: dict[ConfigResource, Mapping[str, Config] | BrokerError] = {each: {} for each in of}
        answers[ConfigResource("topic", "b")] = BrokerError(topic)
        answers[ConfigResource("broker", "1")] = answers[ConfigResource("broker", "2")] = BrokerError(cluster)
        return answers

    monkeypatch.setattr(admin, "describe_log_dirs", no_disks)
    monkeypatch.setattr(admin, "describe_configs", some_configs)
    found = asyncio.run(capture(admin, admin.clock))
    assert found.unanswered == (1, 2)
    assert found.denied == (
        "DESCRIBE on the cluster",
        "DESCRIBE_CONFIGS on the cluster",
        "DESCRIBE_CONFIGS on topic b",
    )
