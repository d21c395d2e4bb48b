"""Is a plan done? Each check fails for its own reason, with evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.model import CheckOutcome, Copy, TopicPartition
from restow.plan.pin import Target, plan_from_targets
from restow.verify import verify
from tests.unit.plan.clusters import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.model import Partition, Plan, Snapshot


def _plan() -> Plan:
    target = Target(partition=TopicPartition("t", 0), replicas=(1, 3), log_dirs=("any", "/d"))
    return plan_from_targets(snapshot({"t": [(1, 2)]}, dirs=("/d", "/e")), [target], created_ms=0)


def _done() -> Snapshot:
    return snapshot({"t": [(1, 3)]}, dirs=("/d", "/e"))


def _partition(change: Callable[[Partition], Partition]) -> Snapshot:
    done = _done()
    topic = done.topics[0]
    return replace(done, topics=(replace(topic, partitions=(change(topic.partitions[0]),)),))


def _broker_config(name: str, of: int = 3) -> Snapshot:
    done = _done()
    return replace(
        done,
        brokers=tuple(replace(each, configs={name: "5"}) if each.id == of else each for each in done.brokers),
    )


def _topic(**change: object) -> Snapshot:
    done = _done()
    return replace(done, topics=(replace(done.topics[0], **change),))  # type: ignore[arg-type]


def _other_dir(each: Partition) -> Partition:
    return each._replace(copies=(each.copies[0], each.copies[1]._replace(log_dir="/e")))


def _nowhere(each: Partition) -> Partition:
    return each._replace(copies=each.copies[:1])


def _on_its_way(each: Partition) -> Partition:
    return each._replace(copies=(*each.copies, Copy(broker=1, log_dir="/e", size_bytes=0, future=True)))


def test_verify_passes_when_the_plan_is_done() -> None:
    verdict = verify(_plan(), _done())
    assert verdict.holds
    assert len({check.name for check in verdict.checks}) == len(verdict.checks)


@pytest.mark.parametrize(
    ("now", "names", "seen"),
    [
        (
            _partition(lambda each: each._replace(replicas=(3, 1), leader=3)),
            {"replicas in place"},
            "[3, 1] instead",
        ),
        (_partition(lambda each: each._replace(adding=(4,))), {"nothing moves"}, "t-0"),
        (_partition(lambda each: each._replace(isr=(1,))), {"all in sync"}, "t-0"),
        (_topic(min_insync_replicas=3), {"writable"}, "t-0 with 2 of 3"),
        (_partition(lambda each: each._replace(leader=3)), {"first replicas lead"}, "t-0"),
        (_partition(_other_dir), {"log dirs"}, "t-0 on broker 3 lies in /e, not in /d"),
        (_partition(_on_its_way), {"log dirs"}, "on its way to /e"),
        (_partition(_nowhere), {"log dirs"}, "t-0 is not on broker 3, where it belongs in /d"),
        (replace(_done(), unanswered=(3,)), {"log dirs"}, "no word from broker 3"),
        (_broker_config("leader.replication.throttled.rate"), {"no throttles left"}, "of broker 3"),
        (
            _topic(configs={"follower.replication.throttled.replicas": "0:3"}),
            {"no throttles left"},
            "of topic t",
        ),
    ],
)
def test_verify_names_each_failure_with_evidence(now: Snapshot, names: set[str], seen: str) -> None:
    verdict = verify(_plan(), now)
    failing = [check for check in verdict.checks if check.outcome is not CheckOutcome.HOLDS]
    assert {check.name for check in failing} == names
    assert seen in failing[0].evidence
    assert failing[0].advice
    assert not verdict.holds


@pytest.mark.parametrize(
    ("now", "fails", "seen"),
    [
        (replace(_done(), cluster_id="there"), "the plan's cluster", "there, not here"),
        (snapshot({}), "partitions exist", "t-0"),
    ],
)
def test_verify_fails_when_a_check_could_not_be_made(now: Snapshot, fails: str, seen: str) -> None:
    verdict = verify(_plan(), now)
    by_name = {check.name: check for check in verdict.checks}
    assert by_name[fails].outcome is CheckOutcome.FAILS
    assert seen in by_name[fails].evidence
    places = ("replicas in place", "nothing moves", "all in sync", "writable", "log dirs")
    assert {by_name[name].outcome for name in places} == {CheckOutcome.UNKNOWN}
    assert all("not looked at" in by_name[name].evidence for name in places)


@pytest.mark.parametrize(
    ("replicas", "works"),
    [
        ([(1, 2), (1, 2)], "execute the plan, or resume its run"),
        ([(1, 3), (1, 2)], "resume its run; without one, make the plan anew, or rebase it"),
        ([(1, 3), (2, 4)], "somebody else has changed t-1, which a run leaves out"),
    ],
    ids=["untouched", "half done", "changed by others"],
)
def test_verify_advises_what_would_not_be_refused(replicas: list[tuple[int, ...]], works: str) -> None:
    targets = [Target(partition=TopicPartition("t", number), replicas=(1, 3)) for number in range(2)]
    plan = plan_from_targets(snapshot({"t": [(1, 2), (1, 2)]}), targets, created_ms=0)
    checks = verify(plan, snapshot({"t": replicas})).checks
    (advice,) = [each.advice for each in checks if each.name == "replicas in place"]
    assert advice.startswith(works)


def test_throttles_are_unknown_when_configs_are_hidden() -> None:
    now = replace(_done(), denied=("DESCRIBE_CONFIGS on topic t",))
    check = verify(_plan(), now).checks[-1]
    assert check.outcome is CheckOutcome.UNKNOWN
    assert "DESCRIBE_CONFIGS on topic t" in check.evidence


def test_partition_of_a_recreated_topic_counts_as_gone() -> None:
    plan = replace(_plan(), topic_ids={"t": "old"})
    verdict = verify(plan, _topic(id="new"))
    check = next(each for each in verdict.checks if each.name == "partitions exist")
    assert check.outcome is CheckOutcome.FAILS
    assert "t-0 (of a topic that was made anew)" in check.evidence


def test_other_configs_are_no_throttles() -> None:
    assert verify(_plan(), _broker_config("log.cleaner.threads")).holds


RATE, LIST = "leader.replication.throttled.rate", "leader.replication.throttled.replicas"


@pytest.mark.parametrize(
    ("now", "seen"),
    [
        (_broker_config(RATE, of=0), f"others have set {RATE} of broker 0"),
        (_topic(configs={LIST: "7:1"}), f"others have set {LIST} of topic t"),
        (_topic(configs={LIST: "*"}), f"others have set {LIST} of topic t"),
        (_topic(configs={LIST: ""}), "none is set"),
    ],
)
def test_throttle_that_the_plan_did_not_need_is_reported_and_does_not_count(now: Snapshot, seen: str) -> None:
    verdict = verify(_plan(), now)
    assert verdict.holds
    assert seen in verdict.checks[-1].evidence


def test_journal_tells_our_throttles_from_those_of_others() -> None:
    now = _broker_config(RATE)
    assert verify(_plan(), now, ours=[]).holds
    left = verify(_plan(), now, ours=[("broker", "3", RATE)]).checks[-1]
    assert left.outcome is CheckOutcome.FAILS
    assert left.evidence == f"1 throttle: {RATE} of broker 3"
    assert "doctor --fix" in left.advice
