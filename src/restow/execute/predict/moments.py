"""Times as people write them: `22:00`, `2026-11-20T06:00`, `4h`."""

from __future__ import annotations

from datetime import datetime, timedelta

from restow.errors import InvalidInput
from restow.sizes import milliseconds


def moment_ms(text: str, after_ms: int, flag: str) -> int:
    """Return milliseconds since 1970: a time, the next such time of day, or so long after another moment.

    Times are local unless they say otherwise.
    """
    said = text.strip()
    after = datetime.fromtimestamp(after_ms / 1000).astimezone()
    try:
        if "T" in said or "-" in said:
            return int(datetime.fromisoformat(said).astimezone().timestamp() * 1000)
        if ":" in said:
            hour, _, minute = said.partition(":")
            at = after.replace(hour=int(hour), minute=int(minute), second=0, microsecond=0)
            return int((at if at >= after else at + timedelta(days=1)).timestamp() * 1000)
        return after_ms + milliseconds(said, flag)
    except (ValueError, InvalidInput):
        raise InvalidInput(
            f"{flag}: {text!r} is no time; write it like 22:00, 2026-11-20T06:00 or 4h"
        ) from None


def seconds_until(deadline: str, start_ms: int) -> float:
    """Return how long a run has that starts at this moment; nothing or less if that is too late."""
    return (moment_ms(deadline, start_ms, "--deadline") - start_ms) / 1000
