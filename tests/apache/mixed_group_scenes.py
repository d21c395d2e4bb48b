"""What members of both protocols do in one group, for the comparison with Apache Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.apache.group_talk import Talk


def a_classic_member_joins(talk: Talk) -> None:
    """A classic member that gives up everything first comes and goes in a group of the other protocol."""
    talk.join("a")
    talk.join_classic(protocol_type="connect")
    talk.join_classic(protocols=[])
    made = talk.join_classic(version=3)
    talk.describe()
    talk.sync(made, 2)
    talk.sync(made, 3, name="roundrobin")
    talk.sync(made, 3)
    talk.beat_classic(made, 3)
    talk.beat_classic(made, 2)
    talk.beat_classic("a", 2)
    talk.sync("a", 2)
    talk.beat("a", 2, owned={"t": range(3)})
    talk.describe()
    talk.beat_classic(made, 3)
    talk.commit(made, 3)
    talk.join_classic(made)
    talk.sync(made, 3)
    talk.beat_classic(made, 3)
    talk.describe()
    talk.commit(made, 3, partition=4, version=8)
    talk.commit(made, 2, partition=4)
    talk.commit(made, 4)
    talk.commit("a", 3, version=8)
    talk.fetch(made, 3)
    talk.fetch(made, 2)
    talk.join_classic(made, topics=["t", "u.two"])
    talk.sync(made, 4)
    talk.beat_classic(made, 4)
    talk.beat("a", 3)
    talk.beat("a", 4)
    talk.beat_classic(made, 4)
    talk.join_classic(protocols=["roundrobin"])
    other = talk.join_classic(protocols=["roundrobin", "range"], topics=["u.two"])
    talk.beat_classic(made, 4)
    talk.sync(made, 4)
    talk.sync(other, 5, name="roundrobin")
    talk.leave_classic((other, None), ("nobody", None))
    talk.leave_classic((made, None))
    talk.describe()
    talk.beat("a", 4)
    talk.beat("a", 7)
    talk.beat("a", -1)
    talk.describe()


def a_cooperative_classic_member(talk: Talk) -> None:
    """It keeps what it may keep, and revokes the rest before it gets into the next epoch."""
    coop = {"protocols": ["cooperative-sticky"]}
    talk.join("a")
    made = talk.join_classic(**coop)
    talk.beat("a", 2, owned={"t": range(3)})
    talk.join_classic(made, **coop)
    talk.sync(made, 3, name="cooperative-sticky")
    talk.join("b")
    talk.describe()
    talk.beat_classic(made, 3)
    talk.sync(made, 3, name="cooperative-sticky")
    talk.join_classic(made, owned={"t": [3, 4, 5]}, **coop)
    talk.describe()
    talk.sync(made, 3, name="cooperative-sticky")
    talk.beat_classic(made, 3)
    talk.commit(made, 3, partition=5)
    talk.join_classic(made, owned={"t": [3, 4]}, **coop)
    talk.sync(made, 4, name="cooperative-sticky")
    talk.beat_classic(made, 4)
    talk.commit(made, 3, partition=4)
    talk.describe()
    talk.beat("b", 4)
    talk.beat("a", 3, owned={"t": [0, 1]})
    talk.beat("b", 4)
    talk.beat("b", -1)
    talk.beat("a", -1)
    talk.leave_classic((made, None))


def upgrade_and_downgrade(talk: Talk) -> None:
    """A classic group is taken over by a member of the other protocol, and given back when it leaves."""
    one = talk.join_classic()
    talk.lead(1, one, {one: [0, 1, 2, 3, 4, 5]})
    talk.describe_classic()
    talk.join("a", server_assignor="nonesuch")
    talk.join("a", subscribed_topic_names=None, subscribed_topic_regex="(")
    talk.describe_classic()
    talk.join("a")
    talk.describe()
    talk.commit(one, 1, version=8)
    talk.beat_classic(one, 1)
    talk.sync(one, 1)
    talk.join_classic(one)
    talk.sync(one, 2)
    talk.beat("a", 2)
    talk.describe()
    talk.beat("a", -1)
    talk.describe_classic()
    talk.describe()
    talk.beat_classic(one, 1)
    talk.beat_classic(one, 2)
    talk.commit(one, 2, version=8)
    talk.join("a")
    talk.describe()
    talk.beat_classic(one, 2)
    talk.leave_classic((one, None))
    talk.describe()
    talk.beat("a", 3)
    talk.beat("a", 4)
    talk.beat("a", -1)
    talk.describe()


def static_members_change_their_protocol(talk: Talk) -> None:
    """Static members are upgraded and downgraded one by one, each under a new id."""
    one = talk.join_classic(group_instance_id="one")
    talk.lead(1, one, {one: [0, 1, 2, 3, 4, 5]}, "one")
    talk.join("a", instance_id="one")
    talk.describe()
    talk.beat_classic(one, 1, "one")
    talk.beat("a", 1, instance_id="one")
    talk.join_classic(one, group_instance_id="one")
    two = talk.join_classic(group_instance_id="two")
    talk.describe()
    talk.beat("a", 1, instance_id="one", owned={"t": range(3)})
    talk.join_classic("nobody", group_instance_id="two")
    talk.join_classic(two, group_instance_id="two")
    talk.sync(two, 2, "two")
    talk.sync(two, 2, "one")
    talk.describe()
    again = talk.join_classic(group_instance_id="two")
    talk.beat_classic(two, 2, "two")
    talk.sync(again, 2, "two")
    talk.describe()
    back = talk.join_classic(group_instance_id="one")
    talk.describe_classic()
    talk.beat_classic(back, 2, "one")
    talk.beat_classic(again, 2, "two")
    talk.sync(back, 2, "one")
    talk.describe_classic()
    talk.leave_classic(("", "one"), ("", "two"), ("", "three"))
    talk.describe_classic()


def several_leave_at_once(talk: Talk) -> None:
    """An administrator removes members of both protocols together."""
    talk.join("a", instance_id="one")
    made = talk.join_classic(group_instance_id="two")
    talk.join("b", instance_id="three")
    other = talk.join_classic()
    talk.summary()
    talk.leave_classic(("", "one"), (made, "two"), ("x", "three"), ("", "four"))
    talk.summary()
    talk.beat("b", -2, instance_id="three")
    talk.summary()
    talk.leave_classic(("", "three"))
    talk.summary()
    talk.leave_classic((other, None))
    talk.summary()


MIXED_SCENES = (
    a_classic_member_joins,
    a_cooperative_classic_member,
    upgrade_and_downgrade,
    static_members_change_their_protocol,
    several_leave_at_once,
)
