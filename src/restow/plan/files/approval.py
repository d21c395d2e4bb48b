"""Check that a plan is the approved one, by its digest or by a signature over the digest.

A digest identifies the plan if it came by another way than the file: a ticket, a chat, a merge request. A
signature also identifies the approver, and travels in the file itself.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any

from restow.errors import InvalidDocument, InvalidInput, RestowError
from restow.model import fields
from restow.plan.files.text import digest_of, dumps, loads

if TYPE_CHECKING:
    from restow.model import Plan


_LEAST_DIGITS = 12
_DIGEST = re.compile(rf"(?:sha256:)?([0-9a-f]{{{_LEAST_DIGITS},64}})")


class NotApproved(InvalidInput):
    """The plan is not the approved one. Nothing was changed."""


def digest_digits(given: str) -> str:
    """Return the digits of a digest as a user gives it: with or without "sha256:", or only its start."""
    found = _DIGEST.fullmatch(given.strip().lower())
    if found is None:
        raise InvalidInput(
            f"{given!r} is not a digest: give sha256: and 64 hexadecimal digits, or at least the first "
            f"{_LEAST_DIGITS} of them, as `restow plan` and `restow show` print them"
        )
    return found[1]


def check_digest(plan: Plan, given: str, source: str) -> None:
    """Refuse a plan that does not have this digest; `source` names the plan in the error."""
    digits, found = digest_digits(given), digest_of(plan)
    if not found.removeprefix("sha256:").startswith(digits):
        raise NotApproved(
            f"{source} has the digest {found}, not sha256:{digits}: it is not the plan that was approved. "
            "Use that one, or look at this one (restow show) and have it approved"
        )


def short(digest: str) -> str:
    """Return the start of a digest, which is enough to tell plans apart."""
    return digest[: len("sha256:") + _LEAST_DIGITS]


_MEMBER = "signatures"


class CannotSign(RestowError):
    """Signing needs a library that is not installed."""


def sign(text: str, key: bytes, source: str, key_source: str) -> str:
    """Return the plan's file with a signature by this private key (PEM) added."""
    plan = loads(text, source)
    secret = _private_key(key, key_source)
    made = {
        "key": _base64(secret.public_key().public_bytes_raw()),
        "signature": _base64(secret.sign(_message(digest_of(plan)))),
    }
    others = [each for each in _signatures(text, source) if each["key"] != made["key"]]
    first, rest = dumps(plan).split("\n", 1)
    return f"{first}\n{json.dumps(_MEMBER)}: {json.dumps([*others, made])},\n{rest}"


def check_signed_by(text: str, key: bytes, source: str, key_source: str) -> None:
    """Refuse a plan that the owner of this public key (PEM) has not signed."""
    approver = _public_key(key, key_source)
    from cryptography.exceptions import InvalidSignature

    message = _message(digest_of(loads(text, source)))
    for each in _signatures(text, source):
        try:
            approver.verify(base64.b64decode(each["signature"], validate=True), message)
        except (InvalidSignature, binascii.Error):
            continue
        return
    raise NotApproved(
        f"{source} has no signature by the key in {key_source} that fits what it says: have it approved with "
        f"`restow plan sign {source} --key …`"
    )


def _message(digest: str) -> bytes:
    """Return the signed bytes, with a prefix so that the signature cannot be used for anything else."""
    return f"restow plan {digest}".encode()


def _signatures(text: str, source: str) -> list[dict[str, Any]]:
    try:
        found = fields.items(json.loads(text).get(_MEMBER, []))
        return [
            {name: fields.text(fields.members(each)[name]) for name in ("key", "signature")} for each in found
        ]
    except fields.DAMAGE as error:
        raise InvalidDocument(f"{source}: its signatures are damaged: {fields.what(error)}") from None


def _private_key(pem: bytes, source: str) -> Any:
    serialization, ed25519, unreadable = _library()
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except TypeError:
        raise InvalidDocument(f"{source}: this private key has a password; give one without") from None
    except unreadable as error:
        raise InvalidDocument(f"{source} is no private key in PEM: {error}") from None
    return _ed25519(key, ed25519.Ed25519PrivateKey, source)


def _public_key(pem: bytes, source: str) -> Any:
    serialization, ed25519, unreadable = _library()
    try:
        key = serialization.load_pem_public_key(pem)
    except unreadable as error:
        raise InvalidDocument(f"{source} is no public key in PEM: {error}") from None
    return _ed25519(key, ed25519.Ed25519PublicKey, source)


def _ed25519(key: Any, kind: Any, source: str) -> Any:
    if not isinstance(key, kind):
        raise InvalidDocument(
            f"{source} is no Ed25519 key: make one with `openssl genpkey -algorithm ed25519`"
        )
    return key


def _library() -> tuple[Any, Any, Any]:
    """Import the parts of the optional library that signing needs."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise CannotSign("signatures need the library cryptography: pip install 'restow[sign]'") from None
    return serialization, ed25519, (ValueError, UnsupportedAlgorithm)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
