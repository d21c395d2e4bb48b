"""Named checks, each with what was seen: may it begin, is it done, may this broker go."""

from restow.verify.broker_check import broker_check
from restow.verify.preflight import blocking, preflight

__all__ = ["blocking", "broker_check", "preflight"]
