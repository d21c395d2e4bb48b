"""Checks whether a broker may be stopped for good."""

from __future__ import annotations

from dataclasses import replace

import pytest

from restow.model import CheckOutcome, Copy, LiveBroker, Partition, Snapshot, Topic
from restow.verify import broker_check


def partition(number: int, replicas: tuple[int, ...], **other: object) -> Partition:
    given = {"isr": replicas, "leader": replicas[0], **other}
    return Partition(number=number, replicas=replicas, **given)  # type: ignore[arg-type]


def topic(name: str, *partitions: Partition) -> Topic:
    return Topic(name=name, partitions=partitions)


WELL = Snapshot(
    cluster_id="c",
    taken_ms=0,
    controller=1,
    brokers=tuple(LiveBroker(id=number, host="h", port=number) for number in (1, 2, 3)),
    topics=(
        topic("__consumer_offsets", partition(0, (1, 2))),
        topic("orders", partition(0, (1, 2)), partition(1, (2, 1))),
    ),
)


def failing(snapshot: Snapshot, broker: int = 3, **given: object) -> dict[str, str]:
    verdict = broker_check(snapshot, broker, **given)  # type: ignore[arg-type]
    return {check.name: check.evidence for check in verdict.checks if check.outcome is not CheckOutcome.HOLDS}


def with_topic(found: Topic) -> Snapshot:
    kept = tuple(each for each in WELL.topics if each.name != found.name)
    return replace(WELL, topics=tuple(sorted((*kept, found), key=lambda each: each.name)))


def test_drained_broker_may_be_stopped() -> None:
    verdict = broker_check(WELL, 3)
    assert verdict.holds
    assert verdict.subject == "broker 3 may be stopped for good"


def test_check_names_replicas_leaders_and_partitions_that_depend_on_the_broker() -> None:
    snapshot = with_topic(topic("orders", partition(0, (3, 1), isr=(3,)), partition(1, (2, 3))))
    assert failing(snapshot) == {
        "no replicas": "2 replicas: orders-0, orders-1",
        "no leaders": "1 partition: orders-0",
        "nobody counts on it": "1 partition: orders-0",
    }


def test_check_counts_many_and_names_some() -> None:
    snapshot = with_topic(topic("orders", *(partition(number, (1, 3)) for number in range(1_200))))
    assert failing(snapshot)["no replicas"] == (
        "1,200 replicas: orders-0, orders-1, orders-2, orders-3, orders-4 and 1,195 more"
    )


@pytest.mark.parametrize("side", ["adding", "removing"])
def test_check_names_moves(side: str) -> None:
    moving = partition(0, (1, 2), **{side: (3,)})
    assert failing(with_topic(topic("orders", moving))) == {"no moves": "1 move: orders-0"}


def test_check_names_coordinated_topics() -> None:
    found = failing(with_topic(topic("__consumer_offsets", partition(0, (3, 1)))))
    assert found["no coordinator"] == "1 partition: __consumer_offsets-0 (consumer groups)"


def test_check_names_an_unassigned_copy() -> None:
    left = Copy(broker=3, log_dir="/d", size_bytes=1)
    kept = Copy(broker=1, log_dir="/d", size_bytes=1)
    found = failing(with_topic(topic("orders", partition(0, (1, 2), copies=(kept, left)))))
    assert found == {"no logs left": "1 copy: orders-0 in /d"}


def test_check_says_that_stray_folders_are_not_reported() -> None:
    """A ✓ must not promise an empty disk: DescribeLogDirs leaves out strays and logs being deleted."""
    (told,) = [each for each in broker_check(WELL, 3).checks if each.name == "no logs left"]
    assert told.outcome is CheckOutcome.HOLDS
    assert "reports no folders named …-stray or …-delete" in told.evidence


def test_check_is_unknown_when_the_broker_does_not_describe_its_log_dirs() -> None:
    verdict = broker_check(replace(WELL, unanswered=(3,)), 3)
    assert not verdict.holds
    assert [each.name for each in verdict.checks if each.outcome is CheckOutcome.UNKNOWN] == ["no logs left"]


def test_broker_may_not_be_stopped_while_topics_are_hidden() -> None:
    assert failing(replace(WELL, hidden_topics=("secret",))) == {"every topic seen": "1 topic: secret"}


def test_check_knows_the_controller_with_zookeeper_and_with_a_quorum() -> None:
    mine = replace(WELL, controller=3)
    assert failing(mine) == {"not the controller": "it is the controller"}
    assert failing(mine, voters=(1, 2)) == {}
    assert failing(WELL, voters=(1, 3)) == {
        "not the controller": "it is a voter of the metadata quorum (1, 3)"
    }
    (told,) = [
        each for each in broker_check(WELL, 3, voters=(1, 3)).checks if each.name == "not the controller"
    ]
    assert "refuses that for a static quorum" in told.advice
    assert "no controller" in failing(replace(WELL, controller=None))["not the controller"]


def test_check_fails_for_an_unknown_id() -> None:
    found = failing(WELL, 9)
    assert set(found) == {"known", "no logs left"}
    assert found["known"] == "no broker of this number is up or has replicas; there are 1, 2, 3"
    down = replace(WELL, brokers=WELL.brokers[1:])
    assert "known" not in failing(down, 1)


def advice(snapshot: Snapshot, name: str, broker: int = 3) -> str:
    return next(each.advice for each in broker_check(snapshot, broker).checks if each.name == name)


def test_check_names_sole_replicas_of_a_dead_broker_without_advice_to_wait() -> None:
    lost = partition(0, (3,), leader=None)
    down = replace(with_topic(topic("orders", lost)), brokers=WELL.brokers[:2])
    assert failing(down)["no replicas"] == "1 replica: orders-0 (its only replica)"
    said = advice(down, "no replicas")
    assert "start broker 3 and drain again, or delete their topics" in said
    assert "restow plan drain 3" not in said
    assert "nobody counts on it" not in failing(down)
    assert "nobody can tell" in failing(down)["no logs left"]


def test_check_ignores_that_the_brokers_own_replica_is_behind() -> None:
    behind = with_topic(topic("orders", partition(0, (1, 3), isr=(1,))))
    assert set(failing(behind)) == {"no replicas"}


def test_check_names_replicas_that_wait_for_a_dead_broker() -> None:
    snapshot = with_topic(topic("orders", partition(0, (3, 9), isr=(3,), leader=3)))
    assert advice(snapshot, "nobody counts on it") == "start broker 9, or replace it"


def test_check_does_not_advise_to_wait_for_a_move_to_a_dead_broker() -> None:
    moving = partition(0, (3, 9, 1), isr=(3, 1), leader=3, adding=(9,), removing=(1,))
    snapshot = with_topic(topic("orders", moving))
    assert failing(snapshot)["no moves"] == "1 move: orders-0 (waits for broker 9, which is down)"
    assert advice(snapshot, "no moves").startswith("start broker 9, or take these moves back")
    assert "has to end first" in advice(snapshot, "no replicas")
