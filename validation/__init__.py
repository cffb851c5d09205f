"""Large versions of tests; their tables are in docs/validation. Run with `make validate`."""
