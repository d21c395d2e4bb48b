"""Connections: of clients to this broker, and of this broker to others."""
