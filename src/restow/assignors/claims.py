"""Who held what before, as far as the members' own words can be believed.

Each member claims partitions in some generation. Where claims collide the highest generation is
right; where two share the highest, neither is, and the partition is *contested*: it has no owner, but
a cooperative group must still let go of it before a third member gets it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from restow.assignors.group import NOBODY
from restow.assignors.user_data import NO_GENERATION, Claim
from restow.errors import InvalidGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from restow.assignors.group import Group
    from restow.model import Member, TopicPartition

# A claimed partition as one integer: the topic's number above, the partition's below.
_SHIFT = 40


@dataclass(frozen=True)
class Claims:
    """The owner of each partition, or nobody; and who contests what."""

    owner: NDArray[np.int64]
    contested: dict[int, tuple[int, ...]]
    """Partitions claimed twice in their highest generation, with the claimants."""


def read_claims(group: Group, claim_of: Callable[[Member], Claim]) -> Claims:
    """What every member held, checked against what exists and against each other."""
    claims = [claim_of(member) for member in group.members]
    base = {topic: number << _SHIFT for number, topic in enumerate(group.topics)}
    coded: list[int] = []
    lengths = []
    for member, claim in zip(group.members, claims, strict=True):
        before = len(coded)
        coded += _coded(member, claim.owned, base)
        lengths.append(len(coded) - before)
    claimed, claimant = _existing(group, coded, lengths)
    owner = np.full(group.partition_count, NOBODY, dtype=np.int64)
    owner[claimed] = claimant
    contested: dict[int, tuple[int, ...]] = {}
    if claimed.size and np.bincount(claimed).max() > 1:
        generations = [NO_GENERATION if c.generation is None else c.generation for c in claims]
        contested = _settle(owner, claimed, claimant, generations)
    return Claims(owner, contested)


def _coded(member: Member, owned: Sequence[TopicPartition], base: dict[str, int]) -> list[int]:
    try:
        return [base[topic] + partition for topic, partition in owned]
    except KeyError:  # a topic that is gone, or that nobody wants any more
        return [base[topic] + partition for topic, partition in owned if topic in base]
    except (TypeError, ValueError):
        raise InvalidGroup(
            f"member {member.id!r}: owned must hold (topic, partition) pairs, not {list(owned)[:3]!r}"
        ) from None


def _existing(
    group: Group, coded: list[int], lengths: list[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The claimed partitions that exist, by number, with who claims each."""
    if not coded:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    try:
        codes = np.fromiter(coded, dtype=np.int64, count=len(coded))
    except (TypeError, OverflowError):
        raise InvalidGroup("an owned partition is not a partition number: it must be an int32") from None
    claimant = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    topic = codes >> _SHIFT
    partition = codes - (topic << _SHIFT)
    exists = (topic >= 0) & (partition < group.counts[topic])
    if exists.all():
        return group.starts[topic] + partition, claimant
    return group.starts[topic[exists]] + partition[exists], claimant[exists]


def _settle(
    owner: NDArray[np.int64],
    claimed: NDArray[np.int64],
    claimant: NDArray[np.int64],
    generations: list[int],
) -> dict[int, tuple[int, ...]]:
    """Let the highest generation win where claims collide; return what stays contested."""
    rivals: dict[int, set[int]] = {}
    collides = np.bincount(claimed)[claimed] > 1
    for partition, member in zip(claimed[collides].tolist(), claimant[collides].tolist(), strict=True):
        rivals.setdefault(partition, set()).add(member)
    contested = {}
    for partition, members in rivals.items():
        highest = max(generations[m] for m in members)
        rightful = tuple(sorted(m for m in members if generations[m] == highest))
        owner[partition] = rightful[0] if len(rightful) == 1 else NOBODY
        if len(rightful) > 1:
            contested[partition] = rightful
    return contested
