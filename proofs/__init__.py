"""Proofs: tests by the hundred or thousand, whose tables are kept in docs/proofs. Run with `make prove`."""
