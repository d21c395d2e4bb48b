"""Read Java's key and trust stores as PEM.

    PEM      unchanged
    JKS      read here: certificates are unencrypted, keys use a scheme of Sun's on SHA-1
    PKCS12   by the `openssl` program if there is one: Python has no AES of its own

The first bytes identify the type, as in Java, except for PEM.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.runtime.secrets import Secret

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

_JKS = b"\xfe\xed\xfe\xed"
_JCEKS = b"\xce\xce\xce\xce"
_SUN_SALT = b"Mighty Aphrodite"
_SUN_KEY = bytes.fromhex("2b060104012a02110101")
"""The object id of Sun's scheme in a key's header."""
_SALT_BYTES = 20
_KEY, _CERTIFICATE = 1, 2
_OPENSSL_TIMEOUT_S = 30


@frozen
class Pem:
    """The contents of a store. The key may still be encrypted, by the store's own password."""

    certificates: str
    """The owner's certificate first, then its chain; or all trusted ones."""
    key: Secret | None = None


def read_store(path: str, password: Secret | None, key_password: Secret | None = None) -> Pem:
    """Return the certificates, and the first key if there is one."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(f"the store {path!r} cannot be read: {error.strerror}") from error
    if b"-----BEGIN " in data:
        return pem_of(data.decode("ascii", "replace"), path)
    if data.startswith(_JKS):
        return _jks(data, path, password, key_password or password)
    if data.startswith(b"\x30"):
        return _pkcs12(path, password)
    kind = "a JCEKS store" if data.startswith(_JCEKS) else "neither a PEM, a JKS nor a PKCS12 store"
    raise InvalidInput(f"{path!r} is {kind}: {_how_to_convert(path)}")


def show(context: ssl.SSLContext, own: Pem, key_password: Secret | None) -> None:
    """Let the context show this certificate. Raises SSLError, or InvalidInput without a key.

    OpenSSL takes keys from files only: a private one, for a moment.
    """
    if own.key is None:
        raise InvalidInput("there is no private key in it")
    handle, name = tempfile.mkstemp(prefix="restow-", suffix=".pem")
    try:
        with os.fdopen(handle, "w", encoding="ascii", errors="replace") as file:
            file.write(own.key.reveal() + own.certificates)
        # An empty password instead of none: otherwise an encrypted key would be asked for on the terminal.
        context.load_cert_chain(name, password="" if key_password is None else key_password.reveal())
    finally:
        Path(name).unlink(missing_ok=True)


def _how_to_convert(path: str, *, is_pkcs12: bool = False) -> str:
    first = (
        f"`keytool -importkeystore -srckeystore {path} -destkeystore store.p12 -deststoretype PKCS12` and "
    )
    store = path if is_pkcs12 else "store.p12"
    return (
        f"convert it with {'' if is_pkcs12 else first}`openssl pkcs12 -in {store} -nodes -out store.pem`, "
        "and set ssl.truststore.type or ssl.keystore.type to PEM"
    )


def pem_of(text: str, where: str) -> Pem:
    """Return the blocks of a text by kind."""
    blocks = list(_blocks(text))
    certificates = "".join(body for kind, body in blocks if "CERTIFICATE" in kind)
    keys = [body for kind, body in blocks if kind.endswith("PRIVATE KEY")]
    if not certificates and not keys:
        raise InvalidInput(f"{where}: there is no certificate and no private key in it")
    return Pem(certificates=certificates, key=Secret(keys[0]) if keys else None)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the blocks with their kinds. In properties, spaces may replace line ends."""
    for part in text.split("-----BEGIN ")[1:]:
        kind, found, rest = part.partition("-----")
        body, ended, _ = rest.partition(f"-----END {kind}-----")
        if found and ended:
            lines = body.strip() if "\n" in body.strip() else "\n".join(body.split())
            yield kind, f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----\n"


class _Jks:
    """Reads Java's own store format."""

    def __init__(self, data: bytes, path: str) -> None:
        self._data = data
        self._path = path
        self._at = 4

    def number(self) -> int:
        value: int = struct.unpack(">I", self.take(4))[0]
        return value

    def text(self) -> str:
        length: int = struct.unpack(">H", self.take(2))[0]
        return self.take(length).decode("utf-8", "replace")

    def take(self, length: int) -> bytes:
        piece = self._data[self._at : self._at + length]
        if len(piece) < length:
            raise InvalidInput(f"{self._path!r} ends in the middle: it is no whole JKS store")
        self._at += length
        return piece

    @property
    def at(self) -> int:
        return self._at


def _jks(data: bytes, path: str, password: Secret | None, key_password: Secret | None) -> Pem:
    store = _Jks(data, path)
    version = store.number()
    trusted, chain, key = [], [], None
    for _ in range(store.number()):
        kind = store.number()
        store.text()  # the alias
        store.take(8)  # the creation time
        if kind == _CERTIFICATE:
            trusted.append(_certificate(store, version))
        elif kind == _KEY:
            hidden = store.take(store.number())
            certificates = [_certificate(store, version) for _ in range(store.number())]
            if key is None:
                key, chain = _sun_key(hidden, path, key_password), certificates
        else:
            raise InvalidInput(f"{path!r} has an entry that is neither a key nor a certificate")
    if password is not None:
        whole = hashlib.sha1(_utf16(password) + _SUN_SALT + data[: store.at], usedforsecurity=False)
        if whole.digest() != store.take(_SALT_BYTES):
            raise InvalidInput(f"{path!r} cannot be opened with this password, or it was tampered with")
    return Pem(certificates="".join(chain or trusted), key=key)


def _certificate(store: _Jks, version: int) -> str:
    if version == 2:
        store.text()  # the type, X.509
    return _as_pem("CERTIFICATE", store.take(store.number()))


def _sun_key(hidden: bytes, path: str, password: Secret | None) -> Secret:
    """Decrypt the key, which is XORed with a chain of hashes of the password and a salt."""
    if _SUN_KEY not in hidden[:32]:
        raise InvalidInput(f"{path!r} hides its key in an unknown way: {_how_to_convert(path)}")
    if password is None:
        raise InvalidInput(f"{path!r} has a key, but no ssl.keystore.password or ssl.key.password is given")
    body = hidden[_octets_at(hidden) :]
    salt, veiled, check = body[:_SALT_BYTES], body[_SALT_BYTES:-_SALT_BYTES], body[-_SALT_BYTES:]
    word, link, stream = _utf16(password), salt, b""
    while len(stream) < len(veiled):
        link = hashlib.sha1(word + link, usedforsecurity=False).digest()
        stream += link
    plain = bytes(a ^ b for a, b in zip(veiled, stream, strict=False))
    if hashlib.sha1(word + plain, usedforsecurity=False).digest() != check:
        raise InvalidInput(f"the key in {path!r} cannot be opened with this password")
    return Secret(_as_pem("PRIVATE KEY", plain))


def _octets_at(hidden: bytes) -> int:
    """Return where the octets begin, after the scheme's object id, a null and their length."""
    at = hidden.index(_SUN_KEY) + len(_SUN_KEY)
    if hidden[at : at + 2] == b"\x05\x00":
        at += 2
    length = hidden[at + 1]
    return at + 2 + (length & 0x7F if length & 0x80 else 0)


def _utf16(password: Secret) -> bytes:
    return password.encode("utf-16-be")


def _as_pem(kind: str, der: bytes) -> str:
    body = "\n".join(textwrap.wrap(base64.b64encode(der).decode(), 64))
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n"


def _pkcs12(path: str, password: Secret | None) -> Pem:
    program = shutil.which("openssl")
    if program is None:
        raise InvalidInput(
            f"{path!r} is a PKCS12 store, and there is no `openssl` on the PATH to read it with: "
            f"install it, or where there is one {_how_to_convert(path, is_pkcs12=True)}"
        )
    command = [program, "pkcs12", "-in", path, "-nodes", "-passin", "stdin"]
    word = password.reveal() if password is not None else ""
    for legacy in ([], ["-legacy"]):
        done = subprocess.run(  # noqa: S603  (the program of that name on the PATH, the store of the user)
            [*command, *legacy],
            input=word + "\n",
            capture_output=True,
            text=True,
            timeout=_OPENSSL_TIMEOUT_S,
            check=False,
        )
        if done.returncode == 0:
            return pem_of(done.stdout, path)
        if "invalid password" in done.stderr or "mac verify" in done.stderr.lower():
            raise InvalidInput(f"{path!r} cannot be opened with this password")
    raise InvalidInput(f"{path!r} is no PKCS12 store that openssl can read: {_how_to_convert(path)}")
