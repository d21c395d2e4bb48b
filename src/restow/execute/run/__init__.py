"""Execute one plan, from the first check to the end of the run."""
