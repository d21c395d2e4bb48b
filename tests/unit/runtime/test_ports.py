"""A port is reserved for a server that stops and starts again."""

from __future__ import annotations

import socket
import sys

import pytest

from restow.runtime.ports import HeldPort

HOST = "127.0.0.1"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ports can be held on Linux alone")


def test_server_can_listen_again_on_held_port() -> None:
    port = HeldPort(HOST)
    try:
        for _ in range(3):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((HOST, port.number))
            with socket.create_server((HOST, port.number)) as server:
                with socket.create_connection((HOST, port.number)), pytest.raises(OSError, match="in use"):
                    socket.create_server((HOST, port.number))
                server.accept()[0].close()
    finally:
        port.let_go()


def test_held_port_is_not_dealt_until_released() -> None:
    port = HeldPort(HOST)
    with socket.socket() as other:
        try:
            with pytest.raises(OSError, match="in use"):
                other.bind((HOST, port.number))
        finally:
            port.let_go()
            port.let_go()
        other.bind((HOST, port.number))


def test_held_port_refuses_foreign_address() -> None:
    with pytest.raises(OSError, match="assign requested address"):
        HeldPort("192.0.2.1")
