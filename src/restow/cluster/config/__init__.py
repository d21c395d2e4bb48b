"""Configs of topics and brokers: their tables, values and changes."""
