"""How far a run has got, what stands still, and what the user is told."""
