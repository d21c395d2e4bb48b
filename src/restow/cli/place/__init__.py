"""The command `restow place`."""
