"""One run of a plan, from its first check to its end."""
