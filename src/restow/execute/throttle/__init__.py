"""How fast a run may copy, and the configs that enforce it."""
