"""The five elections: worked cases, and what holds for every outcome."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from restow.cluster.controller import elections
from restow.cluster.controller.elections import Choice

BROKERS = st.integers(0, 5)
REPLICAS = st.lists(BROKERS, min_size=1, max_size=5, unique=True).map(tuple)


@st.composite
def partitions(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], frozenset[int], frozenset[int]]:
    """Replicas, an ISR among them, the live and those of the live that are leaving."""
    replicas = draw(REPLICAS)
    isr = tuple(draw(st.permutations(replicas)))[: draw(st.integers(1, len(replicas)))]
    live = frozenset(draw(st.sets(BROKERS)))
    return replicas, isr, live, frozenset(draw(st.sets(st.sampled_from(sorted(live))))) if live else live


def test_a_new_partition_is_led_by_its_first_live_replica() -> None:
    assert elections.for_new((1, 2, 3), {2, 3}) == Choice(2, (2, 3))
    assert elections.for_new((1, 2, 3), {4}) is None


def test_an_offline_partition_takes_an_in_sync_replica_or_waits() -> None:
    assert elections.for_offline((1, 2, 3), (3, 2), {2, 3}) == Choice(2, (3, 2))
    assert elections.for_offline((1, 2, 3), (1, 3), {2, 3}) == Choice(3, (3,))
    assert elections.for_offline((1, 2, 3), (1,), {2, 3}) is None
    assert elections.for_offline((1, 2, 3), (1,), {2, 3}, unclean=True) == Choice(2, (2,))
    assert elections.for_offline((1, 2, 3), (1,), set(), unclean=True) is None


def test_a_move_takes_a_leader_of_its_target() -> None:
    assert elections.for_reassignment((4, 3), (1, 3), {1, 3, 4}) == Choice(3, (1, 3))
    assert elections.for_reassignment((4,), (1, 3), {1, 3, 4}) is None


def test_the_preferred_leader_is_the_first_replica_or_nobody() -> None:
    assert elections.for_preferred((1, 2), (2, 1), {1, 2}) == Choice(1, (2, 1))
    assert elections.for_preferred((1, 2), (2,), {1, 2}) is None
    assert elections.for_preferred((1, 2), (1, 2), {2}) is None
    assert elections.for_preferred((), (), {1}) is None


def test_who_shuts_down_neither_leads_nor_stays_in_sync() -> None:
    assert elections.for_controlled_shutdown((1, 2, 3), (1, 2, 3), {1, 2, 3}, {1}) == Choice(2, (2, 3))
    assert elections.for_controlled_shutdown((1, 2), (1,), {1, 2}, {1}) is None


def test_the_last_of_an_isr_does_not_leave_it() -> None:
    assert elections.without(1, 1, (1, 2)) == Choice(-1, (2,))
    assert elections.without(2, 1, (1, 2)) == Choice(1, (1,))
    assert elections.without(1, 1, (1,)) == Choice(-1, (1,))
    assert elections.without(3, 1, (1, 2)) == Choice(1, (1, 2))


@given(partitions())
def test_whoever_is_elected_is_live_and_in_sync(
    case: tuple[tuple[int, ...], tuple[int, ...], frozenset[int], frozenset[int]],
) -> None:
    replicas, isr, live, leaving = case
    outcomes = {
        "new": elections.for_new(replicas, live),
        "offline": elections.for_offline(replicas, isr, live),
        "unclean": elections.for_offline(replicas, isr, live, unclean=True),
        "reassignment": elections.for_reassignment(replicas, isr, live),
        "preferred": elections.for_preferred(replicas, isr, live),
        "shutdown": elections.for_controlled_shutdown(replicas, isr, live, leaving),
    }
    for kind, choice in outcomes.items():
        if choice is None:
            continue
        assert choice.leader in live
        assert choice.leader in choice.isr
        assert set(choice.isr) <= set(replicas)
        assert choice.leader in isr or kind in ("new", "unclean")
    able = live & set(isr)
    assert (outcomes["offline"] is not None) == bool(able)
    assert (outcomes["unclean"] is not None) == bool(live & set(replicas)) == (outcomes["new"] is not None)
    assert (outcomes["shutdown"] is not None) == bool(able - leaving)
    assert (outcomes["preferred"] is not None) == (replicas[0] in able)
