"""How fast a run may copy, and the configs that hold it to that."""
