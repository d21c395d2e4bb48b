"""Certificates that are made for a cluster, and folders with others."""

from __future__ import annotations

import ssl
import sys
from typing import TYPE_CHECKING

import pytest

from restow.errors import InvalidInput
from restow.runtime.certificates import Certificates
from restow.runtime.tls import TlsFiles, client_context, server_context

if TYPE_CHECKING:
    from pathlib import Path


def shaken_hands(made: Certificates, host: str) -> None:
    """Let a client of `client.pem` and a server of `server.pem` shake hands in memory."""
    files = TlsFiles(keystore=str(made.server), truststore=str(made.authority))
    theirs = TlsFiles(keystore=str(made.client), truststore=str(made.authority))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context(files).wrap_bio(to_server, to_client, server_side=True)
    client = client_context(theirs).wrap_bio(to_client, to_server, server_hostname=host)
    for each in (client, server, client, server):
        try:
            each.do_handshake()
        except ssl.SSLWantReadError:
            continue


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "10.1.2.3"])
def test_made_certificates_are_for_the_host_and_loopback(tmp_path: Path, host: str) -> None:
    made = Certificates(tmp_path / "made" / "here")
    made.make_if_none("10.1.2.3")
    shaken_hands(made, host)
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken_hands(made, "10.1.2.4")
    assert made.server.stat().st_mode & 0o077 == 0
    assert [each.name for each in made.folder.parent.iterdir()] == ["here"]


def test_certificates_that_are_there_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Certificates(tmp_path)
    made.make_if_none("127.0.0.1")
    before = made.server.read_bytes()
    monkeypatch.setitem(sys.modules, "cryptography", None)
    made.make_if_none("127.0.0.1")
    assert made.server.read_bytes() == before
    made.authority.unlink()
    with pytest.raises(InvalidInput, match=r"authority\.pem is missing"):
        made.make_if_none("127.0.0.1")


def test_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    with pytest.raises(InvalidInput, match="other files"):
        Certificates(tmp_path).make_if_none("127.0.0.1")
    assert [each.name for each in tmp_path.iterdir()] == ["notes"]


def test_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(InvalidInput, match=r"restow\[sign\]"):
        Certificates(tmp_path / "new").make_if_none("127.0.0.1")
    assert list(tmp_path.iterdir()) == []
