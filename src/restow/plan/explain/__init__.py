"""What a plan does and why, for its readers."""
