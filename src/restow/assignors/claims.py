"""Find the previous owners of partitions, as far as the members' claims are reliable.

Each member claims partitions in some generation. Where claims collide, the highest generation wins; where two
share the highest, neither does, and the partition is *contested*: it has no owner, but in a cooperative group
its claimants must still revoke it before a third member gets it.
"""

from __future__ import annotations

from array import array
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from restow.assignors.group import NOBODY
from restow.assignors.rows import PartitionRow, numbers_of
from restow.assignors.user_data import NO_GENERATION, Claim
from restow.errors import InvalidGroup
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from restow.assignors.group import NumberedGroup
    from restow.model import Member

# A claimed partition as one integer: the topic's number above, the partition's below.
_SHIFT = 32
_PARTITIONS = 2**31


@dataclass(frozen=True)
class Claims:
    """The owner of each partition, if any, and the contested partitions."""

    owner: NDArray[np.int64]
    contested: dict[int, tuple[int, ...]]
    """Partitions claimed twice in their highest generation, with the claimants."""
    claimed: NDArray[np.int64]
    """The partition of every claim, in the members' order."""
    claimant: NDArray[np.int64]
    """The member of every claim."""
    said: tuple[Sequence[TopicPartition], ...]
    """The claims of each member, unchanged."""
    proper: bool
    """Whether all claims are instances of our own `TopicPartition`."""
    sound: bool
    """Whether all members claim rows of partitions that exist, and no partition twice."""

    @cached_property
    def had(self) -> NDArray[np.int64]:
        """The number of partitions that each member owned."""
        if self.sound:
            return np.array([len(claims) for claims in self.said])
        return np.bincount(self.owner + 1, minlength=len(self.said) + 1)[1:]

    def unchanged(self, owner: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which members have, under these owners, exactly what they claimed, in the same order."""
        members = len(self.said)
        if self.sound:
            changed = np.flatnonzero(owner != self.owner)
            untouched = np.ones(members + 1, dtype=np.bool_)  # -1, no owner, is the last index
            untouched[owner[changed]] = False
            untouched[self.owner[changed]] = False
            return untouched[:-1]
        holds = np.bincount(owner + 1, minlength=members + 1)[1:]
        keeps = np.bincount(self.claimant[owner[self.claimed] == self.claimant], minlength=members)
        said = np.array([len(claims) for claims in self.said])
        falls = (np.diff(self.claimed) <= 0) & (np.diff(self.claimant) == 0)
        muddled = np.bincount(self.claimant[1:][falls], minlength=members)
        same: NDArray[np.bool_] = (holds == keeps) & (holds == said) & (muddled == 0)
        if not self.proper:
            same[:] = False
        return same


def read_claims(group: NumberedGroup, claim_of: Callable[[Member], Claim]) -> Claims:
    """Return all members' claims, checked against the topics and against each other."""
    claims = [claim_of(member) for member in group.members]
    said = tuple(claim.owned for claim in claims)
    rows = all(isinstance(each, PartitionRow) or each == () for each in said)
    coded = _coded_rows(group, said) if rows else _coded(group, said)
    claimed, claimant = _existing(group, coded)
    owner = np.full(group.partition_count, NOBODY, dtype=np.int64)
    owner[claimed] = claimant
    contested: dict[int, tuple[int, ...]] = {}
    collide = np.count_nonzero(owner != NOBODY) < len(claimed)
    if collide:
        generations = [NO_GENERATION if c.generation is None else c.generation for c in claims]
        contested = _let_the_latest_win(owner, claimed, claimant, generations)
    sound = rows and not collide and len(claimed) == sum(map(len, said))
    return Claims(owner, contested, claimed, claimant, said, coded.proper, sound)


def _coded_rows(group: NumberedGroup, said: Sequence[Sequence[TopicPartition]]) -> _Coded:
    """Return the claims of rows, which are numbers already: mostly those of this group."""
    layouts = {id(each.layout): each.layout for each in said if isinstance(each, PartitionRow)}
    same = {key for key, layout in layouts.items() if layout.agrees_with(group.layout)}
    mine = [each for each in said if isinstance(each, PartitionRow)]
    claimant = _who([len(each) for each in said])
    if len(same) == len(layouts):
        return _Coded(numbers_of(mine), claimant, proper=True, numbered=True)
    base = {topic: number for number, topic in enumerate(group.topics)}
    number_of = {
        key: np.array([base.get(topic, NOBODY) for topic in layout.topics], dtype=np.int64)
        for key, layout in layouts.items()
    }
    codes = []
    for each in mine:
        topic, partition = each.layout.places(each.numbers)
        topic = number_of[id(each.layout)][topic]
        codes.append(np.where(topic == NOBODY, NOBODY, (topic << _SHIFT) + partition))
    coded = np.concatenate(codes)
    known = coded != NOBODY
    return _Coded(coded[known], claimant[known], proper=True)


def _coded(group: NumberedGroup, said: Sequence[Sequence[TopicPartition]]) -> _Coded:
    """Return each claim as one integer (topic and partition), with its member.

    The fast way takes proper partitions of known topics, which claims mostly are. It checks the type of the
    first and the last claim of each member only.
    """
    base = {topic: number << _SHIFT for number, topic in enumerate(group.topics)}
    with suppress(KeyError, TypeError, ValueError, OverflowError):
        if all(type(each[0]) is type(each[-1]) is TopicPartition for each in said if each):
            return _coded_by_columns(base, said)
    known = [
        [base[topic] + partition for topic, partition in _checked(member, claims) if topic in base]
        for member, claims in zip(group.members, said, strict=True)
    ]
    codes = np.array(list(chain.from_iterable(known)), dtype=np.int64)
    return _Coded(codes, _who([len(claims) for claims in known]), proper=False)


def _coded_by_columns(base: Mapping[str, int], said: Sequence[Sequence[TopicPartition]]) -> _Coded:
    """Do the same for proper partitions: each member's topics in one row, its partition numbers in another.

    Many members have the same topics in the same order, one partition of each; so rows of topics are looked
    up as a whole.
    """
    topics: list[Sequence[str]] = []
    partitions: list[Sequence[int]] = []
    for claims in said:
        if claims:
            row_of_topics, row_of_partitions = zip(*claims, strict=True)
            topics.append(row_of_topics)
            partitions.append(row_of_partitions)
    coded = {names: np.array([base[name] for name in names], dtype=np.int64) for names in set(topics)}
    numbers = np.frombuffer(array("q", list(chain.from_iterable(partitions))), dtype=np.int64)
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < _PARTITIONS:
        raise ValueError("a partition that cannot exist")
    codes = np.concatenate([coded[names] for names in topics]) + numbers if topics else numbers
    return _Coded(codes, _who([len(claims) for claims in said]), proper=True)


class _Coded(NamedTuple):
    codes: NDArray[np.int64]
    claimant: NDArray[np.int64]
    proper: bool
    numbered: bool = False
    """Whether the codes are the numbers of partitions of this group."""


def _who(lengths: list[int]) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(lengths)), lengths)


def _checked(member: Member, claims: Iterable[object]) -> Iterator[tuple[str, int]]:
    """Yield a member's claims one by one; raise an error for a non-partition, skip one that cannot exist."""
    wrong = f"member {member.id!r}: owned must hold (topic, partition) pairs, not"
    try:
        listed = list(claims)
    except TypeError:
        raise InvalidGroup(f"{wrong} {claims!r}") from None
    for claim in listed:
        match claim:
            case (str(topic), int() | np.integer() as partition) if not isinstance(partition, bool):
                if 0 <= partition < _PARTITIONS:
                    yield topic, int(partition)
            case _:
                raise InvalidGroup(f"{wrong} {claim!r}")


def _existing(group: NumberedGroup, coded: _Coded) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the claimed partitions that exist, by number, with their claimants."""
    codes, claimant = coded.codes, coded.claimant
    if coded.numbered:
        return codes, claimant
    topic = codes >> _SHIFT
    partition = codes - (topic << _SHIFT)
    exists = partition < group.counts[topic]
    if not exists.all():
        topic, partition, claimant = topic[exists], partition[exists], claimant[exists]
    return group.starts[topic] + partition, claimant


def _let_the_latest_win(
    owner: NDArray[np.int64],
    claimed: NDArray[np.int64],
    claimant: NDArray[np.int64],
    generations: list[int],
) -> dict[int, tuple[int, ...]]:
    """Let the highest generation win where claims collide; return the contested partitions."""
    rivals: dict[int, set[int]] = {}
    collides = np.bincount(claimed)[claimed] > 1
    for partition, member in zip(claimed[collides].tolist(), claimant[collides].tolist(), strict=True):
        rivals.setdefault(partition, set()).add(member)
    contested = {}
    for partition, members in sorted(rivals.items()):
        highest = max(generations[m] for m in members)
        rightful = tuple(sorted(m for m in members if generations[m] == highest))
        owner[partition] = rightful[0] if len(rightful) == 1 else NOBODY
        if len(rightful) > 1:
            contested[partition] = rightful
    return contested
