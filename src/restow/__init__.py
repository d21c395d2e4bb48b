"""Restow: where Kafka partitions live, who reads them, and how they move."""

__version__ = "0.1.0"
