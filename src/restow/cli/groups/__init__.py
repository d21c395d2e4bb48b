"""The commands `restow groups …`."""
