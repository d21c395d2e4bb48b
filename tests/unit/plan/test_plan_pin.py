"""Pinned plans: their contents, refusals, special topics last, and drift."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.errors import InvalidInput
from restow.model import Limits, LogDir, Plan, Promise, Snapshot, Topic, TopicPartition
from restow.plan.drift import Drift, differences, rebase
from restow.plan.explain.view import seconds_at, view_of
from restow.plan.files import text
from restow.plan.pin import ImpossiblePlan, Target, plan_from_targets
from tests.unit.plan.clusters import GB, snapshot


def target(partition: int, *replicas: int, topic: str = "t", dirs: tuple[str, ...] = ()) -> Target:
    return Target(partition=TopicPartition(topic, partition), replicas=replicas, log_dirs=dirs)


def pinned(here: Snapshot, *targets: Target, limits: Limits | None = None) -> Plan:
    return plan_from_targets(here, targets, created_ms=7, limits=limits)


def test_plan_adds_three_new_replicas_one_after_the_other() -> None:
    plan = pinned(snapshot({"t": [(1, 2, 3)]}), target(0, 4, 5, 0))
    assert [[(step.before, step.after) for step in wave] for wave in plan.waves] == [
        [((1, 2, 3), (1, 2, 4))],
        [((1, 2, 4), (1, 4, 5))],
        [((1, 4, 5), (4, 5, 0))],
    ]
    assert plan.moves[0].size_bytes == GB
    assert plan.bytes_to_copy == 3 * GB
    several = pinned(snapshot({"t": [(1, 2, 3)]}), target(0, 4, 5, 0), limits=Limits(extra_copies=3))
    assert len(several.waves) == 1


def test_plan_leaves_out_partitions_already_at_their_target() -> None:
    here = snapshot({"t": [(1, 2), (2, 3)]}, dirs=("/d", "/e"))
    plan = pinned(here, target(0, 1, 2, dirs=("any", "/d")), target(1, 2, 3, dirs=("any", "/e")))
    assert [move.partition.partition for move in plan.moves] == [1]
    assert plan.moves[0].dir_changes == {3: "/e"}
    assert plan.bytes_to_copy == GB


def _without_leader(topic: Topic) -> Topic:
    return replace(topic, partitions=tuple(each._replace(leader=None) for each in topic.partitions))


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (target(0, 1, topic="nope"), "nope-0 does not exist: there is no such topic"),
        (target(9, 1), "t-9 does not exist: it has 2 partitions"),
        (target(0), "t-0 is to have no replicas"),
        (target(0, 1, 1), "two replicas on one broker"),
        (target(0, 1, 77), "broker 77, which is not there"),
        (target(0, 1, 2, dirs=("/nope", "any")), "broker 1 has no log dir /nope; it has /d"),
        (target(0, 1, 2, dirs=("any",)), "2 replicas but 1 log dirs"),
        (target(0, 1), "min.insync.replicas of t is 2"),
        (target(1, 1, 2), "t-1 is being moved already"),
    ],
)
def test_plan_refuses_impossible_targets_by_name(asked: Target, complaint: str) -> None:
    here = snapshot({"t": [(1, 2), (2, 3, 1)]}, least=2)
    topic = here.topics[0]
    moving = topic.partitions[1]._replace(adding=(1,), removing=(3,))
    here = replace(here, topics=(replace(topic, partitions=(topic.partitions[0], moving)),))
    with pytest.raises(ImpossiblePlan, match=complaint):
        pinned(here, asked)


def test_plan_refuses_a_partition_without_a_leader() -> None:
    here = snapshot({"t": [(1, 2)]})
    here = replace(here, topics=tuple(map(_without_leader, here.topics)))
    with pytest.raises(ImpossiblePlan, match="t-0 has no leader"):
        pinned(here, target(0, 1, 3))


def test_plan_refuses_a_failed_log_dir_as_target() -> None:
    here = snapshot({"t": [(1, 2)]})
    brokers = tuple(replace(each, log_dirs=(LogDir(path="/d", failed=True),)) for each in here.brokers)
    with pytest.raises(ImpossiblePlan, match="log dir /d of broker 3 has failed"):
        pinned(replace(here, brokers=brokers), target(0, 1, 3, dirs=("any", "/d")))


def cordoned(here: Snapshot, broker: int, *paths: str) -> Snapshot:
    """Return the snapshot with these log dirs of a broker cordoned."""

    def changed(each: LogDir) -> LogDir:
        return replace(each, cordoned=each.path in paths)

    brokers = (
        replace(each, log_dirs=tuple(map(changed, each.log_dirs))) if each.id == broker else each
        for each in here.brokers
    )
    return replace(here, brokers=tuple(brokers))


@pytest.mark.parametrize(
    ("paths", "asked", "complaint"),
    [
        (("/d", "/e"), target(0, 1, 3), "t-0 is to have a new replica on broker 3, but all its log dirs are"),
        (("/e",), target(0, 1, 3, dirs=("any", "/e")), "in /e of broker 3, but that log dir is cordoned"),
        (("/e",), target(1, 1, 3, dirs=("any", "/e")), "in /e of broker 3, but that log dir is cordoned"),
    ],
    ids=["broker", "log dir", "log dir of the same broker"],
)
def test_plan_refuses_a_cordoned_target(paths: tuple[str, ...], asked: Target, complaint: str) -> None:
    here = cordoned(snapshot({"t": [(1, 2), (1, 3)]}, dirs=("/d", "/e")), 3, *paths)
    with pytest.raises(ImpossiblePlan, match=complaint):
        pinned(here, asked)


def test_plan_keeps_replicas_that_a_cordoned_log_dir_has_already() -> None:
    here = cordoned(snapshot({"t": [(1, 3)]}, dirs=("/d", "/e")), 3, "/d", "/e")
    plan = pinned(here, target(0, 4, 3, dirs=("any", "/d")))
    assert [move.after for move in plan.moves] == [(4, 3)]


def test_plan_refuses_the_same_partition_twice() -> None:
    with pytest.raises(ImpossiblePlan, match="t-0 is there twice"):
        pinned(snapshot({"t": [(1, 2)]}), target(0, 1, 3), target(0, 1, 4))


def test_plan_names_the_log_dir_into_which_a_replica_never_fits() -> None:
    here = snapshot({"t": [(1, 2), (1, 2)]}, total=10 * GB, used={3: 9 * GB})
    with pytest.raises(ImpossiblePlan, match=r"t-0: /d of broker 3 would be filled past 90%.*Make room"):
        pinned(here, target(0, 1, 3), target(1, 1, 4))


def test_plan_counts_many_problems() -> None:
    here = snapshot({"t": [(1, 2)] * 20})
    with pytest.raises(ImpossiblePlan, match="and 15 more"):
        pinned(here, *(target(number, 1, 99) for number in range(20)))


@pytest.mark.parametrize(
    "limits",
    [Limits(extra_copies=0), Limits(moves_in=0), Limits(moves_out=-1), Limits(fill=0), Limits(fill=1.1)],
)
def test_plan_refuses_limits_under_which_nothing_moves(limits: Limits) -> None:
    with pytest.raises(InvalidInput):
        pinned(snapshot({"t": [(1, 2)]}), target(0, 1, 3), limits=limits)


def test_plan_moves_special_topics_last_and_one_at_a_time() -> None:
    name = "__consumer_offsets"
    here = snapshot({name: [(1, 2)] * 4, "t": [(1, 2)] * 4})
    targets = (
        *(target(number, 1, 3, topic=name) for number in range(4)),
        *(target(number, 1, 3) for number in range(4)),
    )
    waves = [[step.partition.topic for step in wave] for wave in pinned(here, *targets).waves]
    assert waves == [["t"] * 4, [name], [name], [name], [name]]


_ASSIGNMENTS = st.lists(st.permutations(range(6)).map(lambda ids: tuple(ids[:3])), min_size=1, max_size=8)


@given(_ASSIGNMENTS, st.data(), st.integers(1, 3), st.booleans())
def test_plan_survives_its_file(
    assignments: list[tuple[int, ...]], data: st.DataObject, extra: int, dirs: bool
) -> None:
    here = snapshot({"t": assignments}, dirs=("/d", "/e"))
    targets = [
        target(
            number,
            *data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=5, unique=True)),
        )
        for number in range(len(assignments))
    ]
    if dirs:
        targets = [replace(each, log_dirs=("/e",) * len(each.replicas)) for each in targets]
    plan = pinned(here, *targets, limits=Limits(extra_copies=extra))
    again = text.loads(text.dumps(plan))
    assert again == plan
    assert text.digest_of(again) == text.digest_of(plan)
    assert text.dumps(again) == text.dumps(plan)
    assert not differences(plan, here)


def test_drift_is_named_and_rebased() -> None:
    plan = pinned(
        snapshot({"t": [(1, 2)] * 4, "gone": [(1, 2)]}),
        *(target(number, 1, 3) for number in range(4)),
        target(0, 1, 3, topic="gone"),
    )
    now = snapshot({"t": [(1, 2), (1, 3), (4, 2), (1, 2)]})
    topic = now.topics[0]
    moving = topic.partitions[3]._replace(replicas=(1, 3, 2), adding=(3,), removing=(2,))
    drifted = replace(now, topics=(replace(topic, partitions=(*topic.partitions[:3], moving)),))
    found = {str(each.partition): each.drift for each in differences(plan, drifted)}
    assert found == {"t-1": Drift.DONE, "t-2": Drift.ELSEWHERE, "t-3": Drift.MOVING, "gone-0": Drift.GONE}
    again = rebase(plan, now, created_ms=9)
    assert {str(move.partition): (move.before, move.after) for move in again.moves} == {
        "t-0": ((1, 2), (1, 3)),
        "t-2": ((4, 2), (1, 3)),
        "t-3": ((1, 2), (1, 3)),
    }
    with pytest.raises(InvalidInput, match="is for cluster here, but this is cluster there"):
        rebase(plan, replace(now, cluster_id="there"), created_ms=9)


def test_view_sums_up_a_plan() -> None:
    here = snapshot({"t": [(1, 2), (2, 1), (3, 4)]}, dirs=("/d", "/e"))
    plan = pinned(here, target(0, 1, 5, dirs=("/e", "/d")), target(1, 1, 2))
    view = view_of(plan)
    by_broker = {each.broker: each for each in view.brokers}
    assert view.bytes_to_copy == 2 * GB
    assert view.reordered == 1
    assert by_broker[5].received_bytes == by_broker[1].sent_bytes == by_broker[1].dir_bytes == GB
    assert (by_broker[2].before.size_bytes, by_broker[2].after.size_bytes) == (2 * GB, GB)
    assert (by_broker[1].before.preferred, by_broker[1].after.preferred) == (1, 2)
    assert {(each.broker, each.path): (each.in_bytes, each.out_bytes) for each in view.dirs} == {
        (1, "/d"): (0, GB),
        (1, "/e"): (GB, 0),
        (2, "/d"): (0, GB),
        (5, "/d"): (GB, 0),
    }
    assert 3 not in by_broker
    whole = {each.broker: each for each in view_of(plan, here).brokers}
    assert whole[3].before == whole[3].after
    assert whole[0].before.replicas == 0
    assert seconds_at(view, GB / 10) == 10


def test_recreated_topic_is_drift_and_is_left_behind_by_rebase() -> None:
    def with_id(here: Snapshot, known: str) -> Snapshot:
        changed = (replace(each, id=known if each.name == "t" else "same") for each in here.topics)
        return replace(here, topics=tuple(changed))

    here = snapshot({"t": [(1, 2)], "u": [(1, 2)]})
    targets = (target(0, 1, 3), target(0, 1, 3, topic="u"))
    plan = replace(pinned(with_id(here, "old"), *targets), promises=(Promise(kind="drained", brokers=(2,)),))
    now = with_id(here, "new")
    assert not differences(plan, with_id(here, "old"))
    assert [str(each) for each in differences(plan, now)] == [
        "t-0 is of a topic that was deleted and made anew"
    ]
    again = rebase(plan, now, created_ms=9)
    assert [str(move.partition) for move in again.moves] == ["u-0"]
    assert [str(each.partition) for each in again.leaves] == ["t-0"]
    assert again.promises == plan.promises
    assert again.topic_ids == {"u": "same"}


def test_partition_of_a_hidden_topic_is_not_taken_for_deleted() -> None:
    plan = pinned(snapshot({"t": [(1, 2)], "u": [(1, 2)]}), target(0, 1, 3), target(0, 1, 3, topic="u"))
    now = replace(snapshot({"u": [(1, 2)]}), hidden_topics=("t",))
    assert [str(each) for each in differences(plan, now)] == [
        "t-0 cannot be seen, because DESCRIBE on its topic is not allowed"
    ]
    again = rebase(plan, now, created_ms=9)
    assert [str(move.partition) for move in again.moves] == ["u-0"]
    assert [(str(each.partition), each.why) for each in again.leaves] == [
        ("t-0", "cannot be seen, because DESCRIBE on its topic is not allowed")
    ]
