"""Store addresses of a standalone broker, and the errors for invalid ones."""

from __future__ import annotations

import pytest

from restow.cluster.standalone import StoreAddress
from restow.errors import InvalidAddress


@pytest.mark.parametrize(
    ("text", "hosts", "root"),
    [
        ("zookeeper://127.0.0.1:2181", ("127.0.0.1:2181",), ""),
        ("zookeeper://a:2181,b:2182/kafka", ("a:2181", "b:2182"), "/kafka"),
        ("zookeeper://[::1]:2181/", ("[::1]:2181",), ""),
        ("zookeeper://a:1/x/y/", ("a:1",), "/x/y"),
    ],
)
def test_parse_reads_store_addresses(text: str, hosts: tuple[str, ...], root: str) -> None:
    assert StoreAddress.parse(text) == StoreAddress(hosts=hosts, root=root)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("127.0.0.1:2181", "is not the address of a store"),
        ("etcd://a:1", "is not the address of a store"),
        ("zookeeper://", "names the host ''"),
        ("zookeeper://a", "names the host 'a'"),
        ("zookeeper://a:2181,", "names the host ''"),
        ("zookeeper://::1:2181", "names the host"),
        ("zookeeper://a:port", "has the port 'port'"),
        ("zookeeper://a:65536", "has the port '65536'"),
        ("zookeeper://a:1//x", "has a root that cannot be"),
        ("zookeeper://a:1/x/../y", "has a root that cannot be"),
    ],
)
def test_parse_refuses_invalid_store_addresses(text: str, complaint: str) -> None:
    with pytest.raises(InvalidAddress, match=r"write|must be|cannot be") as raised:
        StoreAddress.parse(text)
    assert complaint in str(raised.value)
