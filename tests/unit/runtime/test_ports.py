"""A port is held for servers that come and go, and from everybody else."""

from __future__ import annotations

import socket
import sys

import pytest

from restow.runtime.ports import HeldPort

HOST = "127.0.0.1"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ports can be held on Linux alone")


def test_a_server_comes_goes_and_comes_again() -> None:
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


def test_it_is_taken_until_it_is_let_go_of() -> None:
    port = HeldPort(HOST)
    with socket.socket() as other:
        try:
            with pytest.raises(OSError, match="in use"):
                other.bind((HOST, port.number))
        finally:
            port.let_go()
            port.let_go()
        other.bind((HOST, port.number))


def test_an_address_of_somebody_else() -> None:
    with pytest.raises(OSError, match="assign requested address"):
        HeldPort("192.0.2.1")
