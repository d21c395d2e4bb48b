"""What plans can aim at, one file each."""

from restow.plan.goals.base import DEFAULT_BAND, Columns, Facts, Goal
from restow.plan.goals.disk import DISK
from restow.plan.goals.leader_bytes_in import LEADER_BYTES_IN
from restow.plan.goals.leaders import LEADERS
from restow.plan.goals.replicas import REPLICAS
from restow.plan.goals.resource import BYTES_IN_GOAL, BYTES_OUT_GOAL, resource_goal
from restow.plan.goals.topic_spread import TOPIC_LEADERS, TOPIC_REPLICAS, most_per_broker

GOALS = (DISK, BYTES_IN_GOAL, BYTES_OUT_GOAL, REPLICAS, LEADERS, LEADER_BYTES_IN)

__all__ = [
    "BYTES_IN_GOAL",
    "BYTES_OUT_GOAL",
    "DEFAULT_BAND",
    "DISK",
    "GOALS",
    "LEADERS",
    "LEADER_BYTES_IN",
    "REPLICAS",
    "TOPIC_LEADERS",
    "TOPIC_REPLICAS",
    "Columns",
    "Facts",
    "Goal",
    "most_per_broker",
    "resource_goal",
]
