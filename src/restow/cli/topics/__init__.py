"""The commands `restow topics …`."""
