"""Agreement: people with each other, judges with people, and both combined."""
