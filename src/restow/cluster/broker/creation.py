"""Topic creation: on request, or automatically when a client uses an unknown topic."""

from __future__ import annotations

import logging
from base64 import urlsafe_b64decode
from dataclasses import field
from typing import TYPE_CHECKING
from uuid import UUID

from restow._frozen import frozen
from restow.cluster.broker.cordons import without_cordoned
from restow.cluster.broker.metadata import GROUP_OFFSETS_TOPIC, INTERNAL_TOPICS, TRANSACTION_STATE_TOPIC
from restow.cluster.broker.topic_rules import FROM_DEFAULT, TopicRefused, check_new_name, new_assignment
from restow.cluster.config.changes import check_topic
from restow.cluster.config.table import InvalidConfig
from restow.cluster.controller import ControllerError, create_topic, random_topic_id
from restow.cluster.store import StoreError
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restow.cluster.broker.metadata import MetadataCache
    from restow.cluster.config.configs import BrokerConfigs
    from restow.cluster.store import Store
    from restow.cluster.tasks import Tasks
    from restow.model import Broker
    from restow.runtime.chance import Chance
    from restow.runtime.clock import Clock

log = logging.getLogger(__name__)

_AUTO_BURST = 100
_AUTO_PER_S = 10.0
_MOST_COMPLAINTS = 1_000


@frozen
class RequestedTopic:
    """A requested topic: counts (-1 for the broker's default) or manual replicas, and configs."""

    name: str
    partitions: int = FROM_DEFAULT
    replication_factor: int = FROM_DEFAULT
    by_hand: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str | None] = field(default_factory=dict)


@frozen
class PlannedTopic:
    """A checked topic, ready to be created."""

    name: str
    topic_id: str
    assignment: Mapping[int, tuple[int, ...]]
    configs: Mapping[str, str]

    @property
    def uuid(self) -> UUID:
        return UUID(bytes=urlsafe_b64decode(f"{self.topic_id}=="))


class TopicCreation:
    """Plans and writes new topics. The controller does the rest."""

    def __init__(
        self,
        store: Store,
        metadata: MetadataCache,
        tasks: Tasks,
        chance: Chance,
        configs: BrokerConfigs,
        clock: Clock,
    ) -> None:
        self._store = store
        self._metadata = metadata
        self._tasks = tasks
        self._chance = chance
        self._configs = configs
        self._under_way: set[str] = set()
        self._complaints: set[tuple[str, str]] = set()
        self._clock = clock
        self._allowance = float(_AUTO_BURST)
        self._allowed_s = clock.monotonic_s()

    async def plan(self, new: RequestedTopic) -> PlannedTopic:
        """Place the replicas, not on cordoned brokers unless assigned manually. Raises TopicRefused."""
        brokers = self._metadata.placement_brokers()
        if new.by_hand is None:
            brokers = await without_cordoned(self._store, brokers)
        return self._plan(new, brokers)

    def _plan(self, new: RequestedTopic, brokers: Sequence[Broker]) -> PlannedTopic:
        check_new_name(new.name, self._metadata.topics)
        counted = new.partitions != FROM_DEFAULT or new.replication_factor != FROM_DEFAULT
        if new.by_hand is not None and counted:
            raise TopicRefused(
                ErrorCode.INVALID_REQUEST,
                "Replicas were given by hand and counted as well; give either those or the counts.",
            )
        default = self._configs.integer
        return PlannedTopic(
            name=new.name,
            topic_id=random_topic_id(self._chance),
            assignment=new_assignment(
                brokers,
                partitions=default("num.partitions") if new.partitions == FROM_DEFAULT else new.partitions,
                replication_factor=default("default.replication.factor")
                if new.replication_factor == FROM_DEFAULT
                else new.replication_factor,
                by_hand=new.by_hand,
                chance=self._chance,
            ),
            configs=_checked(new.configs),
        )

    async def create(self, planned: PlannedTopic) -> None:
        """Write the topic. Raises TopicRefused if the topic exists or the store cannot be reached."""
        try:
            await create_topic(
                self._store, planned.name, planned.assignment, planned.configs, planned.topic_id
            )
        except ControllerError as error:
            raise TopicRefused(error.code, f"{error}.") from error
        except StoreError as error:
            raise TopicRefused(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error

    def create_in_passing(self, name: str) -> bool:
        """Start to create a topic that a client uses, if allowed. Return whether it will exist.

        A rate limit holds; a refused client asks again.
        """
        if name == GROUP_OFFSETS_TOPIC:
            new = self._internal(name, "offsets.topic", {"compression.type": "producer"})
        elif name == TRANSACTION_STATE_TOPIC:
            least = self._configs.integer("transaction.state.log.min.isr")
            own = {"compression.type": "uncompressed", "unclean.leader.election.enable": "false"}
            new = self._internal(name, "transaction.state.log", own | {"min.insync.replicas": str(least)})
        elif self._configs.value("auto.create.topics.enable"):
            new = RequestedTopic(name=name)
        else:
            return False
        if name not in self._under_way:
            if name not in INTERNAL_TOPICS and not self._is_allowed_one_more():
                return False
            try:
                self._plan(new, self._metadata.placement_brokers())
            except TopicRefused as refused:
                self._complain(name, refused)
                return False
            self._under_way.add(name)
            self._tasks.start(self._create_and_forget(new), f"creation of {name}")
        return True

    def _internal(self, name: str, prefix: str, configs: dict[str, str]) -> RequestedTopic:
        """Return an internal topic, whose size and segments are configs of the broker."""
        segment_bytes = self._configs.integer(f"{prefix}.segment.bytes")
        configs |= {"cleanup.policy": "compact", "segment.bytes": str(segment_bytes)}
        return RequestedTopic(
            name=name,
            partitions=self._configs.integer(f"{prefix}.num.partitions"),
            replication_factor=self._configs.integer(f"{prefix}.replication.factor"),
            configs=dict(sorted(configs.items())),
        )

    def _is_allowed_one_more(self) -> bool:
        now_s = self._clock.monotonic_s()
        self._allowance = min(self._allowance + (now_s - self._allowed_s) * _AUTO_PER_S, _AUTO_BURST)
        self._allowed_s = now_s
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True

    async def _create_and_forget(self, new: RequestedTopic) -> None:
        try:
            await self.create(await self.plan(new))
        except TopicRefused as refused:
            if refused.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                self._complain(new.name, refused)
        except StoreError as error:
            log.warning("topic %s cannot be created: %s", new.name, error)
        finally:
            self._under_way.discard(new.name)

    def _complain(self, name: str, refused: TopicRefused) -> None:
        """Log once per topic, because clients ask again and again."""
        if (name, str(refused)) not in self._complaints:
            if len(self._complaints) >= _MOST_COMPLAINTS:
                self._complaints.clear()
            self._complaints.add((name, str(refused)))
            log.warning("topic %s cannot be created: %s", name, refused)


def _checked(configs: Mapping[str, str | None]) -> Mapping[str, str]:
    """Check a new topic's configs. Raises TopicRefused."""
    try:
        return check_topic(configs)
    except InvalidConfig as error:
        raise TopicRefused(error.code, f"{error}.") from error
