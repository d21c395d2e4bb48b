r"""From the subject of a client's certificate to its principal: Kafka's ssl.principal.mapping.rules.

    RULE:^CN=(.*?),OU=.*$/$1@example/L,DEFAULT

The first rule whose pattern matches the whole subject names the client: each match of the pattern is
replaced. `$1` is its first group, and `L` or `U` behind makes lower or upper case of all. DEFAULT takes the
subject as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from restow.errors import InvalidInput, RestowError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NAME = "ssl.principal.mapping.rules"
_DEFAULT = "DEFAULT"
_RULE = re.compile(rf"\s*(?:({_DEFAULT})|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)|)\s*(?:,|$)")
_REFERENCE = re.compile(r"\\(.)|\$(\d+)", re.ASCII | re.DOTALL)
_CASES: Mapping[str, Callable[[str], str]] = {"L": str.lower, "U": str.upper, "": str}


class NoRuleMatches(RestowError):
    """A certificate whose subject no rule knows."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    replacement: str
    case: str

    def name_of(self, subject: str) -> str | None:
        if not self.pattern.fullmatch(subject):
            return None
        return _CASES[self.case](self.pattern.sub(self._replaced, subject))

    def _replaced(self, match: re.Match[str]) -> str:
        return _REFERENCE.sub(lambda found: _expanded(found, match), self.replacement)


@dataclass(frozen=True, slots=True)
class PrincipalRules:
    """The rules of a listener, in their order; None stands for DEFAULT."""

    rules: tuple[_Rule | None, ...] = (None,)

    @classmethod
    def parse(cls, text: str) -> PrincipalRules:
        """Parse the value of the config. Raises InvalidInput."""
        rules: list[_Rule | None] = []
        position = 0
        text = text.strip()
        while position < len(text):
            found = _RULE.match(text, position)
            if found is None:
                raise InvalidInput(
                    f"{_NAME} must be rules of the form RULE:pattern/replacement/, perhaps with L or U "
                    f"behind, or {_DEFAULT}, separated by commas; this is none: {text[position:]!r}"
                )
            default, pattern, replacement, case = found.groups()
            if default:
                rules.append(None)
            elif pattern is not None:
                rules.append(_Rule(_compiled(pattern), replacement, case))
            position = found.end()
        return cls(tuple(rules))

    def name_of(self, subject: str) -> str:
        """Return the client's name. Raises NoRuleMatches."""
        for rule in self.rules:
            name = subject if rule is None else rule.name_of(subject)
            if name is not None:
                return name
        raise NoRuleMatches(f"no rule of {_NAME} is for a certificate of {subject}")


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidInput(f"{_NAME} has a pattern that is none: {pattern!r}: {error}") from error


def _expanded(found: re.Match[str], match: re.Match[str]) -> str:
    """Return what stands for an escaped character, or for a reference to a group.

    Of a reference's digits as many count as there are groups. A reference to no group is itself.
    """
    escaped, digits = found.groups()
    if escaped is not None:
        return str(escaped)
    count = match.re.groups
    for length in range(len(digits), 0, -1):
        if int(digits[:length]) <= count:
            return (match[int(digits[:length])] or "") + digits[length:]
    return found[0]
