"""SCRAM (RFC 5802) with SHA-256 and SHA-512: credentials, and both sides of a login.

The server keeps no password, only keys derived from it. Each side proves to the other that it knows them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from enum import IntEnum
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.cluster.security.refusal import SaslRefused, SaslReply
from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16_384
_PRINTABLE = re.compile(r"[\x21-\x2B\x2D-\x7E]+")
_FIELD = re.compile(r"([a-zA-Z])=(.*)", re.DOTALL)


class ScramMechanism(IntEnum):
    """The mechanisms, with the numbers of AlterUserScramCredentials."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        """Return the name in SaslHandshake, and in the user's configs."""
        return f"SCRAM-{self.name.replace('_', '-')}"

    @property
    def digest(self) -> str:
        """Return hashlib's name of the hash."""
        return self.name.replace("_", "").lower()


SCRAM_MECHANISMS = {each.sasl_name: each for each in ScramMechanism}
"""By their names in SASL."""


class InvalidCredential(RestowError):
    """A stored credential that cannot be read."""


@frozen
class ScramCredential:
    """What a server knows of a user's password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of_password(cls, mechanism: ScramMechanism, password: str, salt: bytes) -> ScramCredential:
        salted = salted_password(mechanism, password, salt, MIN_ITERATIONS)
        return cls.of_salted(mechanism, salted, salt, MIN_ITERATIONS)

    @classmethod
    def of_salted(
        cls, mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
    ) -> ScramCredential:
        """Return the credential for a password that is salted and hashed already."""
        client_key = hmac.digest(salted, b"Client Key", mechanism.digest)
        return cls(
            salt=salt,
            stored_key=hashlib.new(mechanism.digest, client_key).digest(),
            server_key=hmac.digest(salted, b"Server Key", mechanism.digest),
            iterations=iterations,
        )

    def encode(self) -> str:
        """Return the credential as Kafka stores it in a user's configs."""
        salt, stored, server = (
            b64encode(each).decode() for each in (self.salt, self.stored_key, self.server_key)
        )
        return f"salt={salt},stored_key={stored},server_key={server},iterations={self.iterations}"

    @classmethod
    def decode(cls, text: str) -> ScramCredential:
        """Read a stored credential. Raises InvalidCredential, which does not quote it."""
        fields = dict(part.partition("=")[::2] for part in text.split(","))
        try:
            return cls(
                salt=b64decode(fields["salt"], validate=True),
                stored_key=b64decode(fields["stored_key"], validate=True),
                server_key=b64decode(fields["server_key"], validate=True),
                iterations=int(fields["iterations"]),
            )
        except (KeyError, ValueError) as error:
            raise InvalidCredential("a SCRAM credential in the store cannot be read") from error


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the hash from which both sides derive their keys."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)


class ScramServer:
    """The server's side: two tokens in, two out."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        credential_of: Callable[[str], Awaitable[ScramCredential | None]],
        nonce: str,
    ) -> None:
        self._mechanism = mechanism
        self._credential_of = credential_of
        self._nonce = nonce
        self._user = ""
        self._credential: ScramCredential | None = None
        self._header = ""
        self._said = ""

    async def answer(self, token: bytes) -> SaslReply:
        """Return the next token for the client. Raises SaslRefused."""
        text = _text(token)
        if self._credential is None:
            return await self._first(text)
        return self._final(text, self._credential)

    async def _first(self, text: str) -> SaslReply:
        flag, authzid, bare = _split_first(text)
        fields = _fields(bare)
        names = [name for name, _ in fields]
        if flag != "n" or names[:2] != ["n", "r"] or not _PRINTABLE.fullmatch(fields[1][1]):
            raise SaslRefused("Invalid SCRAM client first message format")
        self._user = _unescaped(fields[0][1])
        if ("tokenauth", "true") in (part.partition("=")[::2] for part in bare.split(",")):
            raise SaslRefused("Authentication failed: there are no delegation tokens on this cluster")
        if authzid and _unescaped(authzid.removeprefix("a=")) != self._user:
            raise SaslRefused(OTHER_IDENTITY)
        credential = await self._credential_of(self._user)
        if credential is None:
            raise SaslRefused(_invalid(self._mechanism))
        self._credential = credential
        self._header = text[: len(text) - len(bare)]
        self._nonce = fields[1][1] + self._nonce
        first = f"r={self._nonce},s={b64encode(credential.salt).decode()},i={credential.iterations}"
        self._said = f"{bare},{first}"
        return SaslReply(first.encode())

    def _final(self, text: str, credential: ScramCredential) -> SaslReply:
        without_proof, comma, proof = text.rpartition(",p=")
        fields = dict(_fields(without_proof))
        if not comma or fields.get("c") != b64encode(self._header.encode()).decode():
            raise SaslRefused("Invalid SCRAM client final message format")
        if not hmac.compare_digest(fields.get("r", "").encode(), self._nonce.encode()):
            raise SaslRefused("Invalid client nonce in the final client message.")
        said = f"{self._said},{without_proof}".encode()
        try:
            given = b64decode(proof, validate=True)
        except NotBase64:
            raise SaslRefused("Invalid SCRAM client final message format") from None
        signature = hmac.digest(credential.stored_key, said, self._mechanism.digest)
        client_key = bytes(a ^ b for a, b in zip(given, signature, strict=False))
        derived = hashlib.new(self._mechanism.digest, client_key).digest()
        if len(given) != len(signature) or not hmac.compare_digest(derived, credential.stored_key):
            raise SaslRefused(_invalid(self._mechanism))
        proven = hmac.digest(credential.server_key, said, self._mechanism.digest)
        return SaslReply(b"v=" + b64encode(proven), self._user)


class ScramClient:
    """The client's side, for a broker that logs in to another one."""

    def __init__(self, mechanism: ScramMechanism, user: str, password: str, nonce: str) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        escaped = user.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={escaped},r={nonce}"

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def final(self, token: bytes) -> tuple[bytes, bytes]:
        """Return the last token for the server, and the one that it must answer. Raises SaslRefused."""
        text = _text(token)
        fields = dict(_fields(text))
        try:
            salt, iterations = b64decode(fields["s"], validate=True), int(fields["i"])
        except (KeyError, ValueError):
            raise SaslRefused("the other broker's SCRAM message cannot be read") from None
        nonce = fields.get("r", "")
        if not nonce.startswith(self._nonce) or not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise SaslRefused("the other broker's SCRAM message is not an answer to this one's")
        salted = salted_password(self._mechanism, self._password, salt, iterations)
        credential = ScramCredential.of_salted(self._mechanism, salted, salt, iterations)
        without_proof = f"c=biws,r={nonce}"
        said = f"{self._bare},{text},{without_proof}".encode()
        client_key = hmac.digest(salted, b"Client Key", self._mechanism.digest)
        signature = hmac.digest(credential.stored_key, said, self._mechanism.digest)
        proof = b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
        expected = hmac.digest(credential.server_key, said, self._mechanism.digest)
        return f"{without_proof},p={proof}".encode(), b"v=" + b64encode(expected)


OTHER_IDENTITY = "Authentication failed: Client requested an authorization id that is different from username"


def _invalid(mechanism: ScramMechanism) -> str:
    """Return Kafka's message; it does not tell a wrong password from an unknown user."""
    return (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism "
        f"{mechanism.sasl_name}"
    )


def _text(token: bytes) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError:
        raise SaslRefused("Invalid SCRAM message format") from None


def _split_first(text: str) -> tuple[str, str, str]:
    parts = text.split(",", 2)
    if len(parts) < 3:
        raise SaslRefused("Invalid SCRAM client first message format")
    return parts[0], parts[1], parts[2]


def _fields(text: str) -> list[tuple[str, str]]:
    """Return the fields with one letter; extensions have longer names, and are left out."""
    found = (_FIELD.fullmatch(part) for part in text.split(","))
    return [(match[1], match[2]) for match in found if match is not None]


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
