"""One broker: its parts, and its lifecycle from registration to shutdown."""
