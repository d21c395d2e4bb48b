"""One run of a broker, from its registration until it stops, is killed or loses its session."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from restow.cluster.broker.controller_requests import ControllerRequests
from restow.cluster.broker.cordons import CORDONED_LOG_DIRS, check_cordoned, cordoned_dirs
from restow.cluster.broker.creation import TopicCreation
from restow.cluster.broker.entrance import Entrance
from restow.cluster.broker.group_topics import GroupTopics
from restow.cluster.broker.isr_requests import IsrRequests
from restow.cluster.broker.metadata import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, MetadataCache
from restow.cluster.broker.offsets_journal import ReplicatedJournal
from restow.cluster.broker.producer_ids import ProducerIds
from restow.cluster.broker.registration import prepare_store, register
from restow.cluster.broker.services import Services
from restow.cluster.broker.settings import (
    controller_config,
    group_config,
    transaction_config,
)
from restow.cluster.broker.strays import remove_strays
from restow.cluster.broker.txn_markers import LeaderMarkers, MarkerWriter
from restow.cluster.broker.verification import Verifier
from restow.cluster.config.configs import BrokerConfigs
from restow.cluster.config.store import ConfigStore
from restow.cluster.controller import Controller, random_topic_id
from restow.cluster.groups import GroupCoordinator, partition_of_group
from restow.cluster.log import LogManager, MetaProperties
from restow.cluster.net.links import WireChannel, WireLeader
from restow.cluster.quotas import ClientQuotas, QuotaStore, ReplicationQuotas
from restow.cluster.replication import ReplicaManager, Throttles
from restow.cluster.replication.isr import StoreIsrWriter
from restow.cluster.replication.log_dir_moves import LogDirMoves
from restow.cluster.security.authorizer import AclStore
from restow.cluster.security.users import ScramUsers
from restow.cluster.store import SessionExpired, StoreError
from restow.cluster.store.znodes import BrokerRegistration, LogDirEvent
from restow.cluster.tasks import Tasks
from restow.cluster.transactions import TransactionCoordinator
from restow.wire.messages import ControlledShutdownRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.cluster.broker.broker import BrokerOptions, BrokerRuntime
    from restow.cluster.security.broker_doors import Doors
    from restow.cluster.store import Store
    from restow.model import TopicPartition

log = logging.getLogger(__name__)

_FIRST_METADATA_S = 30.0
_LOOK_AT_LOGS_EVERY_S = 1.0
_FAREWELL_TRIES = 3
_FAREWELL_PAUSE_S = 1.0
_TRANSACTION_WRITE_MS = 30_000


class Life:
    """All parts of a running broker. Call `begin` once, then `end` or `drop` once."""

    services: Services

    def __init__(
        self,
        options: BrokerOptions,
        world: BrokerRuntime,
        store: Store,
        doors: Doors,
        on_ruined: Callable[[], None],
    ) -> None:
        """`on_ruined` is called when the last log dir has failed."""
        self._options = options
        self._world = world
        self._store = store
        self.entrance = Entrance(doors, world, store, options.broker_id)
        self.is_over = False
        """Whether the store session was lost."""
        self._on_ruined = on_ruined
        self._tasks = Tasks()
        self._controller_requests = ControllerRequests(store)
        self._control = self.entrance.peers("control")
        self._fetch = self.entrance.peers("fetch")
        self._transacting = self.entrance.peers("transactions")
        self._isr = self.entrance.peers("isr")
        self._has_services = False
        self._registered: BrokerRegistration | None = None

    async def begin(self) -> None:
        """Start all parts. Returns when the controller has sent this broker the metadata."""
        cluster_id = await prepare_store(self._store, self._world.chance)
        self.services = services = self._put_together(cluster_id, BrokerConfigs(self._options.start_configs))
        self._has_services = True
        check_cordoned(services.configs.value(CORDONED_LOG_DIRS), self._options.log_dirs)
        await services.config_store.start()
        if services.acls is not None:
            await services.acls.start()
        services.quotas.refresh()
        services.logs.start()
        await remove_strays(self._store, services.logs, services.broker_id)
        services.replicas.start()
        services.groups.start()
        services.transactions.start()
        self._tasks.start(self._keep_logs(), "log keeper")
        self._tasks.start(services.moves.run(), "moves between log dirs")
        await self.entrance.open(services)
        self._registered = self._registration()
        self._controller_requests.broker_epoch = await register(
            self._store,
            self._options.broker_id,
            self._registered,
            services.clock,
            patience_s=self._options.registration_patience_s,
        )
        await services.controller.start()
        metadata = services.metadata
        known = await metadata.until(lambda: services.broker_id in metadata.brokers, _FIRST_METADATA_S)
        if not known:
            log.warning("broker %d has no metadata from a controller yet", services.broker_id)

    def require_session(self) -> None:
        """Raise SessionExpired if the session was lost meanwhile."""
        if self.is_over:
            raise SessionExpired("the session with the store was lost while the broker started")

    async def end(self, *, hand_over: bool = True) -> None:
        """Stop in order; with `hand_over` the controller moves leaders away first."""
        if hand_over:
            await self._take_leave()
        services = self.services
        await self.entrance.close()
        await services.groups.close()
        await services.transactions.close()
        await services.replicas.stop()
        await services.controller.stop()
        await self._close_links()
        services.logs.close()
        await self._store.close()

    async def drop(self) -> None:
        """Drop everything at once. Ephemeral znodes go with the session; files stay as they are.

        An unreachable store takes a while to close a session, so this waits for it last.
        """
        leaving = asyncio.create_task(self._store.close())
        await self.entrance.close()
        if self._has_services:
            services = self.services
            await services.controller.stop()
            await services.groups.close()
            await services.transactions.close()
            await services.replicas.stop()
        await self._close_links()
        if self._has_services:
            self.services.logs.release()
        await leaving

    async def _close_links(self) -> None:
        self._control.close()
        self._fetch.close()
        self._transacting.close()
        self._isr.close()
        await self._tasks.close()

    # Construction

    def _put_together(self, cluster_id: str, configs: BrokerConfigs) -> Services:
        options, clock, chance, store = self._options, self._world.clock, self._world.chance, self._store
        metadata = MetadataCache(cluster_id, clock)
        logs = self._new_logs(cluster_id, configs)
        quotas = ReplicationQuotas(options.broker_id, configs, clock)
        controller = self._new_controller(configs)
        requests = self._controller_requests
        directly = StoreIsrWriter(store, clock, self._tasks, lambda: requests.controller_epoch)
        replicas = ReplicaManager(
            options.broker_id,
            logs,
            clock,
            IsrRequests(options.broker_id, requests, self._isr, controller, logs, directly, self._tasks),
            lambda leader: WireLeader(self._fetch, leader),
            min_insync_replicas=configs.min_insync_replicas,
            config=configs.replication(),
            on_leadership=self._leadership_changed,
            is_known=lambda partition: metadata.partition(partition) is not None,
            throttles=Throttles(quotas.leader, quotas.follower),
            racks=lambda: {each.node_id: each.rack for each in metadata.brokers.values()},
        )
        offsets_partitions = configs.integer("offsets.topic.num.partitions")
        groups = GroupCoordinator(
            clock=clock,
            partition_for=lambda group: partition_of_group(
                group, metadata.partition_count(GROUP_OFFSETS_TOPIC) or offsets_partitions
            ),
            journal=ReplicatedJournal(GROUP_OFFSETS_TOPIC, replicas, clock),
            config=group_config(configs),
            make_id=lambda: str(chance.uuid()),
            topics=GroupTopics(metadata, replicas),
        )
        producer_ids, acls = ProducerIds(options.broker_id, store), self.entrance.doors.acls
        client_quotas = ClientQuotas(configs, clock)
        quota_store = QuotaStore(store, client_quotas)
        config_store = ConfigStore(
            options.broker_id, configs, store, self._tasks, self._config_changed, quota_store
        )
        transactions, markers, verifier = self._transactions(
            metadata, configs, replicas, groups, producer_ids
        )
        return Services(
            broker_id=options.broker_id,
            clock=clock,
            store=store,
            metadata=metadata,
            configs=configs,
            config_store=config_store,
            logs=logs,
            replicas=replicas,
            quotas=quotas,
            client_quotas=client_quotas,
            quota_store=quota_store,
            moves=LogDirMoves(replicas, clock, quotas.log_dirs),
            groups=groups,
            transactions=transactions,
            markers=markers,
            verifier=verifier,
            controller=controller,
            creation=TopicCreation(store, metadata, self._tasks, chance, configs, clock),
            controller_requests=requests,
            producer_ids=producer_ids,
            users=ScramUsers(config_store, chance),
            acls=None if acls is None else AclStore(acls.rules(), store, self._tasks),
            tasks=self._tasks,
        )

    def _new_logs(self, cluster_id: str, configs: BrokerConfigs) -> LogManager:
        options = self._options
        return LogManager(
            self._world.disk,
            options.log_dirs,
            MetaProperties(cluster_id, options.broker_id),
            config_of=configs.log_config,
            now_ms=self._world.clock.now_ms,
            on_directory_failure=self._directory_failed,
            cleaner_backoff_ms=lambda: configs.integer("log.cleaner.backoff.ms"),
            cordoned=self._cordoned_dirs,
        )

    def _new_controller(self, configs: BrokerConfigs) -> Controller:
        return Controller(
            self._options.broker_id,
            self._store,
            self._world.clock,
            WireChannel(self._control),
            controller_config(configs),
            new_topic_id=partial(random_topic_id, self._world.chance),
        )

    def _transactions(
        self,
        metadata: MetadataCache,
        configs: BrokerConfigs,
        replicas: ReplicaManager,
        groups: GroupCoordinator,
        producer_ids: ProducerIds,
    ) -> tuple[TransactionCoordinator, MarkerWriter, Verifier]:
        broker_id, clock, peers = self._options.broker_id, self._world.clock, self._transacting
        markers = MarkerWriter(replicas, groups, clock)
        partitions = configs.integer("transaction.state.log.num.partitions")
        journal = ReplicatedJournal(
            TRANSACTION_STATE_TOPIC, replicas, clock, timeout_ms=_TRANSACTION_WRITE_MS
        )
        transactions = TransactionCoordinator(
            clock=clock,
            partition_for=lambda transactional_id: partition_of_group(
                transactional_id, metadata.partition_count(TRANSACTION_STATE_TOPIC) or partitions
            ),
            journal=journal,
            config=transaction_config(configs),
            new_producer_id=producer_ids.take,
            markers=LeaderMarkers(broker_id, metadata, markers, peers),
            tasks=self._tasks,
        )
        verifier = Verifier(
            broker_id,
            metadata,
            replicas,
            transactions,
            peers,
            lambda: bool(configs.value("transaction.partition.verification.enable")),
        )
        return transactions, markers, verifier

    def _registration(self) -> BrokerRegistration:
        return BrokerRegistration(
            endpoints=self.entrance.endpoints,
            timestamp_ms=self._world.clock.now_ms(),
            rack=self._options.rack,
            cordoned=self._cordoned_dirs() >= set(self._options.log_dirs),
        )

    def _cordoned_dirs(self) -> frozenset[str]:
        """Return the log dirs that get no new replicas."""
        return cordoned_dirs(self.services.configs.value(CORDONED_LOG_DIRS), self._options.log_dirs)

    async def _register_anew(self) -> None:
        """Update the registration, which says whether this broker takes new replicas."""
        registered = self._registered
        if registered is not None and (now := self._registration()).cordoned != registered.cordoned:
            self._registered = now = replace(registered, cordoned=now.cordoned)
            await self._store.set(BrokerRegistration.path(self._options.broker_id), now.encode())

    async def _keep_logs(self) -> None:
        """Flush, expire, compact and remove logs in small steps. Only logs that are due are touched."""
        logs, clock = self.services.logs, self._world.clock
        while True:
            due_ms = logs.next_due_ms
            if due_ms is not None and due_ms <= clock.now_ms():
                for _ in logs.tend():
                    await clock.sleep(0)
            await clock.sleep(_LOOK_AT_LOGS_EVERY_S)

    # Callbacks

    def _leadership_changed(
        self, led: tuple[TopicPartition, ...], resigned: tuple[TopicPartition, ...]
    ) -> None:
        """Load or unload the groups and transactions of partitions whose leader changed."""
        groups, transactions = self.services.groups, self.services.transactions
        for partition in resigned:
            if partition.topic == GROUP_OFFSETS_TOPIC:
                groups.unload(partition.partition)
            elif partition.topic == TRANSACTION_STATE_TOPIC:
                transactions.unload(partition.partition)
        for partition in led:
            if partition.topic == GROUP_OFFSETS_TOPIC:
                self._tasks.start(groups.load(partition.partition), f"groups of {partition}")
            elif partition.topic == TRANSACTION_STATE_TOPIC:
                hosted = self.services.replicas.partition(partition)
                epoch = -1 if hosted is None else hosted.leader_epoch
                loading = transactions.load(partition.partition, epoch)
                self._tasks.start(loading, f"transactions of {partition}")

    def _config_changed(self, topic: str | None) -> None:
        """Apply new log settings, and retry elections that the new config may allow."""
        services = self.services
        services.quotas.refresh()
        if topic is None:
            self._tasks.start(self._register_anew(), "registration")
        services.logs.reconfigure(topic)
        may_be_unclean = topic is None or services.configs.settings(topic).unclean_leader_election
        if may_be_unclean and services.controller.is_active:
            self._tasks.start(services.controller.elect_missing_leaders(), "election of missing leaders")

    def _directory_failed(self, path: str, lost: tuple[TopicPartition, ...]) -> None:
        if self._has_services:
            self.services.replicas.directory_failed(path, lost)
            if len(self.services.logs.offline) == len(self._options.log_dirs):
                self._on_ruined()
                return
        self._tasks.start(self._tell_of_failure(), f"note of the failure of {path}")

    async def _tell_of_failure(self) -> None:
        note = LogDirEvent(self._options.broker_id)
        await self._store.create(LogDirEvent.PREFIX, note.encode(), sequential=True)

    # Controlled shutdown

    async def _take_leave(self) -> None:
        """Ask the controller to move leaders away. The broker stops after a few attempts in any case."""
        self.services.replicas.leaving = True
        clock = self._world.clock
        for attempt in range(_FAREWELL_TRIES):
            if attempt:
                await clock.sleep(_FAREWELL_PAUSE_S)
            try:
                remaining = await self._ask_to_leave()
            except (OSError, StoreError) as error:
                log.info("broker %d: controlled shutdown failed: %s", self._options.broker_id, error)
                continue
            if not remaining:
                return
            log.info("broker %d still leads %d partitions", self._options.broker_id, remaining)

    async def _ask_to_leave(self) -> int:
        """Return how many partitions the broker still leads. Raises OSError."""
        request = ControlledShutdownRequest(
            broker_id=self._options.broker_id, broker_epoch=self._controller_requests.broker_epoch
        )
        controller_id = self.services.metadata.controller_id
        answer = await WireChannel(self._control).call(controller_id, request)
        if answer.error_code:
            raise ConnectionError(f"the controller refused with error {answer.error_code}")
        return len(answer.remaining_partitions)
