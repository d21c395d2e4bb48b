"""Connections from clients to this broker, and from this broker to others."""
