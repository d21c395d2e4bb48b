"""Quotas from configs: broker rates, topic lists, and invalid values."""

from __future__ import annotations

import pytest

from restow.cluster.config.changes import check_broker, check_topic
from restow.cluster.config.configs import BrokerConfigs
from restow.cluster.config.table import InvalidConfig
from restow.cluster.quotas import ReplicationQuotas
from restow.model import TopicPartition
from tests.clock import HandClock

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADERS = "leader.replication.throttled.replicas"
FOLLOWERS = "follower.replication.throttled.replicas"
RATES = (LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE)


class Bench:
    def __init__(self, **file: str) -> None:
        self.clock = HandClock()
        self.configs = BrokerConfigs({name.replace("_", "."): value for name, value in file.items()})
        self.quotas = ReplicationQuotas(1, self.configs, self.clock)
        self.quotas.refresh()

    def set(self, **rates: int) -> None:
        by_side = {"leader": LEADER_RATE, "follower": FOLLOWER_RATE, "log_dirs": LOG_DIRS_RATE}
        self.configs.set_broker({by_side[side]: str(rate) for side, rate in rates.items()})
        self.quotas.refresh()


def test_without_rates_nothing_is_limited() -> None:
    quotas = Bench().quotas
    for quota in (quotas.leader, quotas.follower, quotas.log_dirs):
        assert not quota.is_set
        assert quota.bytes_per_s is None
        quota.note(10**9)
        assert quota.wait_s() == 0
        assert quota.rate() == 0
        assert quota.room_bytes() >= 2**31


def test_each_rate_limits_its_own_traffic() -> None:
    bench = Bench()
    bench.set(leader=10, follower=20, log_dirs=30)
    quotas = bench.quotas
    assert [each.bytes_per_s for each in (quotas.leader, quotas.follower, quotas.log_dirs)] == [10, 20, 30]
    quotas.log_dirs.note(300)
    assert quotas.log_dirs.wait_s() == pytest.approx(10)
    assert quotas.leader.wait_s() == 0
    bench.set(leader=10)
    assert not quotas.log_dirs.is_set
    assert quotas.log_dirs.wait_s() == 0


def test_setting_the_same_rate_again_changes_nothing() -> None:
    bench = Bench()
    bench.set(log_dirs=30)
    bench.quotas.log_dirs.note(300)
    bench.set(log_dirs=30, leader=5)
    assert bench.quotas.log_dirs.wait_s() == pytest.approx(10)


def test_window_length_comes_from_the_broker_configs() -> None:
    bench = Bench(
        alter_log_dirs_replication_quota_window_num="3",
        alter_log_dirs_replication_quota_window_size_seconds="2",
    )
    bench.set(log_dirs=1000)
    assert bench.quotas.log_dirs.room_bytes() == 200


@pytest.mark.parametrize(
    ("listed", "covered"),
    [
        ("*", {0, 1, 2, 3}),
        ("", set()),
        ("0:1,2:1", {0, 2}),
        ("0:1,2:0,3:11", {0}),
        ("0:0,1:2", set()),
        ("0:1, 3:1", {0, 3}),
        ("nonsense,0:1,:,1:", {0}),
    ],
)
def test_topic_list_covers_partitions_on_this_broker(listed: str, covered: set[int]) -> None:
    """Invalid lists cannot be set, but may be written into the store by hand."""
    bench = Bench()
    bench.set(leader=10, follower=10)
    bench.configs.set_topic("t", {LEADERS: listed})
    leader, follower = bench.quotas.leader, bench.quotas.follower
    assert {number for number in range(4) if leader.covers(TopicPartition("t", number))} == covered
    assert not any(follower.covers(TopicPartition("t", number)) for number in range(4))
    assert not leader.covers(TopicPartition("other", 0))
    bench.configs.set_topic("t", {FOLLOWERS: listed})
    assert {number for number in range(4) if follower.covers(TopicPartition("t", number))} == covered
    assert not any(leader.covers(TopicPartition("t", number)) for number in range(4))


def test_topic_list_covers_nothing_without_a_rate() -> None:
    bench = Bench()
    bench.configs.set_topic("t", {LEADERS: "*", FOLLOWERS: "*"})
    assert not bench.quotas.leader.covers(TopicPartition("t", 0))


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("value", ["-1", "fast", "1.5", "", str(2**63)])
def test_invalid_rate_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidConfig, match=name):
        check_broker({name: value}, for_all=False)


@pytest.mark.parametrize("name", RATES)
def test_rate_cannot_be_set_for_all_brokers(name: str) -> None:
    with pytest.raises(InvalidConfig, match="one broker"):
        check_broker({name: "1"}, for_all=True)


@pytest.mark.parametrize("name", [LEADERS, FOLLOWERS])
@pytest.mark.parametrize("value", ["0", "0:", ":1", "a:b", "0:1,", "0:1;1:2", "**", "-1:0", "0:1,*"])
def test_invalid_list_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidConfig, match=name):
        check_topic({name: value})
