"""Groups of the protocol `consumer`: the same requests to the embedded cluster and to Apache Kafka 4.3.1.

A target is computed at once, or in some scenes once and never again. With Kafka's interval of a second the
answers would depend on the time between two heartbeats.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from harness.apache import apache_kafka
from harness.jars import KAFKA_4
from tests.apache.group_talk import Talk
from tests.apache.late_target_scenes import LATE_SCENES
from tests.apache.mixed_group_scenes import MIXED_SCENES
from tests.apache.raw_client import RawClient
from tests.clients.embedded import embedded, wait_until
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.apache, pytest.mark.full]

AT_ONCE = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
}
ONCE = {
    "group.consumer.assignment.interval.ms": "3600000",
    "group.consumer.max.assignment.interval.ms": "3600000",
}


def members_come_and_go(talk: Talk) -> None:
    """A member joins, a second takes half, commits are fenced by epoch, and all leave."""
    talk.join("a")
    talk.describe()
    talk.beat("a", 2)
    talk.commit("a", 2)
    talk.join("b")
    talk.beat("b", 3)
    talk.describe()
    talk.beat("a", 2)  # told to revoke
    talk.beat("a", 2, owned={"t": range(6)})  # has not yet
    talk.commit("a", 2)
    talk.commit("a", 3)
    talk.beat("b", 3)  # still waits
    talk.beat("a", 2, owned={"t": range(3)})
    talk.beat("b", 3)
    talk.describe()
    talk.commit("a", 2)
    talk.commit("a", 2, partition=5)
    talk.commit("a", 3, version=8)
    talk.commit("a", 2, version=8)
    talk.commit("b", 3)
    talk.commit("b", 2, partition=5)
    talk.commit("nobody", 3)
    talk.commit("", -1)
    talk.fetch("a", 3)
    talk.fetch("a", 2)
    talk.fetch("nobody", 2)
    talk.fetch(None, -1)
    talk.beat("a", 3, rebalance_timeout_ms=300_000, subscribed_topic_names=["t"], owned={"t": range(3)})
    talk.beat("a", 3, subscribed_topic_names=["t", "u.one"])
    talk.beat("b", 3)
    talk.beat("a", 4)
    talk.describe()
    talk.beat("a", -1)
    talk.beat("b", 4)
    talk.beat("b", 5)
    talk.delete("g")
    talk.beat("b", -1)
    talk.describe()
    talk.commit("", -1)
    talk.delete("g")
    talk.describe()


def members_err(talk: Talk) -> None:
    """Wrong epochs, unknown members and requests that make no sense."""
    talk.beat("a", 2)
    talk.beat("a", -1)
    talk.beat("a", 0)
    talk.join("")
    talk.join("a", rebalance_timeout_ms=-1)
    talk.join("a", subscribed_topic_names=None)
    talk.join("a", owned=None)
    talk.join("a", owned={"t": [1]})
    talk.join("a", server_assignor="nonesuch")
    talk.join("a", instance_id="")
    talk.join("a", rack_id="")
    talk.beat("a", -2)
    talk.beat("a", -3)
    talk.join("a", group="")
    talk.join("a", subscribed_topic_names=None, subscribed_topic_regex="(")
    talk.join("a", subscribed_topic_names=None, subscribed_topic_regex="(?=t)t")
    talk.join("a")
    talk.beat("a", 0)
    talk.join("a")
    talk.beat("a", 3)
    talk.beat("b", 2)
    talk.join("b", server_assignor="range")
    talk.beat("a", 2, owned={"t": range(3)})
    talk.beat("a", 2, owned={"t": range(3)})  # the answer was lost
    talk.beat("a", 2, owned={"t": range(4)})
    talk.beat("a", 2)
    talk.describe()
    talk.join("a")  # as a fenced member does
    talk.beat("b", -1)
    talk.beat("b", -1)
    talk.beat("a", -1)


def static_members(talk: Talk) -> None:
    """A static member leaves for a while, comes back under another id, and keeps its partitions."""
    talk.join("a", instance_id="one", rack_id="r1")
    talk.join("b", instance_id="one")
    talk.join("a", instance_id="one")
    talk.beat("a", 2, instance_id="one")
    talk.beat("x", 2, instance_id="one")
    talk.beat("x", 2, instance_id="other")
    talk.beat("a", -2, instance_id="one")
    talk.describe()
    talk.beat("a", 2, instance_id="one")
    talk.join("c", instance_id="one")
    talk.describe()
    talk.beat("c", 2, instance_id="one")
    talk.beat("a", -1, instance_id="one")
    talk.beat("c", -1, instance_id="one")
    talk.describe()


def unknown_and_several_topics(talk: Talk) -> None:
    """Topics that do not exist, several topics, members with different ones."""
    talk.join("a", subscribed_topic_names=["nonesuch"])
    talk.join("b", subscribed_topic_names=["u.two", "nonesuch"])
    talk.beat("a", 2)
    talk.describe()
    talk.beat("b", 3, subscribed_topic_names=[])
    talk.beat("a", 3, owned={})
    talk.describe()
    talk.beat("a", -1)
    talk.beat("b", -1)


def three_members(talk: Talk) -> None:
    """Members wait for each other's partitions, and one vanishes between revoking and telling so."""
    for member in ("a", "b", "c"):
        talk.join(member)
    talk.beat("a", 2, owned={"t": range(6)})
    talk.beat("b", 3)
    talk.beat("c", 4)
    talk.describe()
    talk.beat("a", 2, owned={"t": [0, 1]})
    talk.beat("b", 3)
    talk.beat("c", 4)
    talk.describe()
    talk.beat("a", -1)
    talk.beat("b", 4)
    talk.beat("c", 4)
    talk.beat("b", 5)
    talk.beat("c", 5)
    talk.describe()
    talk.beat("b", -1)
    talk.beat("c", 5)
    talk.beat("c", 6)
    talk.beat("c", -1)


def one_revokes_twice(talk: Talk) -> None:
    """A member that gives up partitions is told to give up more before it has told so."""
    talk.join("a")
    talk.join("b")
    talk.beat("a", 2, owned={"t": range(6)})
    talk.join("c")
    talk.beat("a", 2, owned={"t": range(3)})
    talk.describe()
    talk.beat("a", 2, owned={"t": range(2)})
    talk.describe()
    talk.beat("b", 3)
    talk.beat("c", 4)
    talk.beat("b", 3, owned={"t": [3, 4, 5]})
    talk.beat("b", 3, owned={"t": [3, 4]})
    talk.beat("c", 4)
    talk.describe()
    for member in ("a", "b", "c"):
        talk.beat(member, -1)


def two_static_members(talk: Talk) -> None:
    """A second static member joins while the first is away, and the first comes back to less."""
    talk.join("a", instance_id="one")
    talk.beat("a", -2, instance_id="one")
    talk.join("b", instance_id="two")
    talk.describe()
    talk.join("c", instance_id="one")
    talk.beat("b", 3, instance_id="two")
    talk.describe()
    talk.beat("c", 3, instance_id="one", owned={"t": range(3)})
    talk.beat("b", 3, instance_id="two")
    talk.describe()
    talk.beat("b", -1, instance_id="two")
    talk.beat("c", -1, instance_id="one")


def a_regular_expression(talk: Talk) -> None:
    """Apache resolves it a little later than the answer; so only the end is compared."""
    talk.join("a", subscribed_topic_names=None, subscribed_topic_regex=r"u\..*|__.*")
    epoch = talk.answers.pop()[3]

    def has_all() -> bool:
        nonlocal epoch
        talk.beat("a", epoch)
        epoch = talk.answers.pop()[3]
        talk.describe()
        (member,) = talk.answers[-3][-1]
        return len(member[-2]) >= 2

    wait_until(has_all, "the member has its topics")
    found = talk.answers[-3][-1][0]
    topics = found[-2]
    talk.answers[:] = [(found[5], topics | {"__consumer_offsets": bool(topics["__consumer_offsets"])})]
    talk.beat("a", -1)


SCENES = (
    members_come_and_go,
    members_err,
    static_members,
    unknown_and_several_topics,
    three_members,
    one_revokes_twice,
    two_static_members,
    a_regular_expression,
    *MIXED_SCENES,
)


@pytest.fixture(scope="module", params=[AT_ONCE, ONCE], ids=["at once", "once"])
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    chosen: dict[str, str] = request.param
    return chosen


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str]) -> Iterator[Talk]:
    with ExitStack() as stack:
        with needs_kafka():
            cluster = stack.enter_context(
                apache_kafka(tmp_path_factory.mktemp("kafka"), version=KAFKA_4, settings=settings)
            )
        yield Talk(stack.enter_context(RawClient(cluster.bootstrap)))


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str]) -> Iterator[Talk]:
    known = {name: value for name, value in settings.items() if "offload" not in name}
    with (
        embedded(data=tmp_path_factory.mktemp("ours"), properties=known) as running,
        RawClient(running.bootstrap) as client,
    ):
        yield Talk(client)


def test_group_answers_like_apache(ours: Talk, apache: Talk, settings: dict[str, str]) -> None:
    """Compare error codes, epochs, assignments and descriptions; every scene leaves its group empty."""
    for scene in LATE_SCENES if settings is ONCE else SCENES:
        for talk in (ours, apache):
            talk.answers.clear()
            scene(talk)
            talk.delete("g")
        assert ours.answers == apache.answers, scene.__name__
