"""Benchmarks: each prints ours, the peer's and the ratio, all from one run on one machine."""
