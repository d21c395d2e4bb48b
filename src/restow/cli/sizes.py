"""Sizes and rates for the commands; `restow.sizes` has them, for the packages below too."""

from __future__ import annotations

from restow.sizes import human_bytes, human_rate, parse_rate, parse_size

__all__ = ["human_bytes", "human_rate", "parse_rate", "parse_size"]
