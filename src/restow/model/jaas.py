"""Parse `sasl.jaas.config`: one line in the language of Java's login configuration.

    org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="…";

Errors never quote the line, because it has a password in it.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOKEN = re.compile(
    r"""\s*(?:
        "(?P<double>(?:\\.|[^"\\\n])*)" |
        '(?P<single>(?:\\.|[^'\\\n])*)' |
        (?P<sign>[=;]) |
        (?P<word>[^\s=;"']+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_FLAGS = {"required", "requisite", "sufficient", "optional"}
SHAPE = 'write it like: ….PlainLoginModule required username="…" password="…";'

_MODULES = {
    "PlainLoginModule": "PLAIN",
    "ScramLoginModule": "SCRAM",
    "OAuthBearerLoginModule": "OAUTHBEARER",
    "Krb5LoginModule": "GSSAPI",
    "IAMLoginModule": "AWS_MSK_IAM",
}


@frozen
class JaasEntry:
    """A login module's family of mechanisms, and its options, which may be secrets."""

    family: str
    options: Mapping[str, str] = field(repr=False)


def parse_entry(text: str, where: str) -> JaasEntry:
    """Parse the only entry."""
    words = _words(text, where)
    if len(words) < 3 or words[-1] != (";", True):
        raise InvalidInput(f"{where}: it does not end in a semicolon; {SHAPE}")
    (module, _), (flag, _), *rest = words[:-1]
    if flag.lower() not in _FLAGS:
        raise InvalidInput(f"{where}: after the login module comes one of required, optional, …; {SHAPE}")
    family = _MODULES.get(module.rpartition(".")[2])
    if family is None:
        raise InvalidInput(
            f"{where}: it names a login module that restow cannot use; it knows {', '.join(_MODULES)}"
        )
    return JaasEntry(family=family, options=_options(rest, where))


def _options(words: list[tuple[str, bool]], where: str) -> Mapping[str, str]:
    options: dict[str, str] = {}
    if len(words) % 3:
        raise InvalidInput(f"{where}: its options are not all name=value; {SHAPE}")
    for (name, _), equals, (value, is_sign) in zip(words[::3], words[1::3], words[2::3], strict=True):
        if equals != ("=", True) or is_sign:
            raise InvalidInput(f"{where}: its options are not all name=value; {SHAPE}")
        options[name] = value
    return options


def _words(text: str, where: str) -> list[tuple[str, bool]]:
    """Return the words, each with whether it is a punctuation mark."""
    words = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise InvalidInput(f"{where}: a quote is opened at character {at + 1} and not closed; {SHAPE}")
        quoted = match["double"] if match["double"] is not None else match["single"]
        if quoted is not None:
            words.append((_ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), quoted), False))
        else:
            words.append((match["sign"] or match["word"], match["sign"] is not None))
        at = match.end()
    return words
