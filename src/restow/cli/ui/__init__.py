"""The command `restow ui`."""
