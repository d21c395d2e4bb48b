"""A Kerberos realm on loopback: MIT's KDC, with its files in a temporary folder.

    with kerberos(tmp_path) as realm:
        keytab = realm.keytab("alice")
        ticket = realm.ticket(keytab, "alice")
        env {**os.environ, **realm.environment(ticket)} restow …

The programs are those on the PATH, otherwise Debian's, unpacked into the user's cache (`harness/debian.py`).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.debian import Program, libraries, unpacked
from harness.gssapi import gssapi_environment
from harness.java import HarnessError
from harness.process import HOST, free_ports, last_words, running

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

REALM = "RESTOW.TEST"
_READY_TIMEOUT_S = 120
_PROGRAMS = ("kadmin.local", "kdb5_util", "kinit", "krb5kdc")
_SYSTEM = ("/usr/sbin", "/sbin")
"""Where servers are installed, which a user's PATH often leaves out."""
_MASTER_KEY = "only-for-tests"


@dataclass(frozen=True, slots=True)
class Realm:
    """A realm and its KDC. Every principal has a random key."""

    folder: Path
    config: Path
    """The krb5.conf of its clients and servers."""
    programs: Mapping[str, Program]

    def keytab(self, principal: str) -> Path:
        """Add a principal, and return a keytab with its key."""
        file = self.folder / f"{principal.replace('/', '_')}.keytab"
        self.run("kadmin.local", "addprinc", "-randkey", principal)
        self.run("kadmin.local", "ktadd", "-k", str(file), principal)
        return file

    def ticket(self, keytab: Path, principal: str, *options: str) -> Path:
        """Return a credential cache into which `kinit` has put a ticket."""
        file = self.folder / f"{principal}.ticket"
        self.run("kinit", "-k", "-t", str(keytab), "-c", f"FILE:{file}", *options, principal)
        return file

    def environment(self, ticket: Path | None = None) -> dict[str, str]:
        """Return the environment variables of a client that has this ticket, or none, and gssapi."""
        given = {"KRB5_CONFIG": str(self.config), "KRB5CCNAME": f"FILE:{ticket or self.folder / 'none'}"}
        return {**gssapi_environment(), **given}

    def run(self, name: str, *arguments: str) -> str:
        """Return a program's output."""
        done = subprocess.run(
            [self.programs[name].program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**self.programs[name].environment(), **self._files()},
        )
        if done.returncode != 0:
            raise HarnessError(f"{name} {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    @contextmanager
    def serving(self, port: int) -> Iterator[None]:
        """Run the KDC. It works without a child of its own, so that it ends when it is killed."""
        log = self.folder / "kdc.log"
        kdc = self.programs["krb5kdc"]
        given = {"LD_LIBRARY_PATH": ":".join(kdc.libraries), **self._files()}
        command = ["env", *(f"{name}={value}" for name, value in given.items()), kdc.program, "-n"]
        with running(command, log) as process:
            deadline_s = time.monotonic() + _READY_TIMEOUT_S
            while not _listens(port):
                if process.poll() is not None:
                    raise HarnessError(f"the KDC ended as it started:\n{last_words(log)}")
                if time.monotonic() > deadline_s:
                    raise HarnessError(f"the KDC was not ready in {_READY_TIMEOUT_S} s:\n{last_words(log)}")
                time.sleep(0.05)
            yield

    def _files(self) -> dict[str, str]:
        return {"KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf")}


@contextmanager
def kerberos(folder: Path) -> Iterator[Realm]:
    """Make a realm in `folder`, and run its KDC. Raises Missing if a program or gssapi cannot be had."""
    gssapi_environment()
    root, programs = _programs()
    folder.mkdir(parents=True, exist_ok=True)
    realm = Realm(folder, folder / "krb5.conf", programs)
    with free_ports(1) as (port,):
        plugins = next(root.rglob("krb5/plugins"), None) if root is not None else None
        realm.config.write_text(_client_config(port, plugins), encoding="utf-8")
        (folder / "kdc.conf").write_text(_server_config(folder, port, plugins), encoding="utf-8")
        realm.run("kdb5_util", "create", "-s", "-P", _MASTER_KEY)
        with realm.serving(port):
            yield realm


def _programs() -> tuple[Path | None, Mapping[str, Program]]:
    """Return the programs, and the folder in which they are unpacked unless they are installed."""
    path = os.pathsep.join((os.environ.get("PATH", ""), *_SYSTEM))
    found = {name: shutil.which(name, path=path) for name in _PROGRAMS}
    if all(found.values()):
        return None, {name: Program(str(program)) for name, program in found.items()}
    root = unpacked("krb5-admin-server", "5 MB")
    needed = libraries(root)
    places = {name: root / "usr" / ("bin" if name == "kinit" else "sbin") / name for name in _PROGRAMS}
    return root, {name: Program(str(place), needed) for name, place in places.items()}


def _client_config(port: int, plugins: Path | None) -> str:
    """Return a krb5.conf for hosts that go by the name in the client's address, over TCP alone."""
    lines = [
        "[libdefaults]",
        f"default_realm = {REALM}",
        "dns_lookup_kdc = false",
        "dns_lookup_realm = false",
        "dns_canonicalize_hostname = false",
        "rdns = false",
        "udp_preference_limit = 1",
        *([f"plugin_base_dir = {plugins}"] if plugins is not None else []),
        "[realms]",
        f"{REALM} = {{",
        f"kdc = {HOST}:{port}",
        "}",
    ]
    return _lines(lines)


def _server_config(folder: Path, port: int, plugins: Path | None) -> str:
    lines = [
        "[kdcdefaults]",
        'kdc_listen = ""',
        f"kdc_tcp_listen = {HOST}:{port}",
        "[realms]",
        f"{REALM} = {{",
        f"database_name = {folder / 'principal'}",
        f"key_stash_file = {folder / 'stash'}",
        f"acl_file = {folder / 'kadm5.acl'}",
        "supported_enctypes = aes256-cts:normal",
        "}",
        "[logging]",
        "kdc = STDERR",
        f"default = FILE:{folder / 'kerberos.log'}",
        *(["[dbmodules]", f"db_module_dir = {plugins / 'kdb'}"] if plugins is not None else []),
    ]
    return _lines(lines)


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _listens(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=5):
            return True
    except OSError:
        return False
