"""Groups that were made up, each from its number: what may happen to a group, for the assignor lab.

Members join, leave and restart, one topic gets more partitions, and lag builds up from change to change, most
of it on a few partitions. Members are in three racks, and replicas in two of them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from restow.runtime.chance import SeededChance

if TYPE_CHECKING:
    from restow.runtime.chance import Chance

_AT = datetime(2026, 1, 1, tzinfo=UTC)
_ROUNDS = 8
_RACKS = 3
_HOT_EVERY = 10
_MOST_LAG, _MOST_HOT_LAG = 1_000, 100_000


def made_group(number: int, members: int, partitions: int) -> dict[str, Any]:
    """Return the row of a group with about so many members and so many partitions in two topics."""
    chance = SeededChance(f"group {number}")
    sizes = {f"orders-{number}": partitions // 2, f"payments-{number}": partitions - partitions // 2}
    rounds = _rounds(chance, members, sizes)
    now = rounds[-1]["members"]
    held = [
        {"topic": topic, "partition": each, "member": now[at % len(now)]["member"], "committed": 0}
        for topic, size in sizes.items()
        for at, each in enumerate(range(size))
    ]
    topics = [
        {
            "topic": topic,
            "partition": list(range(size)),
            "latest": [_lag(chance) for _ in range(size)],
            "racks": [[_rack(each), _rack(each + 1)] for each in range(size)],
        }
        for topic, size in sizes.items()
    ]
    about = {"cluster": "made up", "group": f"group-{number:05}", "at": _AT, "assignor": None}
    return about | {"members": now, "held": held, "topics": topics, "rounds": rounds}


def _rounds(chance: Chance, members: int, sizes: dict[str, int]) -> list[dict[str, Any]]:
    """Return the group after each change. The first topic begins with half of its partitions."""
    first = next(iter(sizes))
    present = list(range(members))
    grows = 1 + chance.randrange(_ROUNDS - 1)
    rounds = []
    for turn in range(_ROUNDS):
        if turn:
            _change(chance, present, members + turn)
        small = sizes | {first: max(1, sizes[first] // 2)}
        rounds.append(
            {
                "members": [_member(each, tuple(sizes)) for each in sorted(present)],
                "partitions": sizes if turn >= grows else small,
                "lag_share": turn / (_ROUNDS - 1),
            }
        )
    return rounds


def _change(chance: Chance, present: list[int], fresh: int) -> None:
    """Let a member join, leave or restart, which is to come back under another id."""
    kind = chance.randrange(3)
    if kind and len(present) > 1:
        present.pop(chance.randrange(len(present)))
    if kind != 1 or not present:
        present.append(fresh)


def _member(number: int, topics: tuple[str, ...]) -> dict[str, Any]:
    return {"member": f"member-{number:03}", "rack": _rack(number), "subscription": list(topics)}


def _rack(number: int) -> str:
    return f"rack-{number % _RACKS}"


def _lag(chance: Chance) -> int:
    return chance.randrange(_MOST_LAG if chance.randrange(_HOT_EVERY) else _MOST_HOT_LAG)
