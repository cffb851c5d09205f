"""Open a study and compute its results."""
