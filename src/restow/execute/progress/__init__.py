"""Progress of a run: how far it is, what is stalled, and what the user sees."""
