"""Small scenes of the demo. Every `$ restow …` line is really run, by the command line's own code.

A scene is a heading, a few sentences and commands. To tell more, append to `SCENES`.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import textwrap
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from restow.cli import run
from restow.cli.shared.frame import NOBODY_READS

if TYPE_CHECKING:
    from collections.abc import Callable

BOLD, GREEN, DIM, OFF = "\x1b[1m", "\x1b[1;32m", "\x1b[2m", "\x1b[0m"


def play_cluster() -> None:
    from demo_cluster import play as play_it  # a client and a cluster: only for those who watch this scene

    play_it()


def play_move() -> None:
    from demo_move import play as play_it

    play_it()


@dataclass(frozen=True, slots=True)
class Scene:
    """Sentences, commands and plays, in the order they are told; a command begins with `$ `."""

    name: str
    title: str
    steps: tuple[str | Callable[[], None], ...]


ORDERS = "restow place --topic orders --brokers 0-1:east,2-3:west,4-5:north"
GROUP = "restow groups assign --topics orders=12,payments=6"

SCENES = (
    Scene(
        "place",
        "A topic on three racks",
        (
            """Six brokers stand in three racks. Each partition gets three replicas, one in each rack, and
            every broker leads as many partitions as any other.""",
            f"$ {ORDERS} --partitions 6 --replication-factor 3 --start-index 0",
        ),
    ),
    Scene(
        "racks",
        "The same without looking at racks",
        (
            """Kafka's plain round robin is just as even, but it puts two replicas of a partition into one
            rack. The verdict says so.""",
            f"$ {ORDERS} --partitions 6 --replication-factor 3 --start-index 0 --disable-rack-aware",
        ),
    ),
    Scene(
        "expand",
        "More partitions",
        (
            """Saved as Kafka's own reassignment JSON, the topic can grow. Existing partitions stay where
            they are; only the new ones (+) are placed, as Kafka would.""",
            f"$ {ORDERS} --partitions 6 --replication-factor 3 --start-index 0 --format kafka > orders.json",
            f"$ {ORDERS} --current orders.json --to 9",
        ),
    ),
    Scene(
        "group",
        "A consumer group: range, then sticky",
        (
            """Five consumers share two topics. The range assignor deals consecutive partitions, topic by
            topic, so the first members get the odd one of every topic.""",
            f"$ {GROUP} --assignor range --members c1,c2,c3,c4,c5",
            "Sticky counts all topics together.",
            f"$ {GROUP} --assignor sticky --members c1,c2,c3,c4,c5",
        ),
    ),
    Scene(
        "rebalance",
        "A member joins, cooperatively, in two rounds; another leaves",
        (
            """Three members read everything. When c4 joins, cooperative-sticky first only takes from the
            others what is too much; they go on reading the rest without a stop.""",
            f"$ {GROUP} --members c1,c2,c3 --json > round1.json",
            f"$ {GROUP} --members c1,c2,c3,c4 --previous round1.json --save round2.json",
            "In the second round what was given up goes to c4. Nothing else moves.",
            f"$ {GROUP} --members c1,c2,c3,c4 --previous round2.json --save round3.json",
            "c1 leaves. Its partitions are free at once, so one round is enough; the others keep theirs.",
            f"$ {GROUP} --members c2,c3,c4 --previous round3.json",
        ),
    ),
    Scene(
        "cluster",
        "A cluster of our own, and a client that knows nothing of it",
        (
            """Three brokers in this process speak Kafka's protocol, replicate and elect leaders. kafka-python
            writes to a topic of six partitions on all of them; then a broker stops.""",
            play_cluster,
        ),
    ),
    Scene(
        "move",
        "A broker joins, and data moves to it under a throttle",
        (
            """A fourth broker joins three that hold 40 MB in two copies. The second copy of every partition
            goes to it at no more than 4 MB/s while a client goes on writing.""",
            play_move,
        ),
    ),
)


def colour(text: str, style: str) -> str:
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"{style}{text}{OFF}"


def tell(scene: Scene, number: int, total: int) -> None:
    print(colour(f"\n━━ {number}/{total}  {scene.title} ".ljust(76, "━"), BOLD))
    for step in scene.steps:
        if not isinstance(step, str):
            print(flush=True)
            step()
        elif step.startswith("$ "):
            play(step.removeprefix("$ "))
        else:
            print("\n" + textwrap.fill(" ".join(step.split()), 76))


def play(line: str, *, must_hold: bool = True) -> None:
    """Show a command and run it. `> FILE` at its end works as in a shell."""
    print("\n" + colour("$ " + wrapped(line), GREEN), flush=True)
    program, *arguments = shlex.split(line)
    if program != "restow":
        sys.exit(f"demo: only restow commands can be played, not {program!r}")
    if len(arguments) > 1 and arguments[-2] == ">":
        with Path(arguments[-1]).open("w", encoding="utf-8") as file, redirect_stdout(file):
            code = run(arguments[:-2])
    else:
        print()
        code = run(arguments)
    if code == NOBODY_READS:
        sys.exit(code)
    if code != 0 and must_hold:
        sys.exit(f"demo: `{line}` ended with exit code {code}")


def wrapped(line: str) -> str:
    """Return a long command on several lines, as one would type it."""
    return " \\\n      ".join(textwrap.wrap(line, 74, break_long_words=False, break_on_hyphens=False))


def chosen(wanted: list[str]) -> tuple[Scene, ...]:
    known = {scene.name for scene in SCENES}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"demo: no scene {unknown[0]!r}; there are {', '.join(scene.name for scene in SCENES)}")
    return tuple(scene for scene in SCENES if not wanted or scene.name in wanted)


def names() -> str:
    """List the scenes, one per line."""
    return "\n".join(f"{scene.name:<10} {scene.title}" for scene in SCENES)


def tell_all(wanted: list[str]) -> None:
    """Play these scenes, or all of them."""
    scenes = chosen(wanted)
    with tempfile.TemporaryDirectory(prefix="restow-demo-") as folder, chdir(folder):
        for number, scene in enumerate(scenes, start=1):
            tell(scene, number, len(scenes))
    print(colour("\nThat was a glance. `restow --help` and README.md have the rest.", DIM))
