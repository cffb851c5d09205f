"""Compare editors, runs and reproductions."""
