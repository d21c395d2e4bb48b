"""What a plan is asked to reach, checked and turned into a problem for the search."""
