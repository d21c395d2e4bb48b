"""One broker: its parts, and its life from registration to shutdown."""
