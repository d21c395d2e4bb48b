"""The controller on a real ZooKeeper: one or two tests of each kind.

The tests are those of `tests/unit/controller`; `test_whole_controller_on_zookeeper.py` runs all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.controller import fake_cluster
from tests.unit.controller.test_controller_brokers import (
    test_controlled_shutdown_moves_leaders_away,
    test_controller_elects_in_sync_replica_when_the_leader_dies,
    test_elect_leaders_holds_requested_elections,
    test_failed_log_dir_takes_only_its_replicas_offline,
)
from tests.unit.controller.test_controller_failover import (
    test_new_controller_may_be_deposed_while_it_reads_the_store,
)
from tests.unit.controller.test_controller_office import (
    test_controller_ends_its_term_when_its_session_expires,
    test_controller_resigns_and_stands_again_when_the_epoch_was_raised,
    test_election_has_one_winner_and_repeats_when_it_leaves,
    test_election_writes_the_znodes_of_kafka,
)
from tests.unit.controller.test_controller_requests import (
    test_isr_change_of_a_leader_reaches_all_brokers,
    test_preferred_election_znode_is_carried_out_and_removed,
)
from tests.unit.controller.test_controller_topics import (
    test_deleted_topic_leaves_no_znodes_or_replicas,
    test_new_partitions_do_not_change_existing_ones,
)

if TYPE_CHECKING:
    from tests.conformance.stores import Remote

__all__ = [
    "test_controlled_shutdown_moves_leaders_away",
    "test_controller_elects_in_sync_replica_when_the_leader_dies",
    "test_controller_ends_its_term_when_its_session_expires",
    "test_controller_resigns_and_stands_again_when_the_epoch_was_raised",
    "test_deleted_topic_leaves_no_znodes_or_replicas",
    "test_elect_leaders_holds_requested_elections",
    "test_election_has_one_winner_and_repeats_when_it_leaves",
    "test_election_writes_the_znodes_of_kafka",
    "test_failed_log_dir_takes_only_its_replicas_offline",
    "test_isr_change_of_a_leader_reaches_all_brokers",
    "test_new_controller_may_be_deposed_while_it_reads_the_store",
    "test_new_partitions_do_not_change_existing_ones",
    "test_preferred_election_znode_is_carried_out_and_removed",
]

pytestmark = pytest.mark.jvm


@pytest.fixture(autouse=True)
def on_zookeeper(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put every cluster of these tests on a new root in ZooKeeper."""
    monkeypatch.setattr(fake_cluster, "make_server", lambda: remote)
