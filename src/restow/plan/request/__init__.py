"""The request for a plan, checked and turned into a problem for the search."""
