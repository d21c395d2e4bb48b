"""Who held what before, as far as the members' own words can be believed.

Each member claims partitions in some generation. Where claims collide the highest generation is
right; where two share the highest, neither is, and the partition is *contested*: it has no owner, but
a cooperative group must still let go of it before a third member gets it.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from restow.assignors.group import NOBODY
from restow.assignors.user_data import NO_GENERATION, Claim
from restow.errors import InvalidGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
    claimed: NDArray[np.int64]
    """Every claim in the members' order: the partition,"""
    claimant: NDArray[np.int64]
    """and who claims it."""
    words: tuple[Sequence[TopicPartition], ...]
    """What each member said."""

    def unchanged(self, owner: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which members have, under these owners, exactly what they said they had, and said it in order."""
        members = len(self.words)
        holds = np.bincount(owner + 1, minlength=members + 1)[1:]
        keeps = np.bincount(self.claimant[owner[self.claimed] == self.claimant], minlength=members)
        said = np.array([len(words) for words in self.words])
        falls = (np.diff(self.claimed) <= 0) & (np.diff(self.claimant) == 0)
        muddled = np.bincount(self.claimant[1:][falls], minlength=members)
        same: NDArray[np.bool_] = (holds == keeps) & (holds == said) & (muddled == 0)
        return same


def read_claims(group: Group, claim_of: Callable[[Member], Claim]) -> Claims:
    """What every member held, checked against what exists and against each other."""
    claims = [claim_of(member) for member in group.members]
    words = tuple(claim.owned for claim in claims)
    claimed, claimant = _existing(group, *_coded(group, words))
    owner = np.full(group.partition_count, NOBODY, dtype=np.int64)
    owner[claimed] = claimant
    contested: dict[int, tuple[int, ...]] = {}
    if claimed.size and np.bincount(claimed).max() > 1:
        generations = [NO_GENERATION if c.generation is None else c.generation for c in claims]
        contested = _settle(owner, claimed, claimant, generations)
    return Claims(owner, contested, claimed, claimant, words)


def _coded(
    group: Group, words: Sequence[Sequence[TopicPartition]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each claim as one integer, topic and partition, with who makes it."""
    base = {topic: number << _SHIFT for number, topic in enumerate(group.topics)}
    try:
        flat: list[Any] = list(chain.from_iterable(chain.from_iterable(words)))
        topics, partitions = flat[::2], flat[1::2]
        codes = np.fromiter(map(base.__getitem__, topics), dtype=np.int64, count=len(topics))
        codes += np.fromiter(partitions, dtype=np.int64, count=len(topics))
        lengths = [len(said) for said in words]
    except (KeyError, TypeError, ValueError, OverflowError):
        # A topic that is gone or that nobody wants any more, or something that is no claim at all.
        kept = [
            [base[topic] + partition for topic, partition in _checked(member, said) if topic in base]
            for member, said in zip(group.members, words, strict=True)
        ]
        codes = np.array(list(chain.from_iterable(kept)), dtype=np.int64)
        lengths = [len(said) for said in kept]
    return codes, np.repeat(np.arange(len(words)), lengths)


def _checked(member: Member, said: Sequence[TopicPartition]) -> Iterator[tuple[str, int]]:
    """A member's claims one by one; those that cannot be partitions of anything are left out."""
    for claim in said:
        try:
            topic, partition = claim
            number = operator.index(partition)
        except (TypeError, ValueError):
            raise InvalidGroup(
                f"member {member.id!r}: owned must hold (topic, partition) pairs, not {claim!r}"
            ) from None
        if isinstance(topic, str) and 0 <= number < 2**31:
            yield topic, number


def _existing(
    group: Group, codes: NDArray[np.int64], claimant: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The claimed partitions that exist, by number, with who claims each."""
    if not codes.size:
        return codes, claimant
    topic = codes >> _SHIFT
    partition = codes - (topic << _SHIFT)
    exists = (topic >= 0) & (topic < len(group.topics))
    exists &= partition < group.counts[np.where(exists, topic, 0)]
    if not exists.all():
        topic, partition, claimant = topic[exists], partition[exists], claimant[exists]
    return group.starts[topic] + partition, claimant


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
