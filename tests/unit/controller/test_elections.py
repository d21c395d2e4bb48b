"""The five elections: examples, and properties of every result."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from restow.cluster.controller import elections
from restow.cluster.controller.elections import Choice

BROKERS = st.integers(0, 5)
REPLICAS = st.lists(BROKERS, min_size=1, max_size=5, unique=True).map(tuple)


@st.composite
def partitions(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], frozenset[int], frozenset[int]]:
    """Replicas, an ISR, the live brokers, and those of them that are shutting down."""
    replicas = draw(REPLICAS)
    isr = tuple(draw(st.permutations(replicas)))[: draw(st.integers(1, len(replicas)))]
    live = frozenset(draw(st.sets(BROKERS)))
    return replicas, isr, live, frozenset(draw(st.sets(st.sampled_from(sorted(live))))) if live else live


def test_for_new_chooses_first_live_replica() -> None:
    assert elections.for_new((1, 2, 3), {2, 3}) == Choice(2, (2, 3))
    assert elections.for_new((1, 2, 3), {4}) is None


def test_for_offline_chooses_live_isr_member_or_none() -> None:
    assert elections.for_offline((1, 2, 3), (3, 2), {2, 3}) == Choice(2, (3, 2))
    assert elections.for_offline((1, 2, 3), (1, 3), {2, 3}) == Choice(3, (3,))
    assert elections.for_offline((1, 2, 3), (1,), {2, 3}) is None
    assert elections.for_offline((1, 2, 3), (1,), {2, 3}, unclean=True) == Choice(2, (2,))
    assert elections.for_offline((1, 2, 3), (1,), set(), unclean=True) is None


def test_for_reassignment_chooses_leader_in_the_target() -> None:
    assert elections.for_reassignment((4, 3), (1, 3), {1, 3, 4}) == Choice(3, (1, 3))
    assert elections.for_reassignment((4,), (1, 3), {1, 3, 4}) is None


def test_for_preferred_chooses_first_replica_or_none() -> None:
    assert elections.for_preferred((1, 2), (2, 1), {1, 2}) == Choice(1, (2, 1))
    assert elections.for_preferred((1, 2), (2,), {1, 2}) is None
    assert elections.for_preferred((1, 2), (1, 2), {2}) is None
    assert elections.for_preferred((), (), {1}) is None


def test_for_controlled_shutdown_removes_leaving_broker_from_leader_and_isr() -> None:
    assert elections.for_controlled_shutdown((1, 2, 3), (1, 2, 3), {1, 2, 3}, {1}) == Choice(2, (2, 3))
    assert elections.for_controlled_shutdown((1, 2), (1,), {1, 2}, {1}) is None


def test_without_keeps_the_last_isr_member() -> None:
    assert elections.without(1, 1, (1, 2)) == Choice(-1, (2,))
    assert elections.without(2, 1, (1, 2)) == Choice(1, (1,))
    assert elections.without(1, 1, (1,)) == Choice(-1, (1,))
    assert elections.without(3, 1, (1, 2)) == Choice(1, (1, 2))


@given(partitions())
def test_elected_leader_is_live_and_in_sync(
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
