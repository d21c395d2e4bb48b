"""The flow model: links are shared max-min fair, and copies end when arithmetic says so."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.model import Limits, Move, Snapshot, Step, TopicPartition
from restow.plan.flow.constants import USUAL, Constants
from restow.plan.flow.copies import Start
from restow.plan.flow.flows import Flow, Flows
from restow.plan.flow.forecast import ForecastRun, carry_out, leader_of
from restow.plan.flow.loads import ClientLoads, PartitionLoad
from restow.plan.flow.movement import Movement
from restow.plan.flow.sharing import max_min
from restow.plan.flow.sharing_loops import max_min_by_loops
from restow.plan.schedule.admission import Admission
from restow.plan.schedule.schedule import Schedule, steps_of
from restow.plan.schedule.traffic import Way
from tests.unit.plan.clusters import snapshot as snapshot_of

MB = 10**6
AT_ONCE = Constants(
    broker_rate=1000.0 * MB,
    dir_rate=1000.0 * MB,
    throttle_share=1.0,
    dir_share=1.0,
    begin_s=0.0,
    settle_s=0.0,
    round_trip_s=0.0001,
    request_s=0.0,
)
"""A cluster that loses no time beside copying."""


@st.composite
def shared(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    size, flows = draw(st.integers(3, 8)), draw(st.integers(1, 12))
    columns = [draw(st.permutations(range(size)))[:3] for _ in range(flows)]
    capacity = draw(st.lists(st.floats(0.5, 100.0), min_size=size, max_size=size))
    ceilings = draw(st.lists(st.floats(0.5, 100.0), min_size=flows, max_size=flows))
    return np.array(columns).T, np.array(capacity), np.array(ceilings)


@given(shared())
def test_no_copy_can_get_more_without_taking_from_one_with_less(
    case: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    links, capacity, ceilings = case
    rates = max_min(links, capacity, ceilings).rates
    used = np.bincount(links.ravel(), np.tile(rates, 3), minlength=len(capacity))
    assert (used <= capacity * (1 + 1e-9)).all()
    for flow, rate in enumerate(rates):
        full = [link for link in links[:, flow] if used[link] >= capacity[link] * (1 - 1e-9)]
        largest = [rates[(links == link).any(axis=0)].max() <= rate * (1 + 1e-9) for link in full]
        assert rate >= ceilings[flow] * (1 - 1e-9) or any(largest)


@given(shared())
def test_link_that_holds_a_copy_back_is_full(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    links, capacity, ceilings = case
    shares = max_min(links, capacity, ceilings)
    used = np.bincount(links.ravel(), np.tile(shares.rates, 3), minlength=len(capacity))
    for flow, link in enumerate(shares.held_by):
        if link < 0:
            assert shares.rates[flow] == ceilings[flow]
        else:
            assert used[link] == pytest.approx(capacity[link])


@given(shared())
def test_compiled_loops_share_as_numpy_does_to_the_last_bit(
    case: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    here, there = max_min(*case), max_min_by_loops(*case)
    assert here.rates.tolist() == there.rates.tolist()
    assert here.held_by.tolist() == there.held_by.tolist()


def flows_on(*capacity: float, grain_s: float = 0.0) -> Flows[str]:
    return Flows(np.array(capacity), 1, grain_s=grain_s, passed=lambda _: None)


def begin(flows: Flows[str], key: str, size: float, link: int = 0, **more: float) -> None:
    flows.begin(
        Flow(
            key=key,
            links=(link,),
            left_bytes=size,
            ceiling=more.get("ceiling", 1e9),
            grows=more.get("grows", 0.0),
        )
    )


def ends_of(flows: Flows[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    before = len(flows) + 1
    while 0 < len(flows) < before:
        before = len(flows)
        found.update(flows.advance(inf))
    return found


def test_second_copy_gets_the_whole_link_when_the_first_has_ended() -> None:
    flows = flows_on(10.0)
    begin(flows, "short", 50.0)
    begin(flows, "long", 150.0)
    assert ends_of(flows) == pytest.approx({"short": 10.0, "long": 20.0})


def test_copy_ends_later_by_what_producers_add() -> None:
    flows = flows_on(10.0)
    begin(flows, "written to", 60.0, grows=4.0)
    assert ends_of(flows) == pytest.approx({"written to": 10.0})


def test_copy_that_gets_less_than_producers_add_is_endless() -> None:
    flows = flows_on(10.0)
    begin(flows, "behind", 60.0, grows=12.0)
    assert flows.next_end_s == inf
    assert [key for key, *_ in flows.endless()] == ["behind"]


def test_link_that_changes_counts_from_that_moment() -> None:
    flows = flows_on(10.0)
    begin(flows, "one", 100.0)
    assert flows.advance(5.0) == []
    flows.capacity = np.array([25.0])
    flows.links_changed()
    assert ends_of(flows) == pytest.approx({"one": 7.0})


def test_copy_with_a_ceiling_leaves_the_rest_to_others() -> None:
    flows = flows_on(10.0)
    begin(flows, "slow", 20.0, ceiling=2.0)
    begin(flows, "other", 80.0)
    assert ends_of(flows) == pytest.approx({"slow": 10.0, "other": 10.0})


def test_ends_keep_their_own_moments_within_a_grain() -> None:
    flows = flows_on(10.0, 10.0, grain_s=4.0)
    begin(flows, "first", 50.0)
    begin(flows, "second", 70.0, link=1)
    assert flows.advance(inf) == [("first", pytest.approx(5.0)), ("second", pytest.approx(7.0))]
    assert flows.now_s == pytest.approx(8.0)


@pytest.mark.parametrize("seed", range(20))
def test_every_copy_ends_however_long_a_run_has_gone_on(seed: int) -> None:
    chance = np.random.default_rng(seed)
    flows = flows_on(*chance.uniform(1e6, 1e9, 6))
    flows.advance(1e6)
    for number, size in enumerate(chance.lognormal(15, 4, 200)):
        begin(flows, f"{number}", size, link=number % 6)
    assert len(ends_of(flows)) == 200


def moved(snapshot: Snapshot, *moves: Move, limits: Limits | None = None, movement: Movement) -> ForecastRun:
    admission = Admission(snapshot, limits or Limits())
    schedule = Schedule([steps_of(move) for move in moves], admission)
    return carry_out(schedule, movement, partial(leader_of, snapshot))


def move_of(snapshot: Snapshot, number: int, after: tuple[int, ...], size: int, **more: object) -> Move:
    name = TopicPartition("t", number)
    found = snapshot.partition(name)
    assert found is not None
    return Move(partition=name, before=found.replicas, after=after, size_bytes=size, **more)  # type: ignore[arg-type]


def throttled(snapshot: Snapshot, rate: int, loads: ClientLoads | None = None) -> Movement:
    movement = Movement(snapshot, AT_ONCE, loads)
    movement.links.throttle_all(rate, rate)
    movement.links_changed()
    return movement


def test_busiest_receiver_sets_the_time_under_a_throttle() -> None:
    snapshot = snapshot_of({"t": [(0,)] * 4}, size=50 * MB)
    moves = [move_of(snapshot, number, (to,), 50 * MB) for number, to in enumerate((1, 1, 2, 3))]
    movement = throttled(snapshot, 10 * MB)
    run = moved(snapshot, *moves, movement=movement)
    assert run.seconds == pytest.approx(20.0)  # broker 0 sends 200 MB
    assert (
        movement.say(int(movement.flows.held_s.argmax())) == "broker 0 sends as much as its throttle allows"
    )


def test_senders_throttle_is_shared_by_all_that_it_sends() -> None:
    snapshot = snapshot_of({"t": [(0,), (4,), (5,)]}, size=60 * MB)
    moves = [move_of(snapshot, number, (3,), 60 * MB) for number in range(3)]
    assert moved(snapshot, *moves, movement=throttled(snapshot, 6 * MB)).seconds == pytest.approx(30.0)


def test_copies_between_log_dirs_have_a_throttle_of_their_own() -> None:
    snapshot = snapshot_of({"t": [(0,), (1,)]}, size=60 * MB, dirs=("/a", "/b"))
    within = move_of(snapshot, 0, (0,), 60 * MB, log_dirs=("/b",), dirs_before={0: "/a"})
    between = move_of(snapshot, 1, (0,), 60 * MB, log_dirs=("/a",))
    movement = Movement(snapshot, AT_ONCE)
    movement.links.throttle_all(6 * MB, 3 * MB)
    movement.links_changed()
    run = moved(snapshot, within, between, movement=movement)
    assert {each.step.partition.partition: each.ended_s for each in run.steps} == pytest.approx(
        {0: 20.0, 1: 10.0}
    )


def test_disk_holds_both_copies_until_the_old_files_are_deleted() -> None:
    snapshot = snapshot_of({"t": [(0,), (0,)]}, size=100 * MB, used={0: 200 * MB})
    moves = [move_of(snapshot, 0, (1,), 100 * MB), move_of(snapshot, 1, (1,), 100 * MB)]
    movement = throttled(snapshot, 10 * MB)
    moved(snapshot, *moves, movement=movement)
    first, second = movement.links.dir_of(0, "/d"), movement.links.dir_of(1, "/d")
    assert movement.used[first] == pytest.approx(200 * MB)
    assert movement.peak[second] == pytest.approx(200 * MB)
    movement.advance(20.0 + AT_ONCE.delete_delay_s)
    assert movement.used[first] == pytest.approx(0)


def test_partition_that_grows_faster_than_the_throttle_is_named() -> None:
    snapshot = snapshot_of({"t": [(0,), (1,)]}, size=100 * MB)
    busy, quiet = TopicPartition("t", 0), TopicPartition("t", 1)
    loads = ClientLoads(
        by_partition={busy: PartitionLoad(leader_in=9.0 * MB), quiet: PartitionLoad(leader_in=1.0)},
        known=True,
    )
    moves = [move_of(snapshot, 0, (2,), 100 * MB), move_of(snapshot, 1, (3,), 100 * MB)]
    run = moved(snapshot, *moves, movement=throttled(snapshot, 5 * MB, loads))
    assert run.endless == (busy,)
    assert run.seconds == inf


def test_cancelled_step_frees_its_bytes_and_lets_others_go_faster() -> None:
    snapshot = snapshot_of({"t": [(0,), (0,)]}, size=100 * MB)
    movement = throttled(snapshot, 10 * MB)
    steps = [steps_of(move_of(snapshot, number, (1,), 100 * MB))[0] for number in (0, 1)]
    movement.begin([Start(step, 0, {1: "/d"}) for step in steps])
    assert movement.advance(10.0) == []
    movement.cancel(steps[0].partition)
    assert movement.used[movement.links.dir_of(1, "/d")] == pytest.approx(50 * MB)
    assert [each.at_s for each in movement.advance(inf)] == pytest.approx([15.0])


def test_clients_leave_less_to_copies_of_an_unthrottled_broker() -> None:
    snapshot = snapshot_of({"t": [(0,), (1,)]}, size=100 * MB)
    busy = TopicPartition("t", 1)
    loads = ClientLoads(by_partition={busy: PartitionLoad(leader_in=600.0 * MB)}, known=True)
    movement = Movement(snapshot, AT_ONCE, loads)
    assert movement.links.capacity[movement.links.of(Way.RECEIVED, 1)] == pytest.approx(400 * MB)
    run = moved(snapshot, move_of(snapshot, 0, (1,), 100 * MB), movement=movement)
    assert run.seconds == pytest.approx(0.25)


MONDAY_MS = 1_767_571_200_000
"""Midnight on a Monday, UTC."""


def by_hour(*first: float) -> np.ndarray:
    """Return multiples of a load: these in the first hours of the week, and 1 in the others."""
    return np.array([*first, *[1.0] * (168 - len(first))])


def test_clients_leave_more_to_copies_when_their_quiet_hour_begins() -> None:
    snapshot = snapshot_of({"t": [(0,)], "busy": [(1,)]}, size=5_000_000 * MB, total=10**15)
    loads = ClientLoads(
        by_partition={TopicPartition("busy", 0): PartitionLoad(leader_in=900.0 * MB)},
        hours_in={"busy": by_hour(1.0, 0.0)},
        known=True,
        start_ms=MONDAY_MS + 1800_000,
    )
    movement = Movement(snapshot, replace(AT_ONCE, round_trip_s=1e-6), loads)
    run = moved(snapshot, move_of(snapshot, 0, (1,), 5_000_000 * MB), movement=movement)
    half_an_hour, hour = 1800 * 100, 3600 * 1000
    left_s = (5_000_000 - half_an_hour - hour) / 100
    assert run.seconds == pytest.approx(1800 + 3600 + left_s)
    assert movement.links.client_rate(Way.RECEIVED, 1) == pytest.approx(900 * MB)


def test_producers_add_to_a_copy_what_they_write_in_that_hour() -> None:
    snapshot = snapshot_of({"t": [(0,)]}, size=7200 * MB)
    loads = ClientLoads(
        by_partition={TopicPartition("t", 0): PartitionLoad(leader_in=1.0 * MB)},
        limits={TopicPartition("t", 0): inf},
        hours_in={"t": by_hour(1.0, 0.0)},
        known=True,
        start_ms=MONDAY_MS,
    )
    run = moved(snapshot, move_of(snapshot, 0, (1,), 7200 * MB), movement=throttled(snapshot, 2 * MB, loads))
    assert run.seconds == pytest.approx(3600 + 3600 * (7200 - 3600) / 7200)


def test_copy_that_producers_outrun_by_day_ends_at_night() -> None:
    snapshot = snapshot_of({"t": [(0,)]}, size=100 * MB)
    name = TopicPartition("t", 0)
    loads = ClientLoads(
        by_partition={name: PartitionLoad(leader_in=3.0 * MB)},
        limits={name: inf},
        hours_in={"t": by_hour(*[1.0] * 23, 0.0)},
        known=True,
        start_ms=MONDAY_MS,
    )
    move = move_of(snapshot, 0, (1,), 100 * MB)
    run = moved(snapshot, move, movement=throttled(snapshot, 2.9 * MB, loads))
    at_night_s = 23 * 3600
    assert run.seconds == pytest.approx(at_night_s + (100 + 0.1 * at_night_s) / 2.9)
    always = replace(loads, hours_in={"t": by_hour(1.0)})
    run = moved(snapshot, move, movement=throttled(snapshot, 2.9 * MB, always))
    assert (run.seconds, run.endless) == (inf, (name,))


def test_log_dir_holds_what_was_written_hour_by_hour() -> None:
    snapshot = snapshot_of({"t": [(0,)]}, size=100 * MB)
    name = TopicPartition("t", 0)
    loads = ClientLoads(
        by_partition={name: PartitionLoad(leader_in=1.0 * MB)},
        limits={name: inf},
        hours_in={"t": by_hour(2.0, 0.0, 5.0)},
        known=True,
        start_ms=MONDAY_MS + 1800_000,
    )
    movement = Movement(snapshot, AT_ONCE, loads)
    movement.advance(1800 + 3600 + 600)
    written = 1800 * 2 + 600 * 5
    place = movement.links.dir_of(0, "/d")
    assert movement.used[place] - movement.before[place] == pytest.approx(written * MB)
    assert movement.size_of(name) == pytest.approx((100 + written) * MB)
    movement.advance(7 * 24 * 3600)
    assert movement.size_of(name) == pytest.approx((100 + 3600 * 172) * MB)


def test_steps_begin_in_the_order_of_the_schedule_whatever_the_grain() -> None:
    snapshot = snapshot_of({"t": [(number % 4, (number + 1) % 4) for number in range(40)]}, size=100 * MB)
    moves = [move_of(snapshot, number, (number % 4, 4 + number % 2), 100 * MB) for number in range(40)]
    limits = Limits(moves_in=3, moves_out=2)
    orders = []
    for grain_s in (0.0, 0.5):
        movement = Movement(snapshot, USUAL, grain_s=grain_s)
        movement.links.throttle_all(10 * MB, None)
        movement.links_changed()
        run = moved(snapshot, *moves, limits=limits, movement=movement)
        assert len(run.steps) == 40
        assert run.seconds == pytest.approx(200 * 1.0, rel=0.15)
        orders.append([each.step for each in run.steps])
    assert orders[0] == orders[1]


@pytest.mark.parametrize("seed", range(5))
def test_all_bytes_pass_the_links_of_their_copies_and_no_link_passes_more_than_it_can(seed: int) -> None:
    chance = np.random.default_rng(seed)
    homes = [tuple(chance.choice(6, 2, replace=False).tolist()) for _ in range(60)]
    snapshot = snapshot_of({"t": homes}, size=70 * MB)
    moves = []
    for number, (leader, follower) in enumerate(homes):
        to = int(chance.choice([each for each in range(6) if each not in (leader, follower)]))
        moves.append(move_of(snapshot, number, (leader, to), 70 * MB))
    movement = throttled(snapshot, 10 * MB)
    run = moved(snapshot, *moves, limits=Limits(moves_in=4, moves_out=3), movement=movement)
    passed = movement.flows.link_bytes
    for broker in range(6):
        received = sum(70 * MB for move in moves if move.after[1] == broker)
        sent = sum(70 * MB for move in moves if move.before[0] == broker)
        assert passed[movement.links.of(Way.RECEIVED, broker)] == pytest.approx(received)
        assert passed[movement.links.of(Way.SENT, broker)] == pytest.approx(sent)
        assert max(received, sent) <= run.seconds * 10 * MB * (1 + 1e-9)
    assert movement.flows.most_rates[: 2 * 6].max() <= 10 * MB * (1 + 1e-9)


def test_step_without_copies_ends_after_the_controller_has_noticed() -> None:
    snapshot = snapshot_of({"t": [(0, 1)]})
    movement = Movement(snapshot, USUAL)
    step = Step(partition=TopicPartition("t", 0), before=(0, 1), after=(1, 0))
    movement.begin([Start(step, 0, {})])
    assert [each.at_s for each in movement.advance(inf)] == [USUAL.settle_s]
