"""The flow model: how fast replicas are copied side by side, and when each copy ends. Pure."""
