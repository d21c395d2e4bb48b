"""The commands `restow cluster …`, `restow broker` and `restow acls`."""
