"""The commands that carry plans out, look after runs and check the result."""
