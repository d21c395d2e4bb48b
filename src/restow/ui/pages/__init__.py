"""The pages: each takes what is known and returns HTML."""
