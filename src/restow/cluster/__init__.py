"""The embedded cluster."""
