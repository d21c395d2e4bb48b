"""What members do while a group's target is not computed anew, for the comparison with Apache Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.apache.group_talk import Talk


def members_wait_for_a_target(talk: Talk) -> None:
    """Members that come after the first one get nothing; what one leaves is nobody's."""
    talk.join("a")
    talk.describe()
    talk.join("b")
    talk.beat("a", 2)
    talk.beat("b", 2)
    talk.beat("b", 3)
    talk.describe()
    talk.commit("a", 2)
    talk.commit("b", 2)
    talk.beat("a", -1)
    talk.beat("b", 2)
    talk.describe()
    talk.join("a")
    talk.describe()
    talk.beat("a", -1)
    talk.beat("b", -1)


def subscriptions_change_before_the_target(talk: Talk) -> None:
    """What a member no longer subscribes to is taken from it at once; what is new waits."""
    talk.join("a", subscribed_topic_names=["t", "u.one"])
    talk.beat("a", 2, subscribed_topic_names=["t", "u.one", "u.two"])
    talk.describe()
    talk.beat("a", 2, subscribed_topic_names=["u.one", "u.two"])
    talk.describe()
    talk.beat("a", 2, subscribed_topic_names=["u.two"], owned={"t": [0], "u.one": range(2)})
    talk.beat("a", 2, owned={"u.one": range(2)})
    talk.describe()
    talk.beat("a", 2, owned={})
    talk.describe()
    talk.beat("a", 2, subscribed_topic_names=["t"])
    talk.beat("a", 2, owned={})
    talk.describe()
    talk.beat("a", -1)


def one_has_given_up_already(talk: Talk) -> None:
    """A member says in one heartbeat that it subscribes to less, and owns less."""
    talk.join("a", subscribed_topic_names=["t", "u.one"])
    talk.beat("a", 2, subscribed_topic_names=["u.one"], owned={"u.one": range(2)})
    talk.describe()
    talk.beat("a", 2)
    talk.beat("a", 2, subscribed_topic_names=["t", "u.one"], owned={"u.one": range(2)})
    talk.describe()
    talk.beat("a", -1)


def static_members_wait(talk: Talk) -> None:
    """One that comes back under another id gets what it had, without a new target."""
    talk.join("a", instance_id="one")
    talk.join("b", instance_id="two")
    talk.beat("a", -2, instance_id="one")
    talk.join("c", instance_id="one")
    talk.describe()
    talk.beat("c", -2, instance_id="one")
    talk.join("d", instance_id="one", subscribed_topic_names=["u.one"])
    talk.describe()
    talk.beat("d", 2, instance_id="one")
    talk.beat("d", -1, instance_id="one")
    talk.beat("b", -1, instance_id="two")


def classic_members_wait(talk: Talk) -> None:
    """They are not asked to join again before there is a target for them."""
    talk.join("a")
    made = talk.join_classic()
    talk.sync(made, 2)
    talk.beat_classic(made, 2)
    talk.describe()
    talk.join_classic(made, topics=["u.one"])
    talk.sync(made, 2)
    talk.beat_classic(made, 2)
    talk.beat("a", -1)
    talk.describe_classic()
    talk.leave_classic((made, None))


def a_classic_group_is_taken_over(talk: Talk) -> None:
    """It has no target yet, so the first one is computed at once; a static member takes the group back."""
    one = talk.join_classic()
    talk.lead(1, one, {one: [0, 1, 2, 3, 4, 5]})
    talk.join("a", instance_id="two")
    talk.describe()
    talk.join("b")
    talk.beat("b", -1)
    talk.describe()
    back = talk.join_classic(group_instance_id="two")
    talk.describe_classic()
    talk.beat_classic(back, 2, "two")
    talk.leave_classic((one, None), ("", "two"))


LATE_SCENES = (
    members_wait_for_a_target,
    subscriptions_change_before_the_target,
    one_has_given_up_already,
    static_members_wait,
    classic_members_wait,
    a_classic_group_is_taken_over,
)
