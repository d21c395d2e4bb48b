"""`restow place`: place a topic's replicas on brokers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from restow._frozen import frozen
from restow.cli.place.options import (
    ExistingTopicOptions,
    Format,
    NewTopicOptions,
    PlacementOutput,
    RackModeFlag,
    RackOptions,
)
from restow.cli.shared.frame import Answer
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restow.cli.place.request import PlaceRequest
    from restow.model import Broker
    from restow.placement import Evaluation

ABOUT = "Place a topic's replicas on brokers."
HELP = """Decide on which brokers a topic's replicas go, as Kafka does, and judge the outcome.

A topic is cut into partitions, and each partition is kept on several brokers: its replicas. How many is
the replication factor. The first replica is the preferred leader: producers and consumers talk to it;
the others, its followers, copy from it and take over when it dies. A good placement gives every broker
as many replicas and as many leaders as any other, and never puts all replicas of a partition behind one
switch or into one zone: that is what racks are for.

Kafka goes around the broker list for the leaders and puts the followers at a distance that grows by one
with every round, so that the followers of one broker's partitions are spread over all others. With racks
it takes the brokers from each rack in turn, and no rack gets a second replica of a partition while
another has none. It begins at a random broker; give a start index or a seed to repeat an answer.

\b
Examples:
  A new topic on six brokers:
  $ restow place --brokers 0-5 --partitions 12 --replication-factor 3
\b
  The same in three racks, always from the first broker:
  $ restow place --brokers 0-1:a,2-3:b,4-5:c --partitions 12 \\
        --replication-factor 3 --start-index 0
\b
  As the JSON that kafka-reassign-partitions takes:
  $ restow place --brokers 0-5 --partitions 12 --replication-factor 3 \\
        --topic orders --format kafka > orders.json
\b
  More partitions for it; those that exist stay where they are:
  $ restow place --current orders.json --to 18 --brokers 0-5
\b
  How good is an assignment by hand (partitions 0 and 1, leaders 0 and 1)?
  $ restow place --by-hand 0:1:2,1:2:0 --brokers 0:a,1:b,2:b
\b
  From a file, whose keys are the flags' names with underscores:
  $ restow place topic.yaml

\b
In the picture ● is the leader, ○ a follower, · nothing. max/mean says how much
more the fullest broker has than the average: 1.00 is perfectly even.
"""


@frozen
class PlaceReport:
    """An assignment and its evaluation."""

    topic: str | None
    brokers: tuple[Broker, ...]
    assignment: Mapping[int, Sequence[int]]
    evaluation: Evaluation
    new: frozenset[int] = frozenset()
    """Partitions that this command added."""
    seed: int | None = None

    def document(self) -> dict[str, object]:
        """Return the document that `--json` prints."""
        verdict = self.evaluation
        spread = verdict.rack_spread
        return {
            "topic": self.topic,
            "seed": self.seed,
            "partitions": [
                {"partition": partition, "replicas": list(replicas), "new": partition in self.new}
                for partition, replicas in self.assignment.items()
            ],
            "brokers": [asdict(load) for load in verdict.loads],
            "evaluation": {
                "replicas_max_over_mean": verdict.replicas_max_over_mean,
                "leaders_max_over_mean": verdict.leaders_max_over_mean,
                "rack_spread": None
                if spread is None
                else {
                    "racks": spread.racks,
                    "fewest": spread.fewest,
                    "most": spread.most,
                    "partitions_short": spread.partitions_short,
                },
            },
        }

    def kafka_document(self) -> dict[str, object]:
        """Return the JSON that kafka-reassign-partitions reads."""
        from restow.model import TopicPartition
        from restow.plan.files.kafka_json import reassignment_document

        return reassignment_document(
            (TopicPartition(self.topic or "", partition), replicas, ())
            for partition, replicas in self.assignment.items()
        )


def place_topic(request: PlaceRequest) -> PlaceReport:
    """Place a new topic, expand an existing one, or judge an assignment, as the request says."""
    from restow.model import Broker
    from restow.placement import evaluate

    seed: int | None = None
    new: frozenset[int] = frozenset()
    assignment: Mapping[int, Sequence[int]]
    if request.current is not None:
        assignment, new = _with_current(request, request.current)
    elif request.by_hand is not None:
        assignment = _by_hand(request, request.by_hand)
    else:
        assignment, seed = _placed(request)
    brokers = request.broker_list() if request.brokers is not None else ()
    known = {broker.id for broker in brokers}
    named = {replica for replicas in assignment.values() for replica in replicas}
    brokers += tuple(Broker(id=id_) for id_ in sorted(named - known))
    return PlaceReport(
        topic=request.topic,
        brokers=brokers,
        assignment=assignment,
        evaluation=evaluate(assignment, brokers),
        new=new,
        seed=seed,
    )


def _placed(request: PlaceRequest) -> tuple[dict[int, Sequence[int]], int | None]:
    """Place a new topic. Without a start index the report names the seed, to repeat the draw."""
    import numpy as np

    from restow.placement import place

    _refuse(request, "to", "names partitions of a topic that is there: give --current as well")
    brokers = request.broker_list()
    if request.partitions is None or request.replication_factor is None:
        missing = "--partitions" if request.partitions is None else "--replication-factor"
        raise InvalidInput(
            f"{missing} is missing: a new topic needs --brokers, --partitions and --replication-factor"
        )
    seed = request.seed
    if request.start_index is not None:
        _refuse(request, "seed", "draws a start and --start-index gives one: use one of the two")
    elif seed is None:
        seed = int(np.random.default_rng().integers(2**31))
    first = request.start_partition or 0
    placed = place(
        brokers,
        request.partitions,
        request.replication_factor,
        start_index=request.start_index,
        start_partition=first,
        rng=None if seed is None else np.random.default_rng(seed),
        rack_mode=request.rack_mode or RackModeFlag.ENFORCED,
    )
    return dict(enumerate(placed.tolist(), start=first)), seed


def _by_hand(request: PlaceRequest, text: str) -> dict[int, list[int]]:
    from restow.placement import parse_by_hand

    why = "is not used with --by-hand, which says where everything goes"
    for name in ("partitions", "replication_factor", "start_index", "start_partition", "seed", "to"):
        _refuse(request, name, why)
    return parse_by_hand(text, request.broker_list() if request.brokers is not None else None)


def _with_current(
    request: PlaceRequest, current: Mapping[int, tuple[int, ...]]
) -> tuple[dict[int, Sequence[int]], frozenset[int]]:
    """Judge an existing topic as it is, or with partitions added."""
    from restow.placement import create_partitions

    why = "is not used with --current: what is added follows what is there"
    for name in ("partitions", "replication_factor", "start_index", "start_partition", "seed"):
        _refuse(request, name, why)
    if request.to is None:
        _refuse(
            request, "by_hand", "with --current lists all partitions the topic is to have: give --to as well"
        )
        return dict(sorted(current.items())), frozenset()
    brokers = sorted(request.broker_list(), key=lambda broker: broker.id)
    mode = request.rack_mode or RackModeFlag.ENFORCED
    added = create_partitions(current, brokers, request.to, by_hand=request.by_hand, rack_mode=mode)
    return dict(sorted({**current, **added}.items())), frozenset(added)


def _refuse(request: PlaceRequest, name: str, why: str) -> None:
    if getattr(request, name) is not None:
        raise InvalidInput(f"--{name.replace('_', '-')} {why}")


def command(
    *,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="The topic as JSON or YAML; - reads standard input.")
    ] = None,
    new: NewTopicOptions,
    racks: RackOptions,
    existing: ExistingTopicOptions,
    output: PlacementOutput,
) -> Answer:
    from restow.cli.place.request import PlaceRequest, place_request
    from restow.cli.place.view import draw_placement

    flags = PlaceRequest(
        **vars(new),
        racks=racks.racks,
        rack_mode=racks.mode,
        topic=output.topic,
        by_hand=existing.by_hand,
        to=existing.to,
    )
    request = place_request(file, flags, existing.current)
    if output.form is Format.KAFKA and request.topic is None:
        raise InvalidInput("--format kafka needs the topic's name: give --topic")
    report = place_topic(request)
    return Answer(
        document=report.kafka_document if output.form is Format.KAFKA else report.document,
        draw=lambda console: draw_placement(console, report, output.rows),
        as_json=output.as_json or output.form is not Format.TABLE,
    )
