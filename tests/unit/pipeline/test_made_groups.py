"""Groups that were made up for the lab: each depends on its number alone, and all that may happen does."""

from __future__ import annotations

from itertools import pairwise

from restow.pipeline.jobs.lab import OURS
from restow.pipeline.made_groups import made_group
from restow.pipeline.replay import replayed


def test_group_depends_on_its_number_alone() -> None:
    assert made_group(7, 10, 100) == made_group(7, 10, 100)
    assert made_group(7, 10, 100) != made_group(8, 10, 100)


def test_members_come_and_go_a_topic_grows_and_lag_builds_up() -> None:
    for number in range(20):
        rounds = made_group(number, 5, 20)["rounds"]
        ids = [{member["member"] for member in each["members"]} for each in rounds]
        assert all(ids), "a group never is empty"
        assert all(one != other for one, other in pairwise(ids))
        sizes = [sum(each["partitions"].values()) for each in rounds]
        assert (sizes[0], sizes[-1]) == (15, 20)
        assert sizes == sorted(sizes)
        lag = [each["lag_share"] for each in rounds]
        assert (lag[0], lag[-1]) == (0, 1)
        assert lag == sorted(lag)


def test_every_assignor_answers_for_made_groups() -> None:
    for number in range(5):
        found = {each["assignor"]: each for each in replayed(made_group(number, 5, 20), OURS)}
        assert {each["error"] for each in found.values()} == {None}
        eager, gradual = found["sticky"], found["cooperative-sticky"]
        assert gradual["replayed_without_owner_s"] < eager["replayed_without_owner_s"]
        assert found["lag-aware"]["most_lag"] <= found["sticky"]["most_lag"]


def test_partitions_that_a_topic_has_not_yet_are_not_assigned() -> None:
    row = made_group(1, 3, 8)
    row["rounds"] = row["rounds"][:1] * 2
    found = list(replayed(row, ("range",)))
    assert found[0]["replayed_without_owner_s"] == 6 * 3.0, "two partitions of four are yet to come"
