"""Brokers with outdated metadata: a run, undo and cancel are not misled by their answers."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import TYPE_CHECKING

import pytest

from restow.client import BrokerError, ConfigResource
from restow.execute.progress.outcome import Ending
from restow.execute.run.control import ControlRequest
from restow.execute.run.start import cancel
from restow.execute.throttle.throttles import FOLLOWER_RATE, LEADER_REPLICAS
from restow.model import Limits, TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.unit.execute.fake_admin import MB
from tests.unit.execute.stage import THROTTLED, Stage, control_of, make_stage, plan_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from restow.client import Config
    from restow.model import Topic

LATE_S = 0.7


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return make_stage(tmp_path)


def configs_come_late(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> dict[ConfigResource, dict[str, str]]:
    """Make configs visible a little after they were set; return what brokers know."""
    admin = stage.admin
    set_, ask = admin.incremental_alter_configs, admin.describe_configs
    known = deepcopy(admin.set_)

    async def change(
        changes: Mapping[ConfigResource, Mapping[str, str | None]],
    ) -> Mapping[ConfigResource, BrokerError | None]:
        outcome = await set_(changes)
        then = deepcopy(admin.set_)

        def heard() -> None:
            known.clear()
            known.update(then)

        stage.after(LATE_S, heard)
        return outcome

    async def told(
        of: Iterable[ConfigResource], keys: Collection[str] | None = None, patience_s: float | None = None
    ) -> Mapping[ConfigResource, Mapping[str, Config] | BrokerError]:
        real, admin.set_ = admin.set_, known
        try:
            return await ask(of, keys, patience_s)
        finally:
            admin.set_ = real

    monkeypatch.setattr(admin, "incremental_alter_configs", change)
    monkeypatch.setattr(admin, "describe_configs", told)
    return known


def test_moves_begin_when_brokers_know_their_throttles(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers on ZooKeeper hear of configs later than the request is answered, and copy freely until then."""
    known = configs_come_late(stage, monkeypatch)
    submit = stage.admin.alter_partition_reassignments
    rates: list[str | None] = []

    async def submitted(
        targets: Mapping[TopicPartition, Sequence[int] | None], **how: bool
    ) -> Mapping[TopicPartition, BrokerError | None]:
        rates.extend(known.get(ConfigResource("broker", str(each)), {}).get(FOLLOWER_RATE) for each in (3, 4))
        return await submit(targets, **how)

    monkeypatch.setattr(stage.admin, "alter_partition_reassignments", submitted)
    assert stage.execute(plan_for(stage, [(1, 3), (1, 4)]), THROTTLED).is_good
    assert rates
    assert None not in rates


def test_every_throttle_is_restored_despite_late_configs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moves end one after the other, each before brokers know the list without the last."""
    topic = ConfigResource("topic", "t")
    stage.admin.set_[topic] = {LEADER_REPLICAS: "77:1"}
    for number, name in enumerate(sorted(stage.admin.assignments)):
        stage.admin.sizes[name] = (20 + 3 * number) * MB
        stage.admin.copies[name] = dict.fromkeys(stage.admin.copies[name], stage.admin.sizes[name])
    configs_come_late(stage, monkeypatch)
    plan = plan_for(stage, [(1, 3), (1, 4), (2, 5), (2, 6)], limits=Limits(moves_in=2, moves_out=2))
    assert stage.execute(plan, THROTTLED).is_good
    assert stage.admin.set_ == {topic: {LEADER_REPLICAS: "77:1"}}
    assert stage.undo(THROTTLED).is_good
    assert stage.admin.set_ == {topic: {LEADER_REPLICAS: "77:1"}}
    assert "left alone" not in stage.kinds()


@pytest.mark.parametrize("request_", ["describe_configs", "incremental_alter_configs"])
def test_throttles_are_restored_by_a_broker_that_has_just_started(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, request_: str
) -> None:
    """It knows no topic until the controller tells it, so a topic that it does not know is not gone."""
    topic = ConfigResource("topic", "t")
    stage.admin.set_[topic] = {LEADER_REPLICAS: "77:1"}
    ask = getattr(stage.admin, request_)
    knows: list[bool] = [True]

    async def told(of: Collection[ConfigResource], *more: object) -> dict[ConfigResource, object]:
        if knows or topic not in of:
            return dict(await ask(of, *more))
        known = {each: of[each] for each in of if each != topic} if isinstance(of, dict) else {*of} - {topic}
        return {**await ask(known, *more), topic: BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}

    def cancel() -> None:
        knows.clear()
        control_of(stage).request(ControlRequest(stop="cancel"))
        stage.after(LATE_S, lambda: knows.append(True))

    monkeypatch.setattr(stage.admin, request_, told)
    stage.after(2, cancel)
    outcome = stage.execute(plan_for(stage, [(1, 3)]), THROTTLED)
    assert (outcome.ending, outcome.throttles_left) == (Ending.CANCELLED, ())
    assert stage.admin.set_ == {topic: {LEADER_REPLICAS: "77:1"}}


def test_preferred_leaders_are_elected_despite_outdated_metadata(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of three answers are outdated."""
    ask = stage.admin.describe_topics
    answers: list[tuple[Topic, ...]] = []

    async def told(names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        answers.append(await ask(names))
        return answers[0 if len(answers) % 3 else -1]

    monkeypatch.setattr(stage.admin, "describe_topics", told)
    assert stage.execute(plan_for(stage, [(2, 1), (2, 1)])).is_good
    assert stage.replicas()[:2] == [(2, 1), (2, 1)]
    assert [leader for _, leader in sorted(stage.admin.leaders.items())][:2] == [2, 2]


def test_next_step_begins_when_the_controller_has_finished_the_last(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers show the new replicas a while later; until then no step counts as arrived."""
    ask = stage.admin.describe_topics
    told: dict[int, tuple[Topic, ...]] = {}

    async def late(names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        told[stage.clock.now_ms()] = await ask(names)
        heard = [answer for at_ms, answer in told.items() if at_ms <= stage.clock.now_ms() - 3000]
        return heard[-1] if heard else next(iter(told.values()))

    monkeypatch.setattr(stage.admin, "describe_topics", late)
    plan = plan_for(stage, [(1, 3), (1, 3)], limits=Limits(moves_in=1, moves_out=1))
    assert stage.execute(plan).is_good
    assert [kind for kind in stage.kinds() if kind in ("begun", "arrived")] == [
        "begun",
        "begun",
        "arrived",
        "arrived",
    ]
    assert stage.admin.most_moving == 1


def test_undo_looks_again_when_the_run_seems_undone_already(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = stage.admin.describe_topics
    before = asyncio.run(ask())
    assert stage.execute(plan_for(stage, [(1, 3)])).is_good
    old = [before] * 3

    async def told(names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        return old.pop() if old else await ask(names)

    monkeypatch.setattr(stage.admin, "describe_topics", told)
    assert stage.undo().is_good
    assert stage.replicas()[0] == (1, 2)


def test_undo_looks_again_when_the_controller_answered_late(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metadata of the first snapshot is from before the election of a controller."""
    ask, moving = stage.admin.describe_topics, stage.admin.list_partition_reassignments
    old = [asyncio.run(ask())]
    assert stage.execute(plan_for(stage, [(1, 3)])).is_good

    async def told(names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        if not old:
            return await ask(names)
        return old.pop()

    async def listed(names: Iterable[TopicPartition] | None = None) -> object:
        if elected.pop():
            await stage.clock.sleep(20)
        elected.append(False)
        return await moving(names)

    elected = [True]
    monkeypatch.setattr(stage.admin, "describe_topics", told)
    monkeypatch.setattr(stage.admin, "list_partition_reassignments", listed)
    assert stage.undo().is_good
    assert stage.replicas()[0] == (1, 2)


@pytest.mark.parametrize("target", [(1, 3), (1, 2, 3)])
def test_cancelled_move_is_not_taken_for_arrived(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, target: tuple[int, ...]
) -> None:
    """A broker with outdated metadata shows the replicas during the move."""
    ask, reassign = stage.admin.describe_topics, stage.admin.alter_partition_reassignments
    old: list[tuple[Topic, ...]] = []

    async def told(names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        return old.pop() if old else await ask(names)

    async def asked(targets: Mapping[TopicPartition, Sequence[int] | None], **more: bool) -> object:
        if None in targets.values():
            old.extend([await ask()] * 2)
        return await reassign(targets, **more)

    monkeypatch.setattr(stage.admin, "describe_topics", told)
    monkeypatch.setattr(stage.admin, "alter_partition_reassignments", asked)
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="cancel")))
    outcome = stage.execute(plan_for(stage, [target]), THROTTLED)
    assert (outcome.ending, outcome.reason) == (Ending.CANCELLED, "1 move was taken back")
    assert stage.replicas()[0] == (1, 2)
    run = asyncio.run(stage.world.runs()).latest()
    assert run.ledger.finished == ()


@pytest.mark.parametrize("target", [(2, 3), (2, 1)])
def test_cancel_restores_the_order_of_replicas_despite_outdated_metadata(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, target: tuple[int, ...]
) -> None:
    """No broker has heard of the move or of its cancellation, so all show the order from before."""
    ask = stage.admin.describe_topics
    before = asyncio.run(ask())

    async def told(names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        return before

    monkeypatch.setattr(stage.admin, "describe_topics", told)
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="cancel")))
    outcome = stage.execute(plan_for(stage, [target]), THROTTLED)
    assert (outcome.ending, outcome.reason) == (Ending.CANCELLED, "1 move was taken back")
    assert stage.replicas()[0] == (1, 2)


def test_cancel_restores_the_order_of_a_move_that_was_cancelled_before_a_kill(stage: Stage) -> None:
    """Kafka leaves the replicas in the order of the cancelled target."""
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    assert stage.execute(plan_for(stage, [(2, 3)]), THROTTLED).ending is Ending.LEFT
    asyncio.run(stage.admin.alter_partition_reassignments({TopicPartition("t", 0): None}))
    assert stage.replicas()[0] == (2, 1)
    outcome = asyncio.run(cancel(stage.world, stage.watcher))
    assert outcome is not None
    assert outcome.ending is Ending.CANCELLED
    assert stage.replicas()[0] == (1, 2)
    assert asyncio.run(stage.world.runs()).latest().ledger.is_settled


def test_cancel_does_not_say_that_a_deleted_topic_was_taken_back(stage: Stage) -> None:
    stage.admin.add("gone", [(1, 2)])

    def delete() -> None:
        stage.admin.remove("gone")
        control_of(stage).request(ControlRequest(stop="cancel"))

    stage.after(2, delete)
    outcome = stage.execute(plan_for(stage, [(1, 3)], topic="gone"), THROTTLED)
    assert (outcome.ending, outcome.reason) == (Ending.CANCELLED, "0 moves were taken back")
    assert list(outcome.dropped.values()) == ["its topic is gone"]
    assert stage.admin.set_ == {}


def test_move_that_arrived_unobserved_is_not_taken_for_another_tools(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the controller it is at rest; the first broker asked still shows all replicas of the move."""
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    assert stage.execute(plan_for(stage, [(1, 3)]), THROTTLED).ending is Ending.LEFT
    ask = stage.admin.describe_topics
    old = [asyncio.run(ask())] * 2
    asyncio.run(stage.clock.sleep(100))

    async def told(names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        return old.pop() if old else await ask(names)

    monkeypatch.setattr(stage.admin, "describe_topics", told)
    outcome = stage.resume(THROTTLED)
    assert outcome.is_good, outcome
    assert "dropped" not in stage.kinds()
