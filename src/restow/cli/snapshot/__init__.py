"""The commands `restow snapshot …`."""
