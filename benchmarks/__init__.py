"""Benchmarks: each prints our figure, the peer's and the ratio, all from one run on one machine."""
