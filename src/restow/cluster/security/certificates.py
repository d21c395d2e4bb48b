"""The name in a certificate, as Kafka takes it for the principal: `CN=client,OU=team,O=example`.

Java writes a name by RFC 2253: the last part first, commas between, keywords for the oldest attributes and
numbers for the others, whose values are in hexadecimal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.security.principal import ANONYMOUS, USER, Principal
from restow.errors import RestowError

if TYPE_CHECKING:
    from restow.cluster.security.principal_rules import PrincipalRules

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXT = {
    0x0C: "utf-8",
    0x12: "ascii",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1A: "ascii",
    0x1C: "utf-32-be",
    0x1E: "utf-16-be",
}
"""Encodings by the tags of ASN.1's strings."""
_SPECIAL = frozenset(',+"\\<>;=')
_VERSION = 0xA0
_LONG_FORM = 0x80


class UnreadableCertificate(RestowError):
    """Bytes that are no certificate."""


class _Element(NamedTuple):
    tag: int
    content: bytes
    whole: bytes


def principal_of(certificate: bytes | None, rules: PrincipalRules) -> Principal:
    """Return the principal of a client with that certificate (DER), or with none.

    Raises UnreadableCertificate or NoRuleMatches.
    """
    return ANONYMOUS if certificate is None else Principal(USER, rules.name_of(subject_of(certificate)))


def subject_of(certificate: bytes) -> str:
    """Return the subject's name. Raises UnreadableCertificate."""
    try:
        (outer,) = _elements(certificate)
        fields = _elements(_elements(outer.content)[0].content)
        # Behind an optional version: serial number, algorithm, issuer, validity, subject.
        subject = fields[5 if fields[0].tag == _VERSION else 4]
        parts = [_part(each) for each in _elements(subject.content)]
    except (ValueError, IndexError) as error:
        raise UnreadableCertificate(f"a client's certificate cannot be read: {error}") from error
    return ",".join(reversed(parts))


def _part(element: _Element) -> str:
    return "+".join(_attribute(*_elements(each.content)) for each in _elements(element.content))


def _attribute(kind: _Element, value: _Element) -> str:
    number = _number(kind.content)
    keyword = _KEYWORDS.get(number)
    if keyword is None or value.tag not in _TEXT:
        return f"{keyword or number}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(value.content.decode(_TEXT[value.tag]))}"


def _escaped(text: str) -> str:
    written = "".join(f"\\{each}" if each in _SPECIAL else each for each in text)
    if text.startswith(("#", " ")):
        written = f"\\{written}"
    if text.endswith(" ") and len(text) > 1:
        written = f"{written[:-1]}\\ "
    return written


def _number(content: bytes) -> str:
    """Return an object identifier in dotted form."""
    values, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & _LONG_FORM:
            values.append(value)
            value = 0
    first = min(values[0] // 40, 2)
    return ".".join(map(str, (first, values[0] - 40 * first, *values[1:])))


def _elements(data: bytes) -> list[_Element]:
    """Return the elements one after the other. Raises ValueError or IndexError."""
    found = []
    at = 0
    while at < len(data):
        start, tag, length = at, data[at], data[at + 1]
        at += 2
        if length & _LONG_FORM:
            count = length & 0x7F
            length = int.from_bytes(data[at : at + count], "big")
            at += count
        if length > len(data) - at:
            raise ValueError("it is cut off")
        found.append(_Element(tag, data[at : at + length], data[start : at + length]))
        at += length
    return found
