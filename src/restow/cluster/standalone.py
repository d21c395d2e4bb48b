"""A broker in its own process, which joins the others through ZooKeeper.

    broker = standalone(options, StoreAddress.parse("zookeeper://127.0.0.1:2181/kafka"))
    await broker.start()

While ZooKeeper is unreachable for less than the session timeout, the broker goes on. When the session
expires, it starts again, as `broker.py` says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.cluster.broker.broker import BrokerRuntime, BrokerServer
from restow.cluster.config.configs import BrokerConfigs
from restow.cluster.store import InvalidPath, ensure_paths
from restow.cluster.store.paths import check_path
from restow.cluster.store.zookeeper import ZooKeeperStore
from restow.errors import InvalidAddress
from restow.runtime.chance import SystemChance
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk
from restow.runtime.network import SystemNetwork

if TYPE_CHECKING:
    from restow.cluster.broker.broker import BrokerOptions

_SCHEME = "zookeeper://"
_LARGEST_PORT = 65_535
_SPARE_S = 5.0


@frozen
class StoreAddress:
    """The servers of a ZooKeeper, and the cluster's root znode."""

    hosts: tuple[str, ...]
    """Each as `host:port`."""
    root: str = ""
    """Such as `/kafka`, or empty for the top."""

    @classmethod
    def parse(cls, text: str) -> StoreAddress:
        """Parse `zookeeper://host:port/root`; several hosts as `zookeeper://a:2181,b:2181`."""
        if not text.startswith(_SCHEME):
            raise InvalidAddress(
                f"{text!r} is not the address of a store: "
                "write zookeeper://host:port, with several hosts zookeeper://a:2181,b:2181/root"
            )
        hosts, slash, root = text.removeprefix(_SCHEME).partition("/")
        return cls(
            hosts=tuple(_checked_host(each.strip(), text) for each in hosts.split(",")),
            root=_checked_root(root.rstrip("/"), text) if slash else "",
        )

    @property
    def servers(self) -> str:
        """Return the address for ZooKeeper's clients, without the root."""
        return ",".join(self.hosts)


def standalone(options: BrokerOptions, address: StoreAddress) -> BrokerServer:
    """Return a broker that is not started yet. Its configs set the session timeout."""
    configs = BrokerConfigs(options.properties)
    timeout_s = configs.integer("zookeeper.session.timeout.ms") / 1000
    clock = SystemClock()

    async def connect(hosts: str) -> ZooKeeperStore:
        return await ZooKeeperStore.connect(
            hosts, timeout_s=timeout_s, connect_timeout_s=timeout_s, clock=clock
        )

    async def open_session() -> ZooKeeperStore:
        if address.root:
            top = await connect(address.servers)
            try:
                await ensure_paths(top, [address.root])
            finally:
                await top.close()
        return await connect(address.servers + address.root)

    world = BrokerRuntime(
        clock=clock,
        chance=SystemChance(),
        network=SystemNetwork(),
        disk=SystemDisk(),
        open_session=open_session,
    )
    # The server expires sessions at its next tick, so up to one tick late.
    return BrokerServer(replace(options, registration_patience_s=1.5 * timeout_s + _SPARE_S), world)


def _checked_host(text: str, whole: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not host or (":" in host and not (host.startswith("[") and host.endswith("]"))):
        raise InvalidAddress(f"{whole!r} names the host {text!r}: write host:port, such as 127.0.0.1:2181")
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= _LARGEST_PORT):
        raise InvalidAddress(f"{whole!r} has the port {port!r}: it must be a number up to {_LARGEST_PORT}")
    return text


def _checked_root(name: str, whole: str) -> str:
    if not name:
        return ""
    try:
        return check_path(f"/{name}")
    except InvalidPath as error:
        raise InvalidAddress(f"{whole!r} has a root that cannot be: {error}") from error
