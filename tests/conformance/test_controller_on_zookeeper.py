"""The controller on a real ZooKeeper: what each kind of work comes to, and what a deposed one may not do.

The tests are those of `tests/unit/controller`, one or two of each kind; all of them are in
`test_whole_controller_on_zookeeper.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.controller import fake_cluster
from tests.unit.controller.test_controller_brokers import (
    test_a_broker_that_takes_its_leave_hands_its_leaders_over,
    test_a_failed_directory_takes_its_replicas_offline_and_not_the_broker,
    test_another_in_sync_replica_leads_when_the_leader_dies,
    test_elections_that_are_asked_for,
)
from tests.unit.controller.test_controller_failover import (
    test_a_successor_may_be_deposed_before_it_has_read_everything,
)
from tests.unit.controller.test_controller_office import (
    test_a_lost_session_ends_the_office_at_once,
    test_of_many_candidates_one_is_elected_and_another_when_it_goes,
    test_the_nodes_of_an_election_are_those_of_kafka,
    test_whoever_finds_the_epoch_raised_gives_way_and_stands_again,
)
from tests.unit.controller.test_controller_requests import (
    test_an_isr_that_a_leader_changed_becomes_known_everywhere,
    test_preferred_leaders_by_a_node_that_goes_away_when_done,
)
from tests.unit.controller.test_controller_topics import (
    test_a_deleted_topic_leaves_nothing,
    test_more_partitions_leave_the_old_ones_alone,
)

if TYPE_CHECKING:
    from tests.conformance.stores import Remote

__all__ = [
    "test_a_broker_that_takes_its_leave_hands_its_leaders_over",
    "test_a_deleted_topic_leaves_nothing",
    "test_a_failed_directory_takes_its_replicas_offline_and_not_the_broker",
    "test_a_lost_session_ends_the_office_at_once",
    "test_a_successor_may_be_deposed_before_it_has_read_everything",
    "test_an_isr_that_a_leader_changed_becomes_known_everywhere",
    "test_another_in_sync_replica_leads_when_the_leader_dies",
    "test_elections_that_are_asked_for",
    "test_more_partitions_leave_the_old_ones_alone",
    "test_of_many_candidates_one_is_elected_and_another_when_it_goes",
    "test_preferred_leaders_by_a_node_that_goes_away_when_done",
    "test_the_nodes_of_an_election_are_those_of_kafka",
    "test_whoever_finds_the_epoch_raised_gives_way_and_stands_again",
]

pytestmark = pytest.mark.jvm


@pytest.fixture(autouse=True)
def on_zookeeper(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cluster of these tests stands on a fresh root in ZooKeeper."""
    monkeypatch.setattr(fake_cluster, "make_server", lambda: remote)
