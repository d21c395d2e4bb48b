"""Check that a plan is the one that somebody approved: by its digest, or by a signature over that.

A digest says which plan was meant, as long as it came by another way than the file: a ticket, a chat, a merge
request. A signature says who approved it, and travels in the file itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from restow.errors import InvalidInput
from restow.plan.files.text import digest_of

if TYPE_CHECKING:
    from restow.model import Plan

_LEAST_DIGITS = 12
_DIGEST = re.compile(rf"(?:sha256:)?([0-9a-f]{{{_LEAST_DIGITS},64}})")


class NotApproved(InvalidInput):
    """A plan that is not the one that was approved. Nothing was changed."""


def digest_digits(given: str) -> str:
    """Return the digits of a digest as a person gives it: with or without "sha256:", or only its start."""
    found = _DIGEST.fullmatch(given.strip().lower())
    if found is None:
        raise InvalidInput(
            f"{given!r} is not a digest: give sha256: and 64 hexadecimal digits, or at least the first "
            f"{_LEAST_DIGITS} of them, as `restow plan` and `restow show` print them"
        )
    return found[1]


def check_digest(plan: Plan, given: str, source: str) -> None:
    """Refuse a plan that does not have this digest. `source` is how the complaint calls the plan."""
    digits, found = digest_digits(given), digest_of(plan)
    if not found.removeprefix("sha256:").startswith(digits):
        raise NotApproved(
            f"{source} has the digest {found}, not sha256:{digits}: it is not the plan that was approved. "
            "Use that one, or look at this one (restow show) and have it approved"
        )


def short(digest: str) -> str:
    """The start of a digest, which is enough to tell plans apart."""
    return digest[: len("sha256:") + _LEAST_DIGITS]
