"""Objects that handlers use: the broker's parts and the client's connection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.cluster.net.backlog import Backlog
from restow.cluster.security import ANONYMOUS, Principal

if TYPE_CHECKING:
    from restow.cluster.broker.controller_requests import ControllerRequests
    from restow.cluster.broker.creation import TopicCreation
    from restow.cluster.broker.metadata import MetadataCache
    from restow.cluster.broker.producer_ids import ProducerIds
    from restow.cluster.broker.txn_markers import MarkerWriter
    from restow.cluster.broker.verification import Verifier
    from restow.cluster.config.configs import BrokerConfigs
    from restow.cluster.config.store import ConfigStore
    from restow.cluster.controller import Controller
    from restow.cluster.groups import GroupCoordinator
    from restow.cluster.log import LogManager
    from restow.cluster.quotas import ClientQuotas, QuotaStore, ReplicationQuotas
    from restow.cluster.replication import ReplicaManager
    from restow.cluster.replication.log_dir_moves import LogDirMoves
    from restow.cluster.security.authorizer import AclStore
    from restow.cluster.security.login import SaslLogin
    from restow.cluster.security.users import ScramUsers
    from restow.cluster.store import Store
    from restow.cluster.tasks import Tasks
    from restow.cluster.transactions import TransactionCoordinator
    from restow.runtime.clock import Clock


@frozen
class Services:
    """The parts of one broker."""

    broker_id: int
    clock: Clock
    store: Store
    metadata: MetadataCache
    configs: BrokerConfigs
    config_store: ConfigStore
    logs: LogManager
    replicas: ReplicaManager
    quotas: ReplicationQuotas
    client_quotas: ClientQuotas
    quota_store: QuotaStore
    moves: LogDirMoves
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    markers: MarkerWriter
    verifier: Verifier
    controller: Controller
    creation: TopicCreation
    controller_requests: ControllerRequests
    producer_ids: ProducerIds
    users: ScramUsers
    acls: AclStore | None
    """The ACLs, if there is an authorizer."""
    tasks: Tasks


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One connection: the broker, and the client's `host:port`."""

    broker: Services
    peer: str
    backlog: Backlog = field(default_factory=Backlog)
    """The broker's backlog, which limits large responses."""
    number: int = 0
    """How many connections the broker had accepted before this one."""
    principal: Principal = ANONYMOUS
    """The client's name, for authorization."""
    listener: str = "PLAINTEXT"
    """The listener that the client has reached."""
    login: SaslLogin | None = None
    """The client's login, on a listener that asks for one."""

    @property
    def host(self) -> str:
        """Return the client's host as ACLs name it."""
        return self.peer.rpartition(":")[0]

    @property
    def client_host(self) -> str:
        """Return the client's host as groups show it, with a slash as in Kafka."""
        return f"/{self.peer.rpartition(':')[0]}"
