"""Who scores."""
